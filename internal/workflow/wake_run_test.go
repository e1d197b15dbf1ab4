package workflow

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
)

func TestWakeAt(t *testing.T) {
	hold(t,
		behaviour{"it is recorded whether events are taken or not", wakeIsRecorded},
		behaviour{"an event wakes before it and may set another", eventWakesBefore},
		behaviour{"each consumer has its own", wakesAreIndependent},
		behaviour{"a run without one clears it and leaves the state", absenceClearsWake},
		behaviour{"it is honoured directly after a restart", wakeSurvivesRestart},
		behaviour{"it takes effect with the commit", wakeTakesEffectWithCommit},
		behaviour{"what is out of bounds is clamped, what is no time is late", wakeIsClamped},
		behaviour{"one that is no text is a fault of the script", wakeThatIsNoText},
		behaviour{"a script that always wants more gets a prepare in 30 s", hostileScriptGetsLittle},
		behaviour{"nothing else that a handler returns moves its next run", nothingElseMovesTheNextRun},
	)
}

// napping is a prepare that takes nothing and wakes after a while.
func napping(d time.Duration) goHandler {
	return func(c *goCtx, _ []json.RawMessage) any { return wakeAt(take("in"), c.now.Add(d)) }
}

// the stored instant, in the row of the handler, is the one
// that was asked for, and at that instant the consumer runs.
func wakeIsRecorded(t *testing.T, k *kit) {
	w := k.deploy("recorded", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		return wakeAt(take("in", c.peek("in")...), c.now.Add(time.Hour))
	}))
	begun := time.Now()
	expect(t, "next look", k.work(w), begun.Add(time.Hour))
	expect(t, "stored after nothing was taken", k.kept(w, "take").WakeAt, begun.Add(time.Hour))
	pass(time.Minute)
	k.publish(w, "in", "a", "b")
	expect(t, "next look", k.work(w), begun.Add(61*time.Minute))
	expect(t, "stored after events were taken", k.kept(w, "take").WakeAt, begun.Add(61*time.Minute))
	expect(t, "events", k.statuses(w, "in"), map[string]eventstore.EventStatus{"a": "consumed", "b": "consumed"})
	k.ranSince()
	k.follow(w, time.Hour-time.Millisecond)
	expect(t, "runs before the instant", len(k.ranSince()), 0)
	k.follow(w, time.Millisecond)
	expect(t, "runs at the instant", len(k.ranSince()), 1)
	expect(t, "cause", k.lastRun(w).Trigger, triggerWake)
	expect(t, "instant it stands for", k.lastRun(w).ScheduledFor, begun.Add(61*time.Minute))
}

// whichever comes first.
func eventWakesBefore(t *testing.T, k *kit) {
	w := k.deploy("before", "1", consuming(napping(time.Hour)))
	k.work(w)
	pass(20 * time.Minute)
	k.publish(w, "in", "a")
	expect(t, "next look", k.work(w), time.Now().Add(time.Hour))
	expect(t, "causes", k.triggers(w, "take"), []string{triggerWake, triggerEvent})
	k.follow(w, time.Hour)
	expect(t, "causes", k.triggers(w, "take"), []string{triggerWake, triggerEvent, triggerWake})
}

// two consumers, two instants; the lane wakes for each
// of them alone.
func wakesAreIndependent(t *testing.T, k *kit) {
	w := k.deploy("independent", "1", consuming(napping(10*time.Minute)).consumer("late", napping(25*time.Minute), "in"))
	k.follow(w, time.Hour)
	ran := k.ranSince()
	expect(t, "runs of the one", count(ran, "consumers.take.prepare"), 7)
	expect(t, "runs of the other", count(ran, "consumers.late.prepare"), 3)
	expect(t, "wake of the one", k.kept(w, "take").WakeAt, time.Now().Add(10*time.Minute))
	expect(t, "wake of the other", k.kept(w, "late").WakeAt, time.Now().Add(15*time.Minute))
}

