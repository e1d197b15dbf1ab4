package ledger

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

func (k *kit) again(r runstore.Run, version string) runstore.Run {
	k.t.Helper()
	return must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
		return k.l.Retry(ctx, tx, k.owner, r, version, false)
	})
}

// the transient example. The attempt that failed
// stays as it ended; another row starts afresh on the same script and commits.
func TestTransientRetryStartsAfresh(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		a := k.stop(k.begin(consumer("lane")), pawl.ClassTransient).Run
		b := k.again(a, "")
		want := runstore.Run{
			ID: b.ID, Kind: a.Kind, Lane: a.Lane, Handler: a.Handler, HandlerType: a.HandlerType, Trigger: a.Trigger, ScriptVersion: "v1",
			RetryOf: a.ID, Attempt: 2, Phase: pawl.PhasePreparing, Status: pawl.StatusActive, Owner: k.owner,
			CreatedAt: b.CreatedAt, UpdatedAt: b.UpdatedAt, StartedAt: b.StartedAt,
		}
		if diff := cmp.Diff(want, k.get(b.ID)); diff != "" || b.StartedAt.IsZero() {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, to := range pawl.Phases(pawl.HandlerConsumer)[1:5] {
			b = k.advance(b, to)
		}
		k.commit(b)
		if diff := cmp.Diff(a, k.get(a.ID)); diff != "" {
			t.Errorf("the first attempt was rewritten:\n%s", diff)
		}
	})
}

// after a logic failure only another script is tried.
func TestLogicRetryNeedsAnotherScript(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		a := k.stop(k.begin(consumer("lane")), pawl.ClassLogic).Run
		for _, version := range []string{"", "v1"} {
			if _, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
				return k.l.Retry(ctx, tx, k.owner, a, version, false)
			}); !errors.Is(err, pawl.ErrConflict) {
				t.Errorf("retried with version %q: %v", version, err)
			}
		}
		if b := k.again(a, "v2"); b.ScriptVersion != "v2" || b.Phase != pawl.PhasePreparing || b.PrepareResult != nil || b.RetryOf != a.ID {
			t.Errorf("%+v", b)
		}
		// A source has no script to fix; its budget decides.
		k.again(k.stop(k.begin(specOf(pawl.HandlerSource, "lane")), pawl.ClassLogic).Run, "")
	})
}

// after the mutation only the last phase is
// repeated, with the same inputs and the same reservations.
func TestRetryAfterTheMutationGoesForward(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, phase := range []pawl.Phase{pawl.PhaseMutated, pawl.PhaseEmitting} {
			r := k.reach(consumer(string(phase)), pawl.PhaseMutating)
			k.call(r.ID, pawl.MutationInFlight, pawl.MutationApplied)
			r = k.advance(r, pawl.PhaseMutated)
			if phase == pawl.PhaseEmitting {
				r = k.advance(r, phase)
			}
			a := k.stop(r, pawl.ClassLogic).Run
			if owner, status := k.held(a.ID); owner != a.ID || status != "reserved" {
				t.Errorf("%s: between stop and retry the event is %s by %q", phase, status, owner)
			}
			b := k.again(a, "v2")
			if b.Phase != pawl.PhaseEmitting || string(b.PrepareResult) != string(prepareResult) || string(b.MutationResult) != string(mutationResult) {
				t.Errorf("%s: %+v", phase, b)
			}
			if owner, status := k.held(a.ID); owner != b.ID || status != "reserved" {
				t.Errorf("%s: the event is %s by %q", phase, status, owner)
			}
			k.commit(b)
			if _, status := k.held(a.ID); status != "consumed" {
				t.Errorf("%s: after the commit the event is %s", phase, status)
			}
		}
	})
}

// of many that retry one run at once, one makes its successor.
func TestOneOfManyRetriesWins(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		a := k.stop(k.begin(consumer("lane")), pawl.ClassTransient).Run
		var wg sync.WaitGroup
		errs := make([]error, 12)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
					return k.l.Retry(ctx, tx, k.owner, a, "", false)
				})
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, pawl.ErrConflict) {
				t.Errorf("refused with %v", err)
			}
		}
		chain, err := runstore.On(k.db).RunChain(t.Context(), a.ID)
		if err != nil || won != 1 || len(chain) != 2 {
			t.Errorf("%d won, %d in the chain, %v", won, len(chain), err)
		}
	})
}

