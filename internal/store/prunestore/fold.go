package prunestore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// Stretch is what a run stands for that others are folded into: runs of its handler
// that found nothing to do, one after the other.
type Stretch struct {
	Through time.Time // when the last of them was made
	Count   int64     // it is among them
}

// Growth is a run that others are folded into: what it stood for and stands for then.
type Growth struct {
	ID      string
	Was, Is Stretch
}

// LastStretches reads for each of some runs, which are one for each handler of a lane,
// the last run of the handler before it that others may be folded into. One whose
// last run is further away than the gap, or is followed by another of the handler, is
// at its end and is left out.
func (tx Tx) LastStretches(ctx context.Context, runs []Run, gap time.Duration) (map[string]Run, error) {
	out := map[string]Run{}
	for batch := range store.Batches(runs) {
		rows := make([][]any, len(batch))
		for i, r := range batch {
			rows[i] = []any{r.ID, string(r.Kind), r.Lane, r.Handler, store.Millis(r.CreatedAt)}
		}
		table, args := tx.Rowset([]any{gap.Milliseconds()}, "for_run text, kind text, lane text, handler text, before_at bigint", rows)
		found, err := tx.Query(ctx, `select v.for_run, `+runColumns+` from `+table+` cross join runs r
			where r.id = (select f.id from runs f where f.kind = v.kind and f.lane = v.lane and f.handler = v.handler and f.folded_at is not null
				and f.created_at < v.before_at order by f.created_at desc, f.id desc limit 1)
			and r.through_at >= v.before_at - $1
			and not exists (select 1 from runs b where b.kind = v.kind and b.lane = v.lane and b.handler = v.handler
				and b.created_at > r.through_at and b.created_at < v.before_at)`, args...)
		_, err = store.ScanAll(found, err, "read stretches", func(row store.Scanner) (struct{}, error) {
			var id string
			r, err := scanRun(behind{row, &id})
			out[id] = r
			return struct{}{}, err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// behind reads a value that a row has before the others.
type behind struct {
	store.Scanner
	first any
}

func (b behind) Scan(to ...any) error { return b.Scanner.Scan(append([]any{b.first}, to...)...) }

// Fold folds runs into others: these stand for more, and those are removed with what
// hangs on them. If somebody has done it meanwhile, the transaction fails with
// store.ErrSetRefused, so that nothing is counted twice.
func (tx Tx) Fold(ctx context.Context, into []Growth, gone []string) error {
	for batch := range slices.Chunk(into, foldedAtOnce) {
		rows := make([][]any, len(batch))
		for i, g := range batch {
			rows[i] = []any{g.ID, g.Was.Count, store.Millis(g.Is.Through), g.Is.Count}
		}
		table, args := tx.Rowset([]any{store.Millis(tx.Now)}, "id text, was bigint, through_at bigint, run_count bigint", rows)
		err := tx.ChangeAll(ctx, len(batch), "fold runs", `update runs set folded_at = coalesce(runs.folded_at, $1), through_at = v.through_at, run_count = v.run_count
			from `+table+` where runs.id = v.id and runs.status = 'committed' and coalesce(runs.run_count, 0) = v.was`, args...)
		if err != nil {
			return err
		}
	}
	n, err := tx.DeleteRuns(ctx, gone)
	if err == nil && n != int64(len(gone)) {
		err = fmt.Errorf("fold runs: %w", store.ErrSetRefused)
	}
	return err
}

// foldedAtOnce bounds the runs of one statement.
const foldedAtOnce = 64

// Warned finds which of some runs logged a warning or an error.
func (tx Tx) Warned(ctx context.Context, ids []string) (map[string]bool, error) {
	return found(ctx, tx, "find who warned", `select distinct run_id from run_logs where level in ('warn', 'error') and run_id in {list}`, ids)
}
