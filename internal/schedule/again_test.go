package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

func works(runner.Run) runner.Result { return runner.Result{OK: true} }
func fails(runner.Run) runner.Result {
	return runner.Result{Code: runner.CodeInternal, Message: "exit code 1", Retry: true}
}
func unclear(runner.Run) runner.Result { return runner.Unknown("the connection ended") }

// askPlain asks for a schedule that runs a command every minute.
func askPlain(name string, policy pawl.ConcurrencyPolicy) client.ScheduleRequest {
	return client.ScheduleRequest{Name: name, Run: &client.PlainRun{Command: []string{"true"}}, Cron: "* * * * *", ConcurrencyPolicy: policy}
}

func (k *kit) wantState(sch schedulestore.Schedule, state run.State, says string) {
	k.t.Helper()
	d, err := k.s.Describe(k.t.Context(), k.owner, sch.ID)
	if err != nil || d.State != state || !strings.Contains(d.Sentence, says) {
		k.t.Errorf("it is %s: %q, want %s: %q (%v)", d.State, d.Sentence, state, says, err)
	}
}

// decide is what a person decides about a slot.
func (k *kit) decide(do func(ctx context.Context, tx *store.Tx) error) string {
	k.t.Helper()
	err := k.db.Write(context.Background(), do)
	if err == nil {
		return ""
	}
	if e, ok := err.(*pawl.Error); ok { //nolint:errorlint // it is returned bare
		return e.Reason
	}
	return err.Error()
}

func (k *kit) retrySlot(sch schedulestore.Schedule, minute int) string {
	k.t.Helper()
	return k.decide(func(ctx context.Context, tx *store.Tx) error {
		_, err := k.s.RetrySlot(ctx, tx, k.owner, sch.ID, at(minute), "ada")
		return err
	})
}

func (k *kit) skipSlot(sch schedulestore.Schedule, minute int) string {
	k.t.Helper()
	return k.decide(func(ctx context.Context, tx *store.Tx) error {
		_, err := k.s.SkipSlot(ctx, tx, k.owner, sch.ID, at(minute), "ada")
		return err
	})
}

func hintOf(err error) string {
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		return e.Hint
	}
	return ""
}

// surface-2, 1: a command needs no grant and no billing, and has the same slots as
// a graph, by every policy.
func TestAPlainScheduleNeedsNoGrant(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		k.poet.setProgram(works)
		var all []schedulestore.Schedule
		for _, policy := range policies() {
			all = append(all, k.create(askPlain(string(policy), policy)))
		}
		k.pass(3*time.Minute + 10*time.Second)
		for _, sch := range all {
			k.wantStory(sch, "00:01 success", "00:02 success", "00:03 success", "00:04 pending")
			k.wantState(sch, run.Idle, "")
		}
		if got := k.column(`select id from execution_grants`); len(got) != 0 {
			t.Errorf("grants %v were made", got)
		}
		starts := k.poet.started()
		if r := starts[0]; len(starts) != 12 || r.GraphID != "pawl:command" || r.Schedule == "" || r.Timezone != "UTC" || !strings.HasPrefix(r.Key, r.ScheduleID+":") || string(r.Input) != `{"command":["true"]}` {
			t.Errorf("%d starts: %+v", len(starts), r)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			revoked, err := k.s.Delete(ctx, tx, k.owner, all[0].ID, "ada")
			if revoked {
				t.Error("there was a grant to revoke")
			}
			return err
		})
	})
}

