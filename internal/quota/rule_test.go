package quota

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/quotastore"
)

// What Peek says by the page is what Acquire does in the database, at any
// instant and for any page.
func TestPeekAndAcquireAgree(t *testing.T) {
	both(t, func(t *testing.T, db *store.DB, _ *Book) {
		r := rule{domain: "a.example", limit: quotastore.CallLimit{Calls: 3, Period: 10 * time.Second}, longest: time.Hour}
		rapid.Check(t, func(rt *rapid.T) {
			second := rapid.IntRange(-30, 30)
			page := []any{
				noon().Add(time.Duration(second.Draw(rt, "window")) * time.Second).UnixMilli(), rapid.IntRange(0, 4).Draw(rt, "count"),
				rapid.Custom(func(t *rapid.T) any {
					if rapid.Bool().Draw(t, "blocked") {
						return noon().Add(time.Duration(second.Draw(t, "until")) * time.Second).UnixMilli()
					}
					return nil
				}).Draw(rt, "blocked until"),
			}
			err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				tx.Now = noon()
				if _, err := tx.Exec(ctx, `delete from rate_limiter_state`); err != nil {
					return err
				}
				if _, err := tx.Exec(ctx, `insert into rate_limiter_state (domain, window_start, count, blocked_until, updated_at) values ('a.example', $1, $2, $3, 0)`, page...); err != nil {
					return err
				}
				before, err := quotastore.In(tx).GetCalls(ctx, r.domain)
				if err != nil {
					return err
				}
				denied := r.deny(before, tx.Now)
				taken, after, err := quotastore.In(tx).TakeCall(ctx, r.domain, r.limit)
				switch {
				case err != nil:
				case taken != (denied == nil):
					rt.Fatalf("%+v: taken %v, but denied %v", before, taken, denied)
				case taken && r.judge(after, tx.Now).Left != r.judge(before, tx.Now).Left-1:
					rt.Fatalf("%+v became %+v", before, after)
				case denied != nil && (!denied.Until.After(tx.Now) || denied.Until.After(tx.Now.Add(r.longest))):
					rt.Fatalf("%+v: denied until %v", before, denied.Until)
				}
				return err
			}, store.Lazy)
			if err != nil {
				rt.Fatal(err)
			}
		})
	})
}

func TestPeriodsAreWrittenAsInFiles(t *testing.T) {
	for _, text := range []string{"1s", "90s", "5m", "12h", "30d"} {
		period, ok := parsePeriod(text)
		if !ok || shortPeriod(period) != text {
			t.Errorf("%s is read as %v (%v) and written as %s", text, period, ok, shortPeriod(period))
		}
	}
	for _, text := range []string{"", "s", "0s", "-1s", "1", "1w", "1.5h", "1 m", "367d", "9999999999s", "+1s", "１s"} {
		if period, ok := parsePeriod(text); ok {
			t.Errorf("%q is read as %v", text, period)
		}
	}
}
