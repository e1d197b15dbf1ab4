package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// B-05, B-07, B-08: the entry of a source and its place in the queue are one
// row, made when the source becomes due and long before a worker is free, so a
// source that only waits has its one entry already.
func TestASourceHasOneEntryFromTheMomentItIsQueued(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		l := newLine(k, 1)
		l.run()
		busy := l.add("busy")
		l.wantBegun("busy")
		waits := l.add("waits")
		l.wantOneEntry("queued, and no worker is free", waits)
		l.wantAsked("queued", 1)
		for range 3 {
			l.evaluate(busy, waits)
			l.write(func(ctx context.Context, tx *store.Tx) error { return l.s.RunNow(ctx, tx, "waits", "tester") })
			l.wantOneEntry("due again while it waits", waits)
			l.wantOneEntry("due again while it is fetched", busy)
			l.wantNoMoreEntriesThanSources("while both are due again and again")
		}
		l.wantAsked("after all that", 1)
		l.release("busy")
		l.wantBegun("waits")
		l.evaluate(busy, waits)
		l.wantOneEntry("fetched", waits)
		l.wantNoMoreEntriesThanSources("fetched")
		l.release("waits")
		l.waitOut(waits)
		l.waitOut(busy)
		l.wantAsked("at the end", 2)
	})
}

// B-05: there is no moment at which a worker could have a source that has no
// entry: what makes it due and its entry are committed together, or neither is.
func TestAnEntryIsCommittedWithWhatMakesItDue(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		l := newLine(k, 1)
		err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if _, err := l.s.Apply(ctx, tx, l.define(definition("never", "/never", "")), "tester"); err != nil {
				return err
			}
			return errFault
		})
		if !errors.Is(err, errFault) {
			t.Fatal(err)
		}
		next := l.add("next")
		want := []string{jobKey(next.ID)}
		l.mu.Lock()
		queued := slices.Clone(l.queued)
		l.mu.Unlock()
		if entries := l.column(`select lane from jobs where task = $1`, TaskName); !slices.Equal(entries, want) || !slices.Equal(queued, want) {
			t.Errorf("there are entries of %v, and workers were told of %v; want both of %v, which was committed", entries, queued, want)
		}
		l.run()
		l.wantBegun("next")
		l.release("next")
	})
}

// B-11, and B-04, B-06, B-08, B-09 on its way: due at t0 it is added and queued;
// due again at t0+30 s it is skipped; a worker starts it at t0+60 s; at t0+120 s
// it ends and is removed; afterwards it is eligible again.
func TestTheTimelineOfASourceInFlight(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		l := newLine(k, 1)
		l.run()
		s := l.add("s")
		l.wantBegun("s")
		l.release("s")
		l.waitOut(s)
		busy := l.add("busy")
		l.wantBegun("busy") // the one worker
		l.wantAsked("before t0", 2)

		l.passInterval(s)
		l.evaluate(s)
		l.wantOneEntry("t0: due, added and queued", s)

		l.passInterval(s)
		l.evaluate(s)
		l.wantOneEntry("t0+30s: due again, skipped", s)
		l.wantAsked("t0+30s", 2)

		l.release("busy")
		l.wantBegun("s")
		l.wantOneEntry("t0+60s: a worker starts", s)
		if g := l.look("s").gateInFlight(); g.Open {
			t.Errorf("t0+60s: nobody says that it is in flight: %+v", g)
		}

		l.passInterval(s)
		l.evaluate(s)
		l.wantOneEntry("t0+90s: due again, skipped", s)
		l.wantAsked("t0+90s", 3)

		l.release("s")
		l.waitOut(s)
		l.wantStatus("s", pawl.StatusCommitted)
		if g := l.look("s").gateInFlight(); !g.Open {
			t.Errorf("t0+120s: it is still said to be in flight: %+v", g)
		}
		l.wantAsked("t0+120s: three times due, fetched once", 3)

		l.passInterval(s)
		l.evaluate(s)
		l.wantBegun("s") // eligible again
		l.release("s")
		l.waitOut(s)
		l.waitOut(busy)
		l.wantAsked("at the end", 4)
	})
}

// B-28: a worker takes the sources that wait in the order in which they became
// due, whatever they are called.
func TestWorkersTakeSourcesFirstInFirstOut(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		l := newLine(k, 1)
		l.run()
		order := []string{"first", "d", "b", "e", "a", "c"}
		for i, name := range order {
			l.add(name)
			if i == 0 {
				l.wantBegun(name)
			}
		}
		l.wantNoMoreEntriesThanSources("one is fetched, five wait")
		l.wantAsked("one worker", 1)
		for _, name := range order[1:] {
			l.release(order[0])
			order[0] = name
			l.wantBegun(name)
		}
		l.release(order[0])
	})
}

// B-29, X-38: places go to those that are due longest, and of those that are due
// since the same instant to the first by name, and every place that is given back
// goes to the next of them.
func TestPlacesFollowTheOrderOfTheQuery(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		l := newLine(k, 3)
		// Seconds for which each is due: not in the order of names, nor in that in
		// which they were added.
		for _, c := range []struct {
			name string
			due  int
		}{{"f", 20}, {"b", 60}, {"g", 10}, {"a", 40}, {"e", 20}, {"c", 50}, {"d", 30}} {
			src := l.add(c.name)
			l.change(`update jobs set run_at = $1 where lane = $2`, time.Now().Truncate(time.Minute).Add(-time.Duration(c.due)*time.Second).UnixMilli(), jobKey(src.ID))
		}
		order := []string{"b", "c", "a", "d", "e", "f", "g"}
		l.run()
		var first []string
		for range 3 {
			select {
			case name := <-l.began:
				first = append(first, name)
			case <-time.After(20 * time.Second):
				t.Fatal("a place stays empty")
			}
		}
		slices.Sort(first)
		if fmt.Sprint(first) != "[a b c]" {
			t.Fatalf("the first places went to %v, want those due longest: b, c, a", first)
		}
		for i, name := range order[3:] {
			l.release(order[i])
			l.wantBegun(name)
		}
		for _, name := range order[4:] {
			l.release(name)
		}
	})
}
