package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/workflow"
)

// until gathers events until one of this kind tells this.
func (r *rig) until(events <-chan event, kind, what string) (out []event) {
	r.t.Helper()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				r.t.Fatal("the stream ended")
			}
			out = append(out, e)
			if e.kind == kind && strings.HasPrefix(e.data, `{"what":"`+what+`"`) {
				return out
			}
		case <-time.After(90 * time.Second):
			r.t.Fatalf("no event %s %s, only %v", kind, what, out)
		}
	}
}

// The stream tells the life of a run and what people do to its workflow.
func TestStreamTellsTheLifeOfARun(t *testing.T) {
	both(t, func(r *rig) {
		events := r.listen(r.admin, "?kind=run,workflow")
		r.deploy("orders", orders)
		r.until(events, "run", "committed")
		r.until(events, "run", "committed") // both consumers have looked for the first time
		r.publish("orders", "order", "secret")
		var told []string
		for _, e := range append(r.until(events, "run", "committed"), r.until(events, "run", "committed")...) {
			if e.kind == "workflow" {
				var w client.WorkflowEvent
				if err := json.Unmarshal([]byte(e.data), &w); err != nil || w.At.IsZero() {
					t.Errorf("%s: %v", e.data, err)
				}
				told = append(told, fmt.Sprint(w.What, " ", w.Workflow, " ", w.Topic, " ", w.Event))
				continue
			}
			var d client.RunEvent
			if err := json.Unmarshal([]byte(e.data), &d); err != nil || d.Run.Lane != "orders" || d.At.IsZero() || strings.Contains(e.data, "secret") || strings.Contains(e.data, "prepareResult") {
				t.Errorf("%s: %v", e.data, err)
			}
			told = append(told, fmt.Sprint(d.What, " ", d.Run.Handler, " ", d.Run.Phase))
		}
		want := "published orders order secret, begun file preparing, advanced file prepared, advanced file mutating, advanced file mutated, advanced file emitting, committed file committed, " +
			"begun count preparing, advanced count prepared, advanced count mutating, advanced count mutated, advanced count emitting, committed count committed"
		if got := strings.Join(told, ", "); got != want {
			t.Errorf("told %s\nwant %s", got, want)
		}
		for _, c := range []struct{ path, what string }{{"pause", "paused"}, {"resume", "resumed"}} {
			r.do("POST", "/api/v1/workflows/orders/"+c.path, nil).want(200)
			r.until(events, "workflow", c.what)
		}
		r.do("DELETE", "/api/v1/workflows/orders", nil).want(204)
		r.until(events, "workflow", "deleted")
	})
}

// What happens to runs costs nothing while nobody follows, and an alarm is
// passed on.
func TestFeedOfRunsSleepsWhileNobodyFollows(t *testing.T) {
	f := NewFeed()
	defer f.Close()
	at := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	run := ledger.Event{What: ledger.Stopped, Alarm: "odd", Run: runstore.Run{
		ID: "r1", Kind: pawl.KindWorkflow, Lane: "mail#2", Handler: "look", HandlerType: pawl.HandlerProducer, Trigger: "manual", Phase: pawl.PhaseExecuting, Status: pawl.StatusFailedLogic,
		Attempt: 1, PrepareResult: json.RawMessage(`"secret"`), ErrorCode: "c", ErrorClass: pawl.ClassLogic, ErrorMessage: "m", CreatedAt: at, UpdatedAt: at,
	}}
	change := lane.Change{Ref: lane.Named(pawl.KindWorkflow, "mail"), What: "skipped", At: at, Detail: workflow.ChangeDetail{Input: "in_1"}}
	observe := func() { f.ObserveRun(run, change.Ref); f.ObserveLane(change) }
	if allocs := testing.AllocsPerRun(100, observe); allocs != 0 || len(f.recent) != 0 {
		t.Errorf("nobody listens, but there are %v allocations and %d events", allocs, len(f.recent))
	}
	runs, flows := follow(t, f, []string{"run"}, "r1", 0), follow(t, f, []string{"workflow"}, "mail", 0)
	observe()
	want := `[{"what":"stopped","run":{"id":"r1","kind":"workflow","lane":"mail","laneId":null,"handler":"look","handlerType":"producer","trigger":"manual","retryOf":null,"phase":"executing","status":"failed:logic","attempt":1,` +
		`"scheduledFor":null,"error":{"code":"c","message":"m","class":"logic"},"scriptVersion":null,"createdAt":"2030-01-31T09:00:00.000Z","updatedAt":"2030-01-31T09:00:00.000Z","startedAt":null,"endedAt":null},` +
		`"at":"2030-01-31T09:00:00.000Z","alarm":"odd"}]`
	if got := fmt.Sprint(drain(f, runs)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := fmt.Sprint(drain(f, flows)); got != `[{"what":"skipped","workflow":"mail","at":"2030-01-31T09:00:00.000Z","input":"in_1"}]` {
		t.Errorf("%s", got)
	}
}
