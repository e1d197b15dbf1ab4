package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// transition is one of the package, called on a run.
type transition struct {
	name string
	do   func(ctx context.Context, tx *store.Tx, k *kit, owner store.Fence, r runstore.Run) error
}

func transitions() []transition {
	drop := func(_ runstore.Run, err error) error { return err }
	return []transition{
		{"begin", func(ctx context.Context, tx *store.Tx, k *kit, owner store.Fence, r runstore.Run) error {
			return drop(k.l.Begin(ctx, tx, owner, consumer(r.Lane+" other")))
		}},
		{"start", func(ctx context.Context, tx *store.Tx, k *kit, _ store.Fence, r runstore.Run) error {
			return drop(k.l.Start(ctx, tx, r))
		}},
		{"advance", func(ctx context.Context, tx *store.Tx, k *kit, _ store.Fence, r runstore.Run) error {
			return drop(k.l.Advance(ctx, tx, r, Checkpoint{}, pawl.PhaseEmitting))
		}},
		{"hold", func(ctx context.Context, tx *store.Tx, k *kit, _ store.Fence, r runstore.Run) error {
			return k.l.Hold(ctx, tx, r)
		}},
		{"commit", func(ctx context.Context, tx *store.Tx, k *kit, _ store.Fence, r runstore.Run) error {
			return drop(k.l.Commit(ctx, tx, r, nil))
		}},
		{"stop", func(ctx context.Context, tx *store.Tx, k *kit, _ store.Fence, r runstore.Run) error {
			_, err := k.l.Stop(ctx, tx, r, Failure{Class: pawl.ClassLogic})
			return err
		}},
		{"cancel", func(ctx context.Context, tx *store.Tx, k *kit, _ store.Fence, r runstore.Run) error {
			return drop(k.l.Cancel(ctx, tx, r))
		}},
		{"crash", func(ctx context.Context, tx *store.Tx, k *kit, owner store.Fence, r runstore.Run) error {
			_, err := k.l.Crash(ctx, tx, owner, r)
			return err
		}},
		{"retry", func(ctx context.Context, tx *store.Tx, k *kit, owner store.Fence, r runstore.Run) error {
			return drop(k.l.Retry(ctx, tx, owner, r, "v2", false))
		}},
		{"resume", func(ctx context.Context, tx *store.Tx, k *kit, owner store.Fence, r runstore.Run) error {
			return drop(k.l.Resume(ctx, tx, owner, r))
		}},
	}
}

// fit returns a run on which the transition is allowed.
func (k *kit) fit(name, lane string) runstore.Run {
	k.t.Helper()
	s := consumer(lane)
	switch name {
	case "advance":
		return k.reach(s, pawl.PhaseMutated)
	case "commit":
		return k.reach(s, pawl.PhaseEmitting)
	case "retry":
		return k.stop(k.reach(s, pawl.PhaseMutated), pawl.ClassTransient).Run
	case "resume":
		return k.stop(k.reach(s, pawl.PhasePrepared), pawl.ClassAuth).Run
	default:
		return k.reach(s, pawl.PhasePrepared)
	}
}

// An owner that lost its bucket writes nothing, whatever it tries; the same
// step succeeds for one that has it.
func TestLostFenceWritesNothing(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, tr := range transitions() {
			r := k.fit(tr.name, tr.name)
			try := func(owner store.Fence) error {
				return k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					if err := tr.do(ctx, tx, k, owner, r); err != nil {
						return err
					}
					if _, err := runstore.In(tx).GetRun(ctx, r.ID); err != nil && !errors.Is(err, pawl.ErrNotFound) { // what was posted fails here at the latest
						return err
					}
					return errUndo
				})
			}
			before := k.dump()
			if err := try(k.owner); !errors.Is(err, errUndo) {
				t.Errorf("%s with the fence: %v", tr.name, err)
			}
			old := k.owner
			k.takeOver("thief of " + tr.name)
			if err := try(old); !errors.Is(err, pawl.ErrLeaseLost) {
				t.Errorf("%s without the fence: %v", tr.name, err)
			}
			if k.dump() != before {
				t.Errorf("%s without the fence wrote something", tr.name)
			}
		}
		old := k.owner
		k.begin(consumer("left"))
		k.takeOver("last")
		before := k.dump()
		if _, err := k.l.RecoverLane(t.Context(), k.db, old, pawl.KindWorkflow, "left"); !errors.Is(err, pawl.ErrLeaseLost) {
			t.Errorf("recover lane: %v", err)
		}
		if _, err := k.l.RecoverLane(t.Context(), k.db, old, pawl.KindWorkflow, "idle"); !errors.Is(err, pawl.ErrLeaseLost) {
			t.Errorf("recover an idle lane: %v", err)
		}
		if k.dump() != before {
			t.Error("recovery without the fence wrote something")
		}
	})
}

