package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/when"
)

// C-06..C-11, C-18, C-39, C-52, C-58, C-59, X-30, X-50..X-56, X-62, X-64: whatever
// happens to a schedule, in whatever order, every instant that came due has one
// slot, which finally has one disposition; what was skipped was not executed,
// what succeeded was executed once for each attempt, runs overlap only where
// they may, and the schedule goes on.
func TestEveryHistoryEndsWithOneDispositionPerSlot(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { checkHistories(t, 25, emptyFiles(t)) })
	t.Run("postgres", func(t *testing.T) { // slower, and the rules are the same
		checkHistories(t, 5, func() string { return pgtest.URL(t) })
	})
}

// emptyFiles makes databases in files of their own. They are copies of one,
// because making its tables takes long.
func emptyFiles(t *testing.T) func() string {
	t.Helper()
	first := filepath.Join(t.TempDir(), "pawl.db")
	db, err := store.Open(t.Context(), "sqlite:"+first, store.Options{})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	empty, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	return func() string {
		file := filepath.Join(t.TempDir(), "pawl.db")
		if err := os.WriteFile(file, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		return "sqlite:" + file
	}
}

// checkHistories tries so many per cent of the cases that rapid is told to try.
// Each has a clock and a database of its own.
func checkHistories(t *testing.T, percent int, url func() string) {
	pgtest.Percent(t, percent)
	rapid.Check(t, func(rt *rapid.T) {
		var ended any
		at := url()
		synctest.Test(t, func(t *testing.T) {
			defer func() { ended = recover() }() // for the goroutine of rapid
			k := newKit(t, at)
			k.t = &caseTB{TB: t, rt: rt}
			live(rt, k)
		})
		switch {
		case ended == nil:
		case ended == any(errCaseFailed): // the same words each time, or rapid takes it for another failure
			rt.Fatal("something that must hold does not; see the log")
		case fmt.Sprintf("%T", ended) == "rapid.invalidData": // how rapid gives a case up
			panic(ended)
		default:
			rt.Fatalf("panic: %v", ended)
		}
	})
}

// errCaseFailed ends a case that the kit found wrong.
var errCaseFailed = errors.New("the case failed")

// caseTB makes what the kit finds wrong a failure of one case, so that rapid
// looks for a shorter one. It is also told at once, because rapid keeps quiet
// about what it cannot make happen again.
type caseTB struct {
	testing.TB
	rt     *rapid.T
	failed bool
}

func (c *caseTB) Helper()           { c.rt.Helper() }
func (c *caseTB) Failed() bool      { return c.failed }
func (c *caseTB) Fatal(args ...any) { c.rt.Log(args...); panic(errCaseFailed) }
func (c *caseTB) Errorf(format string, args ...any) {
	c.failed = true
	c.rt.Logf(format, args...)
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (c *caseTB) Fatalf(format string, args ...any) {
	c.rt.Logf(format, args...)
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	panic(errCaseFailed)
}

// stretch is a time in which a schedule was the same.
type stretch struct {
	from    time.Time
	cron    string
	enabled bool
}

// life is one history of one schedule.
type life struct {
	*kit
	rt        *rapid.T
	sch       schedulestore.Schedule
	stretches []stretch
	overlaps  bool // runs may run beside each other
	edits     int
}

// live lives one history: things happen, then all is made well.
func live(rt *rapid.T, k *kit) {
	time.Sleep(500 * time.Millisecond) // what people do falls on no instant
	policy := rapid.SampledFrom(policies()).Draw(rt, "policy")
	l := &life{kit: k, rt: rt, overlaps: policy == pawl.PolicyAllow}
	k.record = rapid.SampledFrom([]int{0, 2}).Draw(rt, "recorded one by one") // 0: as usual
	k.kill()
	k.start()
	l.sch = k.create(ask("s", policy))
	l.noteStretch("* * * * *", true)
	actions := l.actions()
	names := []string{"pass", "pass", "pass", "pass", "crash", "kill", "stop", "input", "cron", "policy", "off", "on", "run now", "answer", "cancel", "slow", "stubborn", "fail", "ask", "silence", "grant", "backfill"}
	for range rapid.IntRange(4, 25).Draw(rt, "steps") {
		name := rapid.SampledFrom(names).Draw(rt, "action")
		actions[name]()
		l.check(name)
	}
	l.heal()
	l.check("healing")
	l.checkEnd()
}

func (l *life) noteStretch(cron string, enabled bool) {
	l.stretches = append(l.stretches, stretch{time.Now(), cron, enabled})
}

func (l *life) now() stretch { return l.stretches[len(l.stretches)-1] }

func (l *life) seconds(name string, most int) time.Duration {
	return time.Duration(rapid.IntRange(1, most).Draw(l.rt, name)) * time.Second
}

func (l *life) actions() map[string]func() {
	return map[string]func(){
		"pass": func() { l.pass(l.seconds("seconds", 200)) },
		"crash": func() {
			place := rapid.SampledFrom([]string{"starting", "claimed", "answered", "ending", "ended"}).Draw(l.rt, "place")
			l.crashAt(func(at string) error {
				if at != place {
					return nil
				}
				l.crashAt(nil)
				return errCrash
			})
		},
		"kill": func() { l.restart(l.seconds("away", 400)) },
		"stop": func() { l.stop(); time.Sleep(l.seconds("away", 90)); l.start() },
		"input": func() {
			l.edits++
			l.edit(client.SchedulePatch{Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, 100+l.edits))}, l.now().cron, l.now().enabled)
		},
		"cron": func() {
			cron := rapid.SampledFrom([]string{"* * * * *", "*/2 * * * *", "*/3 * * * *"}).Draw(l.rt, "cron")
			l.edit(client.SchedulePatch{Cron: new(client.Cron(cron))}, cron, l.now().enabled)
		},
		"policy": func() {
			policy := rapid.SampledFrom(policies()).Draw(l.rt, "policy")
			l.overlaps = l.overlaps || policy == pawl.PolicyAllow
			l.edit(client.SchedulePatch{ConcurrencyPolicy: &policy}, l.now().cron, l.now().enabled)
		},
		"off":     func() { off := false; l.edit(client.SchedulePatch{Enabled: &off}, l.now().cron, false) },
		"on":      func() { on := true; l.edit(client.SchedulePatch{Enabled: &on}, l.now().cron, true) },
		"run now": l.tryRunNow,
		"answer":  l.answerAll,
		"cancel":  l.cancelAll,
		"slow": func() {
			takes := l.seconds("takes", 150)
			l.graph.set(func() { l.graph.takes = takes })
		},
		"stubborn": func() {
			stops := l.seconds("stops", 90)
			l.graph.set(func() { l.graph.stops = stops })
		},
		"fail": func() {
			answer := func(_ string, attempt int) contract.RunAnswerV1 {
				return contract.RunAnswerV1{OK: attempt == 3, ErrorCode: contract.Internal, Retry: attempt < 3}
			}
			if rapid.Bool().Draw(l.rt, "for good") {
				answer = func(string, int) contract.RunAnswerV1 { return contract.RunAnswerV1{ErrorCode: contract.NotFound} }
			}
			l.graph.set(func() { l.graph.answer = answer })
		},
		"ask": l.graph.asksPeople,
		"silence": func() {
			until := time.Now().Add(l.seconds("silence", 200))
			l.graph.set(func() {
				l.graph.down = func() error {
					if time.Now().Before(until) {
						return errDown
					}
					return nil
				}
			})
		},
		"grant": func() {
			if rapid.Bool().Draw(l.rt, "revoked") {
				l.change(`update execution_grants set revoked_at = 1`)
			} else {
				l.change(`update execution_grants set revoked_at = null`)
			}
		},
		"backfill": l.backfillSome,
	}
}

