package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// dueJobs reads the table of jobs by the index of what is due, which begins
// with bucket and priority.
const dueJobs = `buckets b cross join (select 1 as level union all select 0 union all select -1) p
	join jobs j on j.bucket = b.id and j.priority = p.level`

// Due is how many jobs of a task wait although their time has come.
type Due struct {
	Task  string
	Count int
}

// DueJobs counts, by task, jobs that wait although their time has come, and
// returns since when the oldest of them does, zero if there is none. No more
// than bound are counted, so that it stays cheap whatever piled up.
func (db *DB) DueJobs(ctx context.Context, bound int) (due []Due, oldest time.Time, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		if due, err = tx.dueByTask(ctx, bound); err != nil {
			return err
		}
		var first *int64
		err = tx.QueryRow(ctx, `select min((select j.run_at from jobs j where j.bucket = b.id and j.priority = p.level and j.state = 0
				and j.started_at is null and j.run_at <= $1 order by j.run_at limit 1))
			from buckets b cross join (select 1 as level union all select 0 union all select -1) p`, Millis(tx.Now)).Scan(&first)
		if err != nil {
			return err
		}
		oldest = FromNullMillis(first)
		served, since, err := tx.dueServedByTask(ctx, bound)
		if due = append(due, served...); !since.IsZero() && (oldest.IsZero() || since.Before(oldest)) {
			oldest = since
		}
		return err
	})
	if err != nil {
		return nil, oldest, fmt.Errorf("count due jobs: %w", err)
	}
	slices.SortFunc(due, func(a, b Due) int { return cmp.Compare(a.Task, b.Task) })
	return due, oldest, nil
}

const someDue = ` from ` + dueJobs + ` where j.state = 0 and j.started_at is null and j.run_at <= $1 limit $2`

func (tx *Tx) countDue(ctx context.Context, bound int) (n int, err error) {
	err = tx.QueryRow(ctx, `select count(*) from (select 1`+someDue+`) d`, Millis(tx.Now), bound).Scan(&n)
	return n, err
}

func (tx *Tx) dueByTask(ctx context.Context, bound int) ([]Due, error) {
	rows, err := tx.Query(ctx, `select d.task, count(*) from (select j.task`+someDue+`) d group by d.task order by d.task`, Millis(tx.Now), bound)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Due
	for rows.Next() {
		var d Due
		if err := rows.Scan(&d.Task, &d.Count); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, rows.Err()
}

// dueServedByTask does the same for jobs that wait for a worker of a user. It looks
// at no more than bound jobs of a task.
func (tx *Tx) dueServedByTask(ctx context.Context, bound int) (out []Due, oldest time.Time, err error) {
	looked := `(select j.run_at from jobs j where j.task = t.name and j.state = 2 limit $2) d where d.run_at <= $1`
	rows, err := tx.Query(ctx, `select t.name, (select count(*) from `+looked+`), (select min(d.run_at) from `+looked+`) from worker_tasks t order by t.name`, Millis(tx.Now), bound)
	if err != nil {
		return nil, oldest, err
	}
	defer rows.Close()
	for rows.Next() {
		var d Due
		var first *int64
		if err := rows.Scan(&d.Task, &d.Count, &first); err != nil {
			return nil, oldest, err
		}
		if d.Count == 0 {
			continue
		}
		if since := FromNullMillis(first); oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
		out = append(out, d)
	}
	return out, oldest, rows.Err()
}
