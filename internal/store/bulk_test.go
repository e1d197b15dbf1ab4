package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// copyNumbers copies ids from..to-1 to the table of TestCopyRows.
func copyNumbers(ctx context.Context, tx *Tx, from, to int) (bool, error) {
	return tx.CopyRows(ctx, "copied", []string{"id", "name"}, to-from, func(i int) ([]any, error) {
		return []any{int64(from + i), fmt.Sprint("n", from+i)}, nil
	})
}

// Rows are copied all or not at all, and a refusal leaves the transaction with all
// that it did before.
func TestCopyRowsIsAllOrNothing(t *testing.T) {
	url := pgtest.URL(t)
	db, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	write := func(fn func(ctx context.Context, tx *Tx) error) error { return db.Write(t.Context(), fn) }
	if err := write(func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `create table copied (id bigint primary key, name text check (name <> 'n99'))`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	err = write(func(ctx context.Context, tx *Tx) error {
		if err := tx.Post(ctx, `insert into copied values ($1, $2)`, 1, "first"); err != nil {
			return err
		}
		for _, c := range []struct {
			from, to int
			want     bool
		}{{10, 20, true}, {19, 30, false}, {0, 2, false}, {95, 100, false}, {30, 40, true}} {
			copied, err := copyNumbers(ctx, tx, c.from, c.to)
			if err != nil || copied != c.want {
				t.Errorf("%d to %d: %v, %v", c.from, c.to, copied, err)
			}
		}
		_, err := tx.Exec(ctx, `insert into copied values ($1, $2)`, 2, "last")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var n, sum int
	if err := db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
		return tx.QueryRow(ctx, `select count(*), sum(id)::bigint from copied`).Scan(&n, &sum)
	}); err != nil || n != 22 || sum != 1+2+145+345 {
		t.Errorf("%d rows, %d in all: %v", n, sum, err)
	}
}

// What failed before the rows fails the transaction as it would without them, and
// takes them along.
func TestCopyRowsTellsOfWhatFailedBefore(t *testing.T) {
	db, err := Open(t.Context(), pgtest.URL(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `create table copied (id bigint primary key, name text)`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("lost")
	for name, before := range map[string]func(ctx context.Context, tx *Tx) error{
		"expected": func(ctx context.Context, tx *Tx) error { return tx.Expect(ctx, 1, lost, `select 1 where $1 = 2`, 1) },
		"unique": func(ctx context.Context, tx *Tx) error {
			return tx.Post(ctx, `insert into copied values ($1), ($1)`, 7)
		},
		"afterward": func(context.Context, *Tx) error { return nil },
	} {
		err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			if err := before(ctx, tx); err != nil {
				return err
			}
			if _, err := copyNumbers(ctx, tx, 10, 20); err != nil {
				return err
			}
			return lost
		})
		if name == "unique" && !db.isUnique(err) || name != "unique" && !errors.Is(err, lost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
		var n int
		if err := tx.QueryRow(ctx, `select count(*) from copied`).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows: %v", n, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
