package store

import (
	"context"
	"time"
)

// ReceiptFilter picks receipts; empty fields pick all.
type ReceiptFilter struct {
	OwnerID    string // of the account
	AccountID  string
	GrantID    string
	ScheduleID string
	RunID      string
}

// ReceiptCursor is how far a list of receipts was read: the last one of a page.
type ReceiptCursor struct {
	CreatedAt time.Time
	ID        string
}

// ListReceipts reads up to limit receipts, the newest first, and the cursor with
// which to go on, zero at the end. A page may end early; see pageThrough.
func (tx *Tx) ListReceipts(ctx context.Context, f ReceiptFilter, before ReceiptCursor, limit int) (page []Receipt, next ReceiptCursor, err error) {
	place := func(r Receipt) RunCursor { return RunCursor{r.CreatedAt, r.ID} }
	o := newestFirst()
	page, end, more, err := pageThrough(RunCursor(before), limit, place, func(from RunCursor, want int) (look[Receipt, RunCursor], error) {
		strands, err := tx.receiptStrands(ctx, f, from, want)
		if err != nil {
			return look[Receipt, RunCursor]{}, err
		}
		return lookAtStrands(strands, o, want, place, func(s strand) (look[Receipt, RunCursor], error) {
			return tx.lookAtReceipts(ctx, s, o, from, want)
		})
	})
	if !more {
		end = RunCursor{}
	}
	return page, ReceiptCursor(end), err
}

func (tx *Tx) lookAtReceipts(ctx context.Context, s strand, o runOrder, from RunCursor, want int) (look[Receipt, RunCursor], error) {
	c, l, err := narrowed[Receipt](ctx, tx, "charge_receipts", s, o, from)
	if err != nil {
		return l, err
	}
	text := c.String()
	rows, err := tx.Query(ctx, `select `+receiptColumns+` from charge_receipts where `+text+` order by `+o.order+c.limit(want), c.args...)
	l.rows, err = scanAll(rows, err, "list receipts", scanReceipt)
	return l, err
}

// receiptStrands are the parts of a list of receipts that go down one index: of
// the run, of the grant, or of each account.
func (tx *Tx) receiptStrands(ctx context.Context, f ReceiptFilter, from RunCursor, want int) (list []strand, err error) {
	var s strand
	for _, column := range []struct{ name, value string }{{"run_id", f.RunID}, {"grant_id", f.GrantID}} {
		switch {
		case column.value == "":
		case len(s.base.texts) == 0:
			s.base.add(column.name+" = ?", column.value)
		default:
			s.rest.add(column.name+" = ?", column.value)
		}
	}
	if f.ScheduleID != "" {
		s.rest.add("schedule_id = ?", f.ScheduleID)
	}
	if len(s.base.texts) > 0 {
		if f.OwnerID != "" {
			s.rest.add("exists (select 1 from billing_accounts a where a.id = billing_account_id and a.owner_id = ?)", f.OwnerID)
		}
		if f.AccountID != "" {
			s.rest.add("billing_account_id = ?", f.AccountID)
		}
		return []strand{s}, nil
	}
	accounts, err := tx.accountsCharged(ctx, f, from, want)
	for _, id := range accounts {
		one := strand{rest: s.rest}
		one.base.add("billing_account_id = ?", id)
		list = append(list, one)
	}
	return list, err
}

// accountsCharged are the accounts that the newest receipts behind a place are
// of, as many as can be on a page.
func (tx *Tx) accountsCharged(ctx context.Context, f ReceiptFilter, from RunCursor, want int) ([]string, error) {
	c := conditions{texts: []string{"true"}}
	if f.OwnerID != "" {
		c.add("a.owner_id = ?", f.OwnerID)
	}
	if f.AccountID != "" {
		c.add("a.id = ?", f.AccountID)
	}
	if f.ScheduleID != "" { // its owner pays, so that not all accounts are looked through
		c.add("a.owner_id = (select s.owner_user_id from schedules s where s.id = ?)", f.ScheduleID)
	}
	newest := "(select max(r.created_at) from charge_receipts r where r.billing_account_id = a.id)"
	if from.ID != "" {
		newest = "(select max(r.created_at) from charge_receipts r where r.billing_account_id = a.id and r.created_at <= ?)"
		c.args = append(c.args, ms(from.CreatedAt))
	}
	c.texts = append(c.texts, "true order by coalesce("+newest+", 0) desc, a.id")
	text := c.String()
	rows, err := tx.Query(ctx, `select a.id from billing_accounts a where `+text+c.limit(want), c.args...)
	return scanAll(rows, err, "find accounts", scanText)
}
