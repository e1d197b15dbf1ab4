package ledger

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// A-94..A-98, A-101, A-113..A-118: the class decides the status, the phase
// stays, and the reason is kept. What starts afresh gives its events back; what
// resumes keeps them.
func TestStopByClass(t *testing.T) {
	type want struct {
		status pawl.Status
		ended  bool
		event  string
		exit   run.Exit
	}
	wants := map[pawl.Class]want{
		pawl.ClassTransient:     {pawl.StatusPausedTransient, true, "pending", run.ExitBackoff},
		pawl.ClassLogic:         {pawl.StatusFailedLogic, true, "pending", run.ExitFix},
		pawl.ClassAuth:          {pawl.StatusPausedApproval, false, "reserved", run.ExitUser},
		pawl.ClassPermission:    {pawl.StatusPausedApproval, false, "reserved", run.ExitUser},
		pawl.ClassPrecondition:  {pawl.StatusPausedApproval, false, "reserved", run.ExitUser},
		pawl.ClassInternal:      {pawl.StatusFailedInternal, true, "pending", run.ExitUser},
		"unheard of":            {pawl.StatusFailedInternal, true, "pending", run.ExitUser},
		pawl.ClassIndeterminate: {pawl.StatusPausedReconciliation, false, "reserved", run.ExitReconcile},
	}
	both(t, func(t *testing.T, k *kit) {
		for class, w := range wants {
			r := k.reach(consumer("lane "+string(class)), pawl.PhaseMutating)
			if class == pawl.ClassIndeterminate {
				k.call(r.ID, pawl.MutationInFlight)
			}
			o := k.stop(r, class)
			got := k.get(r.ID)
			if diff := cmp.Diff(o.Run, got); diff != "" {
				t.Errorf("%s: returned and stored differ:\n%s", class, diff)
			}
			if got.Status != w.status || got.Phase != r.Phase || got.EndedAt.IsZero() == w.ended {
				t.Errorf("%s: %s at %s, ended %v", class, got.Status, got.Phase, got.EndedAt)
			}
			if got.ErrorClass != class || got.ErrorCode != "code" || got.ErrorMessage != "message" {
				t.Errorf("%s: reason %q %q %q", class, got.ErrorCode, got.ErrorClass, got.ErrorMessage)
			}
			if _, status := k.held(r.ID); status != w.event || o.Decision.Exit != w.exit {
				t.Errorf("%s: the event is %s, the way out %s", class, status, o.Decision.Exit)
			}
		}
	})
}

// Lesson of earlier systems: nobody waits for an in_flight call of a run that
// stopped, so its row moves on in the same transaction.
func TestStopMovesTheOpenCallOn(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for askable, want := range map[bool]pawl.MutationState{true: pawl.MutationNeedsReconcile, false: pawl.MutationIndeterminate} {
			r := k.reach(consumer("lane "+string(want)), pawl.PhaseMutating)
			k.write(func(ctx context.Context, tx *store.Tx) error {
				if err := k.l.Hold(ctx, tx, r); err != nil {
					return err
				}
				return putCall(ctx, tx, r.ID, askable, pawl.MutationInFlight)
			})
			k.stop(r, pawl.ClassIndeterminate)
			if got := k.mutation(r.ID); got != want {
				t.Errorf("askable %v: %s, want %s", askable, got, want)
			}
			if _, status := k.held(r.ID); status != "reserved" {
				t.Errorf("askable %v: the event is %s", askable, status)
			}
		}
	})
}