// What runs can change from a graph to a command and back; the grant goes and
// comes with it.
func TestAGraphBecomesACommand(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		k.poet.setProgram(works)
		sch := k.create(ask("s", ""))
		open := func() []string { return k.column(`select id from execution_grants where revoked_at is null`) }
		if len(open()) != 1 {
			t.Fatal(open())
		}
		sch = k.update(sch, client.SchedulePatch{Run: &client.PlainRun{URL: "https://example.com"}})
		if sch.GraphID != "pawl:url" || sch.GrantID != "" || len(open()) != 0 {
			t.Errorf("%+v, grants %v", sch, open())
		}
		k.pass(70 * time.Second)
		graph := "x:poet"
		sch = k.update(sch, client.SchedulePatch{GraphID: &graph})
		if sch.GraphID != graph || sch.GrantID == "" || string(sch.Input) != "{}" || len(open()) != 1 {
			t.Errorf("%+v, grants %v", sch, open())
		}
		k.pass(time.Minute)
		k.wantStory(sch, "00:01 success", "00:02 success", "00:03 pending")
		for name, in := range map[string]client.ScheduleRequest{
			"graphId": {Name: "x", GraphID: "pawl:command", Input: []byte(`{"command":["id"]}`), Cron: "* * * * *"},
			"run":     {Name: "x", GraphID: "x:poet", Run: &client.PlainRun{Command: []string{"id"}}, Cron: "* * * * *"},
			"grant":   {Name: "x", ExecutionGrantID: open()[0], Run: &client.PlainRun{Command: []string{"id"}}, Cron: "* * * * *"},
			"dir":     {Name: "x", Run: &client.PlainRun{Command: []string{"id"}, Dir: "here"}, Cron: "* * * * *"},
		} {
			err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Create(ctx, tx, k.owner, in, "ada")
				return err
			})
			if pawl.ErrorCode(err) != pawl.CodeInvalid {
				t.Errorf("%s: %v", name, err)
			}
		}
		if graph = "pawl:command"; k.decide(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Update(ctx, tx, k.owner, sch.ID, client.SchedulePatch{GraphID: &graph}, "ada")
			return err
		}) == "" && k.schedule(sch.ID).GraphID == graph {
			t.Error("a graph of the server was taken")
		}
	})
}

// If nobody knows whether it ran, people are asked, and go on being asked when
// later slots end well, until they have said: it is run again, left, or it ran.
func TestDoubtAsksUntilAPersonSays(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		first := k.create(askPlain("first", ""))
		k.poet.setProgram(unclear)
		k.pass(70 * time.Second)
		k.poet.setProgram(works)
		k.wantStory(first, "00:01 error internal", "00:02 pending")
		k.wantState(first, run.NeedsAttention, "It is unknown whether it ran: the connection ended")
		k.wantState(first, run.NeedsAttention, "pawl retry slot first 2000-01-01T00:01:00.000Z")
		if len(k.notices) != 1 || k.notices[0].Issue != run.IssueOutcomeUnknown {
			t.Errorf("people were told %+v", k.notices)
		}
		k.pass(time.Minute) // another one ends well
		k.wantState(first, run.NeedsAttention, "It is unknown whether it ran")
		if n := len(k.poet.started()); n != 2 {
			t.Fatalf("%d starts", n)
		}
		if code := k.retrySlot(first, 1); code != "" {
			t.Fatal(code)
		}
		k.pass(time.Second)
		k.wantStory(first, "00:01 success", "00:02 success", "00:03 pending")
		k.wantState(first, run.Idle, "")
		if again := k.poet.started()[2]; again.Attempt != 2 || !again.Asked || len(k.poet.started()) != 3 {
			t.Errorf("%+v", again)
		}

		k.poet.setProgram(unclear)
		k.pass(50 * time.Second) // 00:03
		k.poet.setProgram(works)
		k.wantState(first, run.NeedsAttention, "00:03")
		if code := k.skipSlot(first, 3); code != "" {
			t.Fatal(code)
		}
		k.wantState(first, run.Idle, "")
		k.wantStory(first, "00:01 success", "00:02 success", "00:03 error internal", "00:04 pending")

		k.poet.setProgram(unclear)
		k.pass(time.Minute) // 00:04
		k.poet.setProgram(works)
		slot := k.slots(first)[3]
		resolve := func(outcome string) string {
			return k.decide(func(ctx context.Context, tx *store.Tx) error {
				r, err := newestOf(ctx, tx, slot)
				if err != nil {
					return err
				}
				return k.s.Resolve(ctx, tx, r, outcome, "ada")
			})
		}
		if code := resolve("happened"); code != "" || resolve("happened") != "not_waiting" {
			t.Fatal(code)
		}
		k.wantState(first, run.Idle, "")
		k.pass(time.Minute)
		k.wantStory(first, "00:01 success", "00:02 success", "00:03 error internal", "00:04 success", "00:05 success", "00:06 pending")
	})
}

