package billing

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// reserveAt asks for a run at an instant, and charges it.
func (k *kit) reserveAt(g grant.Grant, runID, at string, cost int64) (until time.Time, err error) {
	k.t.Helper()
	now, err := time.Parse(time.RFC3339, at)
	if err != nil {
		k.t.Fatal(err)
	}
	err = k.db.Write(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		tx.Now = now
		if err := asked(ctx, tx, g, runID); err != nil {
			return err
		}
		if err := Reserve(ctx, tx, g, runID, 1, 0); err != nil {
			return err
		}
		_, err := Settle(ctx, tx, attemptOf(g, runID), []Fact{{Unit: "a", Cost: *micro(cost)}})
		return err
	})
	if e, ok := errors.AsType[*CapError](err); ok {
		return e.Until, err
	}
	return time.Time{}, err
}

// The days of caps are those of the account's zone, also where clocks change: the
// day has 23 or 25 hours, or begins at one.
func TestCapsCountTheDaysOfTheZone(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for i, c := range []struct{ zone, first, refused, until, again string }{
			{"", "2030-06-01T00:10:00Z", "2030-06-01T23:59:59Z", "2030-06-02T00:00:00Z", "2030-06-02T00:00:00Z"},
			{"Europe/Berlin", "2030-05-31T22:00:00Z", "2030-06-01T21:59:59Z", "2030-06-02T00:00:00+02:00", "2030-06-01T22:00:00Z"},
			{"Europe/Berlin", "2030-03-30T23:00:00Z", "2030-03-31T21:30:00Z", "2030-04-01T00:00:00+02:00", "2030-03-31T22:00:00Z"},    // 23 hours
			{"Europe/Berlin", "2030-10-26T22:00:00Z", "2030-10-27T22:30:00Z", "2030-10-28T00:00:00+01:00", "2030-10-27T23:00:00Z"},    // 25 hours
			{"America/Santiago", "2030-09-07T12:00:00Z", "2030-09-08T03:30:00Z", "2030-09-08T01:00:00-03:00", "2030-09-08T04:00:00Z"}, // midnight is skipped
			{"Asia/Kathmandu", "2030-01-01T18:15:00Z", "2030-01-02T18:14:59Z", "2030-01-03T00:00:00+05:45", "2030-01-02T18:15:00Z"},
			{"No/Such", "2030-06-01T00:10:00Z", "2030-06-01T23:59:59Z", "2030-06-02T00:00:00Z", "2030-06-02T00:00:00Z"}, // this machine has lost it
		} {
			for _, caps := range []grant.Caps{{USDPerDay: micro(10)}, {RunsPerDay: new(int64(1))}} {
				g := k.grant(caps)
				k.write(func(ctx context.Context, tx *store.Tx) error {
					return grantstore.In(tx).SetTimezone(ctx, g.BillingAccountID, c.zone)
				})
				name := fmt.Sprint(i, caps.RunsPerDay != nil)
				if _, err := k.reserveAt(g, name+"a", c.first, 10); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				until, err := k.reserveAt(g, name+"b", c.refused, 10)
				if err == nil || until.Format(time.RFC3339) != c.until {
					t.Errorf("%s, %s: until %s, not %s (%v)", name, c.zone, until.Format(time.RFC3339), c.until, err)
				}
				if _, err := k.reserveAt(g, name+"c", c.again, 10); err != nil {
					t.Errorf("%s, %s: %v", name, c.zone, err)
				}
			}
		}
	})
}

// What no day has room for is not a matter of waiting; nor is a balance.
func TestWaitingHelpsDailyCapsOnly(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for which, caps := range map[string]grant.Caps{
			CapUSDPerDay: {USDPerDay: micro(10)}, CapUSDPerRun: {USDPerRun: micro(10)}, CapRunsPerDay: {RunsPerDay: new(int64(0))},
		} {
			err := k.reserve(k.grant(caps), "dear-"+which, 11)
			if e, ok := errors.AsType[*CapError](err); !ok || e.Which != which || !e.Until.IsZero() {
				t.Errorf("%s: %+v", which, err)
			}
		}
	})
}

// A daily cap of which nothing was ever used needs no looking.
func TestUntouched(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		free, dear := k.grant(grant.Caps{USDPerDay: micro(10)}), k.grant(grant.Caps{USDPerDay: micro(10)})
		k.settle(free, "r1", Fact{Unit: "a"})
		k.settle(dear, "r2", Fact{Unit: "a", Cost: 1})
		ids := map[string]bool{free.ID: true, dear.ID: false}
		for _, caps := range []grant.Caps{{}, {USDPerDay: micro(0)}, {USDPerDay: micro(1), USDPerRun: micro(1)}, {USDPerDay: micro(1), RunsPerDay: new(int64(5))}} {
			ids[k.grant(caps).ID] = false
		}
		look := func() {
			t.Helper()
			k.write(func(ctx context.Context, tx *store.Tx) error {
				var list []string
				for id := range ids {
					list = append(list, id)
				}
				found, err := grant.Load(ctx, tx, list)
				for id, want := range ids {
					if Untouched(found[id]) != want {
						t.Errorf("%+v is untouched: %v", found[id], !want)
					}
				}
				return err
			})
		}
		look()
		k.write(func(ctx context.Context, tx *store.Tx) error {
			return grantstore.In(tx).SetBalance(ctx, free.BillingAccountID, new(int64(100)))
		})
		ids[free.ID] = false
		look()
	})
}