// once an attempt ended, nothing changes its row; the most that
// follows is another row.
func TestEndedRowsAreNeverChanged(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for i, end := range []func(r runstore.Run) runstore.Run{
			k.commit,
			func(r runstore.Run) runstore.Run { return k.stop(r, pawl.ClassTransient).Run },
			func(r runstore.Run) runstore.Run { return k.stop(r, pawl.ClassLogic).Run },
			func(r runstore.Run) runstore.Run { return k.stop(r, pawl.ClassInternal).Run },
			func(r runstore.Run) runstore.Run {
				return must(k, func(ctx context.Context, tx *store.Tx) (Outcome, error) { return k.l.Crash(ctx, tx, k.owner, r) }).Run
			},
		} {
			active := k.reach(consumer(fmt.Sprint("lane ", i)), pawl.PhaseEmitting)
			ended := end(active)
			for _, tr := range transitions() {
				for _, seen := range []runstore.Run{ended, active} { // as it is, and as a late caller believes
					err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
						if err := tr.do(ctx, tx, k, k.owner, seen); err != nil {
							return err
						}
						now, err := runstore.In(tx).GetRun(ctx, ended.ID) // what was posted fails here at the latest
						if err != nil {
							return err
						}
						if diff := cmp.Diff(ended, now); diff != "" {
							t.Errorf("%s rewrote a run that was %s:\n%s", tr.name, ended.Status, diff)
						}
						return errUndo
					})
					allowed := tr.name == "begin" || tr.name == "retry" && (ended.Status == pawl.StatusPausedTransient || ended.Status == pawl.StatusFailedLogic || ended.Status == pawl.StatusFailedInternal)
					if allowed != errors.Is(err, errUndo) || !allowed && !errors.Is(err, pawl.ErrConflict) {
						t.Errorf("%s of a run that is %s: %v", tr.name, ended.Status, err)
					}
				}
			}
		}
	})
}

// Every step of a consumer, with a crash on both sides of it: before the
// commit of the step nothing of it is there, and after it recovery goes on from
// what the step has stored.
func TestCrashOnBothSidesOfEveryStep(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		steps := []struct {
			name string
			do   func(ctx context.Context, tx *store.Tx, r runstore.Run) error
			next pawl.Phase // of the successor, if the crash comes after the step
		}{
			{"begin", func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
				_, err := k.l.Begin(ctx, tx, k.owner, consumer(r.Lane))
				return err
			}, pawl.PhasePreparing},
			{"prepare", func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
				if err := reserve(ctx, tx, r.ID); err != nil {
					return err
				}
				_, err := k.l.Advance(ctx, tx, r, checkpoint(pawl.PhasePrepared), pawl.PhasePrepared)
				return err
			}, pawl.PhasePreparing},
			{"mutate", func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
				_, err := k.l.Advance(ctx, tx, r, Checkpoint{}, pawl.PhaseMutating)
				return err
			}, pawl.PhasePreparing},
			{"call", func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
				if err := k.l.Hold(ctx, tx, r); err != nil {
					return err
				}
				return putCall(ctx, tx, r.ID, true, pawl.MutationInFlight)
			}, pawl.PhaseMutating},
			{"answer", func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
				if err := putCall(ctx, tx, r.ID, true, pawl.MutationApplied); err != nil {
					return err
				}
				_, err := k.l.Advance(ctx, tx, r, checkpoint(pawl.PhaseMutated), pawl.PhaseMutated)
				return err
			}, pawl.PhaseEmitting},
			{"emit", func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
				_, err := k.l.Advance(ctx, tx, r, Checkpoint{}, pawl.PhaseEmitting)
				return err
			}, pawl.PhaseEmitting},
			{"commit", func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
				_, err := k.l.Commit(ctx, tx, r, nil)
				return err
			}, ""},
		}
		for upTo, last := range steps {
			lane := "lane of " + last.name
			for _, st := range steps[:upTo+1] {
				r, err := runstore.On(k.db).NewestRun(t.Context(), pawl.KindWorkflow, lane)
				if err != nil {
					r = runstore.Run{Lane: lane}
				}
				before := k.dump()
				if err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					if err := st.do(ctx, tx, r); err != nil {
						return err
					}
					return errUndo
				}); !errors.Is(err, errUndo) || k.dump() != before {
					t.Fatalf("%s: a crash before the commit: %v", st.name, err)
				}
				k.write(func(ctx context.Context, tx *store.Tx) error { return st.do(ctx, tx, r) })
			}
			k.takeOver("n of " + last.name)
			o, err := k.l.RecoverLane(t.Context(), k.db, k.owner, pawl.KindWorkflow, lane)
			if err != nil || o.Successor.Phase != last.next {
				t.Errorf("after %s: %+v, %v", last.name, o, err)
			}
		}
	})
}
