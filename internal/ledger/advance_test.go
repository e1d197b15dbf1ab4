package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

func allPhases() []pawl.Phase {
	var all []pawl.Phase
	for _, h := range handlerTypes() {
		all = append(all, pawl.Phases(h)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// from every phase of every type to every phase there is: only
// one step forward is possible, and the commit is not a mere advance.
func TestPhaseOnlyMovesForward(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, h := range handlerTypes() {
			for _, from := range pawl.Phases(h) {
				r := k.reachOrCommit(specOf(h, string(h)+" "+string(from)), from)
				for _, to := range allPhases() {
					before := k.dump()
					_, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
						r, err := k.l.Advance(ctx, tx, r, checkpoint(to), to)
						if err == nil {
							err = errUndo
						}
						return r, err
					})
					allowed := run.CanAdvance(h, from, to) && to != pawl.PhaseCommitted
					if allowed != errors.Is(err, errUndo) || !allowed && !errors.Is(err, pawl.ErrConflict) {
						t.Errorf("%s from %s to %s: %v", h, from, to, err)
					}
					if k.dump() != before {
						t.Fatalf("%s from %s to %s left something", h, from, to)
					}
				}
			}
		}
	})
}

func (k *kit) reachOrCommit(s Spec, phase pawl.Phase) runstore.Run {
	k.t.Helper()
	if phase != pawl.PhaseCommitted {
		return k.reach(s, phase)
	}
	phases := pawl.Phases(s.HandlerType)
	return k.commit(k.reach(s, phases[len(phases)-2]))
}

func (k *kit) commit(r runstore.Run) runstore.Run {
	k.t.Helper()
	return must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
		return k.l.Commit(ctx, tx, r, json.RawMessage(`{"n":1}`))
	})
}

// a result is stored in the step that reaches its phase, in no
// other, and the phase is not reached without it.
func TestPhasesAreReachedWithTheirResults(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		prepared := Checkpoint{PrepareResult: prepareResult}
		mutated := Checkpoint{MutationResult: mutationResult}
		for name, c := range map[string]struct {
			from, to pawl.Phase
			with     Checkpoint
			ok       bool
		}{
			"prepared with its result":    {pawl.PhasePreparing, pawl.PhasePrepared, prepared, true},
			"prepared without":            {pawl.PhasePreparing, pawl.PhasePrepared, Checkpoint{}, false},
			"prepared with the other":     {pawl.PhasePreparing, pawl.PhasePrepared, mutated, false},
			"prepared with both":          {pawl.PhasePreparing, pawl.PhasePrepared, Checkpoint{PrepareResult: prepareResult, MutationResult: mutationResult}, false},
			"prepared with what is text":  {pawl.PhasePreparing, pawl.PhasePrepared, Checkpoint{PrepareResult: json.RawMessage(`{`)}, false},
			"prepared with broken UTF-8":  {pawl.PhasePreparing, pawl.PhasePrepared, Checkpoint{PrepareResult: json.RawMessage("\"\xff\"")}, false},
			"mutating with a result":      {pawl.PhasePrepared, pawl.PhaseMutating, prepared, false},
			"mutated with its result":     {pawl.PhaseMutating, pawl.PhaseMutated, mutated, true},
			"mutated without":             {pawl.PhaseMutating, pawl.PhaseMutated, Checkpoint{}, false},
			"mutated with a new prepared": {pawl.PhaseMutating, pawl.PhaseMutated, Checkpoint{PrepareResult: prepareResult, MutationResult: mutationResult}, false},
			"emitting with a result":      {pawl.PhaseMutated, pawl.PhaseEmitting, mutated, false},
			"emitting, nothing reserved":  {pawl.PhasePrepared, pawl.PhaseEmitting, Checkpoint{}, true},
		} {
			r := k.reach(consumer(name), c.from)
			got, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
				return k.l.Advance(ctx, tx, r, c.with, c.to)
			})
			if c.ok && (err != nil || got.Phase != c.to) || !c.ok && !errors.Is(err, pawl.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
			stored := k.get(r.ID)
			if diff := cmp.Diff(r, stored); !c.ok && diff != "" {
				t.Errorf("%s changed the row:\n%s", name, diff)
			}
			if c.to == pawl.PhaseMutated && c.ok && (string(stored.PrepareResult) != string(prepareResult) || string(stored.MutationResult) != string(mutationResult)) {
				t.Errorf("%s: %s %s", name, stored.PrepareResult, stored.MutationResult)
			}
		}
	})
}

