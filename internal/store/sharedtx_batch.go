package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// partyTimeout bounds a transaction that many share; a lock that it waits
	// for is given up earlier.
	partyTimeout = 30 * time.Second
	// sharedPause is how long the statements of some wait for those of others,
	// which may be busy or, worse, wait for one of these.
	sharedPause = 5 * time.Millisecond
	// sharedLocks keeps a lock that somebody else has from stopping everybody:
	// soon each goes its own way.
	sharedLocks = `set local lock_timeout = 250`
)

// sharedTx is one transaction of many participants. Each runs in the goroutine of its
// caller until it wants a statement; when all of them do, the statements go out
// together.
type sharedTx struct {
	db      *DB
	members []*participant
	ready   chan struct{} // gets a word when everybody waits
	types   sync.Mutex    // guards the types that the connection knows, and fields
	fields  map[string][]pgconn.FieldDescription
	sets    bool          // they only read: what is the same but for its values goes out as one
	pause   time.Duration // how long some wait for others

	mu     sync.Mutex              // guards what follows, while members run
	live   int                     // members whose function has not ended
	err    error                   // of the statement that broke it
	list   []batchRequest          // what goes out next
	parked []batchRequest          // what waits until another member has ended
	holds  map[string]*participant // who holds what
	broken bool                    // nothing of it is left
}

// batchRequest is what a participant wants: the answer to a statement.
type batchRequest struct {
	from  *participant
	list  []command // in a row; the answer is that of the last
	rows  bool
	reply chan reply
}

// sender answers what members want.
type sender func(ctx context.Context, list []batchRequest, replies []reply) error

type reply struct {
	rows Rows
	n    int64
	err  error
}

// run is the transaction. What became of it is in the members.
func (p *sharedTx) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, partyTimeout)
	defer cancel()
	p.prepare(now())
	begun := false
	err := pgx.BeginTxFunc(ctx, p.db.pool, pgx.TxOptions{}, func(tx pgx.Tx) error {
		begun = true
		if _, err := tx.Exec(ctx, sharedLocks); err != nil {
			return err
		}
		go p.attend(p.members[0]) //nolint:contextcheck // it has its own; its caller is busy with this
		for _, m := range p.members[1:] {
			m.turn <- turnJoin
		}
		p.serve(ctx, func(ctx context.Context, list []batchRequest, replies []reply) error {
			return p.send(ctx, tx.Conn(), list, replies)
		})
		if p.broken {
			return errApart
		}
		return nil
	})
	if err == nil || p.broken && begun {
		return
	}
	for _, m := range p.members { // it never began, or nobody knows whether it was committed
		if m.err == nil && m.panic == nil {
			m.err, m.doubt = err, begun && inDoubt(err)
		}
	}
}

// turnOf tells a member what became of it.
func (p *sharedTx) turnOf(m *participant) turn {
	if m.panic == nil && (p.broken || m.apart) {
		return turnAlone
	}
	return turnEnded
}

// prepare gives every member its part of the transaction.
func (p *sharedTx) prepare(at time.Time) {
	p.pause = cmp.Or(p.pause, sharedPause)
	p.ready, p.holds, p.live = make(chan struct{}, 1), map[string]*participant{}, len(p.members)
	p.fields = map[string][]pgconn.FieldDescription{}
	for _, m := range p.members {
		m.shared, m.tx = p, &Tx{Now: at, db: p.db, conn: &sharedConn{p, m, make(chan reply, 1)}}
	}
}

// serve answers the functions of all members until they have ended.
func (p *sharedTx) serve(ctx context.Context, send sender) {
	pause := time.NewTimer(p.pause)
	defer pause.Stop()
	for {
		select {
		case <-p.ready:
		case <-pause.C:
		}
		p.mu.Lock()
		over := p.live == 0
		p.mu.Unlock()
		if over {
			return
		}
		p.answer(ctx, send)
		pause.Reset(p.pause)
	}
}

// ask notes what a member wants, and waits for the answer.
func (p *sharedTx) ask(w batchRequest) reply {
	p.mu.Lock()
	p.take(w)
	p.tellIfReady()
	p.mu.Unlock()
	return <-w.reply
}

// attend runs the function of a member to its end.
func (p *sharedTx) attend(m *participant) {
	m.run()
	p.leave(m)
}

// leave notes that the function of a member has ended.
func (p *sharedTx) leave(m *participant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live--
	p.broken = p.broken || m.wrote && (m.failed() || m.apart)
	p.release(m)
	p.tellIfReady()
}

