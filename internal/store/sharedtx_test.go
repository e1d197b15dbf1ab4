package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// crowd is a table of rows, one a lane and one of all, that many write at once.
type crowd struct {
	t  *testing.T
	db *DB
}

func inCrowd(t *testing.T, test func(c *crowd)) {
	t.Helper()
	both(t, func(t *testing.T, db *DB) {
		c := &crowd{t, db}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			for _, sql := range []string{`create table crowd (lane text primary key, n bigint not null)`, `create table marks (mark text primary key, xid text)`, `insert into crowd values ('all', 0)`} {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return err
				}
			}
			for i := range 100 {
				if _, err := tx.Exec(ctx, `insert into crowd values ($1, 0)`, laneNo(i)); err != nil {
					return err
				}
			}
			return nil
		})
		test(c)
	})
}

func laneNo(i int) string { return fmt.Sprint("lane-", i) }

// increment reads a row, and writes one more: it would lose an increment if
// nothing kept others out.
func (c *crowd) increment(ctx context.Context, tx *Tx, lane string) error {
	var n int64
	if err := tx.QueryRow(ctx, `select n from crowd where lane = $1`+tx.ForUpdate(), lane).Scan(&n); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `update crowd set n = $2 where lane = $1`, lane, n+1)
	return err
}

// mark leaves a mark, with the transaction that left it.
func (c *crowd) mark(ctx context.Context, tx *Tx, name string) error {
	xid := `''`
	if c.db.sqliteFile == nil {
		xid = `pg_current_xact_id()::text`
	}
	_, err := tx.Exec(ctx, `insert into marks values ($1, `+xid+`)`, name)
	return err
}

