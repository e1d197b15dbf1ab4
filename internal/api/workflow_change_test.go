package api

import (
	"net/http"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

const twoProducers = `export default {
  name: "two", topics: { found: {} },
  producers: {
    one: { publishes: ["found"], schedule: { interval: "1h" }, handler: async (ctx) => { await ctx.tools.desk.get({}); } },
    two: { publishes: ["found"], schedule: { interval: "2h" }, handler: async (ctx) => { await ctx.tools.desk.get({}); } },
  },
  consumers: { take: { subscribe: ["found"], prepare: async () => ({ reservations: [], data: {} }) } },
};`

// a run now queues every producer, and no consumer, as
// manual work; the key makes it one request however often it is sent.
func TestRunNowRunsEveryProducer(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("two", twoProducers)
		r.waitRuns("?lane=two&status=committed", 3) // both producers, and the consumer that is new
		first := r.do("POST", "/api/v1/workflows/two/run", nil, "Idempotency-Key", "k").want(http.StatusAccepted)
		var told client.RunRequested
		first.into(&told)
		if told != (client.RunRequested{Name: "two", Requested: true}) {
			t.Errorf("%s", first.body)
		}
		runs := r.waitRuns("?lane=two&status=committed", 5)
		for i, run := range runs {
			if manual := i < 2; (run.Trigger == "manual") != manual || manual && (run.HandlerType != "producer" || !run.ScheduledFor.IsZero()) {
				t.Errorf("run %d: %+v", i, run)
			}
		}
		if runs[0].Handler == runs[1].Handler {
			t.Errorf("%s ran twice", runs[0].Handler)
		}
		again := r.do("POST", "/api/v1/workflows/two/run", nil, "Idempotency-Key", "k").want(http.StatusAccepted)
		if again.header.Get("Idempotency-Replayed") != "true" || string(again.body) != string(first.body) {
			t.Errorf("%v %s", again.header, again.body)
		}
		if n := r.count(`select count(*) from audit_log where action = 'workflow.run'`); n != 1 {
			t.Errorf("asked for %d times", n)
		}
	})
}

// a run now is refused, with its own reason and without an
// effect, unless the lane is idle and healthy.
func TestRunNowIsRefusedWithAReason(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("waiting", producing("waiting", `await ctx.tools.desk.wait({});`))
		r.deploy("busy", producing("busy", `await ctx.tools.desk.busy({});`))
		r.deploy("broken", producing("broken", `throw new Error("no");`))
		r.deployOrders()
		r.deploy("paused", producing("paused", ``))
		r.do("POST", "/api/v1/workflows/paused/pause", nil).want(200)
		r.waitEntered()
		r.waitRuns("?lane=busy&status=paused:transient", 1)
		r.waitRuns("?lane=broken&status=failed:logic", 1)
		for name, code := range map[string]string{"waiting": "run_active", "busy": "backing_off", "paused": "paused", "broken": "paused", "orders": "not_deployed"} {
			p := r.do("POST", "/api/v1/workflows/"+name+"/run", nil, "Idempotency-Key", name).problem(409, code)
			if !strings.Contains(p.Detail, name) || name == "broken" && !strings.HasPrefix(p.Hint, "pawl why workflow broken ") {
				t.Errorf("%s: %q %q", name, p.Detail, p.Hint)
			}
		}
		if n := r.count(`select count(*) from producer_schedules where requested_at is not null`) + r.count(`select count(*) from audit_log where action = 'workflow.run'`); n != 0 {
			t.Errorf("refusals left %d rows", n)
		}
		w := r.workflow("busy")
		if w.Status != "Running" || w.Issue == "" || !strings.Contains(string(w.Issue), "the desk is busy") || string(w.IssueCode) != "backing_off" {
			t.Errorf("busy is %s: %v", w.Status, w.Issue)
		}
		if w = r.workflow("broken"); w.Status != "Needs attention" || w.Issue == "" || !strings.Contains(string(w.Issue), "no") {
			t.Errorf("broken is %s: %v", w.Status, w.Issue)
		}
		close(r.desk.release)
		r.waitRuns("?lane=waiting&status=committed", 2) // the consumer has looked as well
	})
}

