package grantstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// sumOf reads one whole number. PostgreSQL sums bigints to a numeric, hence
// the casts in the statements.
func (tx Tx) sumOf(ctx context.Context, op, sql string, args ...any) (n int64, err error) {
	if err := tx.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("%s: %w", op, err)
	}
	return n, nil
}

// SpentByGrant is what the receipts of a grant add up to since the beginning of
// a day. There are sums of UTC days; of others all receipts of the day are read.
func (tx Tx) SpentByGrant(ctx context.Context, grantID string, since time.Time) (int64, error) {
	if store.Millis(since)%dayMS != 0 {
		return tx.sumOf(ctx, "sum receipts", `select cast(coalesce(sum(amount), 0) as bigint) from charge_receipts
			where grant_id = $1 and created_at >= $2`, grantID, store.Millis(since))
	}
	return tx.sumOf(ctx, "sum receipts", `select cast(coalesce(sum(amount), 0) as bigint) from charge_days
		where subject = $1 and day >= $2`, grantID, dayOf(since))
}

// dayOf is the UTC day of an instant, counted from 1970.
func dayOf(t time.Time) int64 { return store.Millis(t) / dayMS }

// addToDay adds a receipt of now to the sums of its account and of its grant.
// The account comes first, so that nobody waits in a circle.
func (tx Tx) addToDay(ctx context.Context, r Receipt) error {
	v := store.Values{}
	v.Row(r.AccountID, dayOf(tx.Now), r.Amount, 1)
	if r.GrantID != "" {
		v.Row(r.GrantID, dayOf(tx.Now), r.Amount, 1)
	}
	_, err := tx.Exec(ctx, `insert into charge_days as d (subject, day, amount, receipts) values `+v.String()+`
		on conflict (subject, day) do update set amount = d.amount + excluded.amount, receipts = d.receipts + excluded.receipts`, v.Args...)
	if err != nil {
		return fmt.Errorf("add to the sums of a day: %w", err)
	}
	return nil
}

// CostOfRun is what the receipts of all attempts of a run add up to.
func (tx Tx) CostOfRun(ctx context.Context, runID string) (int64, error) {
	return tx.sumOf(ctx, "sum receipts", `select cast(coalesce(sum(amount), 0) as bigint) from charge_receipts
		where run_id = $1`, runID)
}

// ModelWithPrice finds a model of a run that has receipts with this price.
func (tx Tx) ModelWithPrice(ctx context.Context, runID, price string) (model string, found bool, err error) {
	var name *string
	err = tx.QueryRow(ctx, `select model from charge_receipts where run_id = $1 and price = $2 limit 1`, runID, price).Scan(&name)
	if errors.Is(err, store.ErrNoRow) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("find a model without a price: %w", err)
	}
	return store.FromNullText(name), true, nil
}

// ReservedByGrant is what open runs of a grant may still cost.
func (tx Tx) ReservedByGrant(ctx context.Context, grantID string) (int64, error) {
	return tx.sumOf(ctx, "sum reservations", `select cast(coalesce(sum(amount), 0) as bigint) from charge_reservations
		where grant_id = $1`, grantID)
}

// ReservedByAccount is what open runs of an account may still cost.
func (tx Tx) ReservedByAccount(ctx context.Context, accountID string) (int64, error) {
	return tx.sumOf(ctx, "sum reservations", `select cast(coalesce(sum(amount), 0) as bigint) from charge_reservations
		where account_id = $1`, accountID)
}

// RunsOfGrant counts the runs of a grant that were asked for since an instant,
// but for one.
func (tx Tx) RunsOfGrant(ctx context.Context, grantID string, since time.Time, exceptRunID string) (int64, error) {
	return tx.sumOf(ctx, "count runs", `select count(*) from execution_requests
		where grant_id = $1 and created_at >= $2 and run_id <> $3`, grantID, store.Millis(since), exceptRunID)
}

// ChargeReservation is what an attempt of a run may still cost.
type ChargeReservation struct {
	RunID     string
	Attempt   int
	GrantID   string
	AccountID string
	Amount    int64
}

// HasReservation reports whether an attempt has its reservation.
func (tx Tx) HasReservation(ctx context.Context, runID string, attempt int) (bool, error) {
	n, err := tx.sumOf(ctx, "find reservation", `select count(*) from charge_reservations where run_id = $1 and attempt = $2`, runID, attempt)
	return n > 0, err
}

// InsertReservation adds a reservation, unless the attempt has one.
func (tx Tx) InsertReservation(ctx context.Context, r ChargeReservation) error {
	_, err := tx.Exec(ctx, `insert into charge_reservations (run_id, attempt, grant_id, account_id, amount, created_at)
		values ($1, $2, $3, $4, $5, $6) on conflict (run_id, attempt) do nothing`,
		r.RunID, r.Attempt, r.GrantID, r.AccountID, r.Amount, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	return nil
}

// DeleteReservation releases what was reserved for an attempt, if anything.
func (tx Tx) DeleteReservation(ctx context.Context, runID string, attempt int) error {
	if _, err := tx.Exec(ctx, `delete from charge_reservations where run_id = $1 and attempt = $2`, runID, attempt); err != nil {
		return fmt.Errorf("release reservation: %w", err)
	}
	return nil
}

// receiptsLookedAt bounds what RecentCosts reads for a run that had very many
// units of usage.
const receiptsLookedAt = 1000

// RecentCosts adds up what the newest attempts with receipts cost, of one
// graph under one grant: at most limit of them.
func (tx Tx) RecentCosts(ctx context.Context, grantID, graphID string, limit int) (attempts, total int64, err error) {
	err = tx.QueryRow(ctx, `select count(*), cast(coalesce(sum(cost), 0) as bigint) from (
		select sum(r.amount) as cost from (
			select run_id, attempt, amount, created_at from charge_receipts where grant_id = $1 order by created_at desc limit $4) r
		where exists (select 1 from execution_requests q where q.run_id = r.run_id and q.graph_id = $2)
		group by r.run_id, r.attempt order by max(r.created_at) desc limit $3) c`,
		grantID, graphID, limit, receiptsLookedAt).Scan(&attempts, &total)
	if err != nil {
		return 0, 0, fmt.Errorf("sum recent costs: %w", err)
	}
	return attempts, total, nil
}

// DaySpend is what an account was charged on one UTC day.
type DaySpend struct {
	Day      time.Time // its beginning
	Amount   int64
	Receipts int64
}

const dayMS = 24 * 60 * 60 * 1000

// SpendByDay reads the spending of an account since the beginning of a UTC
// day, the newest day first. Days without receipts are left out.
func (tx Tx) SpendByDay(ctx context.Context, accountID string, since time.Time) ([]DaySpend, error) {
	rows, err := tx.Query(ctx, `select day, amount, receipts from charge_days where subject = $1 and day >= $2 order by day desc`, accountID, dayOf(since))
	return store.ScanAll(rows, err, "sum spending by day", func(row store.Scanner) (DaySpend, error) {
		var s DaySpend
		var day int64
		err := row.Scan(&day, &s.Amount, &s.Receipts)
		s.Day = store.FromMillis(day * dayMS)
		return s, err
	})
}
