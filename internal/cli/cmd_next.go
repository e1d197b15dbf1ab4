package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// mostHours is how far pawl next looks ahead: ten years.
const mostHours = 10 * 366 * 24

func newNextCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "next", Short: "Show what runs next",
		Long: "Shows what is due to run within the next hours, across all kinds, soonest first. Each\n" +
			"workflow, source and schedule is listed once, with its next time.",
		Example: "  pawl next\n" +
			"  pawl next --hours 1 -o json",
		GroupID: groupLook, Args: takes(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	hours := cmd.Flags().Float64("hours", 24, "look ahead `N` hours")
	out := addOutputFlag(cmd, formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !(*hours > 0 && *hours <= mostHours) {
			return usageError("", "--hours: %v is not between 0 and %d", *hours, mostHours)
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		items, _, err := c.List(cmd.Context(), client.LanesPath, nil, 0)
		if err != nil {
			return err
		}
		now := time.Now()
		list, err := dueUntil(items, now.Add(time.Duration(*hours*float64(time.Hour))))
		if err != nil {
			return err
		}
		return writeDue(p, out, list, now)
	}
	return cmd
}

// dueLane is a lane with its next time, and as it was told.
type dueLane struct {
	client.Lane
	raw json.RawMessage
}

// dueUntil are the lanes whose next time comes before an instant, sorted.
func dueUntil(items []json.RawMessage, end time.Time) ([]dueLane, error) {
	var list []dueLane
	for _, raw := range items {
		l := dueLane{raw: raw}
		if err := json.Unmarshal(raw, &l.Lane); err != nil {
			return nil, fmt.Errorf("read lane: %w", err)
		}
		if !l.NextAt.IsZero() && !l.NextAt.After(end) {
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(a, b dueLane) int { return a.NextAt.Compare(b.NextAt.Time) })
	return list, nil
}

func writeDue(p *Process, out *outputFlag, list []dueLane, now time.Time) error {
	var raws []json.RawMessage
	var rows [][]string
	for _, l := range list {
		when := "now"
		if l.NextAt.After(now) {
			when = relative(l.NextAt.Time, now)
		}
		raws = append(raws, l.raw)
		rows = append(rows, []string{when, pawl.FormatTime(l.NextAt.Time), l.Kind, l.Name, l.Status, orDash(l.Schedule)})
	}
	switch {
	case out.machine():
		return writeMachine(p.Stdout, out.format, listOf(raws))
	case len(rows) == 0:
		p.say("Nothing is scheduled to run in that time.")
		return nil
	}
	columns := []column{
		{title: "when"}, {title: "at"}, {title: "kind", spare: true}, {title: "name", flex: true, least: 14},
		{title: "status", state: true}, {title: "schedule", flex: true, spare: true},
	}
	return newSheet(p, columns).write(p.Stdout, rows, true)
}
