package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store"
)

func policies() []pawl.ConcurrencyPolicy {
	return []pawl.ConcurrencyPolicy{pawl.PolicyQueue, pawl.PolicyForbid, pawl.PolicyAllow, pawl.PolicyReplace}
}

// C-07, C-18, C-32, C-36, C-38, C-39, C-74, X-53, X-54, X-63: every slot is
// executed once, at its time, and its end brings the next one.
func TestEverySlotRunsOnce(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 10 * time.Second
		for _, policy := range policies() {
			k.pass(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
			sch := k.create(ask(string(policy), policy))
			begun := time.Now()
			k.pass(time.Until(begun.Add(3*time.Minute + 30*time.Second)))
			var want []string
			for i := 1; i <= 3; i++ {
				want = append(want, begun.Add(time.Duration(i)*time.Minute).Format("15:04"))
			}
			if got := k.graph.executed(sch.ID); !slices.Equal(got, want) {
				t.Errorf("%s: executed %v, want %v", policy, got, want)
			}
			now := k.schedule(sch.ID)
			if last := begun.Add(3 * time.Minute).Truncate(time.Minute); !now.LastRunAt.Equal(last) || !now.NextRunAt.Equal(last.Add(time.Minute)) {
				t.Errorf("%s: last %s, next %s", policy, now.LastRunAt, now.NextRunAt)
			}
			slots := k.slots(sch)
			for _, slot := range slots[:3] {
				if slot.Status != "success" || slot.Disposition != "fired" || slot.Attempts != 1 || slot.TraceID != "t" || slot.RunID == "" || slot.CompletedAt.Sub(slot.StartedAt) != 10*time.Second {
					t.Errorf("%s: %+v", policy, slot)
				}
			}
			if len(slots) != 4 || slots[3].Status != "pending" || slots[3].RunID != "" { // C-57
				t.Errorf("%s: %v", policy, k.story(sch))
			}
			off := false
			k.update(sch, client.SchedulePatch{Enabled: &off})
		}
	})
}

// C-06, C-10, C-52, C-55, C-56, X-52, lesson 51: however often the job of a slot
// runs, the slot is executed once.
func TestASlotIsExecutedOnceHoweverOftenItsJobRuns(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		at := sch.NextRunAt
		again := func() {
			k.write(func(ctx context.Context, tx *store.Tx) error { return k.s.arm(ctx, tx, sch, at, tx.Now) })
			k.pass(time.Second)
		}
		again() // too early
		k.pass(time.Until(at))
		for range 3 {
			again()
		}
		k.restart(time.Second)
		again()
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:01"}) {
			t.Errorf("executed %v", got)
		}
		k.wantStory(sch, "00:01 success", "00:02 pending")
		if n := k.column(`select count(*) || '' from runs`); n[0] != "1" {
			t.Errorf("%s runs, want one", n[0])
		}
	})
}

// C-15, C-31, X-53, X-65, lessons 47 and 52: a crash on either side of the
// execution loses nothing and repeats nothing, for successes and for failures
// that no further attempt can help.
func TestACrashNeitherLosesNorRepeatsASlot(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 5 * time.Second
		for _, policy := range policies() {
			for _, place := range []string{"starting", "claimed", "answered", "ending", "ended"} {
				for _, ok := range []bool{true, false} {
					if !reached(place, policy, ok) {
						continue
					}
					k.graph.answer = func(string, int) contract.RunAnswerV1 {
						if ok {
							return contract.RunAnswerV1{OK: true}
						}
						return contract.RunAnswerV1{ErrorCode: contract.InvalidRequest, ErrorMessage: "no"}
					}
					name := fmt.Sprintf("%s-%s-%v", policy, place, ok)
					sch := k.create(ask(name, policy))
					crashes, mu := 0, sync.Mutex{}
					k.crashAt(func(at string) error {
						mu.Lock()
						defer mu.Unlock()
						if at == place && crashes < 2 {
							crashes++
							return errCrash
						}
						return nil
					})
					begun := time.Now()
					k.pass(time.Until(begun.Truncate(time.Minute).Add(3*time.Minute + 30*time.Second)))
					k.crashAt(nil)
					var want []string
					for i := 1; i <= 3; i++ {
						want = append(want, begun.Add(time.Duration(i)*time.Minute).Format("15:04"))
					}
					if got := k.graph.executed(sch.ID); !slices.Equal(got, want) || crashes != 2 {
						t.Errorf("%s: executed %v after %d crashes, want %v", name, got, crashes, want)
					}
					for _, slot := range k.slots(sch)[:3] {
						if slot.Disposition != "fired" || (slot.Status == "success") != ok || slot.Attempts != 1 {
							t.Errorf("%s: %+v", name, slot)
						}
					}
					k.write(func(ctx context.Context, tx *store.Tx) error {
						_, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
						return err
					})
				}
			}
		}
	})
}

