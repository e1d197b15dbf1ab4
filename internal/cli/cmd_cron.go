package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/when"
)

const mostInstants = 10_000

func newCronCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cron EXPR",
		Short: "Show the next times of a cron expression or interval",
		Long: "Shows the next times of a cron expression, or of an interval such as 90s: in its time zone,\n" +
			"in UTC, and relative to now. Days with a clock change are marked. No server is needed.",
		Example: "  pawl cron '0 9 * * 1-5' --timezone Europe/Berlin\n" +
			"  pawl cron '30 2 * * *' --timezone Europe/Berlin --after 2026-03-27 --count 4\n" +
			"  pawl cron 90s -o json",
		GroupID: groupTools, Args: takes(1, -1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	zone := cmd.Flags().String("timezone", "", "evaluate the expression in `ZONE`, such as Europe/Berlin (default UTC)")
	after := cmd.Flags().String("after", "", "start after `TIME`, such as 2026-03-28T12:00:00Z or 2026-03-28 (default now)")
	count := cmd.Flags().Int("count", 5, "show `N` times")
	out := addOutputFlag(cmd, formatTable, formatJSON)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		schedule, err := readSchedule(strings.Join(args, " "), *zone)
		if err != nil {
			return err
		}
		if *count < 1 || *count > mostInstants {
			return usageError("", "--count: %d is not between 1 and %d", *count, mostInstants)
		}
		now := time.Now()
		from, err := readInstant("--after", *after, schedule.Zone(), now)
		if err != nil {
			return err
		}
		if out.machine() {
			return writeNext(p, schedule.NextN(from, *count))
		}
		p.say("%s", schedule.Describe())
		return writePreview(p, schedule.Preview(from, *count), now)
	}
	return cmd
}

// readSchedule takes an expression or an interval.
func readSchedule(expression, zone string) (when.Schedule, error) {
	if strings.ContainsAny(expression, " \t@") {
		return when.New(when.Spec{Cron: expression, Timezone: zone})
	}
	if _, err := when.LoadZone(zone); err != nil { // it has no effect on an interval, but may be a mistake
		return when.Schedule{}, err
	}
	return when.New(when.Spec{Interval: expression})
}

// readInstant reads the instant of a flag, which is local to the zone unless it
// says otherwise.
func readInstant(flag, text string, zone *time.Location, now time.Time) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usageError("Use a time such as 2026-03-28T12:00:00Z or 2026-03-28.", "%s: %q is not a time", flag, text)
}

func writeNext(p *Process, instants []time.Time) error {
	next := make([]string, len(instants))
	for i, t := range instants {
		next[i] = pawl.FormatTime(t)
	}
	raw, err := json.Marshal(map[string][]string{"next": next})
	if err != nil {
		return fmt.Errorf("write instants: %w", err)
	}
	return writeMachine(p.Stdout, formatJSON, raw)
}

func writePreview(p *Process, instants []when.Instant, now time.Time) error {
	rows := make([][]string, len(instants))
	for i, in := range instants {
		rows[i] = []string{localTime(in.Local), pawl.FormatTime(in.Time), relative(in.Time, now), in.ClockChange}
	}
	return newSheet(p, []column{{title: "local"}, {title: "utc"}, {title: "when"}, {title: "clocks", flex: true}}).write(p.Stdout, rows, true)
}

// localTime makes an RFC 3339 instant easier to read: weekday, blank, offset.
func localTime(rfc string) string {
	t, err := time.Parse(time.RFC3339, rfc)
	if err != nil {
		return rfc
	}
	return t.Format("Mon 2006-01-02 15:04:05 -07:00")
}
