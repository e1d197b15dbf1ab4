package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver of the raw limit is that of the store

	"github.com/pawlrun/pawl/bench/measure"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
)

// rawColumns are those of the table that Pawl makes for the measured shape.
func rawColumns(d spec.Definition) []string {
	columns := []string{"source_name", "created_at", "_run", "id", "symbol", "price", "open", "at", "note"}
	if d.Write.Mode != spec.Append {
		columns = append(columns, "updated_at")
	}
	return columns
}

const rawRun = "01JCABCDEFGHJKMNPQRSTVWXYZ"

// rawLimit makes a table as Pawl does and puts rows into it as fast as the
// database takes them. It returns how long pages of 1,000 rows took.
func rawLimit(ctx context.Context, p measure.Place, d spec.Definition, pages int) (time.Duration, error) {
	at, clean, err := p.Database(ctx)
	if err != nil {
		return 0, err
	}
	defer clean()
	if err := makeTable(ctx, at, d); err != nil {
		return 0, err
	}
	if p.Postgres != "" {
		return copyPages(ctx, at, d, pages)
	}
	return insertPages(ctx, strings.TrimPrefix(at, "sqlite:"), d, pages)
}

func makeTable(ctx context.Context, at string, d spec.Definition) error {
	db, err := store.Open(ctx, at, store.Options{})
	if err != nil {
		return err
	}
	plan, err := table.New(db.Name(), d)
	if err == nil {
		err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := plan.Ensure(ctx, tx)
			return err
		})
	}
	if closed := db.Close(); err == nil {
		err = closed
	}
	return err
}

// copyPages uses COPY, a transaction for each page.
func copyPages(ctx context.Context, at string, d spec.Definition, pages int) (time.Duration, error) {
	c, err := pgx.Connect(ctx, at)
	if err != nil {
		return 0, err
	}
	defer c.Close(context.WithoutCancel(ctx)) //nolint:errcheck // a scratch database
	columns := rawColumns(d)
	batches := make([][][]any, pages)
	for i := range batches {
		for n := range pageRows {
			r := rowOf(int64(i*pageRows + n))
			values := []any{"raw", r.at, rawRun, r.id, r.symbol, r.price, r.open, r.at, r.note, r.at}
			batches[i] = append(batches[i], values[:len(columns)])
		}
	}
	begun := time.Now()
	for _, batch := range batches {
		if _, err := c.CopyFrom(ctx, pgx.Identifier{d.Table}, columns, pgx.CopyFromRows(batch)); err != nil {
			return 0, fmt.Errorf("copy rows: %w", err)
		}
	}
	return time.Since(begun), nil
}

// insertPages uses prepared inserts of 100 rows, a transaction for each page.
func insertPages(ctx context.Context, path string, d spec.Definition, pages int) (time.Duration, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?_pragma=busy_timeout(5000)&_pragma=cache_size(-16000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return 0, err
	}
	defer db.Close() //nolint:errcheck // a scratch database
	db.SetMaxOpenConns(1)
	const at = 100
	columns := rawColumns(d)
	one := "(?" + strings.Repeat(",?", len(columns)-1) + ")"
	text := `insert into "` + d.Table + `" ("` + strings.Join(columns, `","`) + `") values ` + one + strings.Repeat(","+one, at-1)
	statement, err := db.PrepareContext(ctx, text)
	if err != nil {
		return 0, fmt.Errorf("prepare insert: %w", err)
	}
	batches := make([][]any, pages*pageRows/at)
	for i := range batches {
		for n := range at {
			r := rowOf(int64(i*at + n))
			stamp := r.at.Format("2006-01-02T15:04:05.000Z")
			values := []any{"raw", stamp, rawRun, r.id, r.symbol, r.price, r.open, stamp, r.note, stamp}
			batches[i] = append(batches[i], values[:len(columns)]...)
		}
	}
	begun := time.Now()
	for i := 0; i < len(batches); i += pageRows / at {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		for _, batch := range batches[i : i+pageRows/at] {
			if _, err := tx.StmtContext(ctx, statement).ExecContext(ctx, batch...); err != nil {
				return 0, fmt.Errorf("insert rows: %w", err)
			}
		}
		if err := tx.Commit(); err != nil {
			return 0, err
		}
	}
	return time.Since(begun), nil
}
