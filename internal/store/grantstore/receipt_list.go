package grantstore

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/store"
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
// which to go on, zero at the end. A page may end early; see PageThrough.
func (tx Tx) ListReceipts(ctx context.Context, f ReceiptFilter, before ReceiptCursor, limit int) (page []Receipt, next ReceiptCursor, err error) {
	place := func(r Receipt) store.Place { return store.Place{CreatedAt: r.CreatedAt, ID: r.ID} }
	o := store.NewestFirst()
	page, end, more, err := store.PageThrough(store.Place(before), limit, place, func(from store.Place, want int) (store.Window[Receipt, store.Place], error) {
		strands, err := tx.receiptStrands(ctx, f, from, want)
		if err != nil {
			return store.Window[Receipt, store.Place]{}, err
		}
		return store.MergeStrands(strands, o, want, place, func(s store.Strand) (store.Window[Receipt, store.Place], error) {
			return tx.scanReceipts(ctx, s, o, from, want)
		})
	})
	if !more {
		end = store.Place{}
	}
	return page, ReceiptCursor(end), err
}

func (tx Tx) scanReceipts(ctx context.Context, s store.Strand, o store.Order, from store.Place, want int) (store.Window[Receipt, store.Place], error) {
	c, l, err := store.Narrow[Receipt](ctx, tx.Tx, "charge_receipts", s, o, from)
	if err != nil {
		return l, err
	}
	text := c.String()
	rows, err := tx.Query(ctx, `select `+receiptColumns+` from charge_receipts where `+text+` order by `+o.SQL+c.Limit(want), c.Args...)
	l.Rows, err = store.ScanAll(rows, err, "list receipts", scanReceipt)
	return l, err
}

// receiptStrands are the parts of a list of receipts that go down one index: of
// the run, of the grant, or of each account.
func (tx Tx) receiptStrands(ctx context.Context, f ReceiptFilter, from store.Place, want int) (list []store.Strand, err error) {
	var s store.Strand
	for _, column := range []struct{ name, value string }{{"run_id", f.RunID}, {"grant_id", f.GrantID}} {
		switch {
		case column.value == "":
		case len(s.Base.Texts) == 0:
			s.Base.Add(column.name+" = ?", column.value)
		default:
			s.Look(column.name, column.value)
		}
	}
	if f.ScheduleID != "" {
		s.Look("schedule_id", f.ScheduleID)
	}
	if len(s.Base.Texts) > 0 {
		if f.OwnerID != "" {
			s.Rest.Add("exists (select 1 from billing_accounts a where a.id = billing_account_id and a.owner_id = ?)", f.OwnerID)
		}
		if f.AccountID != "" {
			s.Look("billing_account_id", f.AccountID)
		}
		return []store.Strand{s}, nil
	}
	accounts, err := tx.accountsCharged(ctx, f, from, want)
	for _, id := range accounts {
		one := store.Strand{Rest: s.Rest}
		one.Base.Add("billing_account_id = ?", id)
		list = append(list, one)
	}
	return list, err
}

// accountsCharged are the accounts that the newest receipts behind a place are
// of, as many as can be on a page.
func (tx Tx) accountsCharged(ctx context.Context, f ReceiptFilter, from store.Place, want int) ([]string, error) {
	c := store.Where{Texts: []string{"true"}}
	if f.OwnerID != "" {
		c.Add("a.owner_id = ?", f.OwnerID)
	}
	if f.AccountID != "" {
		c.Add("a.id = ?", f.AccountID)
	}
	if f.ScheduleID != "" { // its owner pays, so that not all accounts are looked through
		c.Add("a.owner_id = (select s.owner_user_id from schedules s where s.id = ?)", f.ScheduleID)
	}
	newest := "(select max(r.created_at) from charge_receipts r where r.billing_account_id = a.id)"
	if from.ID != "" {
		newest = "(select max(r.created_at) from charge_receipts r where r.billing_account_id = a.id and r.created_at <= ?)"
		c.Args = append(c.Args, store.Millis(from.CreatedAt))
	}
	c.Texts = append(c.Texts, "true order by coalesce("+newest+", 0) desc, a.id")
	text := c.String()
	rows, err := tx.Query(ctx, `select a.id from billing_accounts a where `+text+c.Limit(want), c.Args...)
	return store.ScanAll(rows, err, "find accounts", store.ScanText)
}
