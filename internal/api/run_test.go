package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// A run has the fields that the surface names, and no more or fewer by
// accident.
func TestRunInJSON(t *testing.T) {
	both(t, func(r *rig) {
		r.deployOrders()
		r.publish("orders", "order", "1")
		r.eventually("the order is filed", func() bool { return len(pages[client.Output](r, "/api/v1/workflows/orders/outputs?limit=5")) == 1 })
		r.waitRuns("?lane=orders&status=active", 0)
		run := r.runs("?lane=orders&limit=500")
		i := slices.IndexFunc(run, func(x client.Run) bool { return x.Mutation != nil })
		p := r.do("GET", "/api/v1/runs/"+run[i].ID, nil).want(200)
		var fields map[string]json.RawMessage
		p.into(&fields)
		want := strings.Fields("actions approval attempt chain createdAt endedAt error handler handlerType id kind lane laneId logs mutation mutations output phase prepareResult progress question retryOf scheduledFor scriptVersion slot startedAt status trigger updatedAt")
		if got := sortedKeys(fields); !slices.Equal(got, want) {
			t.Errorf("fields %v\nwant   %v", got, want)
		}
		var d client.RunDetail
		p.into(&d)
		if d.Kind != "workflow" || d.Lane != "orders" || d.Handler != "file" || d.HandlerType != "consumer" || d.Trigger != "event" || d.RetryOf != "" || d.Phase != "committed" || d.Status != "committed" ||
			d.Attempt != 1 || d.Error != nil || d.ScriptVersion == "" || string(d.ScriptVersion) != r.workflow("orders").Version || d.StartedAt.IsZero() || d.EndedAt.IsZero() {
			t.Errorf("%s", p.body)
		}
		if !strings.Contains(string(d.PrepareResult), `"data":{"n":"1"}`) || string(fields["scheduledFor"]) != "null" || string(fields["error"]) != "null" {
			t.Errorf("%s", p.body)
		}
		m := d.Mutation
		if m.Tool != "desk" || m.Method != "put" || string(m.Arguments) != `{"what":{"n":"1"}}` || m.State != "applied" || string(m.Result) != `{"row":7}` || m.IdempotencyKey == "" || m.ReconcileAttempts != 0 || !m.NextReconcileAt.IsZero() || string(m.ResolvedBy) != "answer" {
			t.Errorf("%+v", m)
		}
		if len(d.Chain) != 1 || d.Chain[0].ID != d.ID || len(d.Mutations) != 1 || len(d.Logs) != 1 || d.Logs[0].Text != "took 1" || d.Logs[0].Phase != "preparing" || d.Logs[0].Level == "" {
			t.Errorf("chain %v, %d mutations, logs %v", d.Chain, len(d.Mutations), d.Logs)
		}
	})
}

// One run carries its whole retry chain, whichever attempt is asked for.
func TestRunCarriesItsChain(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("broken", producing("broken", `throw new TypeError("no");`))
		first := r.waitRuns("?lane=broken&status=failed:logic", 1)[0]
		if e := first.Error; e == nil || e.Class != "logic" || e.Code != "TypeError" || !strings.Contains(e.Message, "no") || first.Phase != "executing" {
			t.Errorf("%+v", first)
		}
		r.deploy("broken", producing("broken", `ctx.log("better");`))
		second := r.waitRuns("?lane=broken&status=committed", 2)[0]
		for _, id := range []string{first.ID, second.ID} {
			var d client.RunDetail
			r.do("GET", "/api/v1/runs/"+id, nil).want(200).into(&d)
			var chain []string
			for _, c := range d.Chain {
				chain = append(chain, fmt.Sprintf("%s %s %d", c.ID, c.Status, c.Attempt))
			}
			if want := fmt.Sprintf("[%s committed 2 %s failed:logic 1]", second.ID, first.ID); fmt.Sprint(chain) != want || string(d.Chain[0].RetryOf) != first.ID {
				t.Errorf("chain %v, want %s", chain, want)
			}
		}
	})
}

func TestRunsAreFilteredAndPaged(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("two", twoProducers)
		r.deploy("broken", producing("broken", `throw new Error("no");`))
		r.waitRuns("?lane=two&status=committed", 3)
		r.waitRuns("?lane=broken&status=failed:logic", 1)
		for query, want := range map[string]int{
			"?limit=1": 5, "?limit=5": 5, "?lane=two&limit=2": 3, "?lane=broken&limit=2": 2, "?lane=nothing&limit=2": 0, "?kind=workflow&limit=3": 5,
			"?kind=source&limit=3": 0, "?kind=source&lane=two&limit=3": 0, "?status=committed&limit=2": 4, "?lane=broken&status=failed:logic&limit=2": 1, "?status=active&limit=2": 0,
		} {
			list := pages[client.Run](r, "/api/v1/runs"+query)
			seen := map[string]bool{}
			for i, run := range list {
				seen[run.ID] = true
				if i > 0 && run.CreatedAt.After(list[i-1].CreatedAt.Time) {
					t.Errorf("%s: not the newest first", query)
				}
			}
			if len(list) != want || len(seen) != want {
				t.Errorf("%s: %d runs, want %d", query, len(list), want)
			}
		}
	})
}

// A run that has sent nothing can be cancelled, once; one that has cannot.
func TestCancelRun(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("waiting", producing("waiting", `await ctx.tools.desk.wait({});`))
		r.waitEntered()
		active := r.waitRuns("?lane=waiting&status=active", 1)[0]
		viewer := r.token("vera", userstore.RoleViewer, "*")
		r.as(viewer, "POST", "/api/v1/runs/"+active.ID+"/cancel", nil).problem(403, "forbidden")
		var run client.Run
		r.do("POST", "/api/v1/runs/"+active.ID+"/cancel", nil, "Idempotency-Key", "k").want(200).into(&run)
		if run.ID != active.ID || run.Status != "cancelled" || run.Phase != "executing" || run.EndedAt.IsZero() || run.Lane != "waiting" {
			t.Errorf("%+v", run)
		}
		if p := r.do("POST", "/api/v1/runs/"+active.ID+"/cancel", nil, "Idempotency-Key", "k").want(200); p.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%v", p.header)
		}
		r.do("POST", "/api/v1/runs/"+active.ID+"/cancel", nil).problem(409, "conflict")
		if n := r.count(`select count(*) from audit_log where action = 'run.cancel'`); n != 1 {
			t.Errorf("%d entries in the audit log", n)
		}
		r.waitEntered() // the producer is still due
		close(r.desk.release)

		r.deploy("lost", consuming("lost", `await ctx.tools.desk.lose({});`))
		r.publish("lost", "t", "1")
		lost := r.waitRuns("?lane=lost&status=paused:reconciliation", 1)[0]
		if m := lost.Mutation; m == nil || m.State != "indeterminate" || m.Error != nil || lost.Error.Class != "indeterminate" {
			t.Errorf("%+v", lost)
		}
		r.do("POST", "/api/v1/runs/"+lost.ID+"/cancel", nil).problem(409, "conflict")
	})
}
