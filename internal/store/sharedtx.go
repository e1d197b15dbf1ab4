package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxLeaders is how many transactions of many are under way at once: while
	// one is computed here, another one is in the database.
	maxLeaders = 2
	// maxTogether bounds how many transactions become one.
	maxTogether = 128
	// patience is how long a transaction waits for the one before it, which may
	// wait for a lock, until it goes its own way.
	patience = time.Second
)

// WriteShared is Write for transactions of many lanes at once: on PostgreSQL
// those that wait for each other become one transaction in which their
// statements travel side by side, as those of SQLite share a commit. One that
// finds nobody waiting is an ordinary one.
//
// Those that become one do not keep each other out as transactions do. So fn
// may only change rows of its lane, and rows that it holds by "for update" or
// changes in the one statement that reads them. Of two that have the same
// lane, or hold the same row, one waits for the other. If any of them fails
// after it wrote, each runs again by itself.
func (db *DB) WriteShared(ctx context.Context, lane string, fn Func) error {
	if db.sqliteFile != nil {
		return db.Write(ctx, fn)
	}
	return db.retryContention(ctx, func() error { return db.txGroup.write(ctx, db, fn, lane) })
}

// WriteTogether is WriteShared for transactions that all change one row, which the group
// names: each would wait for the commit of the one before it. They go with others of
// their group only, one such transaction after the other, so that none holds that row and
// waits for another one. Two that have a lane in common do not go together.
func (db *DB) WriteTogether(ctx context.Context, group string, fn Func, lanes ...string) error {
	if db.sqliteFile != nil {
		return db.Write(ctx, fn)
	}
	g := db.txGroups.enter(group)
	defer db.txGroups.leave(group, g)
	return db.retryContention(ctx, func() error { return g.write(ctx, db, fn, lanes...) })
}

// txGroups are the groups in which somebody is. The zero value is ready.
type txGroups struct {
	mu sync.Mutex
	of map[string]*txGroup // guarded by mu
}

func (t *txGroups) enter(name string) *txGroup {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.of[name]
	if g == nil {
		if t.of == nil {
			t.of = map[string]*txGroup{}
		}
		g = &txGroup{most: 1}
		t.of[name] = g
	}
	g.users++
	return g
}

func (t *txGroups) leave(name string, g *txGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g.users--; g.users == 0 {
		delete(t.of, name)
	}
}

// txGroup finds the transactions that can become one.
type txGroup struct {
	line[*participant]
	most  int // transactions of many that are under way at once; 0 is maxLeaders
	users int // guarded by the mu of txGroups
}

// participant is a transaction that may become part of another one.
type participant struct {
	ctx   context.Context
	lanes []string
	fn    Func
	turn  chan turn // what becomes of it, step by step

	shared *sharedTx
	tx     *Tx
	err    error
	panic  any
	wrote  bool
	apart  bool // it asked to be by itself
	doubt  bool // nobody knows whether it was committed
}

// turn is what becomes of a member that waited.
type turn int

const (
	turnLead  turn = iota // it leads now
	turnJoin              // it runs as part of another one
	turnEnded             // it was part of another one, and err says how it ended
	turnAlone             // it was part of another one of which nothing is left
)

func (t *txGroup) write(ctx context.Context, db *DB, fn Func, lanes ...string) error {
	m := &participant{ctx: ctx, lanes: lanes, fn: fn, turn: make(chan turn, 1)}
	next := t.await(ctx, m)
	if next == turnJoin {
		m.shared.attend(m) //nolint:contextcheck // it has its own
		next = <-m.turn
	}
	switch next {
	case turnLead:
		return t.lead(db, m) //nolint:contextcheck // each member has its own
	case turnEnded:
		return m.end()
	default:
		return db.writePostgres(ctx, fn, false)
	}
}

// await waits for the turn of a member.
func (t *txGroup) await(ctx context.Context, m *participant) turn {
	if t.enter(m, cmp.Or(t.most, maxLeaders)) {
		return turnLead
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case next := <-m.turn:
		return next
	case <-timer.C:
	case <-ctx.Done(): // alone it finds that out
	}
	if t.leave(m) {
		return turnAlone
	}
	return <-m.turn // somebody took it along
}

// lead runs a member and those that may go with it, and makes another one lead,
// who does not have to wait for what follows the commit.
func (t *txGroup) lead(db *DB, m *participant) error {
	pass := sync.OnceFunc(t.passOn)
	defer pass() // also if a function panics
	members := t.members(m)
	if len(members) > 1 {
		p := &sharedTx{db: db, members: members}
		p.run(context.WithoutCancel(m.ctx))
		for _, other := range members[1:] {
			other.turn <- p.turnOf(other)
		}
		if p.turnOf(m) == turnEnded {
			pass()
			return m.end()
		}
	}
	tx, err := db.commitPostgres(m.ctx, m.fn, false)
	pass()
	if err == nil {
		tx.committed()
	}
	return err
}

// members takes along those that wait and whose lanes are others.
func (t *txGroup) members(m *participant) []*participant {
	taken, together := map[string]bool{}, 1
	take := func(w *participant) {
		for _, lane := range w.lanes {
			taken[lane] = true
		}
	}
	take(m)
	return append([]*participant{m}, t.gather(func(w *participant) bool {
		if together == maxTogether || slices.ContainsFunc(w.lanes, func(lane string) bool { return taken[lane] }) || w.ctx.Err() != nil {
			return false
		}
		take(w)
		together++
		return true
	})...)
}

// passOn makes the first that waits lead.
func (t *txGroup) passOn() {
	if next, ok := t.pass(); ok {
		next.turn <- turnLead
	}
}

// end does what follows a commit, in the goroutine of the caller.
func (m *participant) end() error {
	if m.panic != nil {
		panic(m.panic)
	}
	if m.doubt {
		m.tx.doubted()
	}
	if m.err != nil {
		return m.err
	}
	m.tx.committed()
	return nil
}

// run calls the function of a member.
func (m *participant) run() {
	defer func() {
		if p := recover(); p != nil {
			m.panic = p
		}
	}()
	m.err = m.fn(context.WithoutCancel(m.ctx), m.tx)
}

// RequireOwnTx is called by a function of WriteShared that finds out, before it
// wrote, that it needs what only a transaction of its own has. Its error must be
// returned; then the function runs again by itself.
func (tx *Tx) RequireOwnTx() error {
	c, shared := tx.conn.(*sharedConn)
	if !shared {
		return nil
	}
	c.m.apart = true
	return errApart
}

// errApart ends the function of a member that will run again by itself.
var errApart = errors.New("the transaction runs again by itself")

// writes reports whether a statement may leave something behind.
func writes(sql string) bool { return !strings.HasPrefix(strings.TrimSpace(sql), "select") }
