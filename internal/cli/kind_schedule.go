package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/visible"
)

func scheduleKind() kind {
	return kind{
		plural: "schedules", singular: string(pawl.KindSchedule), aliases: []string{"sched"}, path: client.SchedulesPath, byID: true, owned: true,
		removed: "deleted", loses: "Nothing of it will run again. What it did can still be read.", took: scheduleTook,
		verbs: []string{verbRun, verbPause, verbResume, verbWhy},
		watch: watchRules{events: []string{"schedule"}, changed: scheduleOfEvent},
		columns: []column{
			{title: "name", flex: true, least: 16}, {title: "status", state: true}, {title: "runs", flex: true, least: 12}, {title: "next"}, {title: "last"}, {title: "cron", spare: true}, {title: "timezone", spare: true},
			{title: "policy", wide: true}, {title: "issue", wide: true, flex: true}, {title: "labels", wide: true, flex: true}, {title: "grant", wide: true}, {title: "id", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var s client.Schedule
			if err := json.Unmarshal(raw, &s); err != nil {
				return nil, err
			}
			return []string{
				s.Name, enabledWord(s), workCell(s), relative(s.NextRunAt.Time, now), relative(s.LastRunAt.Time, now), timesWord(s), orDash(s.Timezone),
				string(s.ConcurrencyPolicy), orDash(issueOf(s)), orDash(labelWords(s.Labels)), orDash(s.ExecutionGrantID), s.ID,
			}, nil
		},
		describe: describeSchedule, more: describeSlots,
	}
}

// timesWord is when a schedule runs, as it was written.
func timesWord(s client.Schedule) string {
	switch {
	case s.Interval != "":
		return "every " + s.Interval
	case s.At != "":
		return "at " + s.At
	}
	return string(s.Cron)
}

// issueOf is why a schedule does not run; empty if it does.
func issueOf(s client.Schedule) string {
	if s.Pause != nil && (s.Issue == "" || !s.CappedUntil.IsZero()) {
		return terms.PausedSentence(*s.Pause)
	}
	return s.Issue
}

// enabledWord says whether a schedule runs, and until when it does not: because a person
// paused it, or because a cap holds it back.
func enabledWord(s client.Schedule) string {
	switch paused := issueOf(s) != s.Issue; {
	case paused && !s.Pause.Until.IsZero():
		return "paused until " + pawl.FormatTime(s.Pause.Until.Time)
	case paused:
		return "paused"
	case s.Enabled && !s.CappedUntil.IsZero():
		return "paused until " + pawl.FormatTime(s.CappedUntil.Time)
	case s.Enabled:
		return "enabled"
	}
	return "disabled"
}

func scheduleTook(answer json.RawMessage, _ url.Values) string {
	var done client.DeletedSchedule
	if json.Unmarshal(answer, &done) != nil { // a server that does not tell
		return ""
	}
	said := ""
	if done.GrantRevoked {
		said = "; the grant that was made for it is revoked"
	}
	if done.ID != "" {
		said += "; what it did: pawl get slots " + done.ID
	}
	return said
}

// scheduleOfEvent is the id of the schedule that an event is about.
func scheduleOfEvent(e client.StreamEvent) (string, error) {
	var event struct {
		Schedule string `json:"schedule"`
	}
	if err := json.Unmarshal(e.Data, &event); err != nil {
		return "", fmt.Errorf("read event: %w", err)
	}
	return event.Schedule, nil
}

// slotKind are the instants of a schedule with what became of each.
func slotKind() kind {
	return kind{
		plural: "slots", singular: "slot", below: "slots", parent: scheduleKind, everywhere: true, filters: []string{"status", "trigger"},
		watch: watchRules{events: []string{"schedule"}},
		columns: append([]column{{title: "schedule", flex: true, least: 12}}, append(slotColumns(),
			column{title: "trigger", wide: true}, column{title: "took", wide: true}, column{title: "trace", wide: true, flex: true}, column{title: "backfill", wide: true}, column{title: "id", wide: true})...),
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var s struct {
				client.Slot
				Schedule string `json:"schedule"` // its name, added by the commands
			}
			if err := json.Unmarshal(raw, &s); err != nil {
				return nil, err
			}
			took := "-"
			if !s.StartedAt.IsZero() && !s.CompletedAt.IsZero() {
				took = s.CompletedAt.Sub(s.StartedAt.Time).Round(time.Millisecond).String()
			}
			return append([]string{orDash(s.Schedule)}, append(slotCells(s.Slot, now), orDash(s.Trigger), took, orDash(string(s.TraceID)), orDash(string(s.BackfillID)), s.ID)...), nil
		},
	}
}

// slotColumns are what one should know of a slot.
func slotColumns() []column {
	return []column{
		{title: "for"}, {title: "when", spare: true}, {title: "status", state: true}, {title: "disposition"}, {title: "tries", spare: true}, {title: "cost"},
		{title: "note", flex: true, least: 12}, {title: "run", spare: true},
	}
}

func slotCells(s client.Slot, now time.Time) []string {
	note := s.Note
	if s.Error != nil {
		note = client.NullString(s.Error.Code + ": " + s.Error.Message)
	}
	if s.Count > 1 {
		note = client.NullString(fmt.Sprintf("%d slots to %s: %s", s.Count, pawl.FormatTime(s.Through.Time), note))
	}
	return []string{
		pawl.FormatTime(s.ScheduledFor.Time), relative(s.ScheduledFor.Time, now), s.Status, orDash(string(s.Disposition)), strconv.Itoa(s.AttemptCount), usd(s.CostUSD),
		orDash(visible.Text(string(note))), orDash(string(s.RunID)),
	}
}

// usd writes an amount of money.
func usd(amount pawl.USD) string {
	if amount == 0 {
		return "0"
	}
	return amount.String() + " USD"
}
