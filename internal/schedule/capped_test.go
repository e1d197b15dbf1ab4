package schedule

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// capUntil refuses every run until an instant, as a daily cap does, and counts how
// often it was asked.
func (k *kit) capUntil(until time.Time) (asked *int) {
	asked = new(int)
	k.graph.set(func() {
		k.graph.refuse = func(string, contract.RunRequestV1) error {
			if time.Now().Before(until) {
				*asked++
				return &billing.CapError{Which: billing.CapUSDPerDay, Msg: "the daily cap of 2 USD is reached", Until: until}
			}
			return nil
		}
	})
	return asked
}

func (k *kit) audited(action string) int {
	return len(k.column(`select action from audit_log where action = $1 and actor = 'pawl'`, action))
}

func (k *kit) saidTo() (list []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.notices {
		list = append(list, n.What+": "+n.Text)
	}
	return list
}

// A daily cap that is reached holds the schedule back until the next day, without
// asking anybody, and then it goes on by itself; people are told of both, once.
func TestADailyCapHoldsUntilTheNextDay(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		until := time.Now().Add(5 * time.Minute).In(berlin)
		asked := k.capUntil(until)
		sch := k.create(ask("s", ""))
		k.pass(3*time.Minute + 30*time.Second)
		words := "Paused until 01:05 Europe/Berlin: the daily cap of 2 USD is reached. It then continues by itself."
		d, err := k.s.Describe(t.Context(), k.owner, sch.ID)
		if err != nil || d.State != "Needs attention" || d.Sentence != words || !d.Row.Enabled || !d.Row.CappedUntil.Equal(until) {
			t.Errorf("it is %q: %s (%v), %+v", d.State, d.Sentence, err, d.Row)
		}
		why, err := k.s.Why(t.Context(), lane.Viewer{UserID: k.owner, Owner: k.owner}, sch.ID, time.Time{})
		if err != nil || !slices.ContainsFunc(why.Gates, func(g lane.Gate) bool { return g.Name == "budget" && !g.Open && g.Text == words }) ||
			why.Next != "It does nothing until the day of its cap is over, at 2000-01-01T00:05:00.000Z; the next slot that runs is that of 2000-01-01T00:05:00.000Z." {
			t.Errorf("why: %+v, %s (%v)", why.Gates, why.Next, err)
		}
		if *asked != 1 || k.audited("schedule.capped") != 1 {
			t.Errorf("asked %d times, %d lines", *asked, k.audited("schedule.capped"))
		}
		k.pass(3 * time.Minute)
		k.wantStory(sch, "00:01 skipped skipped_budget insufficient_credits", "00:02 skipped skipped_budget insufficient_credits", "00:03 skipped skipped_budget insufficient_credits",
			"00:04 skipped skipped_budget insufficient_credits", "00:05 success", "00:06 success", "00:07 pending")
		if d, err = k.s.Describe(t.Context(), k.owner, sch.ID); err != nil || d.State != "Idle" || d.Sentence != "" || !d.Row.CappedUntil.IsZero() || d.Row.Issue != "" {
			t.Errorf("afterwards it is %q: %s (%v)", d.State, d.Sentence, err)
		}
		want := []string{"needs_attention: " + words, "recovered: The daily cap no longer holds it back: it continues."}
		if got := k.saidTo(); !slices.Equal(got, want) {
			t.Errorf("people were told %q", got)
		}
		if k.audited("schedule.continued") != 1 {
			t.Errorf("%d lines tell that it went on", k.audited("schedule.continued"))
		}
	})
}

// A schedule without a slot for a while goes on when the day is over, not when the
// next one is due.
func TestTheHoldEndsWithTheDay(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.capUntil(time.Now().Add(90 * time.Minute))
		in := ask("s", "")
		in.Cron = "0 * * * *"
		sch := k.create(in)
		k.pass(65 * time.Minute)
		if k.schedule(sch.ID).CappedUntil.IsZero() {
			t.Fatal(k.story(sch))
		}
		k.pass(26 * time.Minute)
		if now := k.schedule(sch.ID); !now.CappedUntil.IsZero() || k.audited("schedule.continued") != 1 {
			t.Errorf("%+v", now)
		}
	})
}

