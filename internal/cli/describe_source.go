package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/visible"
)

// describeSource tells how fresh the rows of a source are, what its runs did,
// and what it waits for.
func describeSource(raw json.RawMessage, now time.Time) (string, error) {
	var s client.Source
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("read source: %w", err)
	}
	d := newDescription(now)
	next := s.Lane.NextAt
	s.Lane.NextAt = client.Instant{} // a source fetches; told in its own words
	laneStory(d, s.Lane, now)
	d.say("%s", freshnessStory(s, now))
	if story := nextFetchStory(s, next.Time, now); story != "" {
		d.say("%s", story)
	}
	d.gap()
	d.line("Status", s.Status)
	d.line("Table", s.Table)
	d.line("Host", s.Host)
	d.line("Schedule", s.Schedule)
	d.instant("Next", next.Time)
	if s.Pagination == "none" {
		s.Pagination = "one for each fetch"
	}
	d.line("Pages", s.Pagination)
	d.line("Rows", fmt.Sprintf("%d written since it was made", s.Totals.Rows))
	d.line("Failures", fmt.Sprintf("%d since it was made; %d of %d in this period", s.Totals.Failures, s.Retries.Count, s.Retries.Max))
	d.instant("Retry", s.Retries.NextAt.Time)
	d.line("Quota", quotaWords(s.Quota, now))
	if mark := string(s.Mark); mark != "" && mark != "null" {
		d.line("Mark", visible.Text(mark))
	}
	d.line("Labels", labelWords(s.Labels))
	d.instant("Created", s.CreatedAt.Time)
	d.instant("Updated", s.UpdatedAt.Time)
	d.line("Id", s.ID)
	describeExpectations(d, s.Expectations)
	describeGates(d, s.Gates)
	describeFetches(d, s.Recent)
	d.gap()
	d.json("Definition", s.Definition)
	d.gap()
	d.say("More: pawl why source %s, pawl get rows %s, pawl get rejects %s, pawl get runs --source %s", s.Name, s.Name, s.Name, s.Name)
	return d.String(), nil
}

// freshnessStory says how old the rows are.
func freshnessStory(s client.Source, now time.Time) string {
	f := s.Freshness
	switch {
	case f.LastSuccessAt.IsZero() && f.LastAttemptAt.IsZero():
		return "It was never fetched."
	case f.LastSuccessAt.IsZero():
		return fmt.Sprintf("It was never fetched to its end; the last attempt began %s.", relative(f.LastAttemptAt.Time, now))
	case f.Failed:
		return fmt.Sprintf("Its rows are of %s; the last attempt, which began %s, did not succeed.", relative(f.LastSuccessAt.Time, now), relative(f.LastAttemptAt.Time, now))
	}
	return fmt.Sprintf("Its rows are of %s.", relative(f.LastSuccessAt.Time, now))
}

// nextFetchStory says when it is fetched again.
func nextFetchStory(s client.Source, next, now time.Time) string {
	switch {
	case !s.RequestedAt.IsZero():
		return "A fetch was requested " + relative(s.RequestedAt.Time, now) + "; it begins as soon as it can."
	case next.IsZero():
		return ""
	case next.After(now):
		return "It is fetched again " + relative(next, now) + "."
	}
	return "It is due now."
}

// quotaWords say how often the host may still be called.
func quotaWords(q client.SourceQuota, now time.Time) string {
	var parts []string
	if q.Limited {
		left := fmt.Sprintf("%d of %s left", deref(q.Left), plural(deref(q.Limit), "call"))
		if q.ResetAt.After(now) {
			left += ", all of them again " + relative(q.ResetAt.Time, now)
		}
		parts = append(parts, left)
	}
	if q.BlockedUntil.After(now) {
		parts = append(parts, "the host asked not to be called, for "+compact(q.BlockedUntil.Sub(now)))
	}
	if len(parts) == 0 {
		return "no limit is known"
	}
	return strings.Join(parts, "; ")
}

// describeFetches lists what the last runs did.
func describeFetches(d *description, runs []client.SourceRun) {
	var rows [][]string
	for _, r := range runs {
		p := client.RunProgress{}
		if r.Progress != nil {
			p = *r.Progress
		}
		failure := p.Note
		if r.Error != nil {
			failure = client.NullString(r.Error.Message)
		}
		if r.Count > 1 {
			failure = client.NullString(fmt.Sprintf("the first of %d idle runs", r.Count))
		}
		n := func(v int64) string { return strconv.FormatInt(v, 10) }
		rows = append(rows, []string{
			relative(runTime(r.RunSummary), d.now), r.Status, n(p.Pages), n(p.RowsRead), n(p.RowsNew), n(p.RowsChanged), n(p.Rejects), byteWords(p.Bytes), orDash(runTook(r.RunSummary)), orDash(visible.Text(string(failure))), r.ID,
		})
	}
	d.table("Last runs", []column{
		{title: "when"}, {title: "status"}, {title: "pages"}, {title: "rows"}, {title: "new"}, {title: "changed"}, {title: "rejects"}, {title: "bytes"}, {title: "took"}, {title: "note"}, {title: "run"},
	}, rows)
}

// byteWords is a size that reads well: 812 B, 1.5 MB.
func byteWords(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	size, unit := float64(n), 0
	for size >= 1000 && unit+1 < len(units) {
		size, unit = size/1000, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}