// lesson 25: absence is stored, so that the old value does
// not come back; the state of the handler is not touched by either.
func absenceClearsWake(t *testing.T, k *kit) {
	returns := []map[string]any{take("in"), take("in")}
	d := consuming(func(c *goCtx, _ []json.RawMessage) any {
		if len(returns) == 2 {
			wakeAt(returns[0], c.now.Add(time.Hour))
		}
		out := returns[0]
		returns = returns[1:]
		return out
	}).handler("consumers.take.next", func(_ *goCtx, args []json.RawMessage) any {
		if len(returns) == 1 {
			return map[string]string{"kept": "yes"}
		}
		return nothing{}
	})
	w := k.deploy("absence", "1", d)
	k.follow(w, time.Hour)
	h := k.kept(w, "take")
	if !h.WakeAt.IsZero() || string(h.State) != `{"kept":"yes"}` {
		t.Errorf("after a run without wakeAt the handler keeps %s until %v", h.State, h.WakeAt)
	}
	k.start("second")
	if until := k.work(w); !until.IsZero() {
		t.Errorf("after a restart the old value is back: %v", until)
	}
	expect(t, "runs", len(k.runs(w)), 2)
}

// before its time a new process waits, and after it runs, with no step in
// between.
func wakeSurvivesRestart(t *testing.T, k *kit) {
	w := k.deploy("survives", "1", consuming(napping(time.Hour)))
	due := time.Now().Add(time.Hour)
	k.work(w)
	k.start("second")
	k.ranSince()
	expect(t, "next look of a new process", k.work(w), due)
	expect(t, "runs before it is due", len(k.ranSince()), 0)
	pass(3 * time.Hour)
	k.start("third")
	k.work(w)
	expect(t, "runs after it was due", k.ranSince(), []string{"consumers.take.prepare"})
}

// at prepared it is in the run only; a run that is aborted leaves
// the old value, which is still due, in force.
func wakeTakesEffectWithCommit(t *testing.T, k *kit) {
	k.writeThrough()
	var inNext, inRun time.Time
	first := true
	d := consuming(func(c *goCtx, _ []json.RawMessage) any {
		if !first {
			return wakeAt(take("in"), c.now.Add(2*time.Hour))
		}
		return wakeAt(take("in"), c.now.Add(time.Hour))
	}).handler("consumers.take.next", func(*goCtx, []json.RawMessage) any {
		w := k.workflow("with-commit")
		var p Prepared
		if err := json.Unmarshal(k.lastRun(w).PrepareResult, &p); err != nil {
			t.Error(err)
		}
		inNext, inRun = k.kept(w, "take").WakeAt, p.Wake()
		if !first {
			throw("aborted")
		}
		return nothing{}
	})
	w := k.deploy("with-commit", "1", d)
	begun := time.Now()
	k.work(w)
	expect(t, "in the run before its commit", inRun, begun.Add(time.Hour))
	expect(t, "in force before the commit", inNext, begun) // of the deploy
	expect(t, "in force after the commit", k.kept(w, "take").WakeAt, begun.Add(time.Hour))
	first = false
	pass(time.Hour)
	k.work(w)
	expect(t, "status", k.lastRun(w).Status, pawl.StatusFailedLogic)
	expect(t, "in the aborted run", inRun, begun.Add(3*time.Hour))
	expect(t, "in force after it", k.kept(w, "take").WakeAt, begun.Add(time.Hour))
}

