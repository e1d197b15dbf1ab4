package store

import (
	"context"
	"errors"
	"slices"
)

// WritePlan is Write for a transaction that needs no answer from the database
// before it is committed: its function only uses Post, Expect, Ask and Fence.
// On PostgreSQL it is one round trip, and the plans that wait at the same time
// become one transaction, as those of SQLite do: one after the other, each as if
// it were alone. One that cannot be kept fails by itself, and the others go
// through without it. A plan that finds nobody waiting does not wait either.
//
// A function that needs an answer all the same runs as it would under Write.
func (db *DB) WritePlan(ctx context.Context, fn Func, opts ...Option) error {
	if db.sqliteFile != nil {
		return db.Write(ctx, fn, opts...)
	}
	lazy := len(opts) > 0 && opts[0] == Lazy
	return db.retryContention(ctx, func() error {
		p, err := db.plan(ctx, fn, lazy)
		switch {
		case p == nil:
			return db.writePostgres(ctx, fn, lazy)
		case err != nil:
			return err
		case len(p.list) == 0:
			p.tx.committed()
			return nil
		}
		db.plans.commit(db, p) //nolint:contextcheck // it has its own
		switch {
		case p.alone:
			return db.writePostgres(ctx, fn, lazy)
		case p.err == nil:
			p.tx.committed()
		case p.doubt:
			p.tx.doubted()
		}
		return p.err
	})
}

// plan is what a transaction will do.
type plan struct {
	ctx  context.Context
	tx   *Tx
	list []posted
	lazy bool
	turn chan bool // true: it leads

	err   error
	doubt bool // nobody knows whether it was committed
	alone bool // it met a lock, for which the others need not wait
}

var errUnplanned = errors.New("the transaction needs an answer before it can go on")

// plan runs a function without a database; nil is one that needs an answer.
func (db *DB) plan(ctx context.Context, fn Func, lazy bool) (*plan, error) {
	t := &pgTx{asIs: db.promoting, plan: true}
	p := &plan{ctx: ctx, tx: &Tx{Now: now(), db: db, conn: t}, lazy: lazy, turn: make(chan bool, 1)}
	err := fn(ctx, p.tx)
	if t.unplanned {
		return nil, err
	}
	p.list = t.waiting
	return p, err
}

// plans finds the plans that can go together: while some are on their way, those
// that come wait, and are the next.
type plans struct{ line[*plan] }

const (
	maxPlans       = 128 // that go together
	maxPlanLeaders = 2   // groups that are under way at once: while one is at the disk, another one can be computed
)

// commit brings a plan to the database, by itself or with others.
func (g *plans) commit(db *DB, p *plan) {
	if !g.enter(p, maxPlanLeaders) && !<-p.turn {
		return // it was taken along
	}
	n, group := 0, []*plan{p}
	group = append(group, g.gather(func(*plan) bool {
		n++
		return n < maxPlans
	})...)
	db.commitPlans(group)
	for _, other := range group[1:] {
		other.turn <- false
	}
	g.passOn()
}

// passOn makes the first that waits lead.
func (g *plans) passOn() {
	if next, ok := g.pass(); ok {
		next.turn <- true
	}
}

// commitPlans commits plans as one transaction, and notes in each how it ended.
// One that cannot be kept is left out, and the others are tried again without it.
func (db *DB) commitPlans(all []*plan) {
	left := slices.DeleteFunc(slices.Clone(all), func(p *plan) bool {
		p.err = context.Cause(p.ctx)
		return p.err != nil
	})
	for len(left) > 0 {
		t, err := db.sendPlans(left)
		if err == nil {
			break
		}
		failed := t.failed
		if failed == nil {
			for _, p := range left {
				p.err, p.doubt = err, t.inDoubt(err)
			}
			break
		}
		failed.err = err
		failed.alone = len(left) > 1 && db.dialect.classify(err) == errorContention
		left = slices.DeleteFunc(left, func(p *plan) bool { return p == failed })
	}
}

// sendPlans sends plans and their commit in one round trip.
func (db *DB) sendPlans(list []*plan) (*pgTx, error) {
	t := &pgTx{}
	t.post(posted{command: command{sql: beginWrite}})
	if !slices.ContainsFunc(list, func(p *plan) bool { return !p.lazy }) {
		t.post(posted{command: command{sql: lazyCommit}})
	}
	if len(list) > 1 {
		t.post(posted{command: command{sql: sharedLocks}})
	}
	fenced := map[Fence]bool{}
	ctx := context.WithoutCancel(list[0].ctx)
	for _, p := range list {
		for _, s := range p.list {
			if s.fence && fenced[p.tx.fenced] {
				continue
			}
			s.from = p
			t.waiting = append(t.waiting, s) // its values are clean
		}
		fenced[p.tx.fenced] = true
	}
	err := db.bounded(ctx, func(ctx context.Context) error {
		return inPostgres(ctx, db.pool, t, func(context.Context) error { return nil })
	})
	return t, err
}
