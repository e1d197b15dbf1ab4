package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// pair opens both sides of a promotion.
func pair(t *testing.T, file, server string) (from, to *DB) {
	t.Helper()
	return reopen(t, file, Options{Promoting: true}), reopen(t, server, Options{Promoting: true})
}

func reopen(t *testing.T, url string, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), url, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// refused fails the test unless the database is refused for the reason.
func refused(t *testing.T, url, reason string) {
	t.Helper()
	db, err := Open(t.Context(), url, Options{})
	if err == nil {
		_ = db.Close()
		t.Errorf("it was opened, want it refused with %s", reason)
		return
	}
	if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Code != pawl.CodeConflict || e.Reason != reason || e.Hint == "" {
		t.Errorf("opening gave %v, want reason %s and a hint", err, reason)
	}
}

// fillEveryTable adds a row to each table. All texts are the same, so that
// whatever refers to something finds it.
func fillEveryTable(t *testing.T, db *DB) (tables int) {
	t.Helper()
	names, err := createdTables()
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
		for _, name := range names {
			if stays(name) {
				continue
			}
			rows, err := tx.Query(ctx, `select name, type from pragma_table_info($1) order by cid`, name)
			if err != nil {
				return err
			}
			var columns, values []string
			for rows.Next() {
				var column, typ string
				if err := rows.Scan(&column, &typ); err != nil {
					return err
				}
				value := "'x'"
				if strings.EqualFold(typ, "bigint") || strings.EqualFold(typ, "integer") {
					value = "7"
				}
				columns, values = append(columns, column), append(values, value)
			}
			rows.Close()
			if _, err := tx.Exec(ctx, fmt.Sprintf(`insert into "%s" (%s) values (%s)`, name, strings.Join(columns, ", "), strings.Join(values, ", "))); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			tables++
		}
		return nil
	})
	return tables
}

func TestEveryTableIsCopiedOrStays(t *testing.T) {
	db := open(t, sqliteURL(t))
	want, err := createdTables()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, r := range query(t, db, `select name, '', '' from sqlite_master where type = 'table' and name not like 'sqlite_%' and name <> 'schema_migrations'`) {
		found = append(found, r[0])
	}
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) || len(found) < 30 {
		t.Errorf("the file has %v\nbut the migrations make %v", found, want)
	}
}

