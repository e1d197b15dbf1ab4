package expect

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/when"
)

func TestMain(m *testing.M) { migrated.Main(m) }

// kit is a judge on a database in simulated time, of sources that do what the test
// says.
type kit struct {
	t  *testing.T
	db *store.DB
	s  *Service

	subject      lane.Subject
	days         map[string]bool         // that had a success
	fetches      []lane.Fetch            // the newest first
	brought      map[string][]lane.Fetch // by handlers
	starts, late int
	failure      error

	notices []lane.Notice
}

func inTime(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) {
		synctest.Test(t, func(t *testing.T) {
			db, err := store.Open(t.Context(), url, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			k := &kit{t: t, db: db, days: map[string]bool{}}
			every, _ := when.Cron("0 3 * * 1-5", time.UTC)
			k.subject = lane.Subject{Ref: lane.Named(pawl.KindSource, "prices"), Zone: time.UTC, Repeats: []lane.Due{{Schedule: every}}}
			k.process(nil)
			k.write(func(ctx context.Context, tx *store.Tx) error {
				return runstore.In(tx).InsertLane(ctx, runstore.Lane{Kind: pawl.KindSource, Lane: "prices", ID: "id-prices", Name: "prices", State: string(run.Idle)})
			})
			test(t, k)
		})
	})
}

// pass lets simulated time pass.
func pass(d time.Duration) { time.Sleep(d) }

// process makes another judge, which may die.
func (k *kit) process(fault func(at string) error) {
	k.s = New(Config{DB: k.db, Kinds: []Kind{k}, fault: fault, Host: lane.Host{
		// What is told is a row, so that it is only if the transaction is.
		Notify: func(ctx context.Context, tx *store.Tx, n lane.Notice) error {
			tx.AfterCommit(func() { k.notices = append(k.notices, n) })
			return nil
		},
	}})
}

func (k *kit) write(fn func(ctx context.Context, tx *store.Tx) error) {
	k.t.Helper()
	if err := k.db.Write(k.t.Context(), fn); err != nil {
		k.t.Fatal(err)
	}
}

// expects declares what is expected.
func (k *kit) expects(text string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		return runstore.In(tx).SetExpect(ctx, pawl.KindSource, "prices", text)
	})
}

func (k *kit) look() {
	k.t.Helper()
	if err := k.s.look(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) row() (l runstore.Lane) {
	k.t.Helper()
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		l, err = runstore.In(tx).GetLane(ctx, pawl.KindSource, "prices")
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return l
}

// stands looks once and says what the row should say: the state, and what is not met.
func (k *kit) stands(state run.State, unmet ...string) {
	k.t.Helper()
	k.look()
	k.said(state, unmet...)
}

func (k *kit) said(state run.State, unmet ...string) {
	k.t.Helper()
	row := k.row()
	var got []string
	for _, v := range terms.UnmetOf(row.Expect, row.Expected) {
		got = append(got, v.Name)
	}
	if row.State != string(state) || len(got) != len(unmet) {
		k.t.Errorf("%s, not met %v; want %s, %v: %s", row.State, got, state, unmet, row.Expected)
		return
	}
	for i, name := range unmet {
		if got[i] != name {
			k.t.Errorf("not met %v, want %v", got, unmet)
		}
	}
}

// told takes the notices of now.
func (k *kit) told(want ...string) {
	k.t.Helper()
	var got []string
	for _, n := range k.notices {
		if n.Issue != run.IssueExpectation || n.Name != "prices" {
			k.t.Errorf("%+v", n)
		}
		got = append(got, n.What+": "+n.Text)
	}
	k.notices = nil
	if len(got) != len(want) {
		k.t.Errorf("told %q, want %q", got, want)
		return
	}
	for i := range want {
		if got[i] != want[i] {
			k.t.Errorf("told %q, want %q", got[i], want[i])
		}
	}
}

var errCrash = errors.New("crash")

// Kind and what follows implement Kind.
func (k *kit) Kind() pawl.Kind { return pawl.KindSource }

func (k *kit) Subject(context.Context, *store.Tx, runstore.Lane) (lane.Subject, error) {
	return k.subject, k.failure
}

func (k *kit) StoodWell(_ context.Context, _ *store.Tx, _ lane.Subject, _ runstore.Lane, from, _ time.Time) (bool, error) {
	return k.days[from.Format(time.DateOnly)], nil
}

func (k *kit) CountStarts(context.Context, *store.Tx, lane.Subject, runstore.Lane, time.Time, int) (starts, late int, err error) {
	return k.starts, k.late, nil
}

func (k *kit) Fetches(_ context.Context, _ *store.Tx, _ runstore.Lane, handler string, before time.Time, limit int) (list []lane.Fetch, _ error) {
	fetches := k.fetches
	if handler != "" {
		fetches = k.brought[handler]
	}
	for _, f := range fetches {
		if f.EndedAt.Before(before) && len(list) < limit {
			list = append(list, f)
		}
	}
	return list, nil
}
