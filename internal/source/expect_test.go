package source

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/bulk"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/terms"
)

// What is expected of a source is noted with its lane, and goes with it.
func TestWhatIsExpectedOfASourceIsNoted(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, c := range []struct{ extra, want string }{
			{"expect: {freshWithin: 2h, rows: 5}\n", `{"freshWithin":"2h","rows":5}`},
			{"expect: {rows: usual, onTime: 99.5}\n", `{"rows":"usual","onTime":99.5}`},
			{"expect: {}\n", ""},
			{"", ""},
		} {
			k.apply(definition("items", "/items", c.extra))
			if got := k.column(`select expect from lanes where lane = 'items'`); len(got) != 1 || got[0] != c.want {
				t.Errorf("%q: %q", c.extra, got)
			}
		}
	})
}

// A source is judged by its fetches: those that ended well, and what they brought. One
// that took several attempts brought what all of them did.
func TestASourceIsJudgedByItsFetches(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("items", "/items", byPage))
		look := func() (l runstore.Lane, s lane.Subject, fetches []lane.Fetch) {
			t.Helper()
			k.write(func(ctx context.Context, tx *store.Tx) (err error) {
				if l, err = runstore.In(tx).GetLane(ctx, pawl.KindSource, "items"); err != nil {
					return err
				}
				if s, err = k.s.Subject(ctx, tx, l); err != nil {
					return err
				}
				fetches, err = k.s.Fetches(ctx, tx, l, "", tx.Now.Add(time.Hour), 5)
				return err
			})
			return l, s, fetches
		}
		_, s, fetches := look()
		if !s.Success.IsZero() || s.Rests || len(fetches) != 0 || len(s.Repeats) != 1 {
			t.Errorf("%+v, %v", s, fetches)
		}
		began := time.Now()
		k.work(src)
		_, s, fetches = look()
		if s.Success.Before(began.Add(-time.Second)) || len(fetches) != 1 || fetches[0].Rows != 10 {
			t.Errorf("%+v, %v", s, fetches)
		}
		k.api.before = func(n int, w http.ResponseWriter, _ *http.Request) bool {
			if n == 7 { // the third page of the second fetch
				http.Error(w, "down", http.StatusBadGateway)
			}
			return n == 7
		}
		k.api.fill(8)
		k.write(func(ctx context.Context, tx *store.Tx) error { return k.s.RunNow(ctx, tx, "items", "me") })
		k.work(src)
		k.change(`update retries set next_retry_at = null`)
		k.change(`update runs set error_code = $1 where status <> 'committed'`, codeDeferred) // it goes on where it was
		k.work(src)
		l, s, fetches := look()
		if len(fetches) != 2 || fetches[0].Rows != 8 {
			t.Errorf("%v: %v", fetches, k.column(`select rows_read || ' ' || coalesce(note, '') from source_runs`))
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			starts, late, err := k.s.CountStarts(ctx, tx, s, l, began.Add(-time.Hour), 100)
			if starts != 1 || late != 0 || err != nil { // a person asked for the other
				t.Errorf("%d, %d, %v", starts, late, err)
			}
			for from, want := range map[time.Time]bool{began.Add(-time.Minute): true, began.Add(time.Hour): false} {
				if ok, err := k.s.StoodWell(ctx, tx, s, l, from, from.Add(time.Hour)); ok != want || err != nil {
					t.Errorf("%s: %v, %v", from, ok, err)
				}
			}
			return nil
		})
	})
}

// Judging a source reads no more because it has fetched often.
func TestJudgingASourceDoesNotReadItsPast(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		h := &bulk.Heard{}
		db, err := store.Open(t.Context(), url, store.Options{Trace: h.Note})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		k := &kit{t: t, db: db, api: newUpstream(t)}
		k.start("n1")
		src := k.apply(definition("old", "/items", ""))
		k.work(src)
		k.pastOf(src.ID)
		h.During(func() {
			k.write(func(ctx context.Context, tx *store.Tx) error {
				l, err := runstore.In(tx).GetLane(ctx, pawl.KindSource, "old")
				if err != nil {
					return err
				}
				s, err := k.s.Subject(ctx, tx, l)
				if err != nil {
					return err
				}
				_, _, err = k.s.CountStarts(ctx, tx, s, l, tx.Now.Add(-terms.StartsWithin), terms.StartsLooked)
				_, wrong := k.s.StoodWell(ctx, tx, s, l, tx.Now.Add(time.Hour), tx.Now.Add(25*time.Hour))
				fetches, bad := k.s.Fetches(ctx, tx, l, "", tx.Now, terms.UsualOf)
				if len(fetches) != terms.UsualOf {
					t.Errorf("%d fetches", len(fetches))
				}
				return errors.Join(err, wrong, bad)
			})
		})
		faults, measured, err := h.Dear(t.Context(), url, 20*bulk.MostOfAStep(db.Name()))
		if err != nil || measured < 5 {
			t.Fatalf("%d statements were measured: %v", measured, err)
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	})
}

// What is not met is what an idle source needs attention for, until that is written.
func TestASourceShowsWhatIsNotMet(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("items", "/items", "expect: {freshWithin: 2h}\n"))
		k.write(func(ctx context.Context, tx *store.Tx) error {
			row, err := runstore.In(tx).GetLane(ctx, pawl.KindSource, "items")
			if err != nil {
				return err
			}
			return runstore.In(tx).SetExpected(ctx, lane.Restate(row, terms.Standing{Of: row.Expect, Verdicts: []terms.Verdict{{Name: terms.FreshWithin, Sentence: "It is stale."}}}))
		})
		for range 2 {
			k.checkRow("items")
			page, _, err := k.s.List(t.Context(), lane.Query{State: run.NeedsAttention, Limit: 10})
			if err != nil || len(page) != 1 || page[0].Issue != run.IssueExpectation || page[0].Sentence != "It is stale." || page[0].Do != "pawl run source items" {
				t.Errorf("%+v, %v", page, err)
			}
			k.work(src)
		}
	})
}