func TestPromoteCopiesEveryTableAndRefusesTheFile(t *testing.T) {
	file, server := sqliteURL(t), pgtest.EmptyURL(t)
	from, to := pair(t, file, server)
	tables := fillEveryTable(t, from)
	odd := "it's \"odd\"; \\ \u00fc \u2603 \U0001f980\n\ttab"
	mustWrite(t, from, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `create table mine (id bigint)`)
		if err != nil {
			return err
		}
		for i := range 3000 {
			if _, err := tx.Enqueue(ctx, []JobSpec{{Task: odd, Lane: fmt.Sprint("lane ", i)}}); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `update buckets set epoch = 41`)
		return err
	})
	told := 0
	done, err := Promote(t.Context(), from, to, PromoteOptions{Progress: func(_ string, rows, total int64) {
		told++
		if rows > total {
			t.Errorf("%d rows of %d", rows, total)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Tables) != tables || done.Resumed || !slices.Equal(done.Left, []string{"mine"}) || told < tables {
		t.Errorf("%d tables of %d, told %d times, left %v", len(done.Tables), tables, told, done.Left)
	}
	for _, c := range done.Tables {
		if c.Rows < 1 || c.Checksum == strings.Repeat("0", 32) {
			t.Errorf("%+v", c)
		}
		if n := count(t, to, `select count(*) from `+c.Table); int64(n) != c.Rows {
			t.Errorf("%s has %d rows, told %d", c.Table, n, c.Rows)
		}
	}
	if n := count(t, to, `select count(*) from jobs where task = $1`, odd); n != 3000 {
		t.Errorf("%d jobs", n)
	}
	// A job must be where its lane's owner looks for it.
	for _, r := range query(t, to, `select bucket::text, lane, '' from jobs where lane like 'lane %'`) {
		if want := fmt.Sprint(to.BucketOf(r[1], "")); r[0] != want {
			t.Errorf("%s is in bucket %s, want %s", r[1], r[0], want)
		}
	}
	// A fence of the file must not hold here.
	if n := count(t, to, `select count(*) from buckets where epoch > 41 and node is null`); n != to.Buckets() {
		t.Errorf("%d buckets begin anew", n)
	}
	_ = from.Close()
	refused(t, file, "promoted")
	_ = to.Close()
	reopen(t, server, Options{})

	from, to = pair(t, file, server)
	if _, err := Promote(t.Context(), from, to, PromoteOptions{}); !errors.Is(err, pawl.ErrConflict) {
		t.Errorf("a second promotion gave %v", err)
	}
	if undone, err := from.UndoPromotion(t.Context()); err != nil || !undone {
		t.Errorf("undo: %v, %v", undone, err)
	}
	_ = from.Close()
	reopen(t, file, Options{})
}

func TestPromoteRefusesADatabaseWithRows(t *testing.T) {
	for _, insert := range []string{
		`insert into users (id, name, role, created_at) values ('u', 'u', 'admin', 0)`,
		`insert into nodes (id, name, addr, roles, version, started_at, seen_at) values ('n', 'n', '', '', '', 0, 0)`,
	} {
		from, to := pair(t, sqliteURL(t), pgtest.EmptyURL(t))
		mustWrite(t, to, func(ctx context.Context, tx *Tx) error { _, err := tx.Exec(ctx, insert); return err })
		if _, err := Promote(t.Context(), from, to, PromoteOptions{}); !errors.Is(err, pawl.ErrConflict) {
			t.Errorf("%s: %v", insert, err)
		}
	}
}

func TestPromoteNamesATextThatPostgresCannotStore(t *testing.T) {
	file, server := sqliteURL(t), pgtest.EmptyURL(t)
	from, to := pair(t, file, server)
	mustWrite(t, from, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `insert into users (id, name, role, created_at) values ('u', 'a' || char(0) || 'b', 'admin', 0)`) // as an older version left it
		return err
	})
	_, err := Promote(t.Context(), from, to, PromoteOptions{})
	if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "users") || !strings.Contains(err.Error(), "column name") {
		t.Errorf("it gave %v", err)
	}
	_ = from.Close()
	reopen(t, file, Options{}) // as it was
	if n := count(t, to, `select count(*) from users`); n != 0 {
		t.Errorf("%d users were copied", n)
	}
}

// A promotion that ends at any step leaves exactly one database that can be
// opened, or none until the next one has finished; never two.
func TestPromoteThatWasCutOffIsFinishedByTheNext(t *testing.T) {
	for _, step := range []string{"copied", "copied and used", "marked"} {
		t.Run(step, func(t *testing.T) {
			file, server := sqliteURL(t), pgtest.EmptyURL(t)
			from, to := pair(t, file, server)
			fillEveryTable(t, from)
			m := &move{from: from, to: to, o: PromoteOptions{Progress: func(string, int64, int64) {}}}
			if err := errors.Join(m.look(t.Context()), m.copy(t.Context())); err != nil {
				t.Fatal(err)
			}
			if step == "marked" {
				if err := from.mark(t.Context(), promotion{id: m.taken.id, side: sideFrom, state: promotionDone, other: "there", at: now()}); err != nil {
					t.Fatal(err)
				}
			}
			_, _ = from.Close(), to.Close()

			refused(t, server, "promoting")
			if step == "marked" {
				refused(t, file, "promoted")
			} else {
				again := reopen(t, file, Options{})
				if step == "copied and used" {
					mustWrite(t, again, func(ctx context.Context, tx *Tx) error { _, err := tx.Enqueue(ctx, []JobSpec{{Task: "t"}}); return err })
				}
				_ = again.Close()
			}
			from, to = pair(t, file, server)
			done, err := Promote(t.Context(), from, to, PromoteOptions{})
			_, _ = from.Close(), to.Close()
			if step == "copied and used" { // the copy is stale
				if !errors.Is(err, pawl.ErrConflict) || !strings.Contains(err.Error(), "jobs") {
					t.Errorf("it gave %v", err)
				}
				refused(t, server, "promoting")
				reopen(t, file, Options{})
				return
			}
			if err != nil || !done.Resumed {
				t.Fatalf("%+v, %v", done, err)
			}
			refused(t, file, "promoted")
			reopen(t, server, Options{})
		})
	}
}