// A crash on either side of the hold and of its end loses and repeats nothing, nor
// does a restart while it holds, on whatever node.
func TestACrashAroundAHold(t *testing.T) {
	for _, place := range []string{"answered", "continuing", "continued", "down"} {
		t.Run(place, func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				k.capUntil(time.Now().Add(4 * time.Minute))
				sch := k.create(ask("s", ""))
				crashed := k.crashOnce(place)
				k.pass(2 * time.Minute)
				if place == "down" { // over the end of the day
					k.restart(4 * time.Minute)
				}
				k.pass(5*time.Minute + 30*time.Second)
				if !crashed() && place != "down" {
					t.Error("it did not crash")
				}
				if now := k.schedule(sch.ID); !now.Enabled || !now.CappedUntil.IsZero() {
					t.Errorf("%+v", now)
				}
				if n, m := k.audited("schedule.capped"), k.audited("schedule.continued"); n != 1 || m != 1 || len(k.saidTo()) != 2 {
					t.Errorf("%d and %d lines, told %q", n, m, k.saidTo())
				}
				for _, slot := range k.story(sch) {
					at, what, _ := strings.Cut(slot, " ")
					if late := at >= "00:04"; late && strings.Contains(what, "budget") || !late && what == "success" {
						t.Errorf("%s: %s", place, slot)
					}
				}
			})
		})
	}
}

// Should the job that ends a hold be lost, the next slot ends it.
func TestASlotEndsAHoldThatIsOver(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.capUntil(time.Now().Add(3 * time.Minute))
		sch := k.create(ask("s", ""))
		k.pass(90 * time.Second)
		k.change(`delete from jobs where task = 'continue_schedule'`)
		k.pass(2 * time.Minute)
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:03"}) || k.audited("schedule.continued") != 1 || !k.schedule(sch.ID).CappedUntil.IsZero() {
			t.Errorf("executed %v", got)
		}
	})
}

// A person who enables a schedule that is held back, or gives it another grant, does
// not wait for the day; one who runs it by hand is told the cap.
func TestAPersonEndsAHold(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		asked := k.capUntil(time.Now().Add(24 * time.Hour))
		sch := k.create(ask("s", ""))
		k.pass(90 * time.Second)
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.RunNow(ctx, tx, k.owner, sch.ID, "t")
			return err
		})
		k.pass(10 * time.Second)
		if *asked != 2 || k.schedule(sch.ID).CappedUntil.IsZero() {
			t.Errorf("asked %d times", *asked)
		}
		k.graph.set(func() { k.graph.refuse = nil })
		on := true
		if now := k.update(sch, client.SchedulePatch{Enabled: &on}); !now.CappedUntil.IsZero() || now.Issue != "" {
			t.Errorf("%+v", now)
		}
		if d, err := k.s.Describe(t.Context(), k.owner, sch.ID); err != nil || d.State != "Idle" {
			t.Errorf("it is %q: %s (%v)", d.State, d.Sentence, err)
		}
		k.pass(30 * time.Second)
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:02"}) {
			t.Errorf("executed %v", got)
		}
	})
}

// With real money: what was spent counts by the days of the account's zone, and
// many slots that cost nothing are begun together under the cap of an automatic
// grant.
func TestADayOfTheAccountHasItsCap(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		limit := pawl.USD(25)
		k.s.cfg.Grants = grant.Service{Automatic: grant.Caps{USDPerDay: &limit}}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			account, err := grantstore.In(tx).EnsureAccount(ctx, k.owner)
			if err != nil {
				return err
			}
			return grantstore.In(tx).SetTimezone(ctx, account.ID, "Asia/Kolkata") // the day ends at 18:30 UTC
		})
		k.poet.usage = &runner.Usage{Unit: "a", Cost: 10, CostTold: true}
		in := ask("s", "")
		in.Cron = "0 * * * *"
		sch := k.create(in)
		k.pass(20*time.Hour + time.Minute)
		var ran []string
		for _, slot := range k.slots(sch) {
			if slot.Status == "success" {
				ran = append(ran, slot.ScheduledFor.Format("15:04"))
			}
		}
		if !slices.Equal(ran, []string{"01:00", "02:00", "19:00", "20:00"}) {
			t.Errorf("ran at %v", ran)
		}
	})
}

// Another grant ends a hold, too; nothing else that a person changes does.
func TestAnotherGrantEndsAHold(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.capUntil(time.Now().Add(24 * time.Hour))
		sch := k.create(ask("s", ""))
		k.pass(90 * time.Second)
		labels, other := map[string]string{"a": "b"}, k.grantFor(k.owner, "x:poet")
		if now := k.update(sch, client.SchedulePatch{Labels: &labels}); now.CappedUntil.IsZero() {
			t.Error("another label ended it")
		}
		k.graph.set(func() { k.graph.refuse = nil })
		if now := k.update(sch, client.SchedulePatch{ExecutionGrantID: &other}); !now.CappedUntil.IsZero() || now.Issue != "" {
			t.Errorf("%+v", now)
		}
		k.pass(30 * time.Second)
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:02"}) {
			t.Errorf("executed %v", got)
		}
	})
}
