package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/when"
)

func newPauseCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pause KIND NAME", Short: "Pause a workflow, source or schedule",
		Long: "Pauses a workflow, source or schedule: it starts no runs until it is resumed, or until the\n" +
			"time of --until, at which it continues by itself. An active run that has sent nothing is\n" +
			"cancelled; one that has continues to its end. With -l, everything with the labels is paused.\n" +
			"Pausing what is paused replaces the time and the note.",
		Example: "  pawl pause workflow mail-to-sheet\n" +
			"  pawl pause schedule morning-poet --until 2h --note \"the printer is being repaired\"\n" +
			"  pawl pause source prices --until 2026-12-27T08:00\n" +
			"  pawl pause sources -l team=data",
	}
	until := cmd.Flags().String("until", "", "continue automatically at `TIME`: a time such as 2026-12-27T08:00 (local) or 2026-12-27T08:00:00Z, or a duration such as 2h")
	note := cmd.Flags().String("note", "", "why, for people: `TEXT` of one line")
	return newManyCommand(p, cmd, verbPause, func() (any, error) { return pauseRequest(*until, *note, time.Now()) })
}

// pauseRequest reads for how long something is to be paused. Durations count by the clock
// of the server.
func pauseRequest(until, note string, now time.Time) (client.PauseRequest, error) {
	how := client.PauseRequest{Until: until, Note: note}
	if until == "" {
		return how, nil
	}
	if d, err := time.ParseDuration(until); err == nil && d <= 0 {
		return how, usageError("Use a duration such as 2h.", "--until: %q is not in the future", until)
	}
	if _, err := when.ParseInterval(until); err == nil {
		return how, nil
	}
	at, err := readInstant("--until", until, time.Local, now)
	switch {
	case err != nil:
		return how, usageError("Use a duration such as 2h or 3d, or a time such as 2026-12-27T08:00 or 2026-12-27T08:00:00Z.", "--until: %q is not a time", until)
	case !at.After(now):
		return how, usageError("Use a time to come, or a duration such as 2h.", "--until: %s is in the past", pawl.FormatTime(at))
	}
	how.Until = pawl.FormatTime(at)
	return how, nil
}

func newResumeCommand(p *Process) *cobra.Command {
	return newManyCommand(p, &cobra.Command{
		Use: "resume KIND NAME", Short: "Resume a workflow, source, schedule or run",
		Long: "Resumes what was paused, or what stopped after a failure, once you have fixed the cause.\n" +
			"With -l, everything with the labels is resumed.",
		Example: "  pawl resume source prices\n" +
			"  pawl resume -l team=data",
	}, verbResume, func() (any, error) { return nil, nil })
}

// newManyCommand completes a command that asks for a verb of one thing by its
// name, or of many by their labels; body is what is sent with it.
func newManyCommand(p *Process, cmd *cobra.Command, verb string, body func() (any, error)) *cobra.Command {
	cmd.GroupID, cmd.Args = groupChange, takes(0, 2)
	flags := addSettingFlags(cmd, forClient)
	cmd.ValidArgsFunction = completeKind(p, flags, withVerb(verb))
	labels := cmd.Flags().StringArrayP("selector", "l", nil, "select everything with the label `NAME=VALUE` (repeatable)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		chosen, err := parseSelector(*labels)
		if err != nil {
			return err
		}
		many := len(chosen) > 0
		switch {
		case many && len(args) == 2:
			return usageError("Leave one of them out.", "%q and -l cannot go together", args[1])
		case !many && len(args) < 2:
			return usageError("Usage: "+cmd.UseLine(), "%s needs a kind and a name, or -l with labels", cmd.CommandPath())
		}
		ask := request{verb: verb}
		if ask.body, err = body(); err != nil {
			return err
		}
		var k kind // the zero kind is any
		if len(args) > 0 {
			if k, err = findKindFor(verb, args[0]); err != nil {
				return err
			}
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		if many {
			return askOfMany(cmd.Context(), p, c, k, chosen, ask)
		}
		return askOf(cmd.Context(), p, c, k, args[1], ask)
	}
	return cmd
}

// askOfMany asks for a verb of every lane with the labels. One that refuses
// does not keep it from the others; the last refusal is the error.
func askOfMany(ctx context.Context, p *Process, c *client.Client, only kind, chosen selector, ask request) error {
	items, _, err := c.List(ctx, client.LanesPath, nil, 0)
	if err != nil {
		return err
	}
	asked := 0
	var refused error
	for _, raw := range items {
		var l client.Lane
		if err := json.Unmarshal(raw, &l); err != nil {
			return fmt.Errorf("read lane: %w", err)
		}
		k, err := findKind(l.Kind)
		if err != nil || !slices.Contains(k.verbs, ask.verb) || (only.plural != "" && only.plural != k.plural) || !chosen.matches(l.Labels) {
			continue // a kind that this version does not know is none of those that were meant
		}
		asked++
		key := l.Name
		if k.byID {
			key = l.ID
		}
		path, err := k.pathOf(key)
		if err != nil {
			return err
		}
		switch err := askAt(ctx, p, c, k, path, l.Name, ask); {
		case err == nil:
		case pawl.ErrorCode(err) == pawl.CodeConflict, errors.Is(err, pawl.ErrNotFound):
			if refused != nil {
				p.printError(refused)
			}
			refused = fmt.Errorf("%s %s %s: %w", ask.verb, l.Kind, l.Name, err)
		default:
			return err
		}
	}
	if asked == 0 {
		return &pawl.Error{Code: pawl.CodeNotFound, Msg: "nothing has the labels " + chosen.String(), Hint: "pawl get lanes -o wide shows labels."}
	}
	return refused
}
