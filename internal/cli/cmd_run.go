package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/cli/client"
)

// What can be asked of things that run in lanes.
const (
	verbRun    = "run"
	verbPause  = "pause"
	verbResume = "resume"
	verbWhy    = "why"
)

func newRunCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "run KIND NAME", Short: "Run something now",
		Long: "Asks for a run now, whatever the schedule says. It is refused, with the reason and exit\n" +
			"code 4, while a run is active, after a failure that is being retried, and when paused.",
		Example: "  pawl run workflow mail-to-sheet\n" +
			"  pawl run source prices\n" +
			"  pawl run schedule morning-poet",
		GroupID: groupChange, Args: takes(2, 2),
	}
	flags := addSettingFlags(cmd, forClient)
	cmd.ValidArgsFunction = completeKind(p, flags, withVerb(verbRun))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k, err := findKindFor(verbRun, args[0])
		if err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		return askOf(cmd.Context(), p, c, k, args[1], verbRun)
	}
	return cmd
}

// askOf asks for a verb and says what came of it.
func askOf(ctx context.Context, p *Process, c *client.Client, k kind, name, verb string) error {
	path, err := k.locateOne(ctx, c, name)
	if err != nil {
		return err
	}
	return askAt(ctx, p, c, k, path, name, verb)
}

// askAt is askOf for a thing whose place is known.
func askAt(ctx context.Context, p *Process, c *client.Client, k kind, path, name, verb string) (err error) {
	switch {
	case verb == verbResume && k.plural == workflowKind().plural:
		return resumeWorkflow(ctx, p, c, path, name)
	case k.ask != nil:
		err = k.ask(ctx, c, path, verb)
	default:
		_, err = c.Post(ctx, path+"/"+verb, nil)
	}
	if err != nil {
		return err
	}
	said := map[string]string{verbRun: "will run now", verbPause: "paused", verbResume: "resumed"}
	_, err = fmt.Fprintf(p.Stdout, "%s %s %s\n", k.singular, name, said[verb])
	return err
}

// resumeWorkflow resumes a workflow and says what that changed: one that was not
// paused and waits for something else is not helped by it.
func resumeWorkflow(ctx context.Context, p *Process, c *client.Client, path, name string) error {
	read := func(raw json.RawMessage, err error) (l client.Lane, _ error) {
		if err != nil {
			return l, err
		}
		return l, json.Unmarshal(raw, &l)
	}
	before, err := read(c.Get(ctx, path))
	if err != nil {
		return err
	}
	after, err := read(c.Post(ctx, path+"/"+verbResume, nil))
	if err != nil {
		return err
	}
	waits := slices.Contains([]string{"approval", "outcome_unknown", "reconciling"}, after.IssueCode)
	switch {
	case !before.Paused && waits:
		return &pawl.Error{
			Code: pawl.CodeConflict, Reason: after.IssueCode, Msg: "resuming " + name + " changes nothing: " + after.Issue,
			Hint: "pawl why workflow " + name + " tells the command that does.",
		}
	case !before.Paused && before.Status != "Needs attention" && before.Issue == "":
		_, err = fmt.Fprintf(p.Stdout, "workflow %s was not paused\n", oneLine(name))
	default:
		_, err = fmt.Fprintf(p.Stdout, "workflow %s resumed\n", oneLine(name))
	}
	if err == nil && waits {
		p.say("It still waits: %s", after.Issue)
	}
	return err
}
