package store

import (
	"context"
)

// run is the writer: it takes whoever waits into one SQL transaction, commits
// once, and tells everybody.
func (l *lite) run(db *DB) {
	defer close(l.stopped)
	var carried *request
	for {
		first := carried
		carried = nil
		if first == nil {
			select {
			case first = <-l.requests:
			case <-l.stop:
				return
			}
		}
		if first.state.CompareAndSwap(0, 1) {
			carried = l.group(db, first)
		}
	}
}

// group runs first and all that wait behind it, and commits. It returns a
// request that was taken but has to wait for the next group, because a lazy
// group cannot keep the promise of a durable one.
func (l *lite) group(db *DB, first *request) (carried *request) {
	ctx := context.Background() // an interrupted statement would undo the whole group
	members := []*request{first}
	if err := l.begin(ctx, first.lazy); err != nil {
		settle(members, err)
		return nil
	}
	first.run(db, l.writer)
	if first.failed() { // alone so far: undo it whole
		l.rollback(ctx)
		settle(members, nil)
		return nil
	}
	for len(members) < maxGroup && carried == nil {
		var r *request
		select {
		case r = <-l.requests:
		default:
		}
		if r == nil {
			break
		}
		if first.lazy && !r.lazy {
			carried = r
			break
		}
		if !r.state.CompareAndSwap(0, 1) {
			continue
		}
		members = append(members, r)
		if err := l.member(ctx, db, r); err != nil {
			l.rollback(ctx)
			settle(members, err)
			return nil
		}
	}
	_, err := l.writer.exec(ctx, `commit`, nil)
	if err != nil {
		l.rollback(ctx)
	}
	settle(members, err)
	return carried
}

// member runs one request in a savepoint. An error means that the group's
// transaction is broken, as it is after a full disk.
func (l *lite) member(ctx context.Context, db *DB, r *request) error {
	if _, err := l.writer.exec(ctx, `savepoint member`, nil); err != nil {
		return err
	}
	r.run(db, l.writer) //nolint:contextcheck // it has the context of its caller
	if r.failed() {
		if _, err := l.writer.exec(ctx, `rollback to member`, nil); err != nil {
			return err
		}
	}
	_, err := l.writer.exec(ctx, `release member`, nil)
	return err
}

func (l *lite) begin(ctx context.Context, lazy bool) error {
	if lazy != l.lazyNow {
		level := `pragma synchronous = full`
		if lazy {
			level = `pragma synchronous = normal`
		}
		if _, err := l.writer.exec(ctx, level, nil); err != nil {
			return err
		}
		l.lazyNow = lazy
	}
	_, err := l.writer.exec(ctx, `begin immediate`, nil)
	return err
}

func (l *lite) rollback(ctx context.Context) {
	_, _ = l.writer.exec(ctx, `rollback`, nil) // fails when SQLite undid it already
}

func (r *request) failed() bool { return r.err != nil || r.panic != nil }

// run calls the function; a panic is carried to the caller's goroutine.
func (r *request) run(db *DB, c conn) {
	defer func() {
		if p := recover(); p != nil {
			r.panic = p
		}
	}()
	if err := context.Cause(r.ctx); err != nil {
		r.err = err
		return
	}
	r.tx = &Tx{Now: now(), db: db, conn: c}
	r.err = r.fn(context.WithoutCancel(r.ctx), r.tx)
}

// settle tells the members how it ended; err is the group's fate and reaches
// those who had no error of their own.
func settle(members []*request, err error) {
	for _, r := range members {
		if r.err == nil && r.panic == nil {
			r.err = err
		}
		close(r.done)
	}
}