func (p *sharedTx) tellIfReady() {
	if len(p.list)+len(p.parked) < p.live {
		return
	}
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// take files what a member wants. Who wants to hold what another one holds
// waits for the end of that one: within one transaction nothing else would keep
// it out.
func (p *sharedTx) take(w batchRequest) {
	for _, c := range w.list {
		if !strings.HasSuffix(c.sql, holdSuffix) {
			continue
		}
		key := fmt.Sprint(c.sql, c.args)
		if by := p.holds[key]; by != nil && by != w.from {
			p.parked = append(p.parked, w)
			return
		}
		p.holds[key] = w.from
	}
	p.list = append(p.list, w)
}

// release gives others what a member held.
func (p *sharedTx) release(m *participant) {
	maps.DeleteFunc(p.holds, func(_ string, by *participant) bool { return by == m })
	parked := p.parked
	p.parked = nil
	for _, w := range parked {
		p.take(w)
	}
}

func (m *participant) failed() bool { return m.err != nil || m.panic != nil }

// answer sends the statements that are wanted and gives everybody its answer.
func (p *sharedTx) answer(ctx context.Context, send sender) {
	list, broken := p.next()
	replies := make([]reply, len(list))
	if !broken && len(list) > 0 {
		if err := send(ctx, list, replies); err != nil {
			broken = true
			p.mu.Lock()
			p.broken, p.err = true, err
			p.mu.Unlock()
		}
	}
	for i, w := range list {
		if broken {
			replies[i] = reply{err: errApart}
		}
		w.reply <- replies[i]
	}
}

// next takes what goes out next. If nothing is left of the transaction, or all
// wait for each other, that is everything.
func (p *sharedTx) next() (list []batchRequest, broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = p.broken || len(p.list) == 0 && len(p.parked) > 0 && len(p.parked) == p.live
	if p.broken {
		p.list, p.parked = append(p.list, p.parked...), nil
	}
	list, p.list = p.list, nil
	for _, w := range list {
		for _, c := range w.list {
			w.from.wrote = w.from.wrote || writes(c.sql)
		}
	}
	return list, p.broken
}

// send fails with the first statement that does.
func (p *sharedTx) send(ctx context.Context, conn *pgx.Conn, list []batchRequest, replies []reply) (err error) {
	p.types.Lock()
	defer p.types.Unlock()
	batch, fences := &pgx.Batch{}, map[string]int{}
	for i, w := range list {
		if key := w.fence(); key != "" {
			if _, there := fences[key]; there {
				continue
			}
			fences[key] = i
		}
		for _, c := range w.list {
			c.queueInto(batch)
		}
	}
	results := conn.SendBatch(ctx, batch)
	for i, w := range list {
		if first, there := fences[w.fence()]; there && first != i { // what holds for one holds for all
			replies[i] = replies[first]
			continue
		}
		replies[i] = p.read(results, w, conn)
		err = cmp.Or(err, replies[i].err)
	}
	return cmp.Or(err, results.Close())
}

// fence names the fence that is asked for, if it is one.
func (w batchRequest) fence() string {
	if w.list[0].sql != lockShared {
		return ""
	}
	return fmt.Sprint(w.list[1].args...)
}

func (p *sharedTx) read(results pgx.BatchResults, w batchRequest, conn *pgx.Conn) reply {
	if !w.rows {
		var r reply
		for range w.list {
			tag, err := results.Exec()
			if err != nil {
				return reply{err: err}
			}
			r.n = tag.RowsAffected()
		}
		return r
	}
	rows, err := results.Query()
	if err != nil {
		return reply{err: err}
	}
	sql := w.list[0].sql
	if p.fields[sql] == nil { // one statement has the same columns for all members
		p.fields[sql] = slices.Clone(rows.FieldDescriptions())
	}
	held := &bufferedRows{fields: p.fields[sql], types: conn.TypeMap(), mu: &p.types, at: -1}
	for rows.Next() {
		held.add(rows.RawValues())
	}
	return reply{rows: held, err: rows.Err()}
}

// partyConn is the connection of a member.
type sharedConn struct {
	p     *sharedTx
	m     *participant
	reply chan reply // one statement at a time
}

func (c *sharedConn) ask(rows bool, list ...command) reply {
	if c.m.apart { // whatever it does with that error
		return reply{err: errApart}
	}
	return c.p.ask(batchRequest{from: c.m, list: list, rows: rows, reply: c.reply})
}

func (c *sharedConn) exec(_ context.Context, sql string, args []any) (int64, error) {
	r := c.ask(false, command{sql, args})
	return r.n, r.err
}

func (c *sharedConn) execInARow(_ context.Context, list ...command) (int64, error) {
	r := c.ask(false, list...)
	return r.n, r.err
}

func (c *sharedConn) query(_ context.Context, sql string, args []any) (Rows, error) {
	r := c.ask(true, command{sql, args})
	if r.err != nil {
		return nil, r.err
	}
	return r.rows, nil
}