// reached reports whether slots of a policy come to a place: those that end well go
// through the end of many, unless they may run beside each other.
func reached(place string, policy pawl.ConcurrencyPolicy, ok bool) bool {
	return place != "ending" && place != "ended" || ok && policy != pawl.PolicyAllow && policy != pawl.PolicyReplace
}

// X-67, lesson 56: a slot whose attempts crash every time ends with the outcome
// that the execution service has, and the chain goes on.
func TestASlotThatCrashesEveryTimeIsGivenUp(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		for place, want := range map[string]string{"claimed": "error internal", "answered": "success"} {
			sch := k.create(ask(place, ""))
			first := sch.NextRunAt
			k.crashAt(func(at string) error {
				if at == place && time.Now().Before(first.Add(time.Minute)) {
					return errCrash
				}
				return nil
			})
			k.pass(time.Until(first.Add(90 * time.Second)))
			if got := k.story(sch); got[0] != first.Format("15:04")+" "+want || got[1] != first.Add(time.Minute).Format("15:04")+" success" {
				t.Errorf("%s: %v", place, got)
			}
			k.crashAt(nil)
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
				return err
			})
		}
	})
}

// however often a server is restarted in good order while a graph runs,
// the slot gets its outcome, with one execution.
func TestRestartsDoNotEndARun(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 2 * time.Minute
		sch := k.create(ask("s", ""))
		k.pass(65 * time.Second)
		for range 6 {
			k.stop()
			k.nobody(3 * time.Second)
			k.start()
			k.pass(12 * time.Second)
		}
		k.pass(time.Minute)
		if got := k.story(sch); got[0] != "00:01 success" {
			t.Errorf("the slots are %v", got)
		}
		if got := k.graph.executed(sch.ID); got[0] != "00:01" || k.slots(sch)[0].Attempts != 1 {
			t.Errorf("executed %v in %d attempts", got, k.slots(sch)[0].Attempts)
		}
	})
}

// attempts happen inside the slot, 1 s and 2 s apart, three
// at most, with one run id; each leaves a row that names the one before.
func TestAttemptsHappenInsideTheSlot(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		cost := pawl.USD(5)
		k.graph.answer = func(_ string, attempt int) contract.RunAnswerV1 {
			cost := cost * pawl.USD(attempt) // of all attempts together
			return contract.RunAnswerV1{ErrorCode: contract.RateLimit, ErrorMessage: "slow down", Retry: true, CostUSD: &cost}
		}
		sch := k.create(ask("s", ""))
		k.pass(70 * time.Second)
		slot := k.slots(sch)[0]
		key := pawl.SlotKey(sch.ID, slot.ScheduledFor)
		r := k.graph.seen(key)
		var waits []time.Duration
		for i := 1; i < len(r.begun); i++ {
			waits = append(waits, r.begun[i].Sub(r.begun[i-1]))
		}
		if !slices.Equal(waits, []time.Duration{time.Second, 2 * time.Second}) || slot.Attempts != 3 || r.attempt != 3 || slot.RunID != r.runID || slot.Cost != 15 {
			t.Errorf("it waited %v: %+v", waits, slot)
		}
		k.wantStory(sch, "00:01 error rate_limit", "00:02 pending")
		if got := k.column(`select case when r.retry_of is null then '' else p.status end || ' ' || r.attempt from runs r left join runs p on p.id = r.retry_of order by r.attempt`); !slices.Equal(got, []string{" 1", "paused:transient 2", "paused:transient 3"}) {
			t.Errorf("the attempts are %v", got)
		}
		k.graph.answer = func(_ string, attempt int) contract.RunAnswerV1 {
			return contract.RunAnswerV1{OK: attempt == 2, ErrorCode: contract.Timeout, Retry: true, RetryAfterMS: 7000}
		}
		k.pass(time.Minute)
		slot = k.slots(sch)[1]
		if slot.Status != "success" || slot.Attempts != 2 || slot.CompletedAt.Sub(slot.StartedAt) != 7*time.Second {
			t.Errorf("after one more attempt, when it was asked for: %+v", slot)
		}
	})
}

