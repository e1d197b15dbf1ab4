package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// Each gives every function its own answers, in one transaction and at its
// instant, however many there are; the answer of one with an error is that error.
func TestEachReadsSideBySide(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		const n = 3*maxTogether + 7
		out := make([]int, n)
		var at time.Time
		read := func(fn func(ctx context.Context, tx *Tx, i int) error) error {
			return db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
				at = tx.Now
				if err := tx.QueryRow(ctx, `select 1`).Scan(new(int)); err != nil {
					return err
				}
				return tx.Each(ctx, n, fn)
			})
		}
		err := read(func(ctx context.Context, tx *Tx, i int) error {
			for k := range 3 { // some ask more often than others
				var got int
				if err := tx.QueryRow(ctx, fmt.Sprintf(`select cast($1 as bigint) + %d`, k), i).Scan(&got); err != nil {
					return err
				}
				if out[i] = got; i%3 == k {
					break
				}
			}
			if !tx.Now.Equal(at) {
				return fmt.Errorf("it is %v, not %v", tx.Now, at)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range out {
			if got != i+i%3 {
				t.Fatalf("%d got %d", i, got)
			}
		}
		if err := read(func(_ context.Context, _ *Tx, i int) error {
			if i == 150 {
				return errBoom
			}
			return nil
		}); !errors.Is(err, errBoom) {
			t.Errorf("it ended with %v", err)
		}
		err = read(func(ctx context.Context, tx *Tx, i int) error {
			sql := `select 1`
			if i == 20 {
				sql = `select nothing from nowhere`
			}
			return tx.QueryRow(ctx, sql).Scan(new(int))
		})
		if err == nil || errors.Is(err, errApart) {
			t.Errorf("a statement that fails ended with %v", err)
		}
		ctx, leave := context.WithCancel(t.Context())
		err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
			if err := tx.QueryRow(ctx, `select 1`).Scan(new(int)); err != nil {
				return err
			}
			return tx.Each(ctx, n, func(ctx context.Context, tx *Tx, i int) error {
				if i == 5 {
					leave()
				}
				return tx.QueryRow(ctx, `select 1`).Scan(new(int))
			})
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("whoever left is told %v", err)
		}
	})
}

// A function that panics is not lost among the others.
func TestEachPassesPanicsOn(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("it ended with %v", p)
			}
		}()
		err := db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
			if err := tx.QueryRow(ctx, `select 1`).Scan(new(int)); err != nil {
				return err
			}
			return tx.Each(ctx, 3, func(_ context.Context, _ *Tx, i int) error {
				if i == 1 {
					panic("boom")
				}
				return nil
			})
		})
		t.Errorf("it went on: %v", err)
	})
}
