package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func sourceKind() kind {
	return kind{
		plural: "sources", singular: string(pawl.KindSource), aliases: []string{"src"}, path: client.SourcesPath,
		removed: "deleted", loses: "Its rows go with it.", losesNow: sourceLoses, took: sourceTook,
		verbs: []string{verbRun, verbPause, verbResume, verbWhy},
		watch: watchRules{events: []string{"source", "run"}, changed: sourceOfEvent, brief: briefSource},
		columns: []column{
			{title: "name", flex: true, least: 16}, {title: "status", state: true}, {title: "next"}, {title: "fresh"}, {title: "rows"},
			{title: "activity", flex: true, least: 12, spare: true},
			{title: "table", wide: true}, {title: "host", wide: true, flex: true}, {title: "quota", wide: true}, {title: "schedule", wide: true, flex: true}, {title: "labels", wide: true, flex: true}, {title: "id", wide: true},
		},
		row: sourceRow, describe: describeSource,
	}
}

func sourceRow(raw json.RawMessage, now time.Time) ([]string, error) {
	var s client.Source
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	return []string{
		s.Name, s.Status, relative(s.NextAt.Time, now), relative(s.Freshness.LastSuccessAt.Time, now), strconv.FormatInt(s.Totals.Rows, 10), laneActivity(s.Lane, now),
		s.Table, s.Host, quotaBrief(s.Quota, now), orDash(s.Schedule), orDash(labelWords(s.Labels)), s.ID,
	}, nil
}

// quotaBrief is how many calls are left, in few words.
func quotaBrief(q client.SourceQuota, now time.Time) string {
	switch {
	case q.BlockedUntil.After(now):
		return "blocked, " + relative(q.BlockedUntil.Time, now)
	case !q.Limited:
		return "-"
	}
	return fmt.Sprintf("%d of %d", deref(q.Left), deref(q.Limit))
}

// sourceLoses tells how many rows go with a source.
func sourceLoses(raw json.RawMessage, query url.Values) (string, error) {
	var s client.Source
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("read source: %w", err)
	}
	if query.Has("keepRows") {
		return fmt.Sprintf("It will not be fetched again. Its rows stay in the table %s.", s.Table), nil
	}
	return fmt.Sprintf("It will not be fetched again, and its rows in the table %s go with it: it has written %s.", s.Table, plural(int(s.Totals.Rows), "row")), nil
}

func sourceTook(answer json.RawMessage, query url.Values) string {
	var done client.DeletedSource
	switch {
	case query.Has("keepRows"):
		return "; its rows stay"
	case json.Unmarshal(answer, &done) != nil: // a server that does not tell
		return ""
	}
	return ", with " + plural(int(done.Rows), "row")
}

// sourceOfEvent is the source that an event is about: its own, or that of one
// of its runs.
func sourceOfEvent(e client.StreamEvent) (string, error) {
	var event struct {
		Source string `json:"source"`
	}
	if e.Type == "source" {
		if err := json.Unmarshal(e.Data, &event); err != nil {
			return "", fmt.Errorf("read event: %w", err)
		}
		return event.Source, nil
	}
	return laneOfRunEvent(e, pawl.KindSource)
}

// laneOfRunEvent is the lane of the run that an event is about, empty if that
// is of another kind.
func laneOfRunEvent(e client.StreamEvent, k pawl.Kind) (string, error) {
	var event struct {
		Run client.RunDetail `json:"run"`
	}
	if err := json.Unmarshal(e.Data, &event); err != nil {
		return "", fmt.Errorf("read event: %w", err)
	}
	if event.Run.Kind != string(k) {
		return "", nil
	}
	return event.Run.Lane, nil
}

// briefSource leaves out what only the answer about one source has.
func briefSource(raw json.RawMessage) (json.RawMessage, error) {
	return without(raw, "definition", "version", "versionNumber", "pagination", "mark", "requestedAt", "dueAt", "gates", "recent", "createdAt", "updatedAt", "nextText")
}