// what no further attempt can help ends the slot at once, and the
// chain goes on; so does an outcome that nobody knows.
func TestFinalFailuresAreNotTriedAgain(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		for _, c := range []contract.RunAnswerV1{
			{ErrorCode: contract.Internal, ErrorMessage: "the graph says no"},
			{ErrorCode: contract.Timeout, ErrorMessage: "late"},
			{ErrorCode: contract.InvalidRequest, ErrorMessage: "no"},
			{ErrorCode: contract.Internal, ErrorMessage: "lost", Unknown: true, Retry: true},
			{ErrorCode: "strange", ErrorMessage: "no"},
		} {
			k.graph.answer = func(string, int) contract.RunAnswerV1 { return c }
			sch := k.create(ask("s", ""))
			k.pass(110 * time.Second)
			slots := k.slots(sch)
			if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{slots[0].ScheduledFor.Format("15:04")}) || len(slots) < 2 || slots[0].Status != "error" || slots[0].Disposition != "fired" {
				t.Errorf("%+v: executed %v, slots %v", c, got, k.story(sch))
			}
			if !contract.ErrorCode(slots[0].ErrorCode).Valid() { // C-85
				t.Errorf("%+v: the code is %q", c, slots[0].ErrorCode)
			}
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
				return err
			})
			k.pass(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		}
	})
}

// C-16, C-34, C-66, C-68, C-69, C-71, C-85, X-39, X-48, X-49, X-58: a grant that
// does not allow the graph skips the slot with its code, before anything is
// executed, and the chain goes on; it works again when the grant does.
func TestAGrantThatRefusesSkipsTheSlot(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		for minute, change := range []string{
			`update execution_grants set expires_at = $1`,
			`update execution_grants set expires_at = null, revoked_at = $1`,
			`update execution_grants set revoked_at = null, scopes = replace(scopes, 'poet', 'other'), created_at = $1`,
			`update execution_grants set scopes = replace(scopes, 'other', 'poet'), created_at = $1`,
		} {
			k.change(change, sch.NextRunAt.Add(time.Duration(minute)*time.Minute).UnixMilli())
			k.pass(time.Minute)
		}
		k.wantStory(sch, "00:01 skipped skipped_grant grant_expired", "00:02 skipped skipped_grant grant_revoked", "00:03 skipped skipped_grant grant_scope", "00:04 success", "00:05 pending")
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:04"}) {
			t.Errorf("executed %v", got)
		}
		if slot := k.slots(sch)[0]; slot.ErrorMessage == "" || slot.Attempts != 0 || slot.RunID != "" {
			t.Errorf("the first slot is %+v", slot)
		}
		if len(k.notices) != 4 || k.notices[3].What != "recovered" {
			t.Errorf("people were told %+v", k.notices)
		}
	})
}

