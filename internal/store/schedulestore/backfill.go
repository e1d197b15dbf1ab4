package schedulestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Backfill is a plan to run slots of the past, and how far it has come.
type Backfill struct {
	ID          string
	ScheduleID  string
	From, To    time.Time
	Plan        json.RawMessage
	Hash        string // of the plan: what a person confirms
	State       string // planned, running, paused, cancelled, done
	PerMinute   int
	Estimate    *int64 // of the cost; nil: nothing is known
	Begun       int    // slots that were made due, or found to have run
	Total       int
	CreatedBy   string
	CreatedAt   time.Time
	ConfirmedBy string
	ConfirmedAt time.Time
	UpdatedAt   time.Time
}

const backfillColumns = `id, schedule_id, from_at, to_at, plan, hash, state, per_minute, estimate, begun, total, created_by, created_at, confirmed_by, confirmed_at, updated_at`

func scanBackfill(row store.Scanner) (Backfill, error) {
	var b Backfill
	var from, to, created, updated int64
	var plan string
	var by *string
	var confirmed *int64
	err := row.Scan(&b.ID, &b.ScheduleID, &from, &to, &plan, &b.Hash, &b.State, &b.PerMinute, &b.Estimate, &b.Begun, &b.Total, &b.CreatedBy, &created, &by, &confirmed, &updated)
	b.From, b.To, b.Plan, b.CreatedAt, b.UpdatedAt = store.FromMillis(from), store.FromMillis(to), json.RawMessage(plan), store.FromMillis(created), store.FromMillis(updated)
	b.ConfirmedBy, b.ConfirmedAt = store.FromNullText(by), store.FromNullMillis(confirmed)
	return b, err
}

func noBackfill(err error, id string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoRow):
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "read backfill", Msg: fmt.Sprintf("there is no backfill %q", id)}
	}
	return fmt.Errorf("read backfill: %w", err)
}

// InsertBackfill keeps a plan.
func (tx Tx) InsertBackfill(ctx context.Context, b Backfill) (Backfill, error) {
	b, err := scanBackfill(tx.QueryRow(ctx, `insert into backfills (id, schedule_id, from_at, to_at, plan, hash, state, per_minute, estimate, total, created_by, created_at, updated_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12) returning `+backfillColumns,
		store.NewID(), b.ScheduleID, store.Millis(b.From), store.Millis(b.To), string(b.Plan), b.Hash, b.State, b.PerMinute, b.Estimate, b.Total, b.CreatedBy, store.Millis(tx.Now)))
	if err != nil {
		return Backfill{}, fmt.Errorf("insert backfill: %w", err)
	}
	return b, nil
}

// GetBackfill reads a backfill, or fails with pawl.ErrNotFound.
func (tx Tx) GetBackfill(ctx context.Context, id string) (Backfill, error) {
	b, err := scanBackfill(tx.QueryRow(ctx, `select `+backfillColumns+` from backfills where id = $1`, id))
	return b, noBackfill(err, id)
}

// HoldBackfill reads a backfill and keeps others from changing it until the
// transaction ends.
func (tx Tx) HoldBackfill(ctx context.Context, id string) (Backfill, error) {
	b, err := scanBackfill(tx.QueryRow(ctx, `update backfills set updated_at = updated_at where id = $1 returning `+backfillColumns, id))
	return b, noBackfill(err, id)
}

// MoveBackfill changes the state; by is who confirmed it, or empty.
func (tx Tx) MoveBackfill(ctx context.Context, id, state, by string) (Backfill, error) {
	b, err := scanBackfill(tx.QueryRow(ctx, `update backfills set state = $2, updated_at = $3, confirmed_by = coalesce($4, confirmed_by),
		confirmed_at = case when $4 is null then confirmed_at else $3 end where id = $1 returning `+backfillColumns, id, state, store.Millis(tx.Now), store.NullText(by)))
	return b, noBackfill(err, id)
}

// SetBackfillBegun notes how many slots of the plan were begun.
func (tx Tx) SetBackfillBegun(ctx context.Context, id string, n int) error {
	if _, err := tx.Exec(ctx, `update backfills set begun = $2, updated_at = $3 where id = $1`, id, n, store.Millis(tx.Now)); err != nil {
		return fmt.Errorf("change backfill: %w", err)
	}
	return nil
}

// LastBackfillStart is when a slot of a backfill last began, was passed over, or
// was made due if it still waits; zero if it has no slot yet.
func (tx Tx) LastBackfillStart(ctx context.Context, id string) (time.Time, error) {
	var last *int64
	// Until a slot begins, it changes only when it is made due or passed over.
	if err := tx.QueryRow(ctx, `select max(coalesce(started_at, updated_at)) from schedule_runs where backfill_id = $1`, id).Scan(&last); err != nil {
		return time.Time{}, fmt.Errorf("read last start of a backfill: %w", err)
	}
	return store.FromNullMillis(last), nil
}

// ListBackfills reads up to limit backfills of a schedule, the newest first.
func (tx Tx) ListBackfills(ctx context.Context, scheduleID string, limit int) ([]Backfill, error) {
	return tx.BackfillsBefore(ctx, scheduleID, store.Place{}, limit)
}

// BackfillsBefore is ListBackfills from a place on; the zero cursor begins with
// the newest.
func (tx Tx) BackfillsBefore(ctx context.Context, scheduleID string, before store.Place, limit int) ([]Backfill, error) {
	c := store.Where{}
	c.Add("schedule_id = ?", scheduleID)
	if before.ID != "" {
		c.Add("(created_at, id) < (?, ?)", store.Millis(before.CreatedAt), before.ID)
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`select %s from backfills where %s order by created_at desc, id desc limit $%d`, backfillColumns, &c, len(c.Args)+1), append(c.Args, limit)...)
	return store.ScanAll(rows, err, "list backfills", scanBackfill)
}

// BackfillProgress counts what became of the slots of a backfill, by status.
func (tx Tx) BackfillProgress(ctx context.Context, id string) (map[string]int, error) {
	rows, err := tx.Query(ctx, `select status, count(*) from schedule_runs where backfill_id = $1 group by status`, id)
	type count struct {
		status string
		n      int
	}
	list, err := store.ScanAll(rows, err, "count slots of a backfill", func(row store.Scanner) (c count, err error) {
		return c, row.Scan(&c.status, &c.n)
	})
	out := map[string]int{}
	for _, c := range list {
		out[c.status] = c.n
	}
	return out, err
}

// AverageSlotCost is what the latest slots of a schedule that ran cost on
// average; known is false if none did.
func (tx Tx) AverageSlotCost(ctx context.Context, scheduleID string, latest int) (cost int64, known bool, err error) {
	slots, err := tx.ListSlots(ctx, SlotFilter{ScheduleID: scheduleID, Status: "success"}, time.Time{}, "", latest)
	if err != nil || len(slots) == 0 {
		return 0, false, err
	}
	for _, s := range slots {
		cost += s.Cost
	}
	n := int64(len(slots))
	return (cost + n - 1) / n, true, nil
}
