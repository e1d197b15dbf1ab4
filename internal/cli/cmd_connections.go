package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func newConnectionsCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "connections", Short: "Test connections and approve their tools",
		Example: "  pawl get connections\n" +
			"  pawl connections test shop\n" +
			"  pawl connections pin files", Aliases: []string{connectionKind().singular},
		GroupID: groupLook, Args: cobra.ArbitraryArgs, RunE: unknownCommand,
	}
	cmd.AddCommand(newConnectionsTestCommand(p), newConnectionsPinCommand(p))
	return cmd
}

func newConnectionsTestCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "test NAME", Short: "Test a connection without side effects",
		Long: "Tests a connection from the server, without side effects, and reports the result. The exit\n" +
			"code is 1 if calls would not work.",
		Example: "  pawl get connections\n" +
			"  pawl connections test shop",
		Args: takes(1, 1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	out := addOutputFlag(cmd, formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, err := connectionKind().pathOf(args[0])
		if err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := c.Post(cmd.Context(), path+"/test", nil)
		if err != nil {
			return err
		}
		var seen client.ConnectionTest
		if err := json.Unmarshal(raw, &seen); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		if out.machine() {
			err = writeMachine(p.Stdout, out.format, raw)
		} else if seen.OK {
			_, err = fmt.Fprintf(p.Stdout, "connection %s works: %s\n", args[0], oneLine(seen.Text))
		}
		if err == nil && !seen.OK {
			err = &pawl.Error{Code: pawl.CodeUnavailable, Msg: fmt.Sprintf("connection %s does not work: %s", args[0], oneLine(seen.Text))}
		}
		return err
	}
	return cmd
}
