package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

var errBoom = errors.New("boom")

func insert(id, n int) Func {
	return func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `insert into scratch (id, n) values ($1, $2)`, id, n)
		return err
	}
}

// $N must bind by its number on both databases, however often and in whatever
// order it stands in the text.
func TestParametersBindByNumber(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		var a, b, c string
		err := db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
			return tx.QueryRow(ctx, `select $2 || '', $1 || '', $2 || $3`, "one", "two", "three").Scan(&a, &b, &c)
		})
		if err != nil || a != "two" || b != "one" || c != "twothree" {
			t.Errorf("got %q %q %q, %v", a, b, c, err)
		}
	})
}

func TestFailedTransactionLeavesNothing(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		scratch(t, db)
		ran := false
		err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			tx.AfterCommit(func() { ran = true })
			if err := insert(1, 1)(ctx, tx); err != nil {
				return err
			}
			return errBoom
		})
		if !errors.Is(err, errBoom) {
			t.Errorf("error %v", err)
		}
		if ran {
			t.Error("AfterCommit ran without a commit")
		}
		if n := count(t, db, `select count(*) from scratch`); n != 0 {
			t.Errorf("%d rows", n)
		}
	})
}

func TestPanicReachesItsCallerAndUndoes(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		scratch(t, db)
		func() {
			defer func() {
				if p := recover(); p != "ouch" {
					t.Errorf("recovered %v", p)
				}
			}()
			_ = db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
				_ = insert(1, 1)(ctx, tx)
				panic("ouch")
			})
		}()
		mustWrite(t, db, insert(2, 2))
		if n := count(t, db, `select count(*) from scratch where id = 1`); n != 0 {
			t.Error("the panicked transaction was committed")
		}
	})
}

// Concurrent transactions share disk waits, but one that fails or panics
// undoes only itself, and everyone learns their own fate.
func TestGroupMembersAreIndependent(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		scratch(t, db)
		var wg sync.WaitGroup
		errs := make([]error, 300)
		after := make([]bool, 300)
		for i := range errs {
			wg.Go(func() {
				errs[i] = db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
					tx.AfterCommit(func() { after[i] = true })
					if err := insert(i, i)(ctx, tx); err != nil {
						return err
					}
					switch i % 3 {
					case 1:
						return errBoom
					case 2:
						return insert(i, i)(ctx, tx) // refused: the id is taken
					}
					return nil
				})
			})
		}
		wg.Wait()
		for i, err := range errs {
			switch i % 3 {
			case 0:
				if err != nil || !after[i] {
					t.Errorf("%d: %v, after commit %v", i, err, after[i])
				}
			case 1:
				if !errors.Is(err, errBoom) || after[i] {
					t.Errorf("%d: %v, after commit %v", i, err, after[i])
				}
			case 2:
				if !db.isUnique(err) || after[i] {
					t.Errorf("%d: %v, after commit %v", i, err, after[i])
				}
			}
		}
		if n := count(t, db, `select count(*) from scratch`); n != 100 {
			t.Errorf("%d rows, want 100", n)
		}
		if n := count(t, db, `select count(*) from scratch where id % 3 <> 0`); n != 0 {
			t.Errorf("%d rows of failed transactions", n)
		}
	})
}

func TestContendedTransactionRunsAgainWhole(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		scratch(t, db)
		mustWrite(t, db, insert(0, 0))
		mustWrite(t, db, insert(1, 0))
		// Each adds one to both rows, in opposite orders: on PostgreSQL they
		// deadlock, one is thrown out and must be run again.
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
					for _, id := range []int{i % 2, 1 - i%2} {
						if _, err := tx.Exec(ctx, `update scratch set n = n + 1 where id = $1`, id); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Errorf("write %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if n := count(t, db, `select min(n) + max(n) from scratch`); n != 12 {
			t.Errorf("sum %d, want 12", n)
		}
	})
}

func TestCancelledCallerChangesNothing(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		scratch(t, db)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := db.Write(ctx, insert(1, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if n := count(t, db, `select count(*) from scratch`); n != 0 {
			t.Errorf("%d rows", n)
		}
	})
}

func TestReadSeesOneStateAndCannotWrite(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		scratch(t, db)
		err := db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
			var before, after int
			if err := tx.QueryRow(ctx, `select count(*) from scratch`).Scan(&before); err != nil {
				return err
			}
			mustWrite(t, db, insert(1, 1))
			if err := tx.QueryRow(ctx, `select count(*) from scratch`).Scan(&after); err != nil {
				return err
			}
			if before != after {
				return fmt.Errorf("saw %d rows, then %d", before, after)
			}
			_, err := tx.Exec(ctx, `insert into scratch (id, n) values (2, 2)`)
			return err
		})
		if err == nil {
			t.Error("a read transaction could write")
		}
		if n := count(t, db, `select count(*) from scratch`); n != 1 {
			t.Errorf("%d rows, want 1: %v", n, err)
		}
	})
}

func TestLazyAndDurableTransactionsMix(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		scratch(t, db)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				var opts []Option
				if i%2 == 0 {
					opts = append(opts, Lazy)
				}
				if err := db.Write(t.Context(), insert(i, i), opts...); err != nil {
					t.Errorf("write %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if n := count(t, db, `select count(*) from scratch`); n != 100 {
			t.Errorf("%d rows, want 100", n)
		}
	})
}

// A durable transaction that follows lazy ones waits for the disk again.
func TestLazinessDoesNotStick(t *testing.T) {
	db := open(t, sqliteURL(t))
	scratch(t, db)
	if err := db.Write(t.Context(), insert(1, 1), Lazy); err != nil {
		t.Fatal(err)
	}
	level := -1
	mustWrite(t, db, func(ctx context.Context, tx *Tx) error { return tx.QueryRow(ctx, `pragma synchronous`).Scan(&level) })
	if level != 2 {
		t.Errorf("synchronous is %d in a durable transaction, want 2 (FULL)", level)
	}
}

func TestFullDiskIsSaidAndHeals(t *testing.T) {
	db := open(t, sqliteURL(t))
	scratch(t, db)
	setPages := func(sql string) {
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			var n int
			return tx.QueryRow(ctx, sql).Scan(&n)
		})
	}
	setPages(`pragma max_page_count = 60`)
	var failure error
	stored := 0
	for i := 0; failure == nil && i < 100_000; i += 100 {
		failure = db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			for k := i; k < i+100; k++ {
				if err := insert(k, k)(ctx, tx); err != nil {
					return err
				}
			}
			return nil
		})
		if failure == nil {
			stored += 100
		}
	}
	if !errors.Is(failure, pawl.ErrUnavailable) {
		t.Fatalf("full disk gave %v", failure)
	}
	if n := count(t, db, `select count(*) from scratch`); n != stored {
		t.Errorf("%d rows, want the %d of transactions that succeeded", n, stored)
	}
	setPages(`pragma max_page_count = 1000000`)
	mustWrite(t, db, insert(-1, 0))
}
