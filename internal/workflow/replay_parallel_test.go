package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

const parallelScript = `import { workflow } from "pawl";
export default workflow({
  name: "crowd", topics: { in: {}, out: {} },
  consumers: { order: {
    subscribe: ["in"], publishes: ["out"],
    async prepare(ctx) {
      const list = [];
      for (let i = 0; i < 120; i++) list.push(ctx.tools.desk.read({ what: "w" + i % 7 }), ctx.peek("in"));
      await Promise.all(list);
      const [first] = await ctx.peek("in");
      if (!first) return { reservations: [], data: null };
      return { reservations: [{ topic: "in", ids: [first.messageId] }], data: first.payload };
    },
    async mutate(ctx, prepared) { await Promise.all([ctx.tools.desk.order(prepared.data), ctx.tools.desk.order(prepared.data)]); },
    async next(ctx) { ctx.publish("out", { messageId: "m", payload: 1 }); },
  } },
});`

// A script reads many things at once, and so does its replay: of one run and of
// several at the same time. Nothing is shared that is not guarded.
func TestReplayOfParallelReads(t *testing.T) {
	pool, err := script.NewPool(script.Config{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	both(t, func(t *testing.T, k *kit) {
		k.s.cfg.Scripts, k.s.cfg.Trials, k.s.cfg.Limits = pool, pool, script.Limits{}
		w := k.deployScript("crowd", strings.ReplaceAll(parallelScript, "ctx.tools.desk.order(prepared.data), ", ""))
		k.publish(w, "in", "a")
		k.work(w)
		id := k.taking(w, "a")
		orders := len(k.desk.things())
		for range 10 {
			var both sync.WaitGroup
			for range MaxReplays {
				both.Go(func() {
					r, err := k.s.Replay(t.Context(), id, "", "")
					if err != nil || r.Failure != "" || len(r.Differences) > 0 || r.Unknown {
						t.Errorf("a replay differs: %+v, %v", r, err)
					}
				})
			}
			both.Wait()
		}
		// Two calls at once, and reads that nobody knows, at once.
		greedy := strings.ReplaceAll(parallelScript, `"w" + i % 7`, `"x" + i`)
		r, err := k.s.Replay(t.Context(), id, "crowd.workflow.ts", greedy)
		if err != nil || !r.Unknown || !strings.Contains(r.Failure, "its answer is not known") {
			t.Errorf("reads that were not made: %+v, %v", r, err)
		}
		if n := len(k.desk.things()); n != orders {
			t.Errorf("replays made %d calls", n-orders)
		}
	})
}

// taking is the run that took an event.
func (k *kit) taking(w workflowstore.Workflow, event string) string {
	k.t.Helper()
	for _, r := range k.runs(w) {
		if strings.Contains(string(r.PrepareResult), `"`+event+`"`) {
			return r.ID
		}
	}
	k.t.Fatalf("no run took %s", event)
	return ""
}

// Trying a script out is safe with many reads at once, too.
func TestTryWithParallelReads(t *testing.T) {
	pool, err := script.NewPool(script.Config{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	tools, err := tool.NewSet(tool.Named{Name: "desk", Type: "test", Connection: newDesk()})
	if err != nil {
		t.Fatal(err)
	}
	_, done, err := Try{
		Scripts: pool, Tools: tools, Filename: "crowd.workflow.ts", Script: parallelScript,
		Events: []eventstore.NewEvent{{Topic: "in", MessageID: "a", Payload: json.RawMessage(`"a"`)}},
	}.Run(t.Context())
	if err != nil || len(done) == 0 || done[0].Failure != "" || done[0].Call == nil || done[0].Call.Method != "order" || done[0].Call.Policy != tool.Ask {
		t.Errorf("tried: %+v, %v", done, err)
	}
}

// slowScripts lets phases wait.
type slowScripts struct {
	Scripts
	came, leave chan struct{}
}

func (s slowScripts) Run(ctx context.Context, req script.Request, host script.Host, limits script.Limits) (script.Result, error) {
	s.came <- struct{}{}
	select {
	case <-s.leave:
	case <-ctx.Done():
		return script.Result{}, ctx.Err()
	}
	return s.Scripts.Run(ctx, req, host, limits)
}

// There are only so many replays at once; the next one is told to come later,
// and nothing of it is left behind. Real runs are not held up meanwhile.
func TestReplaysAreBounded(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		slow := slowScripts{k.s.cfg.Scripts, make(chan struct{}, MaxReplays), make(chan struct{})}
		w := k.deploy("shop", "1", replayable("order"))
		k.publish(w, "in", "a")
		k.work(w)
		id := k.taking(w, "a")
		k.s.cfg.Trials = slow
		var running sync.WaitGroup
		for range MaxReplays {
			running.Go(func() {
				if _, err := k.s.Replay(t.Context(), id, "", ""); err != nil {
					t.Error(err)
				}
			})
		}
		for range MaxReplays {
			<-slow.came
		}
		_, err := k.s.Replay(t.Context(), id, "", "")
		if e := (*pawl.Error)(nil); !errors.As(err, &e) || e.Code != pawl.CodeUnavailable || e.Reason != "busy" || e.Hint == "" {
			t.Errorf("one too many: %v", err)
		}
		k.publish(w, "in", "b") // which the real workers take
		k.work(w)
		k.taking(w, "b")
		go func() {
			for range slow.came {
			}
		}()
		close(slow.leave)
		running.Wait()
		if _, err := k.s.Replay(t.Context(), id, "", ""); err != nil {
			t.Errorf("after the others have ended: %v", err)
		}
		close(slow.came)
	})
}

// A run that failed and fails again in the same way does the same; one that
// fails otherwise, or not any more, does not.
func TestReplayOfAFailedRun(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		failing := func(text string) definition {
			return replayable("order").with(map[string]goHandler{"consumers.order.next": func(*goCtx, []json.RawMessage) any { throw(text); return nil }})
		}
		w := k.deploy("shop", "1", failing("no paper"))
		k.publish(w, "in", "a")
		k.work(w)
		id := k.taking(w, "a")
		for _, test := range []struct{ script, says string }{
			{"", ""},
			{k.define("shop", "2", failing("no ink")), "would fail otherwise"},
			{k.define("shop", "3", replayable("order")), "it failed and would not"},
		} {
			r, err := k.s.Replay(t.Context(), id, "w.ts", test.script)
			if err != nil || (len(r.Differences) == 0) != (test.says == "") || !strings.Contains(strings.Join(r.Differences, "\n"), test.says) {
				t.Errorf("%q: %q, %v", test.script, r.Differences, err)
			}
		}
	})
}