func TestBackupUnderLoadHasWhatWasCommittedBefore(t *testing.T) {
	url := sqliteURL(t)
	db := open(t, url)
	scratch(t, db)
	const before = 500
	insert := func(n int) {
		if err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			if _, err := tx.Exec(ctx, `insert into scratch (id, n) values ($1, 1)`, 2*n); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `insert into scratch (id, n) values ($1, 1)`, 2*n+1)
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	reached, stop, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			if n == before {
				close(reached)
			}
			select {
			case <-stop:
				return
			default:
				insert(n)
			}
		}
	}()
	<-reached
	f, err := db.Backup(t.Context())
	close(stop)
	<-ended
	if err != nil {
		t.Fatal(err)
	}
	path, _ := SQLitePath(url)
	if left, _ := filepath.Glob(path + backupInfix + "*"); len(left) > 0 {
		t.Errorf("the copy has a name: %v", left)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	text := make([]byte, size(t, f))
	if _, err := f.ReadAt(text, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(copied, text, 0o600), f.Close()); err != nil {
		t.Fatal(err)
	}
	contents, err := CheckFile(t.Context(), copied)
	if err != nil || contents.Rows < 2*before || contents.Bytes != int64(len(text)) {
		t.Errorf("%+v, %v", contents, err)
	}
	restored := open(t, "sqlite:"+copied)
	if n := count(t, restored, `select count(*) from scratch where id < $1`, 2*before); n != 2*before {
		t.Errorf("%d rows of %d that were committed before", n, 2*before)
	}
	if n := count(t, restored, `select count(*) from scratch`); n%2 != 0 {
		t.Errorf("%d rows: half a transaction was copied", n)
	}
}

func size(t *testing.T, f *os.File) int64 {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestBackupOfAnOpenFileAndOfPostgresIsRefused(t *testing.T) {
	url := sqliteURL(t)
	db := open(t, url)
	if err := BackupFile(t.Context(), url, filepath.Join(t.TempDir(), "x")); !errors.Is(err, pawl.ErrConflict) {
		t.Errorf("a file in use gave %v", err)
	}
	db.sqliteFile.copying.Store(true)
	if _, err := db.Backup(t.Context()); !errors.Is(err, pawl.ErrConflict) {
		t.Errorf("a second backup gave %v", err)
	}
	_, err := open(t, pgtest.EmptyURL(t)).Backup(t.Context())
	if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Code != pawl.CodeInvalid || !strings.Contains(e.Hint, "pg_dump ") {
		t.Errorf("PostgreSQL gave %v", err)
	}
}

func TestCopiesThatACrashLeftAreRemoved(t *testing.T) {
	url := sqliteURL(t)
	path, _ := SQLitePath(url)
	for _, name := range []string{path + backupInfix + "1", path + backupInfix + "2-journal", path + ".keep"} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, url)
	if left, _ := filepath.Glob(path + ".*"); !slices.Equal(left, []string{path + ".keep", path + ".lock"}) {
		t.Errorf("left: %v", left)
	}
}

func TestDamagedCopyIsFound(t *testing.T) {
	url := sqliteURL(t)
	path, _ := SQLitePath(url)
	db, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	fillEveryTable(t, db)
	_ = db.Close()
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := errors.Join(os.WriteFile(copied, nil, 0o600), BackupFile(t.Context(), url, copied)); err != nil {
		t.Fatal(err)
	}
	if c, err := CheckFile(t.Context(), copied); err != nil || c.Rows < 30 {
		t.Fatalf("%+v, %v", c, err)
	}
	text, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"cut": text[:len(text)/2], "empty": nil, "overwritten": append(slices.Clone(text[:8192]), make([]byte, len(text)-8192)...)} {
		if err := os.WriteFile(copied, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := CheckFile(t.Context(), copied); err == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
