package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/quotastore"
)

// callTo counts a call at an instant.
func callTo(t testing.TB, db *store.DB, now time.Time, domain string, limit quotastore.CallLimit) (taken bool, c quotastore.DomainCalls) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
		tx.Now = now
		taken, c, err = quotastore.In(tx).TakeCall(ctx, domain, limit)
		return err
	})
	return taken, c
}

func noteCalls(t testing.TB, db *store.DB, now time.Time, c quotastore.DomainCalls) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
		tx.Now = now
		return quotastore.In(tx).NoteCalls(ctx, c, now.Add(time.Hour))
	})
}

func callsOf(t testing.TB, db *store.DB, domain string) quotastore.DomainCalls {
	t.Helper()
	return mustRead(t, db, func(ctx context.Context, tx *store.Tx) (quotastore.DomainCalls, error) {
		return quotastore.In(tx).GetCalls(ctx, domain)
	})
}

// B-23, context 3.16.3: a fixed window counts from its first call, denies when
// it is full, and begins anew once the period has passed.
func TestCallsAreCountedInAFixedWindow(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		limit := quotastore.CallLimit{Calls: 2, Period: 10 * time.Second}
		for _, step := range []struct {
			at    int
			taken bool
			start int
			count int
		}{
			{100, true, 100, 1},
			{105, true, 100, 2},
			{109, false, 100, 2},
			{110, true, 110, 1},
			{111, true, 110, 2},
			{111, false, 110, 2},
			{500, true, 500, 1},
		} {
			taken, c := callTo(t, db, store.AtForTest(step.at), "a.example", limit)
			if taken != step.taken || !c.WindowStart.Equal(store.AtForTest(step.start)) || c.Count != step.count {
				t.Errorf("at %d: taken %v, window from %v, count %d; want %+v", step.at, taken, c.WindowStart, c.Count, step)
			}
		}
		if taken, _ := callTo(t, db, store.AtForTest(111), "b.example", limit); !taken {
			t.Error("the limit of one domain stopped another")
		}
		if diff := cmp.Diff(quotastore.DomainCalls{Domain: "never.example"}, callsOf(t, db, "never.example")); diff != "" {
			t.Errorf("a domain without a page (-want +got):\n%s", diff)
		}
	})
}

// a domain that asked for rest is not called, and nothing is counted;
// of two such instants the later holds.
func TestRestingDomainIsNotCalled(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		limit := quotastore.CallLimit{Calls: 9, Period: time.Minute}
		hundred, zero := int64(100), int64(0)
		callTo(t, db, store.AtForTest(0), "a.example", limit)
		noteCalls(t, db, store.AtForTest(1), quotastore.DomainCalls{Domain: "a.example", BlockedUntil: store.AtForTest(20), Remote: quotastore.RemoteAccount{Limit: &hundred, Left: &zero, ResetAt: store.AtForTest(30)}})
		noteCalls(t, db, store.AtForTest(2), quotastore.DomainCalls{Domain: "a.example", BlockedUntil: store.AtForTest(10)})
		noteCalls(t, db, store.AtForTest(3), quotastore.DomainCalls{Domain: "a.example"})
		want := quotastore.DomainCalls{
			Domain: "a.example", WindowStart: store.AtForTest(0), Count: 1, BlockedUntil: store.AtForTest(20), UpdatedAt: store.AtForTest(3),
			Remote: quotastore.RemoteAccount{Limit: &hundred, Left: &zero, ResetAt: store.AtForTest(30)},
		}
		taken, got := callTo(t, db, store.AtForTest(19), "a.example", limit)
		if diff := cmp.Diff(want, got); taken || diff != "" {
			t.Errorf("taken %v (-want +got):\n%s", taken, diff)
		}
		if taken, got = callTo(t, db, store.AtForTest(20), "a.example", limit); !taken || got.Count != 2 {
			t.Errorf("after the rest: taken %v, count %d", taken, got.Count)
		}
	})
}

// What a clock wrote that has been put back since does not hold for ever.
func TestPagesOfAClockThatWasPutBackAreMended(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		limit := quotastore.CallLimit{Calls: 2, Period: time.Minute}
		far := store.AtForTest(100_000_000)
		callTo(t, db, far, "a.example", limit)
		if taken, c := callTo(t, db, store.AtForTest(0), "a.example", limit); !taken || c.Count != 2 || !c.WindowStart.Equal(store.AtForTest(0)) {
			t.Errorf("taken %v, count %d, window from %v: the window is kept, and the count with it", taken, c.Count, c.WindowStart)
		}
		if taken, _ := callTo(t, db, store.AtForTest(1), "a.example", limit); taken {
			t.Error("the limit was exceeded")
		}
		callTo(t, db, far, "a.example", limit)
		noteCalls(t, db, far, quotastore.DomainCalls{Domain: "a.example", BlockedUntil: far.Add(time.Minute)})
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			tx.Now = store.AtForTest(2)
			return quotastore.In(tx).RepairCalls(ctx, "a.example", store.AtForTest(2).Add(time.Hour), store.AtForTest(2).Add(time.Minute))
		})
		got := callsOf(t, db, "a.example")
		if !got.BlockedUntil.Equal(store.AtForTest(2).Add(time.Hour)) || !got.WindowStart.Equal(store.AtForTest(2)) || got.Count != 1 {
			t.Errorf("mended to %+v", got)
		}
		noteCalls(t, db, far, quotastore.DomainCalls{Domain: "a.example", BlockedUntil: far.Add(time.Minute)})
		noteCalls(t, db, store.AtForTest(3), quotastore.DomainCalls{Domain: "a.example", BlockedUntil: store.AtForTest(9)})
		if got := callsOf(t, db, "a.example"); !got.BlockedUntil.Equal(store.AtForTest(9)) {
			t.Errorf("blocked until %v, which is the instant of the wrong clock", got.BlockedUntil)
		}
	})
}

// A limit holds however many come at once.
func TestLimitHoldsForManyAtOnce(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var group sync.WaitGroup
		var mu sync.Mutex
		total := 0
		for range 30 {
			group.Go(func() {
				err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					taken, _, err := quotastore.In(tx).TakeCall(ctx, "a.example", quotastore.CallLimit{Calls: 7, Period: time.Hour})
					if taken {
						tx.AfterCommit(func() { mu.Lock(); total++; mu.Unlock() })
					}
					return err
				}, store.Lazy)
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if total != 7 {
			t.Errorf("%d calls were taken, want 7", total)
		}
	})
}