// X-30 and the faults of the issue: a command slot whose server dies at any of its
// steps ran once, or nobody knows and a person is asked. It never runs twice.
func TestADyingServerNeverStartsACommandTwice(t *testing.T) {
	for _, place := range []string{"starting", "claimed", "answered", "ending", "ended"} {
		withPoet(t, func(t *testing.T, k *kit) {
			k.poet.takes = 5 * time.Second
			k.poet.setProgram(works)
			sch := k.create(askPlain("s", ""))
			k.mu.Lock()
			k.fault = func(at string) error {
				if at != place {
					return nil
				}
				k.fault = nil
				return errCrash
			}
			k.mu.Unlock()
			k.pass(100 * time.Second)
			starts, slot := len(k.poet.started()), k.slots(sch)[0]
			switch {
			case starts == 1 && slot.Status == "success" && slot.Attempts == 1:
			case starts <= 1 && slot.Doubt && strings.Contains(slot.ErrorMessage, "unknown whether it ran"):
			default:
				t.Errorf("%s: %d starts, %+v", place, starts, slot)
			}
		})
	}
	withPoet(t, func(t *testing.T, k *kit) { // again and again
		k.poet.setProgram(works)
		sch := k.create(askPlain("s", ""))
		left := 3
		k.mu.Lock()
		k.fault = func(at string) error {
			if at != "claimed" || left == 0 {
				return nil
			}
			left--
			return errCrash
		}
		k.mu.Unlock()
		k.pass(100 * time.Second)
		if slot := k.slots(sch)[0]; len(k.poet.started()) > 1 || !slot.Doubt || !strings.Contains(slot.ErrorMessage, "stopped during every attempt") {
			t.Errorf("%d starts: %+v", len(k.poet.started()), slot)
		}
	})
	withPoet(t, func(t *testing.T, k *kit) { // while it runs
		k.poet.takes = 5 * time.Second
		k.poet.setProgram(works)
		sch := k.create(askPlain("s", ""))
		k.pass(62 * time.Second)
		k.restart(time.Second)
		for _, s := range k.poet.services[:1] { // the first process is dead, and with it its command
			_ = s.Close(t.Context())
		}
		k.pass(time.Minute - 20*time.Second)
		if slot := k.slots(sch)[0]; !slot.Doubt || len(k.poet.started()) != 1 {
			t.Errorf("%d starts: %+v", len(k.poet.started()), slot)
		}
		k.wantState(sch, run.NeedsAttention, "pawl skip slot s")
	})
}

// retryAt is when the one slot that waits for it is tried again.
func (k *kit) retryAt() (at time.Time) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) error {
		var next int64
		err := tx.QueryRow(ctx, `select next_retry_at from retries where kind = 'schedule' and next_retry_at > $1`, store.Millis(tx.Now)).Scan(&next)
		at = store.FromMillis(next)
		return err
	})
	return at
}

