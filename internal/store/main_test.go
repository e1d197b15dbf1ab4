package store

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.MainPrepared(m, migrated) }

// migrated is what internal/pgtest/migrated does for other packages.
func migrated(ctx context.Context, url string) error {
	db, err := Open(ctx, url, Options{})
	if err != nil {
		return err
	}
	return db.Close()
}

// both runs a conformance test on each database, opened and migrated.
func both(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) { test(t, open(t, url)) })
}

func open(t testing.TB, url string) *DB {
	t.Helper()
	db, err := Open(t.Context(), url, Options{Holder: "pawl at 127.0.0.1:7295"})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func sqliteURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "pawl.db") }

func mustWrite(t testing.TB, db *DB, fn Func) {
	t.Helper()
	if err := db.Write(t.Context(), fn); err != nil {
		t.Fatalf("write: %v", err)
	}
}

// scratch makes a table of its own for tests of transactions.
func scratch(t testing.TB, db *DB) {
	t.Helper()
	mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `create table scratch (id bigint primary key, n bigint not null)`)
		return err
	})
}

func count(t testing.TB, db *DB, sql string, args ...any) int {
	t.Helper()
	var n int
	err := db.Read(t.Context(), func(ctx context.Context, tx *Tx) error { return tx.QueryRow(ctx, sql, args...).Scan(&n) })
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}
