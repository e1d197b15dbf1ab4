package ledger

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// a run begins active at the first phase of its type and carries
// what it was begun with.
func TestBeginMakesAnActiveRun(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, h := range handlerTypes() {
			s := specOf(h, "lane of "+string(h))
			s.ScheduledFor = time.UnixMilli(1_900_000_000_000).UTC()
			r := k.begin(s)
			want := runstore.Run{
				ID: r.ID, Kind: s.Kind, Lane: s.Lane, Handler: s.Handler, HandlerType: h, Trigger: s.Trigger, ScheduledFor: s.ScheduledFor,
				ScriptVersion: s.ScriptVersion, Phase: run.FirstPhase(h), Status: pawl.StatusActive, Attempt: 1, Owner: k.owner,
				CreatedAt: r.CreatedAt, UpdatedAt: r.CreatedAt, StartedAt: r.CreatedAt,
			}
			if diff := cmp.Diff(want, k.get(r.ID)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", h, diff)
			}
		}
		for _, s := range []Spec{{}, {Kind: pawl.KindSource, HandlerType: pawl.HandlerSource}, {Kind: pawl.KindSource, Lane: "l", HandlerType: "other"}} {
			if _, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return k.l.Begin(ctx, tx, k.owner, s) }); pawl.ErrorCode(err) != pawl.CodeInternal {
				t.Errorf("%+v: %v", s, err)
			}
		}
	})
}

// of many that begin at once on a lane, one does. The others can
// go on with their transactions, to record why nothing ran.
func TestOneOfManyBeginsWins(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		var wg sync.WaitGroup
		errs, noted := make([]error, 12), make([]error, 12)
		for i := range errs {
			wg.Go(func() {
				noted[i] = k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					_, errs[i] = k.l.Begin(ctx, tx, k.owner, consumer("lane"))
					return reserve(ctx, tx, store.NewID()) // any other statement
				})
			})
		}
		wg.Wait()
		begun := 0
		for i, err := range errs {
			switch {
			case noted[i] != nil:
				t.Errorf("a transaction could not go on: %v", noted[i])
			case err == nil:
				begun++
			case !errors.Is(err, pawl.ErrConflict) || !strings.Contains(err.Error(), "run_active"):
				t.Errorf("refused with %v", err)
			}
		}
		runs, _, err := runstore.On(k.db).ListRuns(t.Context(), runstore.RunFilter{}, store.Place{}, 100)
		if err != nil || begun != 1 || len(runs) != 1 {
			t.Errorf("%d began, %d rows, %v", begun, len(runs), err)
		}
		k.begin(consumer("another lane"))
	})
}

// Observers are told what was committed, in order, and nothing of what was
// not.
func TestTransitionsAreToldAfterTheCommit(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		r := k.reach(consumer("lane"), pawl.PhaseMutating)
		if _, err := step(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			if _, err := k.l.Advance(ctx, tx, r, checkpoint(pawl.PhaseMutated), pawl.PhaseMutated); err != nil {
				return runstore.Run{}, err
			}
			return runstore.Run{}, errUndo
		}); !errors.Is(err, errUndo) {
			t.Fatal(err)
		}
		k.takeOver("n2")
		o, err := k.l.RecoverLane(t.Context(), k.db, k.owner, r.Kind, r.Lane)
		if err != nil {
			t.Fatal(err)
		}
		next := must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return k.l.Start(ctx, tx, o.Successor) })
		next = k.stop(next, pawl.ClassAuth).Run
		next = must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			return k.l.Resume(ctx, tx, k.owner, next)
		})
		must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return k.l.Cancel(ctx, tx, next) })
		var got []string
		for _, e := range k.events {
			got = append(got, string(e.What)+" "+string(e.Run.Phase)+" "+string(e.Run.Status)+" "+e.Alarm)
		}
		want := []string{
			"begun preparing active ", "advanced prepared active ", "advanced mutating active ",
			"crashed mutating crashed ", "begun preparing active ", "started preparing active ",
			"stopped preparing paused:approval ", "resumed preparing active ", "cancelled preparing cancelled ",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A contradiction is told with its alarm. What cannot be repeated goes forward;
// what cannot be decided stops there, and keeps all it holds.
func TestContradictionsAreToldWithAnAlarm(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		crash := func(r runstore.Run) Outcome {
			k.events = nil
			o := must(k, func(ctx context.Context, tx *store.Tx) (Outcome, error) { return k.l.Crash(ctx, tx, k.owner, r) })
			if e := k.events[0]; e.What != Crashed || e.Alarm == "" || !o.Decision.Alarm {
				t.Errorf("told %+v", e)
			}
			return o
		}
		r := k.reach(consumer("result not recorded"), pawl.PhaseMutating)
		k.call(r.ID, pawl.MutationInFlight, pawl.MutationApplied)
		if o := crash(r); o.Successor.Phase != pawl.PhaseEmitting {
			t.Errorf("%+v", o)
		}
		r = k.reach(consumer("result of an open call"), pawl.PhaseEmitting)
		k.call(r.ID, pawl.MutationInFlight)
		o := crash(r)
		if owner, status := k.held(r.ID); o.Successor.ID != "" || owner != r.ID || status != "reserved" {
			t.Errorf("the event is %s by %q: %+v", status, owner, o)
		}
	})
}
