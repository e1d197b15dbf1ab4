package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func newWhyCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "why [KIND] NAME", Short: "Explain why something ran, did not run, or is waiting",
		Long: "Shows the state of a resource, which conditions for running are met and which are not, what\n" +
			"comes next, and how its last runs ended. You can leave out the kind if only one workflow,\n" +
			"source or schedule has the name. For a run or a job, it shows the same as describe.",
		Example: "  pawl why mail-to-sheet\n" +
			"  pawl why workflow mail-to-sheet\n" +
			"  pawl why source prices\n" +
			"  pawl why schedule morning-poet --at 2026-03-28T09:00:00Z\n" +
			"  pawl why run 3f1a2b4c5d6e",
		GroupID: groupLook, Args: takes(1, 2),
	}
	flags := addSettingFlags(cmd, forClient)
	cmd.ValidArgsFunction = completeKind(p, flags, withVerb(verbWhy))
	at := cmd.Flags().String("at", "", "also show the state at `TIME`, such as 2026-03-28T09:00:00Z")
	out := addOutputFlag(cmd, formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		now, query := time.Now(), url.Values{}
		if *at != "" {
			instant, err := readInstant("--at", *at, time.Local, now)
			if err != nil {
				return err
			}
			query.Set("at", pawl.FormatTime(instant))
		}
		named, err := whyKind(args)
		if err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		k, name, err := named.lane(cmd.Context(), c)
		if err != nil {
			return err
		}
		if !slices.Contains(k.verbs, verbWhy) {
			return explainThing(cmd, p, c, out, k, name)
		}
		raw, err := c.GetWith(cmd.Context(), client.WhyPath(k.singular, name), query)
		if err != nil {
			return err
		}
		if out.machine() {
			return writeMachine(p.Stdout, out.format, raw)
		}
		words, err := describeWhy(raw, now)
		if err != nil {
			return err
		}
		_, err = io.WriteString(p.Stdout, words)
		return err
	}
	return cmd
}

// whySubject is what why is asked about: a kind and a name, or a name alone.
type whySubject struct {
	kind *kind
	name string
}

// whyKind reads the arguments of why.
func whyKind(args []string) (s whySubject, err error) {
	s.name = args[len(args)-1]
	if len(args) == 2 {
		k, err := findKind(args[0])
		if err == nil && !explained(k) {
			k, err = findKindFor(verbWhy, args[0])
		}
		if err != nil {
			return s, err
		}
		s.kind = &k
	}
	_, err = laneKind().pathOf(s.name)
	return s, err
}

// explained reports whether why tells of a thing what describe does.
func explained(k kind) bool { return k.plural == runKind().plural || k.plural == jobKind().plural }

// lane finds the one thing that is meant.
func (s whySubject) lane(ctx context.Context, c *client.Client) (kind, string, error) {
	if s.kind != nil {
		return *s.kind, s.name, nil
	}
	items, _, err := c.List(ctx, client.LanesPath, nil, 0)
	if err != nil {
		return kind{}, "", err
	}
	var found, names []string
	for _, raw := range items {
		var l client.Lane
		if err := json.Unmarshal(raw, &l); err != nil {
			return kind{}, "", fmt.Errorf("read lane: %w", err)
		}
		names = append(names, l.Name)
		if l.Name == s.name {
			found = append(found, l.Kind)
		}
	}
	switch {
	case len(found) == 1:
		k, err := findKind(found[0])
		return k, s.name, err
	case len(found) > 1:
		return kind{}, "", usageError(fmt.Sprintf("Write pawl why %s %s.", found[0], s.name), "a %s have the name %q", strings.Join(found, " and a "), s.name)
	case isShort(s.name):
		return runKind(), s.name, nil
	}
	hint := "pawl get lanes lists them."
	if guess := pawl.Suggest(s.name, names, ""); guess != "" {
		hint = guess + " " + hint
	}
	return kind{}, "", &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("no workflow, source or schedule has the name %q", s.name), Hint: hint}
}

// describeWhy tells how a lane stands, condition by condition.
func describeWhy(raw json.RawMessage, now time.Time) (string, error) {
	var y client.LaneWhy
	if err := json.Unmarshal(raw, &y); err != nil {
		return "", fmt.Errorf("read why: %w", err)
	}
	d := newDescription(now)
	next := y.NextAt
	y.NextAt = client.Instant{} // told below, in the server's words
	laneStory(d, y.Lane, now)
	if y.Next != "" {
		d.say("%s", y.Next)
	}
	switch {
	case y.Do == "":
	case y.Status == "Running" && y.Issue == "":
		d.line("To stop it", string(y.Do))
	default:
		d.line("Do", string(y.Do))
	}
	if y.Around != nil {
		d.say("At %s: %s", pawl.FormatTime(y.Around.At.Time), y.Around.Text)
	}
	d.gap()
	d.line("Schedule", y.Schedule)
	d.instant("Next", next.Time)
	if y.LastActivity.Text != "" {
		d.line("Activity", y.LastActivity.Text+" ("+relative(y.LastActivity.At.Time, now)+")")
	}
	describeExpectations(d, y.Expectations)
	describeGates(d, y.Gates)
	var rows [][]string
	for _, r := range y.Recent {
		failure := "-"
		if r.Error != nil {
			failure = r.Error.Message
		}
		handler := r.Handler
		if r.Count > 1 {
			handler += fmt.Sprintf(" (%d idle runs)", r.Count)
		}
		rows = append(rows, []string{r.ID, handler, r.Status, relative(runTime(r), now), failure})
	}
	d.table("Last runs", []column{{title: "id"}, {title: "handler"}, {title: "status"}, {title: "when"}, {title: "error"}}, rows)
	return d.String(), nil
}

// describeExpectations lists what is expected of a lane; nothing if that is nothing.
func describeExpectations(d *description, list []client.Expectation) {
	var rows [][]string
	for _, e := range list {
		met := "yes"
		if !e.Met {
			met = "not since " + pawl.FormatTime(e.Since.Time)
		}
		rows = append(rows, []string{e.Name, met, e.Sentence})
	}
	if len(rows) > 0 {
		d.table("Expected", []column{{title: "expectation"}, {title: "met"}, {title: "because"}}, rows)
	}
}

// describeGates lists the conditions of running.
func describeGates(d *description, gates []client.Gate) {
	var rows [][]string
	for _, g := range gates {
		met := "no"
		if g.Open {
			met = "yes"
		}
		rows = append(rows, []string{g.Name, met, g.Text})
	}
	d.table("Conditions", []column{{title: "condition"}, {title: "met"}, {title: "because"}}, rows)
}