// A successor is refused while another run of the lane is active, and for what
// is not to be followed.
func TestRetryRefusals(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		refused := func(what string, r runstore.Run) {
			t.Helper()
			before := k.dump()
			_, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
				return k.l.Retry(ctx, tx, k.owner, r, "v2", false)
			})
			if !errors.Is(err, pawl.ErrConflict) || k.dump() != before {
				t.Errorf("%s: %v", what, err)
			}
		}
		failed := k.stop(k.begin(consumer("busy")), pawl.ClassTransient).Run
		active := k.begin(consumer("busy"))
		refused("another run of the lane is active", failed)
		refused("it is active", active)
		refused("it is committed", k.commit(k.reach(consumer("done"), pawl.PhaseEmitting)))
		refused("it waits for approval", k.stop(k.begin(consumer("approval")), pawl.ClassAuth).Run)
		refused("the slot is over", k.stop(k.begin(specOf(pawl.HandlerSchedule, "slot")), pawl.ClassLogic).Run)
		cancelled := k.begin(consumer("cancelled"))
		refused("it is cancelled", must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return k.l.Cancel(ctx, tx, cancelled) }))
		unknown := k.reach(consumer("unknown"), pawl.PhaseMutating)
		k.call(unknown.ID, pawl.MutationInFlight)
		refused("it is unknown whether the call happened", k.stop(unknown, pawl.ClassIndeterminate).Run)
		if _, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			return k.l.Retry(ctx, tx, k.owner, runstore.Run{ID: "nobody"}, "", false)
		}); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("there is no such run: %v", err)
		}
	})
}

// after an approval the same row goes on, at
// its phase and with its events, for whoever owns the lane by then.
func TestApprovedRunGoesOnAsTheSameRow(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, phase := range pawl.Phases(pawl.HandlerConsumer)[:5] {
			r := k.reach(consumer(string(phase)), phase)
			if phase == pawl.PhaseMutating { // refused, and known not to have happened
				k.call(r.ID, pawl.MutationInFlight, pawl.MutationFailed)
			}
			paused := k.stop(r, pawl.ClassAuth).Run
			k.takeOver("another")
			got := must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
				return k.l.Resume(ctx, tx, k.owner, paused)
			})
			want := r
			want.Owner, want.UpdatedAt = k.owner, got.UpdatedAt
			if diff := cmp.Diff(want, k.get(r.ID)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", phase, diff)
			}
			if phase != pawl.PhasePreparing {
				if owner, status := k.held(r.ID); owner != r.ID || status != "reserved" {
					t.Errorf("%s: the event is %s by %q", phase, status, owner)
				}
			}
		}
	})
}

// Only what waits is resumed, and not while the lane has an active run.
func TestResumeRefusals(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		refused := func(what string, r runstore.Run) {
			t.Helper()
			before := k.dump()
			_, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return k.l.Resume(ctx, tx, k.owner, r) })
			if !errors.Is(err, pawl.ErrConflict) || k.dump() != before {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, class := range []pawl.Class{pawl.ClassTransient, pawl.ClassLogic, pawl.ClassInternal} {
			refused(string(class), k.stop(k.begin(consumer(string(class))), class).Run)
		}
		refused("it is active", k.begin(consumer("active")))
		refused("it is committed", k.commit(k.reach(consumer("done"), pawl.PhaseEmitting)))
		waiting := k.stop(k.begin(consumer("busy")), pawl.ClassAuth).Run
		k.begin(consumer("busy"))
		refused("another run of the lane is active", waiting)

		unknown := k.reach(consumer("unknown"), pawl.PhaseMutating)
		k.call(unknown.ID, pawl.MutationInFlight)
		unknown = k.stop(unknown, pawl.ClassIndeterminate).Run
		refused("it is unknown whether the call happened", unknown)
		k.call(unknown.ID, pawl.MutationFailed)
		refused("the call did not happen, so it starts afresh", unknown)
		k.again(unknown, "")
		refused("it has a successor", unknown)
	})
}

