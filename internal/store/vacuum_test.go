package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// swell makes a file that is mostly empty: rows were written and removed.
func swell(t *testing.T, db *DB) {
	t.Helper()
	err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `with recursive n (i) as (select 1 union all select i + 1 from n where i < 4000)
			insert into read_contents (id, workflow_id, at, content) select 'c' || i, 'w', 0, $1 from n`, strings.Repeat("x", 2000))
		return err
	})
	if err == nil {
		err = db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			_, err := tx.Exec(ctx, `delete from read_contents where id <> 'c4000'`) // the last page stays in use
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func sizes(t *testing.T, db *DB) Storage {
	t.Helper()
	s, err := db.Storage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sound fails unless the file is whole and has its row.
func sound(t *testing.T, db *DB) {
	t.Helper()
	verdict, id := "", ""
	err := db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
		return tx.QueryRow(ctx, `select (select integrity_check from pragma_integrity_check()), (select id from read_contents)`).Scan(&verdict, &id)
	})
	if err != nil || verdict != "ok" || id != "c4000" {
		t.Errorf("%q, %q, %v", verdict, id, err)
	}
}

// A file gives back what it does not need, a few pages at a time, and keeps some.
func TestAFileGivesBackWhatIsFree(t *testing.T) {
	db := open(t, "sqlite:"+filepath.Join(t.TempDir(), "new.db"))
	swell(t, db)
	before, steps, given := sizes(t, db), 0, int64(0)
	for more := true; more; steps++ {
		n, again, err := db.GiveBack(t.Context(), 64)
		if err != nil || n > 66*4096 {
			t.Fatal(n, err)
		}
		given, more = given+n, again
	}
	after := sizes(t, db)
	if after.Bytes != before.Bytes-given || after.Bytes > before.Bytes/2 || after.Free < sparePages*4096 || steps < 10 {
		t.Errorf("%d bytes were %d, %d are free, in %d steps", after.Bytes, before.Bytes, after.Free, steps)
	}
	if n, more, err := db.GiveBack(t.Context(), 1000); n != 0 || more || err != nil {
		t.Errorf("once more: %d, %v, %v", n, more, err)
	}
	sound(t, db)
}

// A file that was made without stays as it is, until it is written anew.
func TestAnOldFileGivesBackAfterAVacuum(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	raw, err := sql.Open("sqlite", liteDSN(path, "auto_vacuum(NONE)", "journal_mode(WAL)"))
	if err == nil {
		_, err = raw.ExecContext(t.Context(), `create table was_there (a)`)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Close()
	db := open(t, "sqlite:"+path)
	swell(t, db)
	before := sizes(t, db)
	if n, more, err := db.GiveBack(t.Context(), 64); n != 0 || more || err != nil {
		t.Errorf("%d, %v, %v", n, more, err)
	}
	if _, _, err := Vacuum(t.Context(), "sqlite:"+path); !errors.Is(err, pawl.ErrConflict) {
		t.Errorf("beside a server: %v", err)
	}
	_ = db.Close()
	was, is, err := Vacuum(t.Context(), "sqlite:"+path)
	if err != nil || was < before.Bytes/2 || is > was/2 {
		t.Errorf("%d was %d: %v", is, was, err)
	}
	db = open(t, "sqlite:"+path)
	sound(t, db)
	err = db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `delete from read_contents`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	swell(t, db)
	if n, _, err := db.GiveBack(t.Context(), 64); n == 0 || err != nil {
		t.Errorf("after it: %d, %v", n, err)
	}
	sound(t, db)
}

func TestVacuumRefusesWhatItCannotDo(t *testing.T) {
	for url, want := range map[string]error{"postgres://a@127.0.0.1:1/x": pawl.ErrInvalid, "sqlite:" + filepath.Join(t.TempDir(), "none.db"): pawl.ErrNotFound} {
		if _, _, err := Vacuum(t.Context(), url); !errors.Is(err, want) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