func (l *life) edit(in client.SchedulePatch, cron string, enabled bool) {
	l.update(l.sch, in)
	l.noteStretch(cron, enabled)
}

// may does something that may be refused.
func (l *life) may(fn store.Func) {
	err := l.db.Write(context.Background(), fn)
	if e, ok := errors.AsType[*pawl.Error](err); err != nil && (!ok || e.Code != pawl.CodeConflict) {
		l.t.Errorf("it was refused with %v", err)
	}
}

func (l *life) tryRunNow() {
	l.may(func(ctx context.Context, tx *store.Tx) error {
		_, err := l.s.RunNow(ctx, tx, l.owner, l.sch.ID, "t")
		return err
	})
}

// each does something to the newest run of every slot that runs.
func (l *life) each(do func(ctx context.Context, tx *store.Tx, r runstore.Run) error) {
	for _, slot := range l.slots(l.sch) {
		if slot.Status == string(run.SlotRunning) {
			l.may(func(ctx context.Context, tx *store.Tx) error {
				r, err := newestOf(ctx, tx, slot)
				if err != nil {
					return err
				}
				return do(ctx, tx, r)
			})
		}
	}
}

func (l *life) answerAll() {
	yes := rapid.Bool().Draw(l.rt, "yes")
	l.each(func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
		if yes {
			return l.s.Approve(ctx, tx, r, nil, "t")
		}
		return l.s.Reject(ctx, tx, r, "t")
	})
}

func (l *life) cancelAll() {
	l.each(func(ctx context.Context, tx *store.Tx, r runstore.Run) error { return l.s.cancelRun(ctx, tx, r, "t") })
	synctest.Wait()
}

// backfillSome makes up for what lies at most ten minutes back.
func (l *life) backfillSome() {
	from := time.Now().Add(-l.seconds("back", 600))
	if from.Before(l.stretches[0].from) {
		from = l.stretches[0].from
	}
	if !from.Before(time.Now()) {
		return
	}
	b, _ := l.planFor(l.sch, from, time.Now(), 60)
	l.confirm(b)
}

