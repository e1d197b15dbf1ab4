package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func runKind() kind {
	return kind{
		plural: "runs", singular: "run", aliases: []string{"r"}, path: client.RunsPath, short: true,
		filters: []string{"kind", "lane", "status"},
		watch:   watchRules{events: []string{"run"}, subject: runOfEvent, brief: briefRun},
		columns: []column{
			{title: "id"}, {title: "what", flex: true, least: 14}, {title: "status", state: true, flex: true, least: 12}, {title: "when"},
			{title: "phase", spare: true}, {title: "try", spare: true}, {title: "error", flex: true, least: 12, spare: true},
			{title: "kind", wide: true}, {title: "trigger", wide: true}, {title: "took", wide: true}, {title: "retry of", wide: true}, {title: "started", wide: true},
		},
		row: runRow, describe: describeRun, verbs: []string{verbResume},
	}
}

// runOfEvent is the run that an event carries.
func runOfEvent(data []byte) (json.RawMessage, error) {
	var event struct {
		Run json.RawMessage `json:"run"`
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return nil, fmt.Errorf("read event: %w", err)
	}
	return event.Run, nil
}

// briefRun leaves out what events do not carry.
func briefRun(raw json.RawMessage) (json.RawMessage, error) {
	return without(raw, "prepareResult", "mutation", "chain", "mutations", "logs", "approval", "actions")
}

func runRow(raw json.RawMessage, now time.Time) ([]string, error) {
	var r client.RunDetail
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	failure, started := "-", "-"
	if r.Error != nil {
		failure = orDash(r.Error.Message)
	}
	if !r.StartedAt.IsZero() {
		started = pawl.FormatTime(r.StartedAt.Time)
	}
	return []string{
		r.ID, runSubject(r), r.Status, relative(runTime(r.RunSummary), now),
		r.Phase, strconv.Itoa(r.Attempt), failure,
		r.Kind, orDash(r.Trigger), orDash(runTook(r.RunSummary)), orDash(string(r.RetryOf)), started,
	}, nil
}

// runSubject is what ran: the handler in its lane.
func runSubject(r client.RunDetail) string {
	subject := r.Lane
	if r.Handler != "" && r.Handler != r.Lane {
		subject += "/" + r.Handler
	}
	if r.Count > 1 {
		subject += fmt.Sprintf(" (%d idle runs)", r.Count)
	}
	return subject
}

// runTime is when a run ended, or else when it last changed; of several that are kept
// as one, when the last began.
func runTime(r client.RunSummary) time.Time {
	if r.Count > 1 {
		return r.Through.Time
	}
	if !r.EndedAt.IsZero() {
		return r.EndedAt.Time
	}
	return r.UpdatedAt.Time
}

// runTook is how long a run that has ended took.
func runTook(r client.RunSummary) string {
	if r.StartedAt.IsZero() || r.EndedAt.IsZero() {
		return ""
	}
	return max(0, r.EndedAt.Sub(r.StartedAt.Time)).Round(time.Millisecond).String()
}
