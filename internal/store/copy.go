package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	pawl "github.com/pawlrun/pawl"
)

// Promote moves everything in a SQLite file to PostgreSQL. Both are opened with
// Options.Promoting, which is also the fence: nobody else has the file.
//
// All rows are copied, counted and compared in one transaction of PostgreSQL;
// then the file is marked as left, and then PostgreSQL as the one that counts.
// A crash before the mark leaves the file as it was, and a database that only
// Promote opens; a crash after it is made good by the next Promote. At no
// instant can a server be started on both.
func Promote(ctx context.Context, from, to *DB, o PromoteOptions) (PromoteResult, error) {
	if from.sqliteFile == nil || to.sqliteFile != nil {
		return PromoteResult{}, &pawl.Error{Code: pawl.CodeInvalid, Op: "promote", Msg: "a promotion goes from SQLite to PostgreSQL"}
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	m := &move{from: from, to: to, o: o}
	if err := m.look(ctx); err != nil {
		return PromoteResult{}, err
	}
	if m.left.id == "" { // else all that is missing is the last step
		if err := m.copy(ctx); err != nil {
			return PromoteResult{}, fmt.Errorf("promote: %w", err)
		}
		m.left = promotion{id: m.taken.id, side: sideFrom, state: promotionDone, other: to.String(), at: now()}
		if err := from.mark(ctx, m.left); err != nil {
			return PromoteResult{}, fmt.Errorf("promote: mark the file as left: %w", err)
		}
	}
	if err := to.finishPromotion(ctx, m.taken.id); err != nil {
		return PromoteResult{}, fmt.Errorf("promote: open the new database: %w", err)
	}
	return PromoteResult{Tables: m.done, Left: m.behind, Resumed: m.resumed}, nil
}

// PromoteOptions tune Promote.
type PromoteOptions struct {
	// Tables makes the tables of users on the side of PostgreSQL, if they are
	// not there, and tells how they are copied; nil copies Pawl's own only.
	Tables func(ctx context.Context, from, to *Tx) ([]CopyTable, error)

	// Progress is told of rows that were copied or compared, every now and then.
	Progress func(table string, rows, total int64)
}

// PromoteResult is what a promotion did.
type PromoteResult struct {
	Tables  []Copied
	Left    []string // tables of the file that nobody knows, which were not copied
	Resumed bool     // an earlier one was finished
}

// move is one promotion under way.
type move struct {
	from, to    *DB
	o           PromoteOptions
	left, taken promotion // what each side says of a move
	resumed     bool
	done        []Copied
	behind      []string

	rows, total int64
}

// look finds out what earlier promotions left.
func (m *move) look(ctx context.Context) error {
	err := m.from.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
		m.left, err = tx.promotion(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	err = m.to.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
		m.taken, err = tx.promotion(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	m.resumed = m.taken.id != ""
	switch {
	case m.left.id != "" && (m.left.id != m.taken.id || m.taken.state == promotionDone):
		return movedAway(m.left)
	case m.taken.state == promotionDone:
		return notEmpty(m.to, "everything of "+m.taken.other)
	}
	return nil
}

func notEmpty(db *DB, what string) error {
	return &pawl.Error{
		Code: pawl.CodeConflict, Reason: "not_empty", Op: "promote", Msg: fmt.Sprintf("the database %s is not empty: it has %s", db, what),
		Hint: "Name an empty database: createdb makes one.",
	}
}

// copy fills the target in one transaction. If an earlier try did that already,
// it only compares.
func (m *move) copy(ctx context.Context) error {
	return m.from.Read(ctx, func(ctx context.Context, from *Tx) error {
		return m.to.Write(ctx, func(ctx context.Context, to *Tx) error {
			m.done, m.rows, m.total = nil, 0, 0
			// Whoever opens this database waits until it is decided whose it is,
			// and reading the file must not be taken for being idle.
			for _, st := range []string{lockMigrations, `set local idle_in_transaction_session_timeout = 0`} {
				if _, err := to.Exec(ctx, st); err != nil {
					return err
				}
			}
			tables, err := m.tables(ctx, from, to)
			if err != nil {
				return err
			}
			for i := range tables {
				if err := m.table(ctx, from, to, &tables[i]); err != nil {
					return err
				}
			}
			if m.resumed {
				return nil
			}
			if err := m.raiseEpochs(ctx, from, to); err != nil {
				return err
			}
			m.taken = promotion{id: NewID(), side: sideTo, state: promotionCopied, other: m.from.String(), at: to.Now}
			if err := to.addPromotion(ctx, m.taken); err != nil {
				return err
			}
			return nil
		})
	})
}

// tables lists what is copied; unless a copy is compared, nothing may be there.
func (m *move) tables(ctx context.Context, from, to *Tx) ([]CopyTable, error) {
	tables, err := ownTables(ctx, from, m.to)
	if err != nil {
		return nil, err
	}
	if err := m.refuseRows(ctx, to, append(tables, CopyTable{To: "nodes"})); err != nil {
		return nil, err
	}
	if m.o.Tables != nil {
		more, err := m.o.Tables(ctx, from, to)
		if err != nil {
			return nil, err
		}
		if err := m.refuseRows(ctx, to, more); err != nil {
			return nil, err
		}
		tables = append(tables, more...)
	}
	if m.behind, err = unknownTables(ctx, from, tables); err != nil {
		return nil, err
	}
	for _, t := range tables {
		var n int64
		if err := from.QueryRow(ctx, `select count(*) from `+quoteName(t.From)).Scan(&n); err != nil {
			return nil, fmt.Errorf("count rows of %s: %w", t.From, err)
		}
		m.total += n
	}
	return tables, nil
}

func (m *move) refuseRows(ctx context.Context, to *Tx, tables []CopyTable) error {
	if m.resumed {
		return nil
	}
	for _, t := range tables {
		var one int
		err := to.QueryRow(ctx, `select 1 from `+quoteName(t.To)+` limit 1`).Scan(&one)
		switch {
		case err == nil:
			return notEmpty(m.to, "rows in "+t.To)
		case !errors.Is(err, ErrNoRow):
			return fmt.Errorf("look into %s: %w", t.To, err)
		}
	}
	return nil
}

// table copies one table, unless it is only compared, and makes sure that what
// can be read there is what was read here.
func (m *move) table(ctx context.Context, from, to *Tx, t *CopyTable) error {
	const often = 1000 // rows between two reports
	tell := func() {
		if m.rows++; m.rows%often == 0 {
			m.o.Progress(t.To, m.rows/2, m.total) // each is read twice
		}
	}
	m.o.Progress(t.To, m.rows/2, m.total)
	sent, err := m.send(ctx, from, to, t, tell)
	if err != nil {
		return fmt.Errorf("copy table %s: %w", t.From, err)
	}
	found, err := t.sumOf(ctx, to, tell)
	if err != nil {
		return err
	}
	if found != sent {
		return m.differs(t, sent.rows, found.rows)
	}
	m.done = append(m.done, sent.copied(t))
	return nil
}

func (m *move) differs(t *CopyTable, sent, found int64) error {
	if m.resumed {
		return &pawl.Error{
			Code: pawl.CodeConflict, Reason: "not_empty", Msg: fmt.Sprintf("the unfinished copy in %s is older than the file: table %s has other rows", m.to, t.To),
			Hint: "Empty that database (dropdb and createdb, or another name) and run pawl promote again.",
		}
	}
	return &pawl.Error{Code: pawl.CodeInternal, Msg: fmt.Sprintf("table %s does not read back as it was written (%d rows of %d); nothing was changed", t.To, found, sent)}
}

// send reads a table here and writes it there, in one COPY: rows may refer to
// others of their table, in any order.
func (m *move) send(ctx context.Context, from, to *Tx, t *CopyTable, tell func()) (checksum, error) {
	rows, err := t.stream(ctx, from, tell)
	if err != nil {
		return checksum{}, err
	}
	defer rows.rows.Close()
	if m.resumed {
		for rows.Next() {
			if _, err := rows.Values(); err != nil {
				return checksum{}, err
			}
		}
		return rows.sum, rows.Err()
	}
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	n, err := to.conn.(*pgTx).copyFrom(ctx, pgx.Identifier{t.To}, names, rows)
	if rows.err != nil {
		return checksum{}, rows.err // says more than what PostgreSQL makes of it
	}
	if err == nil && n != rows.sum.rows {
		err = fmt.Errorf("%d rows of %d arrived", n, rows.sum.rows)
	}
	if err != nil {
		return checksum{}, err
	}
	_, err = to.Exec(ctx, `analyze `+quoteName(t.To))
	return rows.sum, err
}

// raiseEpochs makes all fences of the file fences of the past: a run that was
// active there must not look as if its owner were alive.
func (m *move) raiseEpochs(ctx context.Context, from, to *Tx) error {
	var epoch, used int64
	if err := from.QueryRow(ctx, `select coalesce(max(epoch), 0) from buckets`).Scan(&epoch); err != nil {
		return fmt.Errorf("read epochs: %w", err)
	}
	if err := from.QueryRow(ctx, `select coalesce(max(epoch), 0) from runs`).Scan(&used); err != nil {
		return fmt.Errorf("read epochs: %w", err)
	}
	_, err := to.Exec(ctx, `update buckets set epoch = $1, node = null`, slices.Max([]int64{epoch, used})+1)
	return err
}