// heal ends all trouble and lets the schedule come to rest.
func (l *life) heal() {
	l.crashAt(nil)
	l.graph.set(func() { l.graph.down, l.graph.answer, l.graph.takes, l.graph.stops = nil, nil, time.Second, 0 })
	l.change(`update execution_grants set revoked_at = null`)
	l.change(`update execution_grants set revoked_at = 1 where id not in (select execution_grant_id from schedules)`)
	on, cron := true, "* * * * *"
	l.edit(client.SchedulePatch{Enabled: &on, Cron: new(client.Cron(cron))}, cron, true)
	for range 12 {
		l.pass(time.Minute)
		l.each(func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
			if r.Status != pawl.StatusPausedApproval {
				return nil
			}
			return l.s.Approve(ctx, tx, r, nil, "t")
		})
	}
	l.pass(time.Until(time.Now().Truncate(time.Minute).Add(90*time.Second + 500*time.Millisecond)))
}

// check holds what must be true at any time.
func (l *life) check(after string) {
	for _, slot := range l.slots(l.sch) {
		status, open := run.SlotStatus(slot.Status), slot.Disposition == ""
		fake := l.graph.seen(pawl.SlotKey(l.sch.ID, slot.ScheduledFor))
		executed := 0
		if fake != nil {
			executed = len(fake.begun)
		}
		switch {
		case open == status.Closed(), !open && !run.Disposition(slot.Disposition).Closes(status):
			l.t.Errorf("after %s: slot %+v", after, slot)
		case status == run.SlotSkipped && executed > 0:
			l.t.Errorf("after %s: a slot that was skipped was executed: %+v", after, slot)
		case executed > slot.Attempts, status == run.SlotSuccess && executed != slot.Attempts:
			l.t.Errorf("after %s: %d executions in %d attempts: %+v", after, executed, slot.Attempts, slot)
		}
	}
	l.checkRows()
	if both := l.graph.overlaps(l.sch.ID); both != "" && !l.overlaps {
		l.t.Errorf("after %s: runs overlap: %s", after, both)
	}
	if n, err := l.s.Reconcile(context.Background()); n != 0 || err != nil {
		l.t.Errorf("after %s: the reconciler had to repair %d (%v)", after, n, err)
	}
	l.endIfFailed()
}

// checkEnd holds what must be true once everything is well again.
func (l *life) checkEnd() {
	rows, fired := l.slots(l.sch), 0
	for i, slot := range rows {
		if i > 0 && !slot.ScheduledFor.After(rows[i-1].Last()) {
			l.t.Errorf("the row of %s reaches into that of %s", rows[i-1].ScheduledFor, slot.ScheduledFor)
		}
		if slot.Status == string(run.SlotRunning) || slot.Status == string(run.SlotPending) && slot.ScheduledFor.Before(time.Now()) {
			l.t.Errorf("a slot did not end: %+v", slot)
		}
		if slot.Disposition == string(run.DispositionFired) && slot.ScheduledFor.After(time.Now().Add(-3*time.Minute)) {
			fired++
		}
	}
	counts := map[string]int64{}
	for i, s := range l.stretches {
		to := time.Now()
		if i+1 < len(l.stretches) {
			to = l.stretches[i+1].from
		}
		schedule, err := when.Parse(when.KindCron, s.cron, "UTC")
		if err != nil {
			l.t.Fatal(err)
		}
		for at, ok := schedule.Next(s.from); ok && !at.After(to); at, ok = schedule.Next(at) {
			n := slices.IndexFunc(rows, func(slot schedulestore.Slot) bool { return slot.Covers(at) })
			if n < 0 {
				l.t.Errorf("the instant %s has no slot", at)
				continue
			}
			counts[rows[n].ID]++
		}
	}
	for _, slot := range rows {
		if slot.Count > 1 && counts[slot.ID] != slot.Count {
			l.t.Errorf("the row of %s to %s has %d instants, and says %d", slot.ScheduledFor, slot.Through, counts[slot.ID], slot.Count)
		}
	}
	if fired != 3 {
		l.t.Errorf("of the last three minutes %d fired", fired)
	}
	for key := range l.graph.all() {
		if !strings.HasPrefix(key, l.sch.ID+":") {
			l.t.Errorf("%s was executed", key)
		}
	}
	active := l.column(`select id || status from runs where status = 'active'`)
	if len(active) > 0 {
		l.t.Errorf("runs are left active: %v", active)
	}
	l.endIfFailed()
}

func (l *life) endIfFailed() {
	if l.t.Failed() {
		l.t.Fatalf("the slots are\n  %s", strings.Join(l.story(l.sch), "\n  "))
	}
}
