package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// HaltMark is what nodes know of the switch that stops all starts. A later mark
// replaces an earlier one, in whatever order they are heard of.
type HaltMark struct {
	ID     int64     // of the last halt; zero: there never was one
	Lifted time.Time // zero: it is in force
}

// Active reports whether nothing may start.
func (m HaltMark) Active() bool { return m.ID > 0 && m.Lifted.IsZero() }

// After reports whether the mark is later than another one.
func (m HaltMark) After(other HaltMark) bool {
	return m.ID > other.ID || m.ID == other.ID && other.Active() && !m.Active()
}

// Halt is a time in which nothing starts.
type Halt struct {
	HaltMark
	Since    time.Time
	By       string
	Note     string // may be empty
	LiftedBy string
}

// haltsKept is how many halts are kept. They tell why nothing ran then.
const haltsKept = 1000

const haltColumns = `id, since_at, halted_by, note, lifted_at, lifted_by`

func scanHalt(row Scanner) (h Halt, err error) {
	var since int64
	var lifted *int64
	var by *string
	if err := row.Scan(&h.ID, &since, &h.By, &h.Note, &lifted, &by); err != nil {
		return Halt{}, err
	}
	h.Since, h.Lifted, h.LiftedBy = FromMillis(since), FromNullMillis(lifted), FromNullText(by)
	return h, nil
}

// LatestHalt reads the last halt; the zero one if there never was any.
func (tx *Tx) LatestHalt(ctx context.Context) (Halt, error) {
	return tx.oneHalt(ctx, latestHalt)
}

// AskHalted tells, with the answer to the next statement, whether nothing may start.
func (tx *Tx) AskHalted(ctx context.Context, halted *bool) error {
	return tx.Ask(ctx, func(rows Rows, err error) error {
		list, err := ScanAll(rows, err, "read halt", scanHalt)
		*halted = len(list) > 0 && list[0].Active()
		return err
	}, latestHalt)
}

const latestHalt = `select ` + haltColumns + ` from halts order by id desc limit 1`

// HaltAt reads the halt that was in force at an instant; the zero one if none was.
func (tx *Tx) HaltAt(ctx context.Context, at time.Time) (Halt, error) {
	return tx.oneHalt(ctx, `select `+haltColumns+` from halts where since_at <= $1 and (lifted_at is null or lifted_at > $1) order by id desc limit 1`, Millis(at))
}

func (tx *Tx) oneHalt(ctx context.Context, sql string, args ...any) (Halt, error) {
	h, err := scanHalt(tx.QueryRow(ctx, sql, args...))
	if errors.Is(err, ErrNoRow) {
		return Halt{}, nil
	}
	if err != nil {
		return Halt{}, fmt.Errorf("read halt: %w", err)
	}
	return h, nil
}

// HaltsSince reads the halts that were in force at an instant or later, the oldest
// first.
func (tx *Tx) HaltsSince(ctx context.Context, at time.Time) ([]Halt, error) {
	rows, err := tx.Query(ctx, `select `+haltColumns+` from halts where lifted_at is null or lifted_at > $1 order by id`, Millis(at))
	return ScanAll(rows, err, "read halts", scanHalt)
}

// BeginHalt stops all starts. One that is in force stays, with another note if one
// is given; changed reports whether anything did.
func (tx *Tx) BeginHalt(ctx context.Context, by, note string) (h Halt, changed bool, err error) {
	last, err := tx.LatestHalt(ctx)
	if err != nil {
		return Halt{}, false, err
	}
	n := int64(0)
	if !last.Active() { // of two at once, one finds the other's
		n, err = tx.Exec(ctx, `insert into halts (id, since_at, halted_by, note) values ($1, $2, $3, $4) on conflict (id) do nothing`, last.ID+1, Millis(tx.Now), by, note)
	}
	if err == nil && n == 0 && note != "" {
		n, err = tx.Exec(ctx, `update halts set note = $1 where lifted_at is null and note <> $1`, note)
	}
	if err == nil {
		_, err = tx.Exec(ctx, `delete from halts where id <= $1`, last.ID-haltsKept)
	}
	if err != nil {
		return Halt{}, false, fmt.Errorf("write halt: %w", err)
	}
	h, err = tx.LatestHalt(ctx)
	return h, n > 0, err
}

// LiftHalt lets things start again. It returns the last halt, and reports whether
// it was in force.
func (tx *Tx) LiftHalt(ctx context.Context, by string) (Halt, bool, error) {
	n, err := tx.Exec(ctx, `update halts set lifted_at = $1, lifted_by = $2 where lifted_at is null`, Millis(tx.Now), by)
	if err != nil {
		return Halt{}, false, fmt.Errorf("lift halt: %w", err)
	}
	h, err := tx.LatestHalt(ctx)
	return h, n > 0, err
}