// A call that failed outside, or waits for a person, is replayed up to there.
func TestReplayEndsWhereTheRunEnded(t *testing.T) {
	for name, method := range map[string]string{"a call that was refused": "order", "a read that failed": "read", "a question": "sign"} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kit) {
				if method != "sign" {
					k.desk.refuseTimes(method, pawl.ClassPermission)
				}
				called := method
				if method == "read" {
					called = "order"
				}
				w := k.deploy("shop", "1", replayable(called))
				k.publish(w, "in", "a")
				k.work(w)
				last := k.lastRun(w)
				if last.Status != pawl.StatusPausedApproval {
					t.Fatalf("the run is %s", last.Status)
				}
				r, err := k.s.Replay(t.Context(), last.ID, "", "")
				if err != nil || len(r.Differences) > 0 || r.Unknown {
					t.Errorf("%q, %q, %v", r.Failure, r.Differences, err)
				}
			})
		})
	}
}

// Amounts that a float cannot tell apart are two amounts, and what is compared
// is not what is shown: a secret is never told.
func TestReplayComparesExactly(t *testing.T) {
	redact := func(raw json.RawMessage) json.RawMessage {
		return json.RawMessage(strings.ReplaceAll(string(raw), "hunter2", "[pw]"))
	}
	call := func(text string) Effects {
		return Effects{Call: &TriedCall{Tool: "bank", Method: "pay", Arguments: json.RawMessage(text)}}
	}
	for _, test := range []struct {
		then, now string
		same      bool
	}{
		{`{"a":1,"b":2}`, `{"b":2, "a":1}`, true},
		{`{"amount":1}`, `{"amount":1000000}`, false},
		{`{"amount":9007199254740993}`, `{"amount":9007199254740992}`, false},
		{`{"pw":"[pw]"}`, `{"pw":"hunter2"}`, true}, // as a person was shown it
		{`{"pw":"hunter2"}`, `{"pw":"other"}`, false},
		{`{"amount":1}`, `{"amount":"1"}`, false},
	} {
		list := differences(call(test.then), call(test.now), redact)
		if (len(list) == 0) != test.same {
			t.Errorf("%s and %s: %q", test.then, test.now, list)
		}
		if text := strings.Join(list, ""); strings.Contains(text, "hunter2") || len(text) > 4*mostShown {
			t.Errorf("told: %s", text)
		}
	}
	long := fmt.Sprintf("%q", strings.Repeat("x", 1<<20))
	if list := differences(call(long), call(`"y"`), redact); len(list) != 1 || len(list[0]) > 4*mostShown {
		t.Errorf("a long value is told in %d bytes", len(list[0]))
	}
}

// Arguments of reads are kept short, and known again all the same.
func TestRecordedArgumentsAreClipped(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	a := clipCall(json.RawMessage(fmt.Sprintf(`{"connection":"desk","method":"read","args":{"what":%q}}`, long)))
	b := clipCall(json.RawMessage(fmt.Sprintf(`{"connection":"desk","method":"read","args":{ "what": %q }}`, long)))
	c := clipCall(json.RawMessage(fmt.Sprintf(`{"connection":"desk","method":"read","args":{"what":%q}}`, long+"y")))
	if len(a) > maxCall || !strings.Contains(string(a), `"desk"`) || !strings.Contains(string(a), "sha256") {
		t.Errorf("kept: %s", a)
	}
	if readKey("tool", a) == readKey("tool", c) {
		t.Error("different arguments look the same")
	}
	if readKey("tool", a) != readKey("tool", b) {
		t.Error("the same arguments look different")
	}
	if got := clipCall(json.RawMessage(fmt.Sprintf("%q", long))); len(got) > maxCall {
		t.Errorf("kept %d bytes of what is no object", len(got))
	}
	many := map[string]string{}
	for i := range 1000 {
		many[fmt.Sprint("k", i)] = strings.Repeat("v", 100)
	}
	if got := clipCall(asJSON(many)); len(got) > maxCall {
		t.Errorf("kept %d bytes of many fields", len(got))
	}
}