// A failure that is known is tried again if the definition says so, with growing
// pauses that outlive the process; without a word a command is started once.
func TestRetryIsWhatTheDefinitionSays(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		k.poet.setProgram(fails)
		once := k.create(askPlain("once", ""))
		in := askPlain("often", "")
		in.Cron, in.Retry = "1 * * * *", &client.Retry{Attempts: 4, Within: "20m"}
		often := k.create(in)
		k.pass(70 * time.Second)
		k.wantStory(once, "00:01 error internal", "00:02 pending")
		again := " at " + pawl.FormatTime(k.retryAt())
		if why := k.whyOf(often, time.Now()); !strings.Contains(why.Lane.Sentence, "is tried again"+again) || why.Next != "The open slot is tried again"+again+"." {
			t.Errorf("nobody says when it is tried again%s: %q, %q", again, why.Lane.Sentence, why.Next)
		}
		disabled := false
		k.update(once, client.SchedulePatch{Enabled: &disabled})
		for range 20 {
			k.restart(10 * time.Second) // a graceful or another end changes nothing
			k.pass(50 * time.Second)
		}
		var begun []time.Duration
		for _, r := range k.poet.started() {
			if r.Schedule == "often" {
				begun = append(begun, 0)
			}
		}
		slot := k.slots(often)[0]
		if len(begun) != 4 || slot.Attempts != 4 || slot.Status != "error" {
			t.Errorf("%d starts: %+v", len(begun), slot)
		}
		if took := slot.CompletedAt.Sub(slot.StartedAt); took < 10*time.Minute || took > 20*time.Minute {
			t.Errorf("the attempts took %s of 20 minutes", took)
		}
	})
}

// An overloaded hour of a provider does not lose the day.
func TestAnOverloadedHourIsOutlived(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		until := time.Now().Add(time.Hour + time.Minute)
		k.poet.setProgram(func(r runner.Run) runner.Result {
			if time.Now().Before(until) {
				return runner.Result{Code: runner.CodeRateLimit, Message: "overloaded", Retry: true, RetryAfter: time.Minute}
			}
			return works(r)
		})
		in := ask("s", "")
		in.Cron, in.Retry = "1 0 * * *", &client.Retry{Attempts: 5, Within: "2h"}
		sch := k.create(in)
		k.pass(2 * time.Hour)
		if slot := k.slots(sch)[0]; slot.Status != "success" || slot.Attempts > 5 {
			t.Errorf("%+v", slot)
		}
	})
}

// What a person may do with a slot depends on what became of it.
func TestSlotsAreRunAgainOrSkipped(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		k.poet.setProgram(fails)
		sch := k.create(askPlain("s", ""))
		k.pass(70 * time.Second)
		k.poet.setProgram(works)
		k.wantState(sch, run.NeedsAttention, "failed")
		other := k.user("eve")
		if err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.RetrySlot(ctx, tx, other, sch.ID, at(1), "eve")
			return err
		}); pawl.ErrorCode(err) != pawl.CodeNotFound {
			t.Errorf("somebody else: %v", err)
		}
		if err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.SkipSlot(ctx, tx, k.owner, sch.ID, at(7), "ada")
			return err
		}); pawl.ErrorCode(err) != pawl.CodeNotFound || !strings.Contains(hintOf(err), "The next one is that of "+pawl.FormatTime(at(2))) {
			t.Errorf("a slot that is not the next one: %v", err)
		}
		for _, c := range []struct{ got, want string }{
			{k.retrySlot(sch, 2), ReasonSlotWaits},
			{k.retrySlot(sch, 1), ""},
			{k.retrySlot(sch, 1), ReasonSlotWaits},
		} {
			if c.got != c.want {
				t.Errorf("%q, want %q", c.got, c.want)
			}
		}
		k.pass(time.Second)
		k.wantStory(sch, "00:01 success", "00:02 pending")
		if got := k.retrySlot(sch, 1) + " " + k.skipSlot(sch, 1); got != ReasonSlotSucceeded+" "+ReasonSlotClosed {
			t.Error(got)
		}
		if code := k.skipSlot(sch, 2); code != "" {
			t.Fatal(code)
		}
		k.wantStory(sch, "00:01 success", "00:02 skipped excluded", "00:03 pending")
		labels := map[string]string{"a": "b"}
		k.update(sch, client.SchedulePatch{Labels: &labels, Input: nil, Retry: &client.Retry{Attempts: 2}}) // what was skipped stays so
		k.pass(2 * time.Minute)
		k.wantStory(sch, "00:01 success", "00:02 skipped excluded", "00:03 success", "00:04 pending")
		if n := len(k.poet.started()); n != 3 {
			t.Errorf("%d starts", n)
		}
		k.poet.takes = 30 * time.Second
		k.pass(50 * time.Second)
		if got := k.retrySlot(sch, 4) + " " + k.skipSlot(sch, 4); got != ReasonSlotRuns+" "+ReasonSlotRuns {
			t.Error(got)
		}
	})
}

