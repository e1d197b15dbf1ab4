// Package search looks for a text in a whole database, for tests that say what
// must not be stored anywhere.
package search

import (
	"context"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/internal/store"
)

// Places are the columns, as table.column, that hold the text somewhere in their
// values: as it is, or within bytes.
func Places(t testing.TB, db *store.DB, text string) (found []string) {
	t.Helper()
	err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		found = nil
		all, err := columns(ctx, tx, db.Shared())
		if err != nil {
			return err
		}
		for _, c := range all {
			var n int
			sql := fmt.Sprintf(`select count(*) from %q where cast(%q as text) like $1 or cast(%q as text) like $2`, c.table, c.name, c.name)
			if err := tx.QueryRow(ctx, sql, "%"+text+"%", "%"+hex.EncodeToString([]byte(text))+"%").Scan(&n); err != nil {
				return fmt.Errorf("search %s.%s: %w", c.table, c.name, err)
			}
			if n > 0 {
				found = append(found, c.table+"."+c.name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

type column struct{ table, name string }

// columns are those of all tables. A database without any would make every
// search come out well.
func columns(ctx context.Context, tx *store.Tx, postgres bool) (all []column, err error) {
	sql := `select m.name, c.name from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table' order by 1, 2`
	if postgres {
		sql = `select c.table_name, c.column_name from information_schema.columns c join information_schema.tables t on t.table_name = c.table_name and t.table_schema = c.table_schema
			where c.table_schema = 'public' and t.table_type = 'BASE TABLE' order by 1, 2`
	}
	rows, err := tx.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.table, &c.name); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the database has no columns")
	}
	return all, rows.Err()
}
