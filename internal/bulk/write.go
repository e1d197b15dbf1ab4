package bulk

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"

	"github.com/pawlrun/pawl/internal/store"
)

// writer makes rows that refer to rows which are there.
type writer struct {
	db   *store.DB
	lite *sql.DB // the file of a SQLite database, without what makes it safe; else nil
}

// writerOf is the writer of a database. A SQLite file is written beside its store,
// which waits for the disk and looks up each reference: nobody needs what was made
// of a fill that a crash ended.
func writerOf(ctx context.Context, db *store.DB) (w writer, err error) {
	if w.db = db; db.Name() != "sqlite" {
		return w, nil
	}
	var path string
	err = db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.QueryRow(ctx, `select file from pragma_database_list where name = 'main'`).Scan(&path)
	})
	if err != nil {
		return w, fmt.Errorf("find the file: %w", err)
	}
	w.lite, err = sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+url.Values{"_pragma": unsafely()}.Encode())
	if err == nil {
		w.lite.SetMaxOpenConns(1)
	}
	return w, err
}

// unsafely is how a SQLite file is written that nobody needs after a crash: with a GiB
// of memory, and indexes that are sorted on the disk.
func unsafely() []string {
	return []string{"busy_timeout(10000)", "synchronous(OFF)", "foreign_keys(0)", "cache_size(-1000000)", "wal_autocheckpoint(20000)", "temp_store(FILE)"}
}

func (w writer) close() {
	if w.lite != nil {
		_ = w.lite.Close()
	}
}

func (w writer) write(ctx context.Context, sql string) error {
	if w.lite != nil {
		_, err := w.lite.ExecContext(ctx, sql)
		return err
	}
	return w.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		const trust = `select set_config('session_replication_role', 'replica', true), set_config('maintenance_work_mem', '256MB', true) where current_setting('is_superuser') = 'on'`
		if _, err := tx.Exec(ctx, trust); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sql)
		return err
	}, store.Lazy)
}