// Pausing stops what has sent nothing; pausing and resuming twice is the same
// as once.
func TestPauseAndResume(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("waiting", producing("waiting", `await ctx.tools.desk.wait({});`))
		r.waitEntered()
		if w := r.workflow("waiting"); w.Status != "Running" || w.Issue != "" {
			t.Errorf("%+v", w.Lane)
		}
		change := func(what string) (w client.Workflow) {
			r.do("POST", "/api/v1/workflows/waiting/"+what, nil).want(200).into(&w)
			return w
		}
		for range 2 {
			if w := change("pause"); w.Status != "Stopped" || !w.Paused || w.Desired != "paused" || w.Issue == "" || !w.NextAt.IsZero() {
				t.Errorf("paused: %+v", w.Lane)
			}
		}
		r.waitRuns("?lane=waiting&status=cancelled", 1)
		close(r.desk.release)
		for range 2 {
			if w := change("resume"); w.Paused || w.Desired != "active" || w.Status == "Stopped" {
				t.Errorf("resumed: %+v", w.Lane)
			}
		}
		r.waitRuns("?lane=waiting&status=committed", 2)
		if n := r.count(`select count(*) from audit_log where action in ('workflow.pause', 'workflow.resume')`); n != 2 {
			t.Errorf("%d entries in the audit log, want one of each", n)
		}
	})
}

// Resume also says that what halted a run is mended.
func TestResumeAfterAFailure(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("broken", producing("broken", `throw new Error("no");`))
		r.waitRuns("?lane=broken&status=failed:logic", 1)
		r.do("POST", "/api/v1/workflows/broken/resume", nil).want(200)
		runs := r.waitRuns("?lane=broken&status=failed:logic", 2)
		if runs[0].RetryOf == "" || string(runs[0].RetryOf) != runs[1].ID || runs[0].Attempt != 2 {
			t.Errorf("%+v", runs[0])
		}
	})
}

// A workflow that was deleted is gone, what it did is not, and its name is
// free for one that has not done it.
func TestDeletedWorkflowIsGone(t *testing.T) {
	both(t, func(r *rig) {
		r.deployOrders()
		e := r.publish("orders", "order", "1")
		r.waitRuns("?lane=orders&status=committed", 4)
		r.do("DELETE", "/api/v1/workflows/orders", nil).want(204)
		r.do("DELETE", "/api/v1/workflows/orders", nil).problem(404, "not_found")
		r.do("GET", "/api/v1/workflows/orders", nil).problem(404, "not_found")
		if got := pages[client.Lane](r, "/api/v1/lanes?limit=10"); len(got) != 0 {
			t.Errorf("still listed: %+v", got)
		}
		var i client.InputDetail
		r.do("GET", "/api/v1/inputs/"+e.CausedBy[0], nil).want(200).into(&i)
		if i.Workflow != "orders" || i.Status != "done" {
			t.Errorf("%+v", i)
		}
		if d := r.deploy("orders", orders); d.What != "created" {
			t.Errorf("%+v", d)
		}
		r.waitRuns("?lane=orders&status=committed", 2)
		for _, run := range r.runs("") {
			if run.Lane != "orders" || run.Kind != string(pawl.KindWorkflow) {
				t.Errorf("%+v", run)
			}
		}
		if list := pages[client.Input](r, "/api/v1/workflows/orders/inputs?limit=5"); len(list) != 0 {
			t.Errorf("the new one has inputs of the old one: %+v", list)
		}
	})
}

// A workflow whose run has sent something stays.
func TestDeleteIsRefusedWhileAnOutcomeIsUnknown(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("lost", consuming("lost", `await ctx.tools.desk.lose({});`))
		r.publish("lost", "t", "1")
		run := r.waitRuns("?lane=lost&status=paused:reconciliation", 1)[0]
		if p := r.do("DELETE", "/api/v1/workflows/lost", nil).problem(409, "outcome_unknown"); !strings.Contains(p.Hint, run.ID) {
			t.Errorf("%+v", p)
		}
		if w := r.workflow("lost"); w.Status != "Needs attention" || string(w.IssueCode) != "outcome_unknown" {
			t.Errorf("%+v", w.Lane)
		}
	})
}