func (c *crowd) count(sql string, args ...any) (n int64) {
	c.t.Helper()
	err := c.db.Read(c.t.Context(), func(ctx context.Context, tx *Tx) error { return tx.QueryRow(ctx, sql, args...).Scan(&n) })
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// everybody runs fn n times at once.
func everybody(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}

// Transactions that become one lose nothing of what each wrote, whether they
// share a row, a lane, or neither, and what follows a commit happens once.
func TestTogetherNothingIsLost(t *testing.T) {
	inCrowd(t, func(c *crowd) {
		const each = 5
		var after atomic.Int64
		everybody(200, func(i int) { // two of each lane
			for k := range each {
				err := c.db.WriteShared(t.Context(), laneNo(i%100), func(ctx context.Context, tx *Tx) error {
					tx.AfterCommit(func() { after.Add(1) })
					if err := c.increment(ctx, tx, laneNo(i%100)); err != nil {
						return err
					}
					if i%10 == 0 { // and some want the same row
						if err := c.increment(ctx, tx, "all"); err != nil {
							return err
						}
					}
					return c.mark(ctx, tx, fmt.Sprint(i, "-", k))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
		if n := after.Load(); n != 200*each {
			t.Errorf("%d times after the commit", n)
		}
		if n := c.count(`select count(*) from crowd where n = $1`, 2*each); n != 100 {
			t.Errorf("%d lanes are right", n)
		}
		if n := c.count(`select n from crowd where lane = 'all'`); n != 20*each {
			t.Errorf("the row of all has %d", n)
		}
		if n := c.count(`select count(*) from marks`); n != 200*each {
			t.Errorf("%d marks", n)
		}
		if n := c.count(`select count(distinct xid) from marks`); n >= 200*each/2 {
			t.Errorf("%d transactions: they did not become one", n)
		}
	})
}

// What one of them does wrong is its own affair: the others succeed, once, and
// nothing of it is left.
func TestTogetherOneFailsAlone(t *testing.T) {
	sour := errors.New("sour")
	inCrowd(t, func(c *crowd) {
		var after atomic.Int64
		for round := range 5 {
			everybody(60, func(i int) {
				name := fmt.Sprint(round, "-", i)
				defer func() {
					if p := recover(); (p != nil) != (i%6 == 4) {
						t.Errorf("member %d: %v", i, p)
					}
				}()
				err := c.db.WriteShared(t.Context(), laneNo(i), func(ctx context.Context, tx *Tx) error {
					tx.AfterCommit(func() { after.Add(1) })
					if err := c.increment(ctx, tx, laneNo(i)); i%6 == 1 && err == nil {
						return sour // after it wrote
					}
					if i%6 == 2 {
						_, err := tx.Exec(ctx, `insert into crowd values ('all', 1)`) // there is one
						return err
					}
					if i%6 == 4 {
						panic("out of order")
					}
					return c.mark(ctx, tx, name)
				})
				if i%6 == 1 && !errors.Is(err, sour) || i%6 == 2 && err == nil || (i%6 == 0 || i%6 == 3 || i%6 == 5) && err != nil {
					t.Errorf("member %d: %v", i, err)
				}
			})
			everybody(30, func(i int) { // before it wrote
				err := c.db.WriteShared(t.Context(), laneNo(i), func(ctx context.Context, tx *Tx) error {
					if i%3 == 0 {
						return sour
					}
					return c.mark(ctx, tx, fmt.Sprint(round, "+", i))
				})
				if (err != nil) != (i%3 == 0) {
					t.Errorf("member %d: %v", i, err)
				}
			})
		}
		if n := c.count(`select count(*) from marks`); n != 5*(30+20) {
			t.Errorf("%d marks", n)
		}
		if n := c.count(`select sum(n) from crowd`); n != 5*30 {
			t.Errorf("%d increments", n)
		}
		if n := after.Load(); n != 5*30 {
			t.Errorf("%d times after the commit", n)
		}
	})
}

// One that asks to be by itself is, whatever it does with the refusal.
func TestTogetherSomeWantToBeApart(t *testing.T) {
	inCrowd(t, func(c *crowd) {
		everybody(60, func(i int) {
			err := c.db.WriteShared(t.Context(), laneNo(i), func(ctx context.Context, tx *Tx) error {
				if i%3 == 0 {
					_ = tx.RequireOwnTx()
					_ = c.mark(ctx, tx, laneNo(i)) // once, or it fails
					return nil
				}
				if err := c.mark(ctx, tx, laneNo(i)); err != nil {
					return err
				}
				if i%3 == 1 {
					return tx.RequireOwnTx() // too late for the others, who run again
				}
				return nil
			})
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
		if n := c.count(`select count(*) from marks`); n != 60 {
			t.Errorf("%d marks", n)
		}
	})
}

// A caller that has gone changes nothing and waits for nobody.
func TestTogetherWithoutCaller(t *testing.T) {
	inCrowd(t, func(c *crowd) {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		everybody(20, func(i int) {
			ctx := t.Context()
			if i%2 == 0 {
				ctx = gone
			}
			err := c.db.WriteShared(ctx, laneNo(i), func(ctx context.Context, tx *Tx) error { return c.mark(ctx, tx, laneNo(i)) })
			if (err != nil) != (i%2 == 0) {
				t.Errorf("%d: %v", i, err)
			}
		})
		if n := c.count(`select count(*) from marks`); n != 10 {
			t.Errorf("%d marks", n)
		}
	})
}

// One that waits for a lock does not keep the others waiting for long.
func TestTogetherSomebodyElseHoldsARow(t *testing.T) {
	c := &crowd{t, open(t, pgtest.URL(t))}
	mustWrite(t, c.db, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `create table crowd (lane text primary key, n bigint not null); create table marks (mark text primary key, xid text)`)
		return err
	})
	mustWrite(t, c.db, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `insert into crowd values ('held', 0)`)
		return err
	})
	holding, release, blocked := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_ = c.db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			err := c.increment(ctx, tx, "held")
			close(holding)
			<-release
			return err
		})
	}()
	<-holding
	go func() {
		blocked <- c.db.WriteShared(t.Context(), "held", func(ctx context.Context, tx *Tx) error { return c.increment(ctx, tx, "held") })
	}()
	began := time.Now()
	everybody(50, func(i int) {
		if err := c.db.WriteShared(t.Context(), laneNo(i), func(ctx context.Context, tx *Tx) error { return c.mark(ctx, tx, laneNo(i)) }); err != nil {
			t.Error(err)
		}
	})
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the others waited %s", took)
	}
	close(release)
	if err := <-blocked; err != nil {
		t.Error(err)
	}
	if n := c.count(`select n from crowd where lane = 'held'`); n != 2 {
		t.Errorf("%d increments", n)
	}
}

// Whenever the connection is cut, what was told to be written is there, and
// nothing is there twice.
func TestTogetherConnectionIsCut(t *testing.T) {
	c := &crowd{t, open(t, pgtest.URL(t))}
	mustWrite(t, c.db, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `create table told (mark text, n bigint)`)
		return err
	})
	done := make(chan struct{})
	var knife sync.WaitGroup
	knife.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(15 * time.Millisecond):
			}
			_, _ = c.db.hot.Exec(context.Background(), `select pg_terminate_backend(pid) from pg_stat_activity
				where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle' and query not like '%told%' is not true limit 1`)
		}
	})
	var mu sync.Mutex
	told := map[string]bool{}
	everybody(40, func(i int) {
		for k := range 25 {
			name := fmt.Sprint(i, "-", k)
			err := c.db.WriteShared(t.Context(), laneNo(i), func(ctx context.Context, tx *Tx) error {
				for n := range 3 {
					if _, err := tx.Exec(ctx, `insert into told values ($1, $2)`, name, n); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil && !errors.Is(err, pawl.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
			mu.Lock()
			told[name] = err == nil
			mu.Unlock()
		}
	})
	close(done)
	knife.Wait()
	for name, ok := range told {
		n := c.count(`select count(*) from told where mark = $1`, name)
		if ok && n != 3 || !ok && n != 0 && n != 3 {
			t.Errorf("%s, told to be written: %v, is there %d times", name, ok, n)
		}
	}
}
