package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/cli/client"
)

func newWhyCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "why KIND NAME", Short: "Tell why something ran, did not run, or waits",
		Long: "Tells how something stands, which conditions of running are met and which are not, what\n" +
			"comes next, and how its last runs went.",
		Example: "  pawl why workflow mail-to-sheet\n" +
			"  pawl why source prices\n" +
			"  pawl why schedule morning-poet --at 2026-03-28T09:00:00Z",
		GroupID: groupLook, Args: takes(2, 2),
	}
	flags := addSettingFlags(cmd, forClient)
	cmd.ValidArgsFunction = completeKind(p, flags, withVerb(verbWhy))
	at := cmd.Flags().String("at", "", "tell also what was at `TIME`, such as 2026-03-28T09:00:00Z")
	out := addOutputFlag(cmd, formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k, err := findKindFor(verbWhy, args[0])
		if err != nil {
			return err
		}
		if _, err := k.pathOf(args[1]); err != nil {
			return err
		}
		now, query := time.Now(), url.Values{}
		if *at != "" {
			instant, err := readInstant("--at", *at, time.Local, now)
			if err != nil {
				return err
			}
			query.Set("at", pawl.FormatTime(instant))
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := c.GetWith(cmd.Context(), client.WhyPath(k.singular, args[1]), query)
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

// describeWhy tells how a lane stands, condition by condition.
func describeWhy(raw json.RawMessage, now time.Time) (string, error) {
	var y client.Why
	if err := json.Unmarshal(raw, &y); err != nil {
		return "", fmt.Errorf("read why: %w", err)
	}
	d := newDescription(now)
	next := y.NextAt
	y.NextAt = time.Time{} // told below, in the server's words
	laneStory(d, y.Lane, now)
	if y.Next != "" {
		d.say("%s", y.Next)
	}
	if y.Around != nil {
		d.say("At %s: %s", pawl.FormatTime(y.Around.At), y.Around.Text)
	}
	d.gap()
	d.line("Schedule", y.Schedule)
	d.instant("Next", next)
	if y.LastActivity.Text != "" {
		d.line("Activity", y.LastActivity.Text+" ("+relative(y.LastActivity.At, now)+")")
	}
	describeGates(d, y.Gates)
	var rows [][]string
	for _, r := range y.Recent {
		failure := "-"
		if r.Error != nil {
			failure = r.Error.Message
		}
		rows = append(rows, []string{r.ID, r.Handler, r.Status, relative(runTime(r), now), failure})
	}
	d.table("Last runs", []column{{title: "id"}, {title: "handler"}, {title: "status"}, {title: "when"}, {title: "error"}}, rows)
	return d.String(), nil
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