// the run tells what was asked, and nothing fails.
func wakeIsClamped(t *testing.T, k *kit) {
	var ask string
	w := k.deploy("clamped", "1", consuming(func(*goCtx, []json.RawMessage) any {
		return map[string]any{"reservations": []any{}, "data": nil, "wakeAt": ask}
	}))
	for _, c := range []struct {
		ask  string
		want time.Duration
	}{
		{"1999-01-01T00:00:00Z", WakeMin}, {"2999-01-01T00:00:00Z", WakeMax}, {"tomorrow", WakeMax}, {"", WakeMax},
	} {
		ask = c.ask
		k.publish(w, "in", "event "+c.ask)
		now := time.Now()
		k.work(w)
		expect(t, "stored for "+c.ask, k.kept(w, "take").WakeAt, now.Add(c.want))
		var p Prepared
		if err := json.Unmarshal(k.lastRun(w).PrepareResult, &p); err != nil || p.WakeAtAsked == "" {
			t.Errorf("the run does not tell that %q was asked (%v)", c.ask, err)
		}
		pass(time.Second)
	}
	k.allCommitted(w)
}

// a number is a logic failure, and nothing of the run is stored.
func wakeThatIsNoText(t *testing.T, k *kit) {
	w := k.deploy("no-text", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		return map[string]any{"reservations": []any{map[string]any{"topic": "in", "ids": c.peek("in")}}, "data": nil, "wakeAt": 7}
	}))
	k.publish(w, "in", "a")
	k.work(w)
	r := k.lastRun(w)
	if r.Status != pawl.StatusFailedLogic || r.Phase != pawl.PhasePreparing || r.ErrorMessage == "" {
		t.Errorf("the run is %s at %s: %s", r.Status, r.Phase, r.ErrorMessage)
	}
	expect(t, "event", k.statuses(w, "in")["a"], eventstore.EventPending)
}

// all that a hostile script gets is a prepare every 30 s, which
// leaves no trace but its runs.
func hostileScriptGetsLittle(t *testing.T, k *kit) {
	w := k.deploy("hostile", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		return map[string]any{"reservations": []any{}, "data": map[string]any{"wakeMin": 0}, "wakeAt": "1970-01-01"}
	}))
	k.publish(w, "in", "a")
	k.follow(w, 10*time.Minute)
	ran := k.ranSince()
	if n := count(ran, "consumers.take.prepare"); n < 20 || n > 22 || n != len(ran) {
		t.Errorf("in ten minutes it ran %d times, %d of them prepare", len(ran), n)
	}
	expect(t, "events", k.statuses(w, "in"), map[string]eventstore.EventStatus{"a": "pending"})
	expect(t, "calls", len(k.desk.things()), 0)
	k.read(func(ctx context.Context, tx *store.Tx) error {
		list, err := mutationstore.In(tx).ListMutations(ctx, w.ID, mutationstore.MutationCursor{}, 10)
		expect(t, "ledger rows", len(list), 0)
		return err
	})
}

// with the same wakeAt, a lane waits for the same instants whatever its
// handlers return, publish or keep.
func nothingElseMovesTheNextRun(t *testing.T, k *kit) {
	soon := func() any {
		at := pawl.FormatTime(time.Now().Add(time.Minute))
		return map[string]any{"wakeAt": at, "nextRunAt": at, "schedule": map[string]string{"interval": "1s"}}
	}
	const name = "talkative"
	w := k.deploy(name, "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		out := wakeAt(take("in", c.peek("in")...), c.now.Add(time.Hour))
		out["data"], out["ui"] = soon(), map[string]string{"title": "wakeAt: now"}
		return out
	}).handler("consumers.take.next", func(*goCtx, []json.RawMessage) any {
		return soon()
	}).producer("p", Schedule{Interval: "40m"}, func(c *goCtx, _ []json.RawMessage) any {
		c.thing(k, name, "x")
		return soon()
	}))
	begun := time.Now()
	expect(t, "next look", k.work(w), begun.Add(40*time.Minute)) // the producer
	expect(t, "wake", k.kept(w, "take").WakeAt, begun.Add(time.Hour))
	k.ranSince()
	k.follow(w, 39*time.Minute)
	expect(t, "runs before it", len(k.ranSince()), 0)
}
