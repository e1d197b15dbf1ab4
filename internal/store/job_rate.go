package store

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Rate bounds how many jobs are handed out in any period.
type Rate struct {
	Limit   int
	Period  time.Duration
	PerLane bool // for each lane, and not for the task as a whole
}

// rateSlices is in how many slices a period is counted. A start counts for up to one
// slice longer than the period: never more than the limit, and at most this fraction
// less.
const rateSlices = 64

// width is the length of a slice, in milliseconds.
func (r Rate) width() int64 { return max(1, r.Period.Milliseconds()/rateSlices) }

// laneOf is whose rate a job of a lane counts for.
func (r Rate) laneOf(l Lane) Lane {
	if r.PerLane {
		return l
	}
	return Lane{}
}

// allowance tells how many more jobs may be handed out now, of each lane that is named
// or of the task as a whole.
func (tx *Tx) allowance(ctx context.Context, c Claim, lanes []Lane) (map[Lane]int, error) {
	left := map[Lane]int{}
	var rows [][]any
	for _, l := range lanes {
		if l = c.Rate.laneOf(l); left[l] == 0 {
			left[l] = c.Rate.Limit
			rows = append(rows, []any{l.Owner, l.Name})
		}
	}
	table, args := tx.Rowset([]any{c.Task, Millis(tx.Now)}, "whose text, name text", rows)
	found, err := tx.Query(ctx, `select v.whose, v.name, (select coalesce(sum(s.starts), 0) from worker_starts s
		where s.task = $1 and s.owner = v.whose and s.lane = v.name and s.until_at > $2) from `+table, args...)
	type used struct {
		lane Lane
		n    int
	}
	list, err := ScanAll(found, err, "read rates", func(row Scanner) (u used, err error) { return u, row.Scan(&u.lane.Owner, &u.lane.Name, &u.n) })
	for _, u := range list {
		left[u.lane] = max(0, left[u.lane]-u.n)
	}
	return left, err
}

// limitByRate lowers how many jobs of each lane, and in all, may be taken.
func (tx *Tx) limitByRate(ctx context.Context, c Claim, limit int, free map[Lane]int) (int, error) {
	lanes := []Lane{{}}
	if c.Rate.PerLane {
		lanes = nil
		for l := range free {
			lanes = append(lanes, l)
		}
	}
	left, err := tx.allowance(ctx, c, lanes)
	if err != nil {
		return 0, err
	}
	if !c.Rate.PerLane {
		return min(limit, left[Lane{}]), nil
	}
	for l := range free {
		free[l] = min(free[l], left[l])
	}
	return limit, nil
}

// countStarts notes what was handed out.
func (tx *Tx) countStarts(ctx context.Context, c Claim, jobs []Claimed) error {
	starts := map[Lane]int64{}
	for _, j := range jobs {
		starts[c.Rate.laneOf(j.LaneName())]++
	}
	width := c.Rate.width()
	slice := Millis(tx.Now) / width
	until := (slice+1)*width + c.Rate.Period.Milliseconds()
	var rows [][]any
	for l, n := range starts {
		rows = append(rows, []any{l.Owner, l.Name, n})
	}
	table, args := tx.Rowset([]any{c.Task, slice, until}, "whose text, name text, n bigint", rows)
	_, err := tx.Exec(ctx, `insert into worker_starts as s (task, owner, lane, slice, starts, until_at)
		select $1, v.whose, v.name, $2, v.n, $3 from `+table+` where true
		on conflict (task, owner, lane, slice) do update set starts = s.starts + excluded.starts, until_at = excluded.until_at`, args...)
	if err != nil {
		return fmt.Errorf("count starts: %w", err)
	}
	return nil
}

// nextAllowed is when the first slice of the task ends; zero if there is none.
func (tx *Tx) nextAllowed(ctx context.Context, task string) (time.Time, error) {
	var at *int64
	err := tx.QueryRow(ctx, `select min(until_at) from worker_starts where task = $1 and until_at > $2`, task, Millis(tx.Now)).Scan(&at)
	return FromNullMillis(at), err
}

// PruneStarts forgets up to limit slices that count no more.
func (tx *Tx) PruneStarts(ctx context.Context, limit int) (int64, error) {
	return tx.Exec(ctx, `delete from worker_starts where (task, owner, lane, slice) in (
		select task, owner, lane, slice from worker_starts where until_at <= $1 order by until_at limit $2)`, Millis(tx.Now), limit)
}

// unlimited is how many jobs without a lane may be in hand.
const unlimited = math.MaxInt

// CountOldStarts counts slices that count no more, up to a bound.
func (tx *Tx) CountOldStarts(ctx context.Context, bound int) (n int, err error) {
	err = tx.QueryRow(ctx, `select count(*) from (select 1 from worker_starts where until_at <= $1 limit $2) s`, Millis(tx.Now), bound).Scan(&n)
	return n, err
}
