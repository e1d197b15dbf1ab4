package runstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// RunMark is what a timeline shows of a run.
type RunMark struct {
	ID        string
	Status    pawl.Status
	CreatedAt time.Time
	EndedAt   time.Time // zero: it has not ended
	Through   time.Time // of many that are folded: when the last of them was made; zero: it is one
	Count     int64     // how many they are; zero: one
}

// RunMarks reads up to limit runs of a lane that began in [from, to), the newest
// first, and then those that stand for runs on both sides of from.
func (tx Tx) RunMarks(ctx context.Context, kind pawl.Kind, lane string, from, to time.Time, limit int) ([]RunMark, error) {
	rows, err := tx.Query(ctx, `select `+markColumns+` from runs where kind = $1 and lane = $2
		and created_at >= $3 and created_at < $4 order by created_at desc, id desc limit $5`, kind, lane, store.Millis(from), store.Millis(to), limit)
	list, err := store.ScanAll(rows, err, "read runs of a lane", scanMark)
	if err == nil && kind == pawl.KindWorkflow {
		list, err = tx.withPartMarks(ctx, list, lane, from, to, limit)
	}
	if err != nil || len(list) == limit {
		return list, err
	}
	rows, err = tx.Query(ctx, `select `+markColumns+` from runs where kind = $1 and lane = $2
		and folded_at is not null and created_at > $5 and created_at < $3 and through_at >= $3 order by created_at desc, id desc limit $4`,
		kind, lane, store.Millis(from), limit-len(list), store.Millis(from.Add(-LongestStretch)))
	before, err := store.ScanAll(rows, err, "read runs that are folded", scanMark)
	return append(list, before...), err
}

// withPartMarks adds the marks of a workflow's partitions.
func (tx Tx) withPartMarks(ctx context.Context, list []RunMark, lane string, from, to time.Time, limit int) ([]RunMark, error) {
	rows, err := tx.Query(ctx, `select `+markColumns+` from runs where `+isPart+` and `+baseOfPart+` = $1
		and created_at >= $2 and created_at < $3 order by created_at desc, id desc limit $4`, lane, store.Millis(from), store.Millis(to), limit)
	of, err := store.ScanAll(rows, err, "read runs of partitions", scanMark)
	if err != nil || len(of) == 0 {
		return list, err
	}
	list = append(list, of...)
	slices.SortFunc(list, func(a, b RunMark) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID)) })
	return list[:min(len(list), limit)], nil
}

const markColumns = `id, status, created_at, ended_at, through_at, run_count`

func scanMark(row store.Scanner) (m RunMark, err error) {
	var status string
	var created int64
	var ended, through, count *int64
	err = row.Scan(&m.ID, &status, &created, &ended, &through, &count)
	m.Status, m.CreatedAt, m.EndedAt = pawl.Status(status), store.FromMillis(created), store.FromNullMillis(ended)
	if count != nil && *count > 1 {
		m.Through, m.Count = store.FromNullMillis(through), *count
	}
	return m, err
}