// failures are counted for the lane and say when it may try
// again: each kind by its own budget.
func TestFailuresAreCountedForTheLane(t *testing.T) {
	budget := run.Budget{MaxRetries: 2, Period: time.Hour}
	cases := map[string]struct {
		h         pawl.HandlerType
		class     pawl.Class
		f         Failure
		was       run.Retry
		count     int
		wait      time.Duration // -1: none
		exhausted bool
	}{
		"first transient":            {h: pawl.HandlerConsumer, class: pawl.ClassTransient, count: 1, wait: 10 * time.Second},
		"second transient":           {h: pawl.HandlerProducer, class: pawl.ClassTransient, was: run.Retry{Count: 1, Crashes: 2}, count: 2, wait: 20 * time.Second},
		"transient, asked to wait":   {h: pawl.HandlerConsumer, class: pawl.ClassTransient, f: Failure{RetryAfter: time.Minute}, count: 1, wait: time.Minute},
		"transient, asked for less":  {h: pawl.HandlerConsumer, class: pawl.ClassTransient, f: Failure{RetryAfter: time.Second}, count: 1, wait: 10 * time.Second},
		"fifth transient":            {h: pawl.HandlerConsumer, class: pawl.ClassTransient, was: run.Retry{Count: 4}, count: 5, wait: 160 * time.Second},
		"sixth transient":            {h: pawl.HandlerConsumer, class: pawl.ClassTransient, f: Failure{RetryAfter: time.Hour}, was: run.Retry{Count: 5}, count: 6, wait: -1, exhausted: true},
		"our own limit, consumer":    {h: pawl.HandlerConsumer, class: pawl.ClassTransient, f: Failure{RetryAfter: 20 * time.Hour, Deferred: true}, was: run.Retry{Count: 5, Crashes: 1}, count: 5, wait: 20 * time.Hour},
		"our own limit, producer":    {h: pawl.HandlerProducer, class: pawl.ClassTransient, f: Failure{RetryAfter: time.Second, Deferred: true}, count: 0, wait: time.Second},
		"our own limit, source":      {h: pawl.HandlerSource, class: pawl.ClassTransient, f: Failure{RetryAfter: time.Hour, Deferred: true, Budget: budget}, was: run.Retry{Count: 1}, count: 1, wait: -1},
		"logic of a workflow":        {h: pawl.HandlerConsumer, class: pawl.ClassLogic, was: run.Retry{Count: 1, Crashes: 2}, count: 1, wait: -1},
		"any of a source":            {h: pawl.HandlerSource, class: pawl.ClassLogic, f: Failure{Budget: budget}, count: 1, wait: 2 * time.Minute},
		"last of a source":           {h: pawl.HandlerSource, class: pawl.ClassTransient, f: Failure{Budget: budget}, was: run.Retry{Count: 1}, count: 2, wait: time.Hour, exhausted: true},
		"a source's default budget":  {h: pawl.HandlerSource, class: pawl.ClassAuth, was: run.Retry{Count: 2, Crashes: 1}, count: 3, wait: 8 * time.Minute},
		"attempt of a slot":          {h: pawl.HandlerSchedule, class: pawl.ClassTransient, was: run.Retry{Crashes: 1}, count: 1, wait: time.Second},
		"last attempt of a slot":     {h: pawl.HandlerSchedule, class: pawl.ClassTransient, was: run.Retry{Count: 2}, count: 3, wait: -1, exhausted: true},
		"a slot that failed at once": {h: pawl.HandlerSchedule, class: pawl.ClassLogic, was: run.Retry{Count: 1}, count: 1, wait: -1},
	}
	both(t, func(t *testing.T, k *kit) {
		for name, c := range cases {
			s := specOf(c.h, name)
			r := k.begin(s)
			c.was.PeriodStart = r.CreatedAt
			k.setRetry(s, c.was)
			f := c.f
			f.Class = c.class
			o := must(k, func(ctx context.Context, tx *store.Tx) (Outcome, error) { return k.l.Stop(ctx, tx, r, f) })
			got := k.retry(s)
			if o.Retry != got || o.Exhausted != c.exhausted {
				t.Errorf("%s: returned %+v %v, stored %+v", name, o.Retry, o.Exhausted, got)
			}
			want := run.Retry{Count: c.count, PeriodStart: r.CreatedAt}
			switch {
			case c.h == pawl.HandlerSource && c.exhausted:
				want.NextAt = r.CreatedAt.Add(c.wait) // the end of the period
			case c.wait >= 0:
				want.NextAt = o.Run.UpdatedAt.Add(c.wait)
			}
			if got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
	})
}

// the attempts that a schedule may spend are those of one slot.
func TestNextSlotHasItsOwnAttempts(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		s := specOf(pawl.HandlerSchedule, "lane")
		k.stop(k.begin(s), pawl.ClassTransient)
		if got := k.retry(s).Count; got != 1 {
			t.Fatalf("%d attempts", got)
		}
		k.begin(s)
		if got := k.retry(s); got.Count != 0 || !got.NextAt.IsZero() {
			t.Errorf("the next slot begins with %+v", got)
		}
	})
}

// a pause that the same row leaves is no failure of the lane.
func TestPausesAreNotCounted(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		s := consumer("lane")
		was := run.Retry{Count: 1, Crashes: 2, PeriodStart: time.UnixMilli(1000).UTC()}
		k.setRetry(s, was)
		k.stop(k.begin(s), pawl.ClassAuth)
		if got := k.retry(s); got != was {
			t.Errorf("%+v", got)
		}
	})
}

