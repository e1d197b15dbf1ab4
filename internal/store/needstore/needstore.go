// Package needstore has the rows of what lanes need: the sources that must be fresh
// before something of a lane starts, and which lanes wait for that.
package needstore

import (
	"context"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Tx is a transaction that reaches the rows of needs.
type Tx struct{ *store.Tx }

// In opens the room in a transaction.
func In(tx *store.Tx) Tx { return Tx{tx} }

// Row is a source that a lane needs.
type Row struct {
	Source string // its name
	Kind   pawl.Kind
	Lane   string
	Since  time.Time // it waits for the source since then; zero: it does not
	Waited time.Time // the same of the last wait that a fetch ended; zero: there was none
	Until  time.Time // when that ended
}

const columns = `source, kind, lane, waits_since, waited_since, waited_until`

func scan(row store.Scanner) (r Row, err error) {
	var since, waited, until *int64
	err = row.Scan(&r.Source, &r.Kind, &r.Lane, &since, &waited, &until)
	r.Since, r.Waited, r.Until = store.FromNullMillis(since), store.FromNullMillis(waited), store.FromNullMillis(until)
	return r, err
}

// Put makes the sources that a lane needs those given. What is known of the others is
// forgotten, and nobody waits.
func (tx Tx) Put(ctx context.Context, kind pawl.Kind, lane string, sources []string) error {
	if _, err := tx.Exec(ctx, `delete from needs where kind = $1 and lane = $2`, kind, lane); err != nil {
		return fmt.Errorf("forget needs: %w", err)
	}
	for _, source := range sources {
		if _, err := tx.Exec(ctx, `insert into needs (source, kind, lane) values ($1, $2, $3)`, source, kind, lane); err != nil {
			return fmt.Errorf("note needs: %w", err)
		}
	}
	return nil
}

// Of reads what a lane needs.
func (tx Tx) Of(ctx context.Context, kind pawl.Kind, lane string) ([]Row, error) {
	rows, err := tx.Query(ctx, `select `+columns+` from needs where kind = $1 and lane = $2 order by source`, kind, lane)
	return store.ScanAll(rows, err, "read needs", scan)
}

// Needing reads up to limit lanes that need a source, and how many there are.
func (tx Tx) Needing(ctx context.Context, source string, limit int) (list []Row, all int, err error) {
	if err := tx.QueryRow(ctx, `select count(*) from needs where source = $1`, source).Scan(&all); err != nil || all == 0 {
		return nil, 0, err
	}
	rows, err := tx.Query(ctx, `select `+columns+` from needs where source = $1 order by kind, lane limit $2`, source, limit)
	list, err = store.ScanAll(rows, err, "read who needs a source", scan)
	return list, all, err
}

// Wait notes that a lane waits for a source, since now unless it does already.
func (tx Tx) Wait(ctx context.Context, source string, kind pawl.Kind, lane string) (since time.Time, err error) {
	var at int64
	err = tx.QueryRow(ctx, `update needs set waits_since = coalesce(waits_since, $4) where source = $1 and kind = $2 and lane = $3 returning waits_since`,
		source, kind, lane, store.Millis(tx.Now)).Scan(&at)
	if err != nil {
		return time.Time{}, fmt.Errorf("note a wait: %w", err)
	}
	return store.FromMillis(at), nil
}

// StopWaiting notes that a lane does not wait any more.
func (tx Tx) StopWaiting(ctx context.Context, kind pawl.Kind, lane string) error {
	if _, err := tx.Exec(ctx, `update needs set waits_since = null where kind = $1 and lane = $2 and waits_since is not null`, kind, lane); err != nil {
		return fmt.Errorf("end a wait: %w", err)
	}
	return nil
}

// EndWaits ends up to limit waits for a source, and returns whose they were.
func (tx Tx) EndWaits(ctx context.Context, source string, limit int) ([]Row, error) {
	rows, err := tx.Query(ctx, `update needs set waited_since = waits_since, waited_until = $3, waits_since = null where (source, kind, lane) in
		(select n.source, n.kind, n.lane from needs n where n.source = $1 and n.waits_since is not null order by n.kind, n.lane limit $2) returning `+columns, source, limit, store.Millis(tx.Now))
	return store.ScanAll(rows, err, "end waits", scan)
}