// what waits for reconciliation goes forward once
// the call is known to have happened or a person skipped it, and is succeeded
// by a fresh run if it did not.
func TestReconciliationEndsTheWait(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, outcome := range []pawl.MutationState{pawl.MutationApplied, pawl.MutationSkipped, pawl.MutationFailed} {
			r := k.reach(consumer(string(outcome)), pawl.PhaseMutating)
			k.call(r.ID, pawl.MutationInFlight)
			r = k.stop(r, pawl.ClassIndeterminate).Run
			record := func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
				return k.l.Advance(ctx, tx, r, checkpoint(pawl.PhaseMutated), pawl.PhaseMutated)
			}
			if _, err := step(k, record); !errors.Is(err, pawl.ErrConflict) {
				t.Errorf("recorded a result that is not known: %v", err)
			}
			k.call(r.ID, outcome)
			recorded, err := step(k, record)
			if outcome == pawl.MutationFailed {
				if !errors.Is(err, pawl.ErrConflict) {
					t.Errorf("recorded the result of a call that did not happen: %v", err)
				}
				if next := k.again(r, ""); next.Phase != pawl.PhasePreparing || next.PrepareResult != nil {
					t.Errorf("%+v", next)
				}
				if _, status := k.held(r.ID); status != "pending" {
					t.Errorf("the event is %s", status)
				}
				continue
			}
			if err != nil || recorded.Status != pawl.StatusPausedReconciliation || recorded.Phase != pawl.PhaseMutated {
				t.Fatalf("%s: %v, %+v", outcome, err, recorded)
			}
			resumed := must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
				return k.l.Resume(ctx, tx, k.owner, recorded)
			})
			k.commit(k.advance(resumed, pawl.PhaseEmitting))
			if _, status := k.held(r.ID); status != "consumed" {
				t.Errorf("%s: the event is %s", outcome, status)
			}
		}
	})
}

// A run that waits advances by the result of its call and by nothing else.
func TestWaitingRunsDoNotAdvanceOtherwise(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		waiting := k.reach(consumer("a"), pawl.PhaseMutating)
		waiting = k.stop(waiting, pawl.ClassAuth).Run
		approved := k.stop(k.reach(consumer("b"), pawl.PhaseMutated), pawl.ClassAuth).Run
		for _, r := range []runstore.Run{waiting, approved} {
			to := pawl.Phases(r.HandlerType)[run.Order(r.HandlerType, r.Phase)+1]
			if _, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
				return k.l.Advance(ctx, tx, r, checkpoint(to), to)
			}); !errors.Is(err, pawl.ErrConflict) {
				t.Errorf("%s to %s: %v", r.Phase, to, err)
			}
		}
	})
}

// the chain is walked from the newest attempt to the first by retry_of,
// and from the first to the newest by successors.
func TestChainIsWalkedBothWays(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		first := k.begin(consumer("lane"))
		ids := []string{first.ID}
		last := first
		for range 4 {
			last = k.again(k.stop(last, pawl.ClassTransient).Run, "")
			ids = append(ids, last.ID)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			v, err := k.l.View(ctx, tx, last)
			if err != nil {
				return err
			}
			back, err := run.Walk(v, func(id string) (run.Run, error) {
				r, err := runstore.In(tx).GetRun(ctx, id)
				if err != nil {
					return run.Run{}, err
				}
				return k.l.View(ctx, tx, r)
			})
			for i, r := range back {
				if r.ID != ids[len(ids)-1-i] {
					t.Errorf("back: attempt %d is %s", len(ids)-i, r.ID)
				}
			}
			if err != nil || len(back) != len(ids) {
				t.Errorf("%d attempts, %v", len(back), err)
			}
			for i, id := range ids[:len(ids)-1] {
				if s, err := runstore.In(tx).Successor(ctx, id); err != nil || s.ID != ids[i+1] || s.Attempt != i+2 {
					t.Errorf("ahead: attempt %d is %s, %v", s.Attempt, s.ID, err)
				}
			}
			return nil
		})
	})
}
