package bulk

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/internal/store"
)

// dropIndexes drops the indexes of tables that grow, but for primary keys, and
// returns what makes them again: to sort all rows once takes a fraction of the time
// that it takes to put each in its place.
func dropIndexes(ctx context.Context, db *store.DB, to writer) (rebuild func() error, err error) {
	sql := `select name, tbl_name, sql from sqlite_master where type = 'index' and sql is not null`
	if db.Name() != "sqlite" {
		sql = `select indexname::text, tablename::text, indexdef from pg_indexes where schemaname = current_schema()
			and not exists (select 1 from pg_constraint c where c.conindid = (quote_ident(schemaname) || '.' || quote_ident(indexname))::regclass)`
	}
	type index struct{ name, table, sql string }
	var list []index
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.Query(ctx, sql)
		list, err = store.ScanAll(rows, err, "list indexes", func(row store.Scanner) (x index, err error) { return x, row.Scan(&x.name, &x.table, &x.sql) })
		if err != nil {
			return err
		}
		for _, x := range list {
			if grows, _ := Grows(x.table); !grows {
				continue
			}
			if _, err := tx.Exec(ctx, `drop index "`+x.name+`"`); err != nil {
				return fmt.Errorf("drop index: %w", err)
			}
		}
		return nil
	})
	return func() error {
		for _, x := range list {
			if grows, _ := Grows(x.table); !grows {
				continue
			}
			if err := to.write(ctx, x.sql); err != nil {
				return fmt.Errorf("make index %s: %w", x.name, err)
			}
		}
		return nil
	}, err
}
