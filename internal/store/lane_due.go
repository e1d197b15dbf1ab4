package store

import (
	"context"
	"time"
)

// DueProducer is a producer of a workflow that is meant to run.
type DueProducer struct {
	ProducerSchedule
	Workflow string // its name
}

// DueProducers reads up to limit producers that come due before an instant, the
// soonest first, of workflows that are meant to run and do not need a person.
func (tx *Tx) DueProducers(ctx context.Context, before time.Time, limit int) ([]DueProducer, error) {
	t := workflowLanes()
	rows, err := tx.Query(ctx, `select `+scheduleColumns+`, l.name from producer_schedules p join `+t.from+` on l.id = p.workflow_id
		where p.next_run_at < $1 and `+t.there+` and `+t.wanted+` and not (`+t.noted+`) order by p.next_run_at, p.id limit $2`, Millis(before), limit)
	return ScanAll(rows, err, "find producers that are due", func(row Scanner) (d DueProducer, err error) {
		d.ProducerSchedule, err = scanSchedule(also(row, &d.Workflow))
		return d, err
	})
}

// DueSchedules reads up to limit schedules of an owner that are switched on and
// come due before an instant, the soonest first. An empty owner is everybody.
func (tx *Tx) DueSchedules(ctx context.Context, ownerID string, before time.Time, limit int) ([]Schedule, error) {
	c := Where{}
	c.Add("enabled = 1 and deleted_at is null and next_run_at < ?", Millis(before))
	if ownerID != "" {
		c.Add("owner_user_id = ?", ownerID)
	}
	text := c.String()
	rows, err := tx.Query(ctx, `select `+graphScheduleColumns+` from schedules where `+text+` order by next_run_at, id`+c.Limit(limit), c.Args...)
	return ScanAll(rows, err, "find schedules that are due", scanGraphSchedule)
}

// SourceTimes is a source with what decides when it comes due.
type SourceTimes struct {
	Source
	SourceState
	NextRetryAt time.Time // zero: it does not back off
}

// WantedSources reads up to limit sources by name that are meant to run and do
// not need a person.
func (tx *Tx) WantedSources(ctx context.Context, limit int) ([]SourceTimes, error) {
	t := sourceLanes()
	rows, err := tx.Query(ctx, `select `+sourceColumnsOf("l")+`, s.last_success_at, s.last_attempt_at, s.last_failed, s.requested_at, r.next_retry_at
		from `+t.from+` join source_state s on s.source_id = l.id left join retries r on r.kind = 'source' and r.lane = l.name
		where `+t.wanted+` and not (`+t.noted+`) order by l.name limit $1`, limit)
	return ScanAll(rows, err, "find sources", func(row Scanner) (s SourceTimes, err error) {
		var success, attempt, requested, retry *int64
		var failed int64
		s.Source, err = scanSource(also(row, &success, &attempt, &failed, &requested, &retry))
		s.LastSuccessAt, s.LastAttemptAt, s.RequestedAt, s.NextRetryAt = FromNullMillis(success), FromNullMillis(attempt), FromNullMillis(requested), FromNullMillis(retry)
		s.LastFailed = failed != 0
		return s, err
	})
}

// also scans more columns behind those that a scan asks for.
func also(row Scanner, more ...any) Scanner {
	return longRow{row, more}
}

type longRow struct {
	row  Scanner
	more []any
}

func (r longRow) Scan(dest ...any) error { return r.row.Scan(append(dest, r.more...)...) }