// A backfill leaves out what failed, unless it is asked for; what nobody knows of
// is for a person to decide one by one.
func TestABackfillCanIncludeWhatFailed(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		k.poet.setProgram(func(r runner.Run) runner.Result {
			switch r.ScheduledFor.Minute() {
			case 1, 3:
				return fails(r)
			case 4:
				return unclear(r)
			}
			return works(r)
		})
		sch := k.create(askPlain("s", ""))
		k.pass(4*time.Minute + 10*time.Second)
		k.poet.setProgram(works)
		if _, plan := k.planFor(sch, at(1), at(4).Add(time.Second), 600); len(plan.Slots) != 0 {
			t.Errorf("%v", plan.words())
		}
		b, plan := k.planAs(sch, BackfillAsk{From: at(1), To: at(4).Add(time.Second), PerMinute: 600, Failed: true})
		if got := fmt.Sprint(plan.words()); len(plan.Slots) != 2 || plan.Skipped != 2 || plan.Slots[0].Was != "error" {
			t.Fatalf("%s, %d left out", got, plan.Skipped)
		}
		if len(plan.Uncovered) != 0 {
			t.Errorf("a command would be passed over for its grant: %+v", plan.Uncovered)
		}
		if b.Estimate == nil || *b.Estimate != 0 { // also if nothing of it ran yet
			t.Errorf("a command costs %v", b.Estimate)
		}
		if b, _ := k.planFor(k.create(askPlain("new", "")), at(-10), at(0), 600); b.Estimate == nil || *b.Estimate != 0 {
			t.Errorf("a command that never ran costs %v", b.Estimate)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Confirm(ctx, tx, k.owner, b.ID, b.Hash, "ada")
			return err
		})
		k.pass(10 * time.Second)
		k.wantStory(sch, "00:01 success", "00:02 success", "00:03 success", "00:04 error internal", "00:05 pending")
		if got := k.backfill(b.ID).State; got != BackfillDone {
			t.Errorf("the backfill is %s", got)
		}
	})
}

// a policy in the definition is consent: what was missed runs later, the last
// one or all, as long as it is not too old.
func TestMissedSlotsRunByPolicy(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		make := func(name, policy, within string, overlap pawl.ConcurrencyPolicy) schedulestore.Schedule {
			in := ask(name, overlap)
			in.Cron, in.Missed = "0 * * * *", &client.Missed{Policy: policy, Within: within}
			return k.create(in)
		}
		last, all := make("last", "last", "", ""), make("all", "all", "", "")
		some, none := make("some", "all", "140m", pawl.PolicyForbid), make("none", "last", "20m", "")
		beside, skip := make("beside", "all", "", pawl.PolicyAllow), make("skip", "skip", "", "")
		k.pass(10 * time.Minute)
		k.restart(4*time.Hour + 20*time.Minute) // 04:30: asleep since 00:10
		k.pass(time.Minute)
		k.wantStory(last, "01:00 skipped skipped_missed", "02:00 skipped skipped_missed", "03:00 skipped skipped_missed", "04:00 success", "05:00 pending")
		k.wantStory(all, "01:00 success", "02:00 success", "03:00 success", "04:00 success", "05:00 pending")
		k.wantStory(some, "01:00 skipped skipped_missed", "02:00 skipped skipped_missed", "03:00 success", "04:00 success", "05:00 pending")
		k.wantStory(none, "01:00 skipped skipped_missed", "02:00 skipped skipped_missed", "03:00 skipped skipped_missed", "04:00 skipped skipped_missed", "05:00 pending")
		k.wantStory(beside, "01:00 success", "02:00 success", "03:00 success", "04:00 success", "05:00 pending")
		k.wantStory(skip, "01:00 skipped skipped_missed", "02:00 skipped skipped_missed", "03:00 skipped skipped_missed", "04:00 skipped skipped_missed", "05:00 pending")
		if got := k.graph.executed(all.ID); !slices.Equal(got, []string{"01:00", "02:00", "03:00", "04:00"}) {
			t.Errorf("they ran as %v", got)
		}
		k.restart(10 * time.Second)
		k.pass(40 * time.Minute)
		for _, sch := range []schedulestore.Schedule{last, all, some, none, beside, skip} {
			if got := k.story(sch); got[4] != "05:00 success" || got[5] != "06:00 pending" || len(got) != 6 {
				t.Errorf("%s goes on with %v", sch.Name, got)
			}
			if now := k.schedule(sch.ID); !now.NextRunAt.Equal(at(360)) {
				t.Errorf("the next one of %s is at %s", sch.Name, now.NextRunAt)
			}
		}
	})
}