// no result is recorded for a call that is not resolved; without a
// call, or once it is, there is one.
func TestMutatedNeedsAResolvedCall(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, state := range run.MutationStates() {
			r := k.reach(consumer("lane of "+string(state)), pawl.PhaseMutating)
			k.callUpTo(r.ID, state)
			_, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
				return k.l.Advance(ctx, tx, r, checkpoint(pawl.PhaseMutated), pawl.PhaseMutated)
			})
			if run.Unresolved(state) != errors.Is(err, pawl.ErrConflict) || !run.Unresolved(state) && err != nil {
				t.Errorf("ledger %q: %v", state, err)
			}
		}
	})
}

// callUpTo opens a call and brings it to a state; none opens none.
func (k *kit) callUpTo(runID string, state pawl.MutationState) {
	k.t.Helper()
	switch state {
	case pawl.MutationNone:
	case pawl.MutationInFlight:
		k.call(runID, pawl.MutationInFlight)
	default:
		k.call(runID, pawl.MutationInFlight, state)
	}
}

// a commit stores output, consumes what was reserved and
// makes the budgets of the lane whole; it comes only after the last phase.
func TestCommitEndsTheRunAndTheFailuresOfItsLane(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, h := range handlerTypes() {
			phases := pawl.Phases(h)
			for i, from := range phases[:len(phases)-1] {
				s := specOf(h, string(h)+" "+string(from))
				r := k.reach(s, from)
				was := run.Retry{Count: 2, Crashes: 1, PeriodStart: time.UnixMilli(1000).UTC(), NextAt: time.UnixMilli(2000).UTC()}
				k.setRetry(s, was)
				_, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
					return k.l.Commit(ctx, tx, r, json.RawMessage(`{"n":1}`))
				})
				got := k.get(r.ID)
				if i < len(phases)-2 {
					if !errors.Is(err, pawl.ErrConflict) || got.Status != pawl.StatusActive || k.retry(s) != was {
						t.Errorf("%s at %s: %v, %+v", h, from, err, got)
					}
					continue
				}
				if err != nil || got.Status != pawl.StatusCommitted || got.Phase != pawl.PhaseCommitted || string(got.OutputState) != `{"n":1}` || got.EndedAt.IsZero() {
					t.Errorf("%s: %v, %+v", h, err, got)
				}
				if k.retry(s) != was.Succeed() {
					t.Errorf("%s: retry state %+v, want %+v", h, k.retry(s), was.Succeed())
				}
				if h == pawl.HandlerConsumer {
					if _, status := k.held(r.ID); status != "consumed" {
						t.Errorf("the event is %s", status)
					}
				}
			}
		}
		r := k.begin(specOf(pawl.HandlerSource, "no state"))
		if got := must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return k.l.Commit(ctx, tx, r, nil) }); got.OutputState != nil {
			t.Errorf("output %s", got.OutputState)
		}
		r = k.begin(specOf(pawl.HandlerSource, "bad state"))
		if _, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			return k.l.Commit(ctx, tx, r, json.RawMessage(`{`))
		}); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("output that is not JSON: %v", err)
		}
	})
}

func (k *kit) setRetry(s Spec, r run.Retry) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		row, err := runstore.In(tx).HoldRetry(ctx, s.Kind, s.Lane)
		if err != nil {
			return err
		}
		row.Count, row.Crashes, row.PeriodStart, row.NextAt = r.Count, r.Crashes, r.PeriodStart, r.NextAt
		return runstore.In(tx).SetRetry(ctx, row)
	})
}
