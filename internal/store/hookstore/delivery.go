package hookstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// The outcomes of deliveries.
const (
	Delivered = "delivered" // it had its effect
	Pending   = "pending"   // its effect was refused, and is tried again
	Filtered  = "filtered"  // it is none that the hook is for
	Failed    = "failed"    // its effect was refused for good
	Refused   = "refused"   // it was not believed, or could not be read
)

// Outcomes are all of them.
func Outcomes() []string { return []string{Delivered, Pending, Filtered, Failed, Refused} }

// Delivery is something that was sent to a hook.
type Delivery struct {
	ID         int64
	Hook       string
	DeliveryID string // the sender's; empty of what was refused
	ReceivedAt time.Time
	Outcome    string
	Reason     string // why it is not delivered
	Effect     string // what it became, in words
	Attempts   int    // how often the effect was tried
	Effects    int    // how often it took place
	Headers    map[string]string
	Body       json.RawMessage // nil of what was refused, and in lists
	Bytes      int64           // of the body as it came
	UpdatedAt  time.Time
}

const (
	briefColumns    = `id, hook, delivery_id, received_at, outcome, reason, effect, attempts, effects, headers, bytes, updated_at`
	deliveryColumns = briefColumns + `, body`
)

func scanBrief(row store.Scanner) (Delivery, error) {
	var d Delivery
	var id, reason, effect *string
	var headers string
	var received, updated int64
	if err := row.Scan(&d.ID, &d.Hook, &id, &received, &d.Outcome, &reason, &effect, &d.Attempts, &d.Effects, &headers, &d.Bytes, &updated); err != nil {
		return Delivery{}, err
	}
	d.DeliveryID, d.Reason, d.Effect = store.FromNullText(id), store.FromNullText(reason), store.FromNullText(effect)
	d.ReceivedAt, d.UpdatedAt = store.FromMillis(received), store.FromMillis(updated)
	return d, json.Unmarshal([]byte(headers), &d.Headers)
}

func scanDelivery(row store.Scanner) (Delivery, error) {
	var body *string
	d, err := scanBrief(store.Also(row, &body))
	d.Body = store.FromNullJSON(body)
	return d, err
}

// AddDelivery keeps a delivery that is believed, unless the hook has another
// version by now or knows the delivery. It reports whether it did.
func (tx Tx) AddDelivery(ctx context.Context, d *Delivery, version string) (bool, error) {
	d.ID, d.ReceivedAt, d.UpdatedAt = tx.NextID(), tx.Now, tx.Now
	n, err := tx.Exec(ctx, `insert into hook_deliveries (`+deliveryColumns+`)
		select $1, name, $3, $4, $5, $6, $7, $8, $9, $10, $11, $4, $12 from hooks where name = $2 and version = $13
		on conflict (hook, delivery_id) where delivery_id is not null do nothing`,
		d.ID, d.Hook, d.DeliveryID, store.Millis(tx.Now), d.Outcome, store.NullText(d.Reason), store.NullText(d.Effect), d.Attempts, d.Effects,
		store.JSONText(d.Headers), d.Bytes, string(d.Body), version)
	if err != nil {
		return false, fmt.Errorf("add delivery: %w", err)
	}
	return n > 0, nil
}

// AddRefused keeps that a delivery was refused, without its body, and forgets all
// but the newest of the hook.
func (tx Tx) AddRefused(ctx context.Context, d Delivery, most int) error {
	_, err := tx.Exec(ctx, `insert into hook_deliveries (`+briefColumns+`) values ($1, $2, null, $3, $4, $5, null, 0, 0, $6, $7, $3)`,
		tx.NextID(), d.Hook, store.Millis(tx.Now), Refused, d.Reason, store.JSONText(d.Headers), d.Bytes)
	if err == nil {
		_, err = tx.Exec(ctx, `delete from hook_deliveries where hook = $1 and outcome = 'refused' and id <= (
			select id from hook_deliveries where hook = $1 and outcome = 'refused' order by id desc limit 1 offset $2)`, d.Hook, most)
	}
	if err != nil {
		return fmt.Errorf("add refused delivery: %w", err)
	}
	return nil
}

// SetOutcome notes how a delivery stands after another attempt.
func (tx Tx) SetOutcome(ctx context.Context, d Delivery) error {
	_, err := tx.Exec(ctx, `update hook_deliveries set outcome = $2, reason = $3, effect = $4, attempts = $5, effects = $6, updated_at = $7 where id = $1`,
		d.ID, d.Outcome, store.NullText(d.Reason), store.NullText(d.Effect), d.Attempts, d.Effects, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("change delivery: %w", err)
	}
	return nil
}

func noDelivery(err error, id string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoRow):
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "read delivery", Msg: fmt.Sprintf("there is no delivery %q", id), Hint: "pawl get deliveries lists them."}
	}
	return fmt.Errorf("read delivery: %w", err)
}

// FindDelivery reads a delivery of a hook by its number or by the id that its sender
// gave it, or fails with pawl.ErrNotFound.
func (tx Tx) FindDelivery(ctx context.Context, hook, id string) (Delivery, error) {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		d, err := scanDelivery(tx.QueryRow(ctx, `select `+deliveryColumns+` from hook_deliveries where id = $1 and hook = $2`, n, hook))
		if !errors.Is(err, store.ErrNoRow) {
			return d, noDelivery(err, id)
		}
	}
	d, err := scanDelivery(tx.QueryRow(ctx, `select `+deliveryColumns+` from hook_deliveries where hook = $1 and delivery_id = $2`, hook, id))
	return d, noDelivery(err, id)
}

// HoldDelivery reads a delivery and keeps others from changing it until the
// transaction ends.
func (tx Tx) HoldDelivery(ctx context.Context, id int64) (Delivery, error) {
	d, err := scanDelivery(tx.QueryRow(ctx, `select `+deliveryColumns+` from hook_deliveries where id = $1`+tx.ForUpdate(), id))
	return d, noDelivery(err, strconv.FormatInt(id, 10))
}

// Knows reports whether a hook knows a delivery, by the sender's id.
func (tx Tx) Knows(ctx context.Context, hook, deliveryID string) (bool, error) {
	var one int
	err := tx.QueryRow(ctx, `select 1 from hook_deliveries where hook = $1 and delivery_id = $2`, hook, deliveryID).Scan(&one)
	if errors.Is(err, store.ErrNoRow) {
		return false, nil
	}
	return err == nil, err
}

// ListDeliveries reads up to limit deliveries of a hook without their bodies, the
// newest first; before is the number of the last one that was read already, or
// zero, and an empty outcome is any.
func (tx Tx) ListDeliveries(ctx context.Context, hook, outcome string, before int64, limit int) ([]Delivery, error) {
	sql, args := `select `+briefColumns+` from hook_deliveries where hook = $1 and id < $2`, []any{hook, store.IDBefore(before), limit}
	if outcome != "" {
		sql, args = sql+` and outcome = $4`, append(args, outcome)
	}
	rows, err := tx.Query(ctx, sql+` order by id desc limit $3`, args...)
	return store.ScanAll(rows, err, "list deliveries", scanBrief)
}

// PruneDeliveries forgets up to limit deliveries that came before the instant.
func PruneDeliveries(ctx context.Context, db *store.DB, before time.Time, limit int) (n int64, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		n, err = tx.Exec(ctx, `delete from hook_deliveries where id in (select id from hook_deliveries where id < $1 order by id limit $2)`, store.IDAt(before), limit)
		return err
	})
	return n, err
}
