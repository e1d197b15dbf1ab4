package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func newReplayCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "replay RUN", Short: "Replay a run without making its calls",
		Long: "Replays a workflow's run with the data it read at the time, using the same script or another\n" +
			"one, and shows what would differ. Nothing is called and nothing is stored. The exit code is\n" +
			"1 if something would differ.",
		Example: "  pawl replay 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e\n" +
			"  pawl replay 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e --script mail.workflow.ts",
		GroupID: groupTools, Args: takes(1, 1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	file := cmd.Flags().String("script", "", "use the script in `FILE`")
	out := addOutputFlag(cmd, formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := runKind().pathOf(args[0]); err != nil {
			return err
		}
		body := map[string]string{}
		if *file != "" {
			text, err := os.ReadFile(p.path(*file))
			if err != nil {
				return &pawl.Error{Code: pawl.CodeNotFound, Msg: *file + " cannot be read", Err: err}
			}
			body["script"], body["filename"] = string(text), filepath.Base(*file)
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		path, _, err := runKind().located(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		raw, err := c.Post(cmd.Context(), path+"/replay", body)
		if err != nil {
			return err
		}
		return printReplay(p, out, raw)
	}
	return cmd
}

// printReplay shows what would be different.
func printReplay(p *Process, out *outputFlag, raw json.RawMessage) error {
	var r client.Replay
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("read replay: %w", err)
	}
	var err error
	if out.machine() {
		err = writeMachine(p.Stdout, out.format, raw)
	} else {
		var b strings.Builder
		switch {
		case r.Same:
			fmt.Fprintf(&b, "Run %s would do the same.\n", r.RunID)
		case r.Error != "" && len(r.Differences) == 0:
			fmt.Fprintf(&b, "Run %s would fail as it did: %s\n", r.RunID, oneLine(string(r.Error)))
		case r.Error != "":
			fmt.Fprintf(&b, "Run %s would fail: %s\n", r.RunID, oneLine(string(r.Error)))
		default:
			fmt.Fprintf(&b, "Run %s would do something else:\n", r.RunID)
		}
		for _, d := range r.Differences {
			fmt.Fprintf(&b, "  %s\n", oneLine(d))
		}
		for _, l := range r.Logs {
			fmt.Fprintf(&b, "  log: %s\n", oneLine(l))
		}
		_, err = p.Stdout.Write([]byte(b.String()))
	}
	if err == nil && !r.Same && len(r.Differences) == 0 && r.Error != "" {
		return &pawl.Error{Code: pawl.CodeInvalid, Msg: "the replay fails, as the run did"}
	}
	if err == nil && !r.Same {
		err = &pawl.Error{Code: pawl.CodeInvalid, Msg: "the replay differs"}
	}
	return err
}
