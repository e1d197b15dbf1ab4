// Package calendarstore has the rows of calendars: days that are left out, with
// every version that there was.
package calendarstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Tx is a transaction that reaches the rows of calendars.
type Tx struct{ *store.Tx }

// In opens the room in a transaction.
func In(tx *store.Tx) Tx { return Tx{tx} }

// Calendar is a calendar as it is.
type Calendar struct {
	Name      string
	Revision  int64
	Days      []string // as they were written
	CreatedAt time.Time
	UpdatedAt time.Time
}

const columns = `name, revision, days, created_at, updated_at`

func scan(row store.Scanner) (c Calendar, err error) {
	var days string
	var created, updated int64
	if err := row.Scan(&c.Name, &c.Revision, &days, &created, &updated); err != nil {
		return Calendar{}, err
	}
	c.CreatedAt, c.UpdatedAt = store.FromMillis(created), store.FromMillis(updated)
	return c, json.Unmarshal([]byte(days), &c.Days)
}

func noCalendar(err error, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoRow):
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "read calendar", Msg: fmt.Sprintf("there is no calendar %q", name), Hint: "pawl get calendars lists them."}
	}
	return fmt.Errorf("read calendar: %w", err)
}

// Get reads a calendar, or fails with pawl.ErrNotFound.
func (tx Tx) Get(ctx context.Context, name string) (Calendar, error) {
	c, err := scan(tx.QueryRow(ctx, `select `+columns+` from calendars where name = $1 and deleted_at is null`, name))
	return c, noCalendar(err, name)
}

// Share reads a calendar and keeps others from changing it until the transaction
// ends.
func (tx Tx) Share(ctx context.Context, name string) (Calendar, error) {
	c, err := scan(tx.QueryRow(ctx, `select `+columns+` from calendars where name = $1 and deleted_at is null`+tx.ForShare(), name))
	return c, noCalendar(err, name)
}

// Hold reads a calendar that the transaction changes.
func (tx Tx) Hold(ctx context.Context, name string) (Calendar, error) {
	c, err := scan(tx.QueryRow(ctx, `select `+columns+` from calendars where name = $1 and deleted_at is null`+tx.ForUpdate(), name))
	return c, noCalendar(err, name)
}

// List reads up to limit calendars by name, those after the given one.
func (tx Tx) List(ctx context.Context, after string, limit int) ([]Calendar, error) {
	rows, err := tx.Query(ctx, `select `+columns+` from calendars where deleted_at is null and name > $1 order by name limit $2`, after, limit)
	return store.ScanAll(rows, err, "list calendars", scan)
}

// Put makes a calendar or its next version, and keeps that. The number of a
// version is never used again, not even after the calendar was deleted.
func (tx Tx) Put(ctx context.Context, name string, days []string, by string) (Calendar, error) {
	text, err := json.Marshal(days)
	if err != nil {
		return Calendar{}, err
	}
	c, err := scan(tx.QueryRow(ctx, `insert into calendars as c (name, revision, days, created_at, updated_at) values ($1, 1, $2, $3, $3)
		on conflict (name) do update set revision = c.revision + 1, days = excluded.days, updated_at = excluded.updated_at,
		created_at = case when c.deleted_at is null then c.created_at else excluded.created_at end, deleted_at = null returning `+columns, name, string(text), store.Millis(tx.Now)))
	if err != nil {
		return Calendar{}, fmt.Errorf("write calendar: %w", err)
	}
	if _, err := tx.Exec(ctx, `insert into calendar_versions (name, revision, days, created_at, created_by) values ($1, $2, $3, $4, $5)`,
		name, c.Revision, string(text), store.Millis(tx.Now), store.NullText(by)); err != nil {
		return Calendar{}, fmt.Errorf("add calendar version: %w", err)
	}
	return c, nil
}

// Delete takes a calendar out of use; its versions stay.
func (tx Tx) Delete(ctx context.Context, name string) error {
	if _, err := tx.Exec(ctx, `update calendars set deleted_at = $2, updated_at = $2 where name = $1`, name, store.Millis(tx.Now)); err != nil {
		return fmt.Errorf("delete calendar: %w", err)
	}
	return nil
}

// Version reads the days of a version, or fails with pawl.ErrNotFound.
func (tx Tx) Version(ctx context.Context, name string, revision int64) (days []string, err error) {
	var text string
	err = tx.QueryRow(ctx, `select days from calendar_versions where name = $1 and revision = $2`, name, revision).Scan(&text)
	if err := noCalendar(err, fmt.Sprintf("%s of revision %d", name, revision)); err != nil {
		return nil, err
	}
	return days, json.Unmarshal([]byte(text), &days)
}