// What was missed runs one after the other, also where a slot replaces the one that
// runs: none of them was in time for that.
func TestMissedSlotsDoNotReplaceEachOther(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 2 * time.Second
		in := ask("all", pawl.PolicyReplace)
		in.Cron, in.Missed = "0 * * * *", &client.Missed{Policy: "all"}
		sch := k.create(in)
		k.pass(10 * time.Minute)
		k.restart(4*time.Hour + 20*time.Minute) // 04:30: asleep since 00:10
		k.pass(time.Minute)
		k.wantStory(sch, "01:00 success", "02:00 success", "03:00 success", "04:00 success", "05:00 pending")
		if text := k.graph.overlaps(sch.ID); text != "" {
			t.Error(text)
		}
		k.restart(3*time.Hour + 29*time.Minute) // 08:00:10: one is due as well, which comes last
		k.pass(time.Minute)
		if got := k.story(sch); !slices.Equal(got[4:], []string{"05:00 success", "06:00 success", "07:00 success", "08:00 success", "09:00 pending"}) {
			t.Errorf("after a second night: %v", got)
		}
	})
}

// A laptop that is opened seconds after nine runs what is due at nine.
func TestWhatCameDueSecondsAgoIsNotMissed(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		in := ask("s", "")
		in.Cron = "0 * * * *"
		sch := k.create(in)
		k.pass(10 * time.Minute)
		k.restart(3*time.Hour + 50*time.Minute + 20*time.Second) // 04:00:20
		k.pass(time.Second)
		k.wantStory(sch, "01:00 skipped skipped_missed", "02:00 skipped skipped_missed", "03:00 skipped skipped_missed", "04:00 success", "05:00 pending")
	})
}

// the policy goes before what overlap would do with several slots that came due
// within the last minute: all of them run, or the latest one does.
func TestMissedWithinTheLastMinuteRunsByPolicy(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		make := func(name, policy string) schedulestore.Schedule {
			in := ask(name, "")
			in.Cron, in.Interval, in.Missed = "", "20s", &client.Missed{Policy: policy}
			return k.create(in)
		}
		last, all := make("last", "last"), make("all", "all")
		k.restart(2*time.Minute + 5*time.Second)
		k.pass(time.Second)
		const gone = "skipped skipped_missed"
		k.wantStory(last, "00:00 "+gone, "00:00 "+gone, "00:01 "+gone, "00:01 "+gone, "00:01 "+gone, "00:02 success", "00:02 pending")
		k.wantStory(all, "00:00 success", "00:00 success", "00:01 success", "00:01 success", "00:01 success", "00:02 success", "00:02 pending")
	})
}
