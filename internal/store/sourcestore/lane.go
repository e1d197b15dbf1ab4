package sourcestore

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// FindSources reads up to limit sources that fit, by name, those after the given
// one.
func (tx Tx) FindSources(ctx context.Context, f runstore.LaneFilter, after string, limit int) ([]Source, error) {
	rows, err := runstore.In(tx.Tx).FindLanes(ctx, pawl.KindSource, "source_definitions", store.Prefixed("t", sourceColumns), f, after, "", limit)
	return store.ScanAll(rows, err, "find sources", scanSource)
}

// SourceTimes is a source with what decides when it comes due.
type SourceTimes struct {
	Source
	SourceState
	NextRetryAt time.Time // zero: it does not back off
}

// WantedSources reads up to limit sources by name that are meant to run and do
// not need a person.
func (tx Tx) WantedSources(ctx context.Context, limit int) ([]SourceTimes, error) {
	rows, err := tx.Query(ctx, `select `+store.Prefixed("d", sourceColumns)+`, s.last_success_at, s.last_attempt_at, s.last_failed, s.requested_at, s.plan, s.stood_for, r.next_retry_at
		from lanes l join source_definitions d on d.id = l.id join source_state s on s.source_id = l.id left join retries r on r.kind = 'source' and r.lane = l.lane
		where l.kind = 'source' and l.state not in ('Stopped', 'Needs attention') order by l.name limit $1`, limit)
	return store.ScanAll(rows, err, "find sources", func(row store.Scanner) (s SourceTimes, err error) {
		var success, attempt, requested, stood, retry *int64
		var plan *string
		var failed int64
		s.Source, err = scanSource(store.Also(row, &success, &attempt, &failed, &requested, &plan, &stood, &retry))
		s.LastSuccessAt, s.LastAttemptAt, s.RequestedAt, s.NextRetryAt = store.FromNullMillis(success), store.FromNullMillis(attempt), store.FromNullMillis(requested), store.FromNullMillis(retry)
		s.LastFailed, s.Plan, s.StoodFor = failed != 0, store.FromNullText(plan), store.FromNullMillis(stood)
		return s, err
	})
}
