package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
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
		Use: "run KIND NAME", Short: "Run a workflow, source or schedule now",
		Long: "Starts a run now, regardless of the schedule. The command fails with exit code 4 and the\n" +
			"reason if a run is already active, if a failure is being retried, or if the resource is\n" +
			"paused.",
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
		return askOf(cmd.Context(), p, c, k, args[1], request{verb: verbRun})
	}
	return cmd
}

// request is what is asked of a thing.
type request struct {
	verb string
	body any // nil: nothing is sent with it
}

// askOf asks for a verb and says what came of it.
func askOf(ctx context.Context, p *Process, c *client.Client, k kind, name string, ask request) error {
	path, err := k.locateOne(ctx, c, name)
	if err != nil {
		return err
	}
	return askAt(ctx, p, c, k, path, name, ask)
}

// askAt is askOf for a thing whose place is known.
func askAt(ctx context.Context, p *Process, c *client.Client, k kind, path, name string, ask request) error {
	if ask.verb == verbResume && k.plural == workflowKind().plural {
		return resumeWorkflow(ctx, p, c, path, name)
	}
	raw, err := c.Post(ctx, path+"/"+ask.verb, ask.body)
	if err != nil {
		return err
	}
	said := map[string]string{verbRun: "will run now", verbPause: "paused", verbResume: "resumed"}[ask.verb]
	if ask.verb == verbPause {
		said += untilWords(raw)
	}
	_, err = fmt.Fprintf(p.Stdout, "%s %s %s\n", k.singular, name, said)
	return err
}

// untilWords is when something that was paused continues; empty if nobody said.
func untilWords(raw json.RawMessage) string {
	var now struct {
		Pause *client.Pause `json:"pause"`
	}
	if json.Unmarshal(raw, &now) != nil || now.Pause == nil || now.Pause.Until.IsZero() { // a server that does not tell
		return ""
	}
	return " until " + pawl.FormatTime(now.Pause.Until.Time)
}

// resumeWorkflow resumes a workflow and says what that changed: one that waits
// for a word of a person, or for an answer, is not helped by it.
func resumeWorkflow(ctx context.Context, p *Process, c *client.Client, path, name string) error {
	raw, err := c.Post(ctx, path+"/"+verbResume, nil)
	if err != nil {
		return err
	}
	var now client.Lane
	if err := json.Unmarshal(raw, &now); err != nil {
		return fmt.Errorf("read workflow: %w", err)
	}
	if !slices.Contains([]string{"approval", "outcome_unknown", "reconciling"}, string(now.IssueCode)) {
		_, err = fmt.Fprintf(p.Stdout, "workflow %s resumed\n", oneLine(name))
		return err
	}
	if _, err = fmt.Fprintf(p.Stdout, "workflow %s is not paused; it waits for something else\n", oneLine(name)); err != nil {
		return err
	}
	p.say("%s", now.Issue)
	end := "pawl why workflow " + name
	if why, err := c.Why(ctx, now.Kind, now.Name); err == nil && why.Do != "" {
		end = string(why.Do)
	}
	p.say("The command that ends this: %s", end)
	return nil
}
