package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// Each gives every function its own answers, in one transaction and at its
// instant, however many there are; the answer of one with an error is that error.
func TestEachReadsSideBySide(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		const n = eachTogether + 7
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

// What many ask in the same words is one statement, whose rows come to each in their
// order; what they ask with another limit, or what cannot be one, is another one.
func TestEachAsksOnceForMany(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		const n = 40
		count := 0
		db.trace = func(string, []any) { count++ }
		read := func(sql string, args func(i int) []any) (out [n][]string) {
			t.Helper()
			err := db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
				count, out = 0, [n][]string{}
				return tx.Each(ctx, n, func(ctx context.Context, tx *Tx, i int) error {
					rows, err := tx.Query(ctx, sql, args(i)...)
					if err != nil {
						return err
					}
					defer rows.Close()
					for rows.Next() {
						var text string
						if err := rows.Scan(&text); err != nil {
							return err
						}
						out[i] = append(out[i], text)
					}
					return rows.Err()
				})
			})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		asked := func(sets int) {
			t.Helper()
			if db.Name() != "sqlite" { // it is bounded
				sets = n
			}
			if count != sets {
				t.Errorf("%d statements, want %d", count, sets)
			}
		}
		const numbers = `select cast(x as text) || $1 from (select 1 as x union all select 2 union all select 3) y order by x desc limit $2`
		got := read(numbers, func(i int) []any { return []any{fmt.Sprint("-", i), int64(2)} })
		for i := range got {
			if want := []string{fmt.Sprint("3-", i), fmt.Sprint("2-", i)}; !slices.Equal(got[i], want) {
				t.Fatalf("%d got %v, want %v", i, got[i], want)
			}
		}
		asked(1)
		got = read(numbers, func(i int) []any { return []any{fmt.Sprint("-", i), int64(i % 3)} })
		for i := range got {
			if len(got[i]) != i%3 {
				t.Errorf("%d got %v", i, got[i])
			}
		}
		asked(3)
		got = read(numbers, func(int) []any { return []any{"-", int64(1)} })
		if !slices.Equal(got[0], got[n-1]) || len(got[0]) != 1 {
			t.Errorf("those who ask the same got %v and %v", got[0], got[n-1])
		}
		asked(1)
		if db.Name() != "sqlite" {
			got = read(`select 'day' from (select cast('2026-01-02' as date) as d) x where d = $1`, func(i int) []any { return []any{fmt.Sprintf("2026-01-%02d", 1+i%28)} })
			if len(got[0]) != 0 || len(got[1]) != 1 {
				t.Errorf("a text that is a date got %v and %v", got[0], got[1])
			}
			asked(n) // it cannot be one
		}
	})
}
