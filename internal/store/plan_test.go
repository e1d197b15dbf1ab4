package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/proxy"
)

// gathered runs plans so that, on PostgreSQL, those that wait go together.
func (c *crowd) gathered(wait int, plans ...func() error) []error {
	c.t.Helper()
	if c.db.sqliteFile == nil {
		c.db.plans.mu.Lock()
		c.db.plans.leaders += maxPlanLeaders
		c.db.plans.mu.Unlock()
	}
	out := make([]error, len(plans))
	var wg sync.WaitGroup
	for i, plan := range plans {
		wg.Go(func() { out[i] = plan() })
	}
	if c.db.sqliteFile == nil {
		for waiting := 0; waiting < wait; {
			c.db.plans.mu.Lock()
			waiting = len(c.db.plans.waiting)
			c.db.plans.mu.Unlock()
		}
		for range maxPlanLeaders {
			c.db.plans.passOn()
		}
	}
	wg.Wait()
	return out
}

// markPlan posts a mark with its transaction, and one more to a lane.
func (c *crowd) markPlan(ctx context.Context, tx *Tx, lane, mark string) error {
	xid := `''`
	if c.db.sqliteFile == nil {
		xid = `pg_current_xact_id()::text`
	}
	if err := tx.Expect(ctx, 1, errors.New("there is no such lane"), `update crowd set n = n + 1 where lane = $1`, lane); err != nil {
		return err
	}
	return tx.Post(ctx, `insert into marks values ($1, `+xid+`)`, mark)
}

// Plans that wait at the same time become one transaction. One that breaks a
// rule, expects what is not so, has lost its lane or fails by itself is left out
// whole, and the others are committed, once each.
func TestAPlanThatCannotBeKeptSpoilsNoOther(t *testing.T) {
	inCrowd(t, func(c *crowd) {
		sour := errors.New("sour")
		var after atomic.Int64
		plan := func(mark string, more func(ctx context.Context, tx *Tx) error) func() error {
			return func() error {
				return c.db.WritePlan(t.Context(), func(ctx context.Context, tx *Tx) error {
					tx.AfterCommit(func() { after.Add(1) })
					if err := c.markPlan(ctx, tx, "lane-1", mark); err != nil {
						return err
					}
					return more(ctx, tx)
				})
			}
		}
		bad := []struct {
			name string
			more func(ctx context.Context, tx *Tx) error
			want func(error) bool
		}{
			{"constraint", func(ctx context.Context, tx *Tx) error { return tx.Post(ctx, `insert into crowd values ('all', 1)`) }, c.db.isUnique},
			{"expectation", func(ctx context.Context, tx *Tx) error {
				return tx.Expect(ctx, 2, sour, `update crowd set n = n + 1 where lane = 'lane-2'`)
			}, func(err error) bool { return errors.Is(err, sour) }},
			{"select", func(ctx context.Context, tx *Tx) error {
				return tx.Expect(ctx, 1, sour, `select 1 from crowd where lane = $1`+tx.ForShare(), "nobody")
			}, func(err error) bool { return errors.Is(err, sour) }},
			{"fence", func(ctx context.Context, tx *Tx) error {
				return tx.Fence(ctx, Fence{Bucket: 1, Node: "nobody", Epoch: 9})
			}, func(err error) bool { return errors.Is(err, pawl.ErrLeaseLost) }},
			{"itself", func(context.Context, *Tx) error { return sour }, func(err error) bool { return errors.Is(err, sour) }},
		}
		var plans []func() error
		for i := range 100 {
			plans = append(plans, plan(fmt.Sprint("good ", i), func(context.Context, *Tx) error { return nil }))
			if i%20 == 10 {
				b := bad[i/20]
				plans = append(plans, plan(b.name, b.more))
			}
		}
		bads := 0
		errs := c.gathered(len(plans)-1, plans...) // one does not come so far
		for i, err := range errs {
			if i%21 == 11 {
				if b := bad[bads]; !b.want(err) {
					t.Errorf("%s: %v", b.name, err)
				}
				bads++
			} else if err != nil {
				t.Errorf("plan %d: %v", i, err)
			}
		}
		if n := c.count(`select count(*) from marks`); n != 100 || after.Load() != 100 || bads != len(bad) {
			t.Errorf("%d marks, %d times after the commit, %d bad plans", n, after.Load(), bads)
		}
		if n := c.count(`select n from crowd where lane = 'lane-1'`); n != 100 {
			t.Errorf("the lane was written %d times", n)
		}
		if n := c.count(`select count(distinct xid) from marks`); n > 3 {
			t.Errorf("%d transactions: the plans did not go together", n)
		}
	})
}