// the execution side checks the grant again. What it refuses at the first
// attempt never ran; what it refuses after an attempt has failed.
func TestRefusalsOfTheExecutionService(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		revoked := &pawl.Error{Code: pawl.CodeForbidden, Reason: string(contract.GrantRevoked), Msg: "it was revoked"}
		k.graph.refuse = func(string, contract.RunRequestV1) error { return revoked }
		sch := k.create(ask("s", ""))
		k.pass(70 * time.Second)
		k.graph.answer = func(string, int) contract.RunAnswerV1 {
			return contract.RunAnswerV1{ErrorCode: contract.Internal, Retry: true}
		}
		k.graph.refuse = func(_ string, req contract.RunRequestV1) error {
			if req.Attempt > 1 {
				return revoked
			}
			return nil
		}
		k.pass(time.Minute)
		k.graph.refuse = func(string, contract.RunRequestV1) error {
			return &pawl.Error{Code: pawl.CodeNotFound, Reason: string(contract.NotFound), Msg: "no such graph"}
		}
		k.pass(time.Minute)
		k.wantStory(sch, "00:01 skipped skipped_grant grant_revoked", "00:02 error grant_revoked", "00:03 error not_found", "00:04 pending")
	})
}

// lesson 58, 3.18: what the infrastructure says is no answer. The slot is
// neither skipped nor failed, however long it takes, and runs once.
func TestInfrastructureErrorsDecideNothing(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		until := time.Now().Add(4 * time.Minute)
		k.graph.down = func() error {
			if time.Now().Before(until) {
				return &pawl.Error{Code: pawl.CodeUnavailable, Msg: "no answer", Err: errDown}
			}
			return nil
		}
		lost := 0
		k.graph.lose = func() error {
			if lost++; lost < 3 {
				return errDown
			}
			return nil
		}
		sch := k.create(ask("s", ""))
		k.pass(3 * time.Minute)
		k.wantStory(sch, "00:01 running")
		k.pass(4 * time.Minute)
		if got := k.graph.executed(sch.ID); len(got) == 0 || got[0] != "00:01" || k.slots(sch)[0].Status != "success" || k.slots(sch)[0].Attempts != 1 {
			t.Errorf("executed %v, slots %v", got, k.story(sch))
		}
		if len(k.notices) != 0 {
			t.Errorf("people were told %v", k.notices)
		}
	})
}

// C-85, X-39: a cap that is reached skips the slot, switches the schedule off
// with the reason, and tells people; switched on again it goes on.
func TestACapSwitchesTheScheduleOff(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.refuse = func(string, contract.RunRequestV1) error {
			return &billing.CapError{Which: "runs_per_day", Msg: "the grant allows no more runs today"}
		}
		sch := k.create(ask("s", ""))
		k.pass(3 * time.Minute)
		now := k.schedule(sch.ID)
		if got := k.story(sch); got[0] != "00:01 skipped skipped_budget insufficient_credits" || now.Enabled || now.Issue == "" || !now.NextRunAt.IsZero() {
			t.Errorf("slots %v, schedule %+v", got, now)
		}
		if len(k.notices) != 1 || k.notices[0].What != "needs_attention" {
			t.Errorf("people were told %v", k.notices)
		}
		if d, err := k.s.Describe(t.Context(), k.owner, sch.ID); err != nil || d.State != "Needs attention" {
			t.Errorf("it is %q: %s (%v)", d.State, d.Sentence, err)
		}
		k.graph.refuse = nil
		on := true
		if now := k.update(sch, client.SchedulePatch{Enabled: &on}); now.Issue != "" {
			t.Errorf("it still says %q", now.Issue)
		}
		k.pass(90 * time.Second)
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:04"}) {
			t.Errorf("executed %v", got)
		}
	})
}

// C-31: a job that names no slot is refused before anything happens.
func TestAMalformedPayloadIsRefused(t *testing.T) {
	for _, text := range []string{``, `{`, `{}`, `{"scheduleId":"a"}`, `{"scheduledFor":"2000-01-01T00:00:00Z"}`, `{"scheduleId":"a","scheduledFor":"soon"}`} {
		if err := checkPayload(json.RawMessage(text)); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := checkPayload(json.RawMessage(`{"scheduleId":"a","scheduledFor":"2000-01-01T00:00:00Z"}`)); err != nil {
		t.Error(err)
	}
}
