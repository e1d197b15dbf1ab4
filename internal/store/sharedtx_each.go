package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// eachTogether is how many are read side by side: the most that a page has.
	eachTogether = 512
	// eachPause is how long the statements of some wait for those of others. They
	// only compute meanwhile, for all of a page on a busy machine.
	eachPause = 100 * time.Millisecond
)

// errSetUnknown ends a transaction in which a set was refused. Its statement goes one
// by one from now on.
var errSetUnknown = errors.New("a statement cannot be one for many")

// Each reads something for each of n things, as fn does for one. They are read side
// by side in the one transaction, and the statements that are wanted at the same time
// and differ only in their values are one statement, so that many cost as many
// statements and round trips as one. What fn sets must not be shared.
func (tx *Tx) Each(ctx context.Context, n int, fn func(ctx context.Context, tx *Tx, i int) error) error {
	switch c := tx.conn.(type) {
	case *liteConn:
		if n > 1 {
			return tx.sideBySide(ctx, n, fn, func(p *sharedTx) sender {
				return func(ctx context.Context, list []batchRequest, replies []reply) error {
					return p.sendLite(ctx, c, list, replies)
				}
			})
		}
	case *pgTx:
		if n > 1 && !c.plan {
			if err := c.flush(ctx); err != nil {
				return err
			}
			return tx.sideBySide(ctx, n, fn, func(p *sharedTx) sender {
				return func(ctx context.Context, list []batchRequest, replies []reply) error {
					return p.sendSets(ctx, c.conn, list, replies)
				}
			})
		}
	}
	for i := range n {
		if err := fn(ctx, tx, i); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) sideBySide(ctx context.Context, n int, fn func(ctx context.Context, tx *Tx, i int) error, send func(*sharedTx) sender) error {
	for from := 0; from < n; from += eachTogether {
		p := &sharedTx{db: tx.db, sets: true, pause: eachPause}
		for i := from; i < min(n, from+eachTogether); i++ {
			p.members = append(p.members, &participant{ctx: ctx, fn: func(_ context.Context, tx *Tx) error {
				return fn(ctx, tx, i) // with the caller's own context: nothing is written that would have to be finished
			}})
		}
		p.prepare(tx.Now)
		for _, m := range p.members {
			go p.attend(m) //nolint:contextcheck // it has its own
		}
		p.serve(ctx, send(p))
		for _, m := range p.members {
			switch {
			case m.panic != nil:
				panic(m.panic)
			case errors.Is(m.err, errApart) && p.err != nil: // of another one, which is the cause of all
				return p.err
			case m.err != nil:
				return m.err
			}
		}
	}
	return nil
}

// wantedSet is a statement that goes out for some of those that wait.
type wantedSet struct {
	command
	of   []int // whose it is, in the list of those that wait
	same bool  // they want the same; else the first column says whose a row is
}

// setsOf makes as few statements of what is wanted as there can be.
func (p *sharedTx) setsOf(list []batchRequest) (sets []wantedSet) {
	byKey, keys := map[string][]int{}, []string{}
	for i, w := range list {
		key := w.list[0].setKey()
		if len(w.list) > 1 || !w.rows || key == "" || p.db.refusedSets.has(w.list[0].sql) || p.db.sqliteFile == nil && bounding.MatchString(w.list[0].sql) {
			// Of a set PostgreSQL does not know the values when it plans. What wants the
			// first few in an order goes down an index only if it does.
			key = fmt.Sprint("\x00", i)
		}
		if byKey[key] == nil {
			keys = append(keys, key)
		}
		byKey[key] = append(byKey[key], i)
	}
	for _, key := range keys {
		var commands []command
		for _, i := range byKey[key] {
			commands = append(commands, list[i].list[0])
		}
		if one, same, ok := p.db.asSet(commands); ok {
			sets = append(sets, wantedSet{one, byKey[key], same})
			continue
		}
		for n, i := range byKey[key] {
			sets = append(sets, wantedSet{commands[n], []int{i}, true})
		}
	}
	return sets
}

// sendSets is send for members that only read. It fails with the first statement
// that does.
func (p *sharedTx) sendSets(ctx context.Context, conn *pgx.Conn, list []batchRequest, replies []reply) (err error) {
	sets := p.setsOf(list)
	p.types.Lock()
	defer p.types.Unlock()
	batch := &pgx.Batch{}
	for _, s := range sets {
		p.db.traced(s.sql, s.args)
		s.queueInto(batch)
	}
	results := conn.SendBatch(ctx, batch)
	for _, s := range sets {
		err = cmp.Or(err, p.readSet(results, s, list, replies, conn))
	}
	if err = cmp.Or(err, results.Close()); p.refused(err, sets, list) {
		return errSetUnknown
	}
	return err
}

// refused notes the sets that PostgreSQL may not have taken: those of a batch of which
// one cannot be understood.
func (p *sharedTx) refused(err error, sets []wantedSet, list []batchRequest) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !strings.HasPrefix(e.Code, "42") { // syntax error or access rule violation
		return false
	}
	found := false
	for _, s := range sets {
		if !s.same {
			p.db.refusedSets.add(list[s.of[0]].list[0].sql)
			found = true
		}
	}
	return found
}

func (p *sharedTx) readSet(results pgx.BatchResults, s wantedSet, list []batchRequest, replies []reply, conn *pgx.Conn) error {
	if w := list[s.of[0]]; !w.rows {
		replies[s.of[0]] = p.read(results, w, conn)
		return replies[s.of[0]].err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	fields := slices.Clone(rows.FieldDescriptions())
	whose := fields[:0]
	if !s.same && len(fields) > 0 {
		whose, fields = fields[:1], fields[1:]
	}
	held := make([]*bufferedRows, len(s.of))
	for n, i := range s.of {
		held[n] = &bufferedRows{fields: fields, types: conn.TypeMap(), mu: &p.types, at: -1}
		replies[i] = reply{rows: held[n]}
	}
	for rows.Next() {
		values := rows.RawValues()
		if s.same {
			held[0].add(values)
			continue
		}
		var n int64
		if err := conn.TypeMap().Scan(whose[0].DataTypeOID, whose[0].Format, values[0], &n); err != nil {
			return fmt.Errorf("read whose a row is: %w", err)
		}
		held[n-1].add(values[1:])
	}
	for _, h := range held[1:] {
		if s.same {
			h.rows = held[0].rows
		}
	}
	return rows.Err()
}
