package runstore

import (
	"context"
	"errors"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// noRun names what was looked for when it is not there.
func noRun(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoRow):
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "read run", Msg: "there is no " + what}
	}
	return fmt.Errorf("read run: %w", err)
}

// GetRun reads a run, or fails with pawl.ErrNotFound.
func (tx Tx) GetRun(ctx context.Context, id string) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where id = $1`, id))
	return r, noRun(err, "run "+id)
}

// NewestRun reads the newest run of a lane, or fails with pawl.ErrNotFound.
func (tx Tx) NewestRun(ctx context.Context, kind pawl.Kind, lane string) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, newestRun, kind, lane))
	return r, noRun(err, fmt.Sprintf("run of %s %s", kind, lane))
}

// AskNewestRun is NewestRun for who needs the answer later, and none if there is
// none.
func (tx Tx) AskNewestRun(ctx context.Context, kind pawl.Kind, lane string, out *[]Run) error {
	return store.AskAll(ctx, tx.Tx, out, "read run", scanRun, newestRun, kind, lane)
}

// newestRun names the lane in its order, which only the index of lanes has. For
// empty tables PostgreSQL would choose to go back through the runs of all lanes
// until it meets one of this, and keep to that while they grow.
const newestRun = `select ` + runColumns + ` from runs where kind = $1 and lane between $2 and $2
	order by lane desc, created_at desc, id desc limit 1`

// ActiveRun reads the one active run of a lane, or fails with pawl.ErrNotFound.
func (tx Tx) ActiveRun(ctx context.Context, kind pawl.Kind, lane string) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where kind = $1 and lane = $2 and status = 'active'`,
		kind, lane))
	return r, noRun(err, fmt.Sprintf("active run of %s %s", kind, lane))
}

// Successor reads the run that names this one in retry_of, or fails with
// pawl.ErrNotFound.
func (tx Tx) Successor(ctx context.Context, id string) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where retry_of = $1`, id))
	return r, noRun(err, "successor of run "+id)
}

// maxChain bounds how many attempts before and how many after a run RunChain
// reads.
const maxChain = 500

// RunChain reads the retry chain that contains a run, from the newest attempt
// to the first.
func (tx Tx) RunChain(ctx context.Context, id string) ([]Run, error) {
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

// GetRun reads a run, or fails with pawl.ErrNotFound.
func (db DB) GetRun(ctx context.Context, id string) (r Run, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		r, err = In(tx).GetRun(ctx, id)
		return err
	})
	return r, err
}

// NewestRun reads the newest run of a lane, or fails with pawl.ErrNotFound.
func (db DB) NewestRun(ctx context.Context, kind pawl.Kind, lane string) (r Run, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		r, err = In(tx).NewestRun(ctx, kind, lane)
		return err
	})
	return r, err
}

// RunChain reads the retry chain that contains a run, from the newest attempt
// to the first.
func (db DB) RunChain(ctx context.Context, id string) (chain []Run, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		chain, err = In(tx).RunChain(ctx, id)
		return err
	})
	return chain, err
}

// GoodRunsThatCalled reads up to limit runs of a handler that committed after a
// call, the newest first, out of the last calls of the workflow.
func (tx Tx) GoodRunsThatCalled(ctx context.Context, workflowID, handler string, limit int) ([]Run, error) {
	const lookedAt = 200 // calls; other handlers may have made some
	return scanRuns(tx.Query(ctx, `select `+runColumns+` from runs where handler = $2 and status = 'committed' and id in (
			select run_id from (select run_id from mutations where workflow_id = $1 order by created_at desc, id desc limit $4) m)
		order by created_at desc, id desc limit $3`, workflowID, handler, limit, lookedAt))
}

// GoodRuns reads up to limit runs of a handler that committed, the newest first. SQLite
// must not find them by their status: it would read those of all lanes.
func (tx Tx) GoodRuns(ctx context.Context, kind pawl.Kind, lane, handler string, limit int) ([]Run, error) {
	return scanRuns(tx.Query(ctx, `select `+runColumns+` from runs where kind = $1 and lane = $2 and handler = $3 and status || '' = 'committed'
		order by created_at desc, id desc limit $4`, kind, lane, handler, limit))
}
