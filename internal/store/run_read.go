package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// noRun names what was looked for when it is not there.
func noRun(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNoRow):
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "read run", Msg: "there is no " + what}
	}
	return fmt.Errorf("read run: %w", err)
}

// GetRun reads a run, or fails with pawl.ErrNotFound.
func (tx *Tx) GetRun(ctx context.Context, id string) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where id = $1`, id))
	return r, noRun(err, "run "+id)
}

// NewestRun reads the newest run of a lane, or fails with pawl.ErrNotFound.
func (tx *Tx) NewestRun(ctx context.Context, kind pawl.Kind, lane string) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where kind = $1 and lane = $2
		order by created_at desc, id desc limit 1`, kind, lane))
	return r, noRun(err, fmt.Sprintf("run of %s %s", kind, lane))
}

// ActiveRun reads the one active run of a lane, or fails with pawl.ErrNotFound.
func (tx *Tx) ActiveRun(ctx context.Context, kind pawl.Kind, lane string) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where kind = $1 and lane = $2 and status = 'active'`,
		kind, lane))
	return r, noRun(err, fmt.Sprintf("active run of %s %s", kind, lane))
}

// Successor reads the run that names this one in retry_of, or fails with
// pawl.ErrNotFound.
func (tx *Tx) Successor(ctx context.Context, id string) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where retry_of = $1`, id))
	return r, noRun(err, "successor of run "+id)
}

// OrphanRuns reads up to limit active runs of the fence's bucket that were
// made active under another fence: their owner is gone.
func (tx *Tx) OrphanRuns(ctx context.Context, f Fence, limit int) ([]Run, error) {
	return scanRuns(tx.Query(ctx, `select `+runColumns+` from runs
		where status = 'active' and bucket = $1 and epoch <> $2 order by id limit $3`, f.Bucket, f.Epoch, limit))
}

// maxChain bounds how many attempts before and how many after a run RunChain
// reads.
const maxChain = 500

// RunChain reads the retry chain that contains a run, from the newest attempt
// to the first.
func (tx *Tx) RunChain(ctx context.Context, id string) ([]Run, error) {
	chain, err := scanRuns(tx.Query(ctx, `with recursive
		back (id, retry_of, n) as (
			select id, retry_of, 0 from runs where id = $1
			union all select r.id, r.retry_of, b.n + 1 from back b join runs r on r.id = b.retry_of where b.n < $2),
		ahead (id, n) as (
			select id, 0 from runs where id = $1
			union all select r.id, a.n + 1 from ahead a join runs r on r.retry_of = a.id where a.n < $2)
		select `+runColumns+` from runs where id in (select id from back union select id from ahead) order by attempt desc`, id, maxChain))
	if err != nil {
		return nil, fmt.Errorf("read retry chain: %w", err)
	}
	if len(chain) == 0 {
		return nil, &pawl.Error{Code: pawl.CodeNotFound, Op: "read retry chain", Msg: "there is no run " + id}
	}
	return chain, nil
}

// RunFilter picks runs; empty fields pick all.
type RunFilter struct {
	Kind   pawl.Kind
	Lane   string
	Status pawl.Status

	// Schedule is the id of a schedule whose runs are meant, in all its lanes.
	Schedule string
	// Viewer is a user who does not see the runs of schedules of others.
	Viewer string
	// From and To bound when runs began, To excluded.
	From, To time.Time
}

func (f RunFilter) conditions() conditions {
	c := conditions{texts: []string{"true"}}
	for _, column := range []struct{ name, value string }{{"kind", string(f.Kind)}, {"lane", f.Lane}, {"status", string(f.Status)}} {
		if column.value != "" {
			c.add(column.name+" = ?", column.value)
		}
	}
	if f.Schedule != "" {
		c.add("kind = 'schedule' and (lane = ? or lane like ?)", f.Schedule, f.Schedule+":%")
	}
	if f.Viewer != "" { // a lane begins with the id of the schedule, which has 36 characters
		c.add("(kind <> 'schedule' or exists (select 1 from schedules s where s.id = substr(runs.lane, 1, 36) and s.owner_user_id = ?))", f.Viewer)
	}
	if !f.From.IsZero() {
		c.add("created_at >= ?", ms(f.From))
	}
	if !f.To.IsZero() {
		c.add("created_at < ?", ms(f.To))
	}
	return c
}

// RunCursor is how far a list of runs was read: the last one of a page.
type RunCursor struct {
	CreatedAt time.Time
	ID        string
}

// ListRuns reads up to limit runs, the newest first, and the cursor with which
// to go on, zero at the end.
func (tx *Tx) ListRuns(ctx context.Context, f RunFilter, before RunCursor, limit int) (page []Run, next RunCursor, err error) {
	c := f.conditions()
	if before.ID != "" {
		c.add("(created_at, id) < (?, ?)", ms(before.CreatedAt), before.ID)
	}
	c.args = append(c.args, limit+1)
	page, err = scanRuns(tx.Query(ctx, `select `+runColumns+` from runs where `+c.String()+`
		order by created_at desc, id desc limit $`+strconv.Itoa(len(c.args)), c.args...))
	if err != nil {
		return nil, RunCursor{}, fmt.Errorf("list runs: %w", err)
	}
	if len(page) > limit {
		page = page[:limit]
		next = RunCursor{page[limit-1].CreatedAt, page[limit-1].ID}
	}
	return page, next, nil
}

// RunsInOrder reads up to limit runs, the oldest first, that come after the
// cursor.
func (tx *Tx) RunsInOrder(ctx context.Context, f RunFilter, after RunCursor, limit int) ([]Run, error) {
	c := f.conditions()
	if after.ID != "" {
		c.add("(created_at, id) > (?, ?)", ms(after.CreatedAt), after.ID)
	}
	c.args = append(c.args, limit)
	runs, err := scanRuns(tx.Query(ctx, `select `+runColumns+` from runs where `+c.String()+`
		order by created_at, id limit $`+strconv.Itoa(len(c.args)), c.args...))
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return runs, nil
}

// GetRun reads a run, or fails with pawl.ErrNotFound.
func (db *DB) GetRun(ctx context.Context, id string) (r Run, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		r, err = tx.GetRun(ctx, id)
		return err
	})
	return r, err
}

// NewestRun reads the newest run of a lane, or fails with pawl.ErrNotFound.
func (db *DB) NewestRun(ctx context.Context, kind pawl.Kind, lane string) (r Run, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		r, err = tx.NewestRun(ctx, kind, lane)
		return err
	})
	return r, err
}

// RunChain reads the retry chain that contains a run, from the newest attempt
// to the first.
func (db *DB) RunChain(ctx context.Context, id string) (chain []Run, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		chain, err = tx.RunChain(ctx, id)
		return err
	})
	return chain, err
}

// ListRuns reads up to limit runs, the newest first, and the cursor with which
// to go on, zero at the end.
func (db *DB) ListRuns(ctx context.Context, f RunFilter, before RunCursor, limit int) (page []Run, next RunCursor, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		page, next, err = tx.ListRuns(ctx, f, before, limit)
		return err
	})
	return page, next, err
}

// GoodRuns reads up to limit runs of a handler that committed, the newest first.
func (tx *Tx) GoodRuns(ctx context.Context, kind pawl.Kind, lane, handler string, limit int) ([]Run, error) {
	return scanRuns(tx.Query(ctx, `select `+runColumns+` from runs where kind = $1 and lane = $2 and handler = $3 and status = 'committed'
		order by created_at desc, id desc limit $4`, kind, lane, handler, limit))
}
