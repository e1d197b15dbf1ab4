package store

import (
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
	// partyPause is how long the statements of some wait for those of others,
	// which may be busy or, worse, wait for one of these.
	partyPause = 5 * time.Millisecond
	// partyLocks keeps a lock that somebody else has from stopping everybody:
	// soon each goes its own way.
	partyLocks = `set local lock_timeout = 250`
)

// party is one transaction of many members. Each runs in the goroutine of its
// caller until it wants a statement; when all of them do, the statements go out
// together.
type party struct {
	db      *DB
	members []*member
	ready   chan struct{} // gets a word when everybody waits
	types   sync.Mutex    // guards the types that the connection knows, and fields
	fields  map[string][]pgconn.FieldDescription

	mu     sync.Mutex         // guards what follows, while members run
	live   int                // members whose function has not ended
	list   []want             // what goes out next
	parked []want             // what waits until another member has ended
	holds  map[string]*member // who holds what
	broken bool               // nothing of it is left
}

// want is what a member wants: the answer to a statement.
type want struct {
	from  *member
	list  []command // in a row; the answer is that of the last
	rows  bool
	reply chan reply
}

type reply struct {
	rows *heldRows
	n    int64
	err  error
}

// run is the transaction. What became of it is in the members.
func (p *party) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, partyTimeout)
	defer cancel()
	p.ready, p.holds, p.live = make(chan struct{}, 1), map[string]*member{}, len(p.members)
	p.fields = map[string][]pgconn.FieldDescription{}
	begun := false
	err := pgx.BeginTxFunc(ctx, p.db.pool, pgx.TxOptions{}, func(tx pgx.Tx) error {
		begun = true
		if _, err := tx.Exec(ctx, partyLocks); err != nil {
			return err
		}
		p.serve(ctx, tx)
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
func (p *party) turnOf(m *member) turn {
	if m.panic == nil && (p.broken || m.apart) {
		return turnAlone
	}
	return turnEnded
}

// serve runs the functions of all members and answers them.
func (p *party) serve(ctx context.Context, tx pgx.Tx) {
	for _, m := range p.members {
		m.party, m.tx = p, &Tx{Now: now(), db: p.db, conn: &partyConn{p, m, make(chan reply, 1)}}
	}
	go p.attend(p.members[0]) //nolint:contextcheck // it has its own; its caller is busy with this
	for _, m := range p.members[1:] {
		m.turn <- turnJoin
	}
	pause := time.NewTimer(partyPause)
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
		p.answer(ctx, tx)
		pause.Reset(partyPause)
	}
}

// ask notes what a member wants, and waits for the answer.
func (p *party) ask(w want) reply {
	p.mu.Lock()
	p.take(w)
	p.tellIfReady()
	p.mu.Unlock()
	return <-w.reply
}

// attend runs the function of a member to its end.
func (p *party) attend(m *member) {
	m.run()
	p.leave(m)
}

// leave notes that the function of a member has ended.
func (p *party) leave(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live--
	p.broken = p.broken || m.wrote && (m.failed() || m.apart)
	p.release(m)
	p.tellIfReady()
}

func (p *party) tellIfReady() {
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
func (p *party) take(w want) {
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
func (p *party) release(m *member) {
	maps.DeleteFunc(p.holds, func(_ string, by *member) bool { return by == m })
	parked := p.parked
	p.parked = nil
	for _, w := range parked {
		p.take(w)
	}
}

func (m *member) failed() bool { return m.err != nil || m.panic != nil }

// answer sends the statements that are wanted and gives everybody its answer.
func (p *party) answer(ctx context.Context, tx pgx.Tx) {
	list, broken := p.next()
	replies := make([]reply, len(list))
	if !broken && len(list) > 0 {
		broken = !p.send(ctx, tx, list, replies)
	}
	if broken {
		p.mu.Lock()
		p.broken = true
		p.mu.Unlock()
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
func (p *party) next() (list []want, broken bool) {
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

// send reports whether all statements succeeded.
func (p *party) send(ctx context.Context, tx pgx.Tx, list []want, replies []reply) bool {
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
	results, ok := tx.SendBatch(ctx, batch), true
	for i, w := range list {
		if first, there := fences[w.fence()]; there && first != i { // what holds for one holds for all
			replies[i] = replies[first]
			continue
		}
		replies[i] = p.read(results, w, tx.Conn())
		ok = ok && replies[i].err == nil
	}
	return results.Close() == nil && ok
}

// fence names the fence that is asked for, if it is one.
func (w want) fence() string {
	if w.list[0].sql != lockShared {
		return ""
	}
	return fmt.Sprint(w.list[1].args...)
}

func (p *party) read(results pgx.BatchResults, w want, conn *pgx.Conn) reply {
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
	held := &heldRows{fields: p.fields[sql], types: conn.TypeMap(), mu: &p.types, at: -1}
	for rows.Next() {
		held.add(rows.RawValues())
	}
	return reply{rows: held, err: rows.Err()}
}

// partyConn is the connection of a member.
type partyConn struct {
	p     *party
	m     *member
	reply chan reply // one statement at a time
}

func (c *partyConn) ask(rows bool, list ...command) reply {
	if c.m.apart { // whatever it does with that error
		return reply{err: errApart}
	}
	return c.p.ask(want{from: c.m, list: list, rows: rows, reply: c.reply})
}

func (c *partyConn) exec(_ context.Context, sql string, args []any) (int64, error) {
	r := c.ask(false, command{sql, args})
	return r.n, r.err
}

func (c *partyConn) execInARow(_ context.Context, list ...command) (int64, error) {
	r := c.ask(false, list...)
	return r.n, r.err
}

func (c *partyConn) query(_ context.Context, sql string, args []any) (Rows, error) {
	r := c.ask(true, command{sql, args})
	if r.err != nil {
		return nil, r.err
	}
	return r.rows, nil
}
