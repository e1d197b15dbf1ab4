package prunestore

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// Tx is a transaction that reaches what is too old to be kept.
type Tx struct{ *store.Tx }

// In opens the room in a transaction.
func In(tx *store.Tx) Tx { return Tx{tx} }

// Place is how far a walk has come: the last row that was looked at. Part is the
// part of a table that is walked through on its own, where there are several.
type Place struct {
	Part string
	At   int64
	ID   string
}

// number is the id of a row whose ids are numbers.
func (p Place) number() int64 {
	n, err := strconv.ParseInt(p.ID, 10, 64)
	if err != nil { // at the beginning
		return math.MinInt64
	}
	return n
}

// Clock is what the database has seen of time: when somebody last looked, zero if
// nobody has, and the leaps that were noted, the oldest first.
type Clock struct {
	At    time.Time
	Leaps []Leap
}

// Leap is where the clock was, and where it was at the next look.
type Leap struct{ Before, After time.Time }

// Clock reads what the database has seen of time.
func (tx Tx) Clock(ctx context.Context) (c Clock, err error) {
	rows, err := tx.Query(ctx, `select at from retention_clock`)
	at, err := store.ScanAll(rows, err, "read the clock", store.ScanID)
	if err != nil || len(at) == 0 {
		return c, err
	}
	c.At = store.FromMillis(at[0])
	rows, err = tx.Query(ctx, `select before_at, after_at from retention_leaps order by n`)
	c.Leaps, err = store.ScanAll(rows, err, "read leaps", func(row store.Scanner) (l Leap, err error) {
		var before, after int64
		err = row.Scan(&before, &after)
		l.Before, l.After = store.FromMillis(before), store.FromMillis(after)
		return l, err
	})
	return c, err
}

// HoldClock is Clock for who is about to note a look: others wait until it is
// noted, so that one leap is noted once.
func (tx Tx) HoldClock(ctx context.Context) (c Clock, err error) {
	if _, err = tx.Exec(ctx, `insert into retention_clock (id, at) values (1, $1) on conflict (id) do update set at = retention_clock.at`, store.Millis(tx.Now)); err != nil {
		return c, fmt.Errorf("look at the clock: %w", err)
	}
	return tx.Clock(ctx)
}

// SetClock notes a look.
func (tx Tx) SetClock(ctx context.Context, at time.Time) error {
	if _, err := tx.Exec(ctx, `update retention_clock set at = $1 where id = 1`, store.Millis(at)); err != nil {
		return fmt.Errorf("note a look at the clock: %w", err)
	}
	return nil
}

// AddLeap notes a leap.
func (tx Tx) AddLeap(ctx context.Context, l Leap) error {
	_, err := tx.Exec(ctx, `insert into retention_leaps (n, before_at, after_at) select coalesce(max(n), 0) + 1, $1, $2 from retention_leaps`, store.Millis(l.Before), store.Millis(l.After))
	if err != nil {
		return fmt.Errorf("note a leap of the clock: %w", err)
	}
	return nil
}

// Floor is how far a walk has come, and when it began.
type Floor struct {
	Place
	Since time.Time
}

// Floors reads how far every walk has come, by name.
func (tx Tx) Floors(ctx context.Context) (map[string]Floor, error) {
	out := map[string]Floor{}
	rows, err := tx.Query(ctx, `select name, part, at, id, since from retention_floors`)
	_, err = store.ScanAll(rows, err, "read floors", func(row store.Scanner) (struct{}, error) {
		var name string
		var f Floor
		var since int64
		err := row.Scan(&name, &f.Part, &f.At, &f.ID, &since)
		f.Since = store.FromMillis(since)
		out[name] = f
		return struct{}{}, err
	})
	return out, err
}

// SetFloor notes how far a walk has come.
func (tx Tx) SetFloor(ctx context.Context, name string, f Floor) error {
	err := tx.Post(ctx, `insert into retention_floors (name, part, at, id, since) values ($1, $2, $3, $4, $5)
		on conflict (name) do update set part = excluded.part, at = excluded.at, id = excluded.id, since = excluded.since`,
		name, f.Part, f.At, f.ID, store.Millis(f.Since))
	if err != nil {
		return fmt.Errorf("note how far a walk has come: %w", err)
	}
	return nil
}

// DropFloor forgets how far a walk has come.
func (tx Tx) DropFloor(ctx context.Context, name string) error {
	_, err := tx.Exec(ctx, `delete from retention_floors where name = $1`, name)
	return err
}

// DropFloors lets every walk begin again.
func (tx Tx) DropFloors(ctx context.Context) error {
	_, err := tx.Exec(ctx, `delete from retention_floors`)
	return err
}

// deleteIn removes the rows of a table that belong to some of a list, and counts
// them.
func deleteIn[T any](ctx context.Context, tx Tx, table, column string, list []T) (n int64, err error) {
	for batch := range store.Batches(list) {
		text, args := store.In(nil, batch)
		k, err := tx.Exec(ctx, `delete from `+table+` where `+column+` in `+text, args...)
		if err != nil {
			return n, fmt.Errorf("remove from %s: %w", table, err)
		}
		n += k
	}
	return n, nil
}

// found reads which of a list a query finds. The query has {list} where the list
// goes.
func found(ctx context.Context, tx Tx, op, sql string, list []string) (map[string]bool, error) {
	out := map[string]bool{}
	for batch := range store.Batches(list) {
		text, args := store.In(nil, batch)
		rows, err := tx.Query(ctx, strings.ReplaceAll(sql, "{list}", text), args...)
		ids, err := store.ScanAll(rows, err, op, store.ScanText)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			out[id] = true
		}
	}
	return out, nil
}

// Size is rows, and about how many bytes they take.
type Size struct{ Rows, Bytes int64 }
