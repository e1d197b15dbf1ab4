// Package gaugestore counts what operators watch, in the rows of all rooms. What
// it reads is bounded, however much there is.
package gaugestore

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Tx is a transaction that reaches what is watched.
type Tx struct{ *store.Tx }

// In opens the room in a transaction.
func In(tx *store.Tx) Tx { return Tx{tx} }

// Attention is a lane that needs a person. One that only does not do what is expected
// of it has neither cause nor issue.
type Attention struct{ Lane, Cause, Issue string }

// Attention lists up to limit lanes of a kind that need attention, by name.
func (tx Tx) Attention(ctx context.Context, kind pawl.Kind, limit int) ([]Attention, error) {
	rows, err := tx.Query(ctx, `select name, cause, issue from lanes where kind = $1 and state = 'Needs attention' order by name, lane limit $2`, kind, limit)
	return store.ScanAll(rows, err, "list lanes that need attention", func(row store.Scanner) (a Attention, err error) {
		return a, row.Scan(&a.Lane, &a.Cause, &a.Issue)
	})
}

// Source is how a source stands.
type Source struct {
	Name          string
	LastSuccessAt time.Time // zero: never
	Rows          int64     // written since it was made
}

// Sources lists up to limit sources, by name.
func (tx Tx) Sources(ctx context.Context, limit int) ([]Source, error) {
	rows, err := tx.Query(ctx, `select d.name, s.last_success_at, s.rows_total from source_definitions d join source_state s on s.source_id = d.id order by d.name limit $1`, limit)
	return store.ScanAll(rows, err, "list how sources stand", func(row store.Scanner) (s Source, err error) {
		var last *int64
		err = row.Scan(&s.Name, &last, &s.Rows)
		s.LastSuccessAt = store.FromNullMillis(last)
		return s, err
	})
}

// Count is how many there are of something.
type Count struct {
	Of string
	N  int64
}

func scanCount(row store.Scanner) (c Count, err error) { return c, row.Scan(&c.Of, &c.N) }

// Approvals counts those that wait for a person, up to a bound.
func (tx Tx) Approvals(ctx context.Context, bound int) (n int64, err error) {
	err = tx.QueryRow(ctx, `select count(*) from (select 1 from approvals where state = 'pending' limit $1) as waiting`, bound).Scan(&n)
	return n, err
}

// Mutations counts by their state those of which it is not settled what became of
// them, up to a bound.
func (tx Tx) Mutations(ctx context.Context, bound int) ([]Count, error) {
	rows, err := tx.Query(ctx, `select state, count(*) from (select state from mutations where resolved_at is null limit $1) as open group by state order by state`, bound)
	return store.ScanAll(rows, err, "count mutations", scanCount)
}

// Spend is what up to limit accounts were charged on a day of UTC.
func (tx Tx) Spend(ctx context.Context, day time.Time, limit int) ([]Count, error) {
	rows, err := tx.Query(ctx, `select a.id, coalesce((select d.amount from charge_days d where d.subject = a.id and d.day = $1), 0)
		from billing_accounts a order by a.id limit $2`, store.Millis(day)/(24*time.Hour).Milliseconds(), limit)
	return store.ScanAll(rows, err, "list what accounts were charged", scanCount)
}