func TestStrangeMessagesDoNotKeepARunFromStopping(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for i, text := range []string{"\x00\xff", strings.Repeat("ü", maxMessage), "x" + strings.Repeat("ü", maxMessage), "", strings.Repeat("x", maxMessage+1)} {
			r := k.begin(consumer(string(rune('a' + i))))
			o := must(k, func(ctx context.Context, tx *store.Tx) (Outcome, error) {
				return k.l.Stop(ctx, tx, r, Failure{Class: pawl.ClassLogic, Code: text, Message: text})
			})
			if m := o.Run.ErrorMessage; len(m) > maxMessage || !utf8.ValidString(m) || len(text) > maxMessage && len(m) < maxMessage-3 {
				t.Errorf("%d bytes became %d", len(text), len(m))
			}
		}
	})
}

// a run can be cancelled while nothing was sent; its events go back.
func TestCancelOnlyWhileNothingWasSent(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, phase := range pawl.Phases(pawl.HandlerConsumer)[:5] {
			for _, state := range run.MutationStates() {
				if state != pawl.MutationNone && phase != pawl.PhaseMutating {
					continue
				}
				for _, paused := range []bool{false, true} {
					r := k.reach(consumer(strings.Join([]string{string(phase), string(state), map[bool]string{true: "paused"}[paused]}, " ")), phase)
					k.callUpTo(r.ID, state)
					if paused {
						r = k.stop(r, pawl.ClassPermission).Run
					}
					before := k.dump()
					got, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return k.l.Cancel(ctx, tx, r) })
					can := !run.MutationApplied(r.HandlerType, phase) && run.CanCall(state)
					switch {
					case !can && (!errors.Is(err, pawl.ErrConflict) || k.dump() != before):
						t.Errorf("%s: %v", r.Lane, err)
					case can && (err != nil || got.Status != pawl.StatusCancelled || got.Phase != phase || got.EndedAt.IsZero()):
						t.Errorf("%s: %v, %+v", r.Lane, err, got)
					case can && phase != pawl.PhasePreparing:
						if owner, status := k.held(r.ID); owner != "" || status != "pending" {
							t.Errorf("%s: the event is %s by %q", r.Lane, status, owner)
						}
					}
				}
			}
		}
	})
}

// A person's cancel meets the run wherever it has come meanwhile, but not one
// that changed hands; the owner's next step then fails.
func TestCancelBesideTheOwner(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		seen := k.begin(consumer("lane"))
		now := k.advance(seen, pawl.PhasePrepared)
		must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return k.l.Cancel(ctx, tx, seen) })
		if _, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			return k.l.Advance(ctx, tx, now, Checkpoint{}, pawl.PhaseMutating)
		}); !errors.Is(err, pawl.ErrConflict) {
			t.Errorf("the owner goes on: %v", err)
		}
		if _, err := step(k, func(ctx context.Context, tx *store.Tx) (bool, error) { return true, k.l.Hold(ctx, tx, now) }); !errors.Is(err, pawl.ErrConflict) {
			t.Errorf("the owner opens a call: %v", err)
		}
		paused := k.stop(k.begin(consumer("lane")), pawl.ClassAuth).Run
		if _, err := step(k, func(ctx context.Context, tx *store.Tx) (bool, error) { return true, k.l.Hold(ctx, tx, paused) }); !errors.Is(err, pawl.ErrConflict) {
			t.Errorf("held a run that is paused: %v", err)
		}
		resumed := must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			return k.l.Resume(ctx, tx, k.owner, paused)
		})
		if _, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return k.l.Cancel(ctx, tx, paused) }); !errors.Is(err, pawl.ErrConflict) {
			t.Errorf("cancelled a run that was resumed meanwhile: %v", err)
		}
		must(k, func(ctx context.Context, tx *store.Tx) (bool, error) { return true, k.l.Hold(ctx, tx, resumed) })
	})
}

// A person cancels while the owner opens a call: one of them wins, so no call
// is ever made for a run that is cancelled.
func TestCancelAndCallExcludeEachOther(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for i := range 20 {
			r := k.reach(consumer(strconv.Itoa(i)), pawl.PhaseMutating)
			var wg sync.WaitGroup
			var cancelled, called error
			wg.Go(func() {
				_, cancelled = step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return k.l.Cancel(ctx, tx, r) })
			})
			wg.Go(func() {
				_, called = step(k, func(ctx context.Context, tx *store.Tx) (bool, error) {
					if err := k.l.Hold(ctx, tx, r); err != nil {
						return false, err
					}
					return true, putCall(ctx, tx, r.ID, true, pawl.MutationInFlight)
				})
			})
			wg.Wait()
			if (cancelled == nil) == (called == nil) {
				t.Fatalf("cancel: %v, call: %v", cancelled, called)
			}
		}
	})
}