// A plan that asks for something it needs at once runs all the same, and the
// answers that it can wait for are there when it is committed.
func TestAPlanGetsItsAnswers(t *testing.T) {
	inCrowd(t, func(c *crowd) {
		var now, later int64
		ask := func(ctx context.Context, tx *Tx) error {
			return tx.Ask(ctx, func(rows Rows, err error) error {
				found, err := ScanAll(rows, err, "ask", ScanID)
				if err == nil {
					later = found[0]
				}
				return err
			}, `select n from crowd where lane = 'lane-1'`)
		}
		for want := int64(1); want <= 2; want++ {
			err := c.db.WritePlan(t.Context(), func(ctx context.Context, tx *Tx) error {
				if err := c.markPlan(ctx, tx, "lane-1", fmt.Sprint(want)); err != nil {
					return err
				}
				if want == 2 {
					if err := tx.QueryRow(ctx, `select n from crowd where lane = 'lane-1'`).Scan(&now); err != nil {
						return err
					}
				}
				return ask(ctx, tx)
			})
			if err != nil || later != want || now != want/2*2 {
				t.Errorf("%v: it saw %d, and %d before its commit, want %d", err, later, now, want)
			}
		}
		if err := c.db.WritePlan(t.Context(), func(context.Context, *Tx) error { return nil }); err != nil {
			t.Errorf("a plan of nothing: %v", err)
		}
	})
}

// A lock that one plan waits for holds up nobody else.
func TestAPlanThatMeetsALockWaitsByItself(t *testing.T) {
	inCrowd(t, func(c *crowd) {
		if c.db.sqliteFile != nil {
			return // it has one writer, which waits for nobody
		}
		held, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- c.db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
				if err := c.increment(ctx, tx, "lane-1"); err != nil {
					return err
				}
				close(held)
				<-release
				return nil
			})
		}()
		<-held
		var through atomic.Int64
		var plans []func() error
		for i := range 10 {
			plans = append(plans, func() error {
				err := c.db.WritePlan(t.Context(), func(ctx context.Context, tx *Tx) error { return c.markPlan(ctx, tx, laneNo(i), laneNo(i)) })
				if through.Add(1) == 9 { // all but the one that waits
					close(release)
				}
				return err
			})
		}
		for i, err := range c.gathered(len(plans), plans...) {
			if err != nil {
				t.Errorf("plan %d: %v", i, err)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := c.count(`select n from crowd where lane = 'lane-1'`); n != 2 {
			t.Errorf("the lane was written %d times", n)
		}
	})
}

// plans whose commit was not answered are in doubt, all of them, and are
// not run again.
func TestPlansWithoutAnAnswerAreInDoubt(t *testing.T) {
	p := proxy.New(t, pgtest.URL(t))
	db := open(t, p.URL())
	scratch(t, db)
	c := &crowd{t, db}
	var runs, doubts, commits atomic.Int64
	var plans []func() error
	for i := range 8 {
		plans = append(plans, func() error {
			return db.WritePlan(t.Context(), func(ctx context.Context, tx *Tx) error {
				runs.Add(1)
				tx.InDoubt(func() { doubts.Add(1) })
				tx.AfterCommit(func() { commits.Add(1) })
				return tx.Post(ctx, `insert into scratch (id, n) values ($1, $1)`, i)
			})
		})
	}
	p.LoseAnswers("COMMIT", -1)
	errs := c.gathered(len(plans), plans...)
	p.KeepAnswers()
	for _, err := range errs {
		if !errors.Is(err, pawl.ErrUnavailable) {
			t.Errorf("a plan ended with %v", err)
		}
	}
	if n := count(t, db, `select count(*) from scratch`); n != 8 || runs.Load() != 8 || doubts.Load() != 8 || commits.Load() != 0 {
		t.Errorf("%d rows after %d runs, %d doubts, %d commits", n, runs.Load(), doubts.Load(), commits.Load())
	}
	// What was refused is in no doubt.
	err := db.WritePlan(t.Context(), func(ctx context.Context, tx *Tx) error {
		tx.InDoubt(func() { doubts.Add(1) })
		return tx.Expect(ctx, 1, pawl.ErrConflict, `delete from scratch where id = $1`, 99)
	})
	if !errors.Is(err, pawl.ErrConflict) || doubts.Load() != 8 {
		t.Errorf("%v, and %d doubts", err, doubts.Load())
	}
}

// The plans of statements with a limit, or with a kind, are made once: SQLite
// would make them anew for every value.
func TestParametersThatSQLitePeeksAtAreHidden(t *testing.T) {
	for text, want := range map[string]string{
		`select 1 from runs where kind = $1 and lane = $2 limit $3`: `select 1 from runs where kind = $1 || '' and lane = $2 limit $3 + 0`,
		`select limit_n from t where limit_n = $1`:                  `select limit_n from t where limit_n = $1`,
	} {
		if got := planOnce(text); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
