package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// asking is a workflow whose call must be asked for. Its title does not tell
// what it does.
const asking = `export default {
  name: "asking", topics: { t: {} },
  consumers: { act: {
    subscribe: ["t"],
    prepare: async (ctx) => {
      const [e] = await ctx.peek("t");
      if (!e) return { reservations: [], data: {} };
      return { reservations: [{ topic: "t", ids: [e.messageId] }], data: e.payload, ui: { title: "Nothing to see here" } };
    },
    mutate: async (ctx, prepared) => { await ctx.tools.desk.ask({ pay: prepared.data.n }); },
  } },
};
`

// askedRun brings a run to where it waits for an answer.
func (r *rig) askedRun() client.Run {
	r.t.Helper()
	r.deploy("asking", asking)
	r.publish("asking", "t", "1")
	return r.waitRuns("?lane=asking&status=paused:approval", 1)[0]
}

func (r *rig) detail(id string) (d client.RunDetail) {
	r.t.Helper()
	r.do("GET", "/api/v1/runs/"+id, nil).want(200).into(&d)
	return d
}

// waitDetail waits until a run is as a test wants it.
func (r *rig) waitDetail(id, what string, is func(client.RunDetail) bool) (d client.RunDetail) {
	r.t.Helper()
	r.eventually("run "+id+" "+what, func() bool { d = r.detail(id); return is(d) })
	return d
}

// actionNames are the actions in words, resolve with what can be said.
func actionNames(a client.RunAnswers) string {
	var words []string
	for _, x := range a.Actions {
		if x.Outcomes != nil {
			x.Name += fmt.Sprint(x.Outcomes)
		}
		words = append(words, x.Name)
	}
	return strings.Join(words, " ")
}

// entries counts the entries of an action in the audit log.
func (r *rig) entries(action string) int {
	r.t.Helper()
	return r.count(`select count(*) from audit_log where action = $1`, action)
}

// context 3.7.7: what is asked is shown as it will be sent;
// it is approved once, by those who may, and made once, by the same run.
func TestApproveRun(t *testing.T) {
	both(t, func(r *rig) {
		id := r.askedRun().ID
		path := "/api/v1/runs/" + id + "/approve"
		d := r.detail(id)
		q := d.Approval
		if q == nil || q.Tool != "desk" || q.Method != "ask" || string(q.Arguments) != `{"pay":"1"}` || q.State != "pending" || string(q.Title) != "Nothing to see here" ||
			q.RunID != id || q.Workflow != "asking" || q.Hash == "" || !q.ExpiresAt.After(q.CreatedAt.Time) || !q.DecidedAt.IsZero() || q.DecidedBy != "" {
			t.Fatalf("%+v", q)
		}
		if got := actionNames(d.RunAnswers); got != "approve reject cancel" {
			t.Errorf("actions %s", got)
		}
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			r.do(method, path, nil).problem(405, "method_not_allowed")
		}
		r.as(r.token("vera", userstore.RoleViewer, "*"), "POST", path, nil).problem(403, "forbidden")
		r.do("POST", path, map[string]any{"hash": strings.Repeat("0", 64)}).problem(409, "changed")
		for _, verb := range []string{"approve", "reject"} {
			r.do("POST", "/api/v1/runs/"+id+"/"+verb, map[string]any{"seen": id}).problem(409, "changed")
			r.do("POST", "/api/v1/runs/"+id+"/"+verb, map[string]any{"seen": "none"}).problem(409, "changed")
		}
		for body, pointer := range map[string]string{`{"hash":""}`: "/hash", `{"always":"yes"}`: "/always", `{"alwais":true}`: "/alwais"} {
			if p := r.do("POST", path, body).problem(422, "invalid"); !slices.Equal(pointers(p), []string{pointer}) {
				t.Errorf("%s: %+v", body, p.Errors)
			}
		}
		if p := r.do("POST", "/api/v1/runs/"+id+"/resume", nil).problem(409, "approval"); !strings.Contains(p.Hint, "pawl approve "+id) {
			t.Errorf("%+v", p)
		}
		r.do("POST", "/api/v1/runs/nobody/approve", nil).problem(404, "not_found")
		r.do("POST", "/api/v1/workflows/asking/pause", nil).want(200) // nothing moves meanwhile

		var run client.AnsweredRun
		r.do("POST", path, map[string]any{"hash": q.Hash, "seen": q.ID}, "Idempotency-Key", "k").want(200).into(&run)
		if run.ID != id || run.Approval.State != "approved" || string(run.Approval.DecidedBy) != "admin" || run.Approval.DecidedAt.IsZero() || strings.Contains(actionNames(run.RunAnswers), "approve") {
			t.Errorf("%+v %+v", run.Approval, run.Actions)
		}
		if p := r.do("POST", path, map[string]any{"hash": q.Hash, "seen": q.ID}, "Idempotency-Key", "k").want(200); p.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%v", p.header)
		}
		r.do("POST", path, nil, "Idempotency-Key", "k").problem(422, "idempotency_mismatch")
		r.do("POST", path, nil).problem(409, "decided")
		if n := len(r.desk.things()); n != 0 {
			t.Errorf("%d calls of a workflow that is paused", n)
		}
		r.do("POST", "/api/v1/workflows/asking/resume", nil).want(200)
		d = r.waitDetail(id, "is committed", func(d client.RunDetail) bool { return d.Status == "committed" })
		if got := r.desk.things(); !slices.Equal(got, []string{`{"pay":"1"}`}) || d.Approval.State != "used" || string(d.Approval.DecidedBy) != "admin" || len(d.Actions) != 0 {
			t.Errorf("made %v: %+v %+v", got, d.Approval, d.Actions)
		}
		if p := r.do("POST", path, nil); p.status != 409 {
			t.Errorf("approving a run that is over: %d", p.status)
		}
		if n := r.entries("run.approve"); n != 1 {
			t.Errorf("%d entries in the audit log", n)
		}
	})
}

// Many clicks at the same time are one.
func TestClicksAtTheSameTimeAreOne(t *testing.T) {
	both(t, func(r *rig) {
		id := r.askedRun().ID
		var clicks sync.WaitGroup
		replies := make([]*reply, 8)
		for i := range replies {
			clicks.Go(func() { replies[i] = r.do("POST", "/api/v1/runs/"+id+"/approve", nil) })
		}
		clicks.Wait()
		good := 0
		for _, p := range replies {
			switch p.status {
			case 200:
				good++
			case 409:
			default:
				t.Errorf("%d %s", p.status, p.body)
			}
		}
		r.eventually("the approved run has ended", func() bool { return len(r.runs("?lane=asking&status=committed")) >= 2 })
		if n := len(r.desk.things()); good != 1 || n != 1 || r.entries("run.approve") != 1 {
			t.Errorf("%d clicks were accepted, and %d calls made", good, n)
		}
	})
}

// rejecting ends the run and pauses the workflow, once.
func TestRejectRun(t *testing.T) {
	both(t, func(r *rig) {
		id := r.askedRun().ID
		path := "/api/v1/runs/" + id + "/reject"
		r.as(r.token("vera", userstore.RoleViewer, "*"), "POST", path, nil).problem(403, "forbidden")
		r.do("GET", path, nil).problem(405, "method_not_allowed")
		var run client.AnsweredRun
		r.do("POST", path, nil, "Idempotency-Key", "k").want(200).into(&run)
		if run.Status != "cancelled" || run.EndedAt.IsZero() || run.Approval.State != "rejected" || string(run.Approval.DecidedBy) != "admin" || len(run.Actions) != 0 {
			t.Errorf("%+v", run)
		}
		if p := r.do("POST", path, nil, "Idempotency-Key", "k").want(200); p.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%v", p.header)
		}
		r.do("POST", path, nil).problem(409, "conflict")
		r.do("POST", "/api/v1/runs/"+id+"/approve", nil).problem(409, "conflict")
		if w := r.workflow("asking"); w.Status != "Stopped" || !w.Paused {
			t.Errorf("%+v", w.Lane)
		}
		if n := len(r.desk.things()); n != 0 || r.entries("run.reject") != 1 {
			t.Errorf("%d calls, %d entries", n, r.entries("run.reject"))
		}
	})
}

// A question that not answered in time is asked again after a resume.
func TestExpiredQuestionIsAskedAgain(t *testing.T) {
	both(t, func(r *rig) {
		id := r.askedRun().ID
		first := r.detail(id).Approval.ID
		r.exec(`update approvals set state = 'expired'`)
		r.do("POST", "/api/v1/runs/"+id+"/approve", nil).problem(409, "expired")
		if got := actionNames(r.detail(id).RunAnswers); got != "reject resume cancel" {
			t.Errorf("actions %s", got)
		}
		r.do("POST", "/api/v1/runs/"+id+"/resume", nil).want(200)
		d := r.waitDetail(id, "asks again", func(d client.RunDetail) bool { return d.Status == "paused:approval" && d.Approval.State == "pending" })
		if d.Approval.ID == first || r.entries("run.resume") != 1 {
			t.Errorf("%+v", d.Approval)
		}
	})
}

// Context 3.7.6: a resume says that the cause is mended; the run then starts
// again, or waits again. What is over is not resumed.
func TestResumeRun(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("broken", producing("broken", `throw new Error("no");`))
		first := r.waitRuns("?lane=broken&status=failed:logic", 1)[0].ID
		if got := actionNames(r.detail(first).RunAnswers); got != "resume" {
			t.Errorf("actions %s", got)
		}
		path := "/api/v1/runs/" + first + "/resume"
		r.as(r.token("vera", userstore.RoleViewer, "*"), "POST", path, nil).problem(403, "forbidden")
		r.do("POST", path, nil, "Idempotency-Key", "k").want(200)
		second := r.waitRuns("?lane=broken&status=failed:logic", 2)[0]
		if second.RetryOf == "" || string(second.RetryOf) != first {
			t.Errorf("%+v", second)
		}
		if p := r.do("POST", path, nil).problem(409, "history"); !strings.Contains(p.Detail, second.ID) {
			t.Errorf("%+v", p)
		}
		if got := r.detail(first).Actions; len(got) != 0 {
			t.Errorf("actions of history: %v", got)
		}
		if r.entries("run.resume") != 1 {
			t.Error("a second click is in the audit log")
		}
	})
}

// context 3.7.1..4: each thing that a person can say about a call
// leads where it must; what nobody can say is refused.
func TestResolveRun(t *testing.T) {
	tests := []struct {
		body   string
		status string // of the run afterwards
		state  string // of its call
		result string
	}{
		{`{"outcome":"happened","result":{"row":9}}`, "committed", "applied", `{"row":9}`},
		{`{"outcome":"happened"}`, "committed", "applied", `null`},
		{`{"outcome":"skip","result":null}`, "committed", "skipped", `null`},
		{`{"outcome":"did-not-happen"}`, "paused:reconciliation", "failed", `null`}, // of the first attempt
	}
	both(t, func(r *rig) {
		for i, test := range tests {
			name := fmt.Sprintf("lost%d", i)
			r.deploy(name, consuming(name, `await ctx.tools.desk.lose({});`))
			r.publish(name, "t", "1")
			id := r.waitRuns("?lane="+name+"&status=paused:reconciliation", 1)[0].ID
			path := "/api/v1/runs/" + id + "/resolve"
			if i == 0 {
				checkUnresolved(t, r, id)
			}
			r.do("POST", path, test.body, "Idempotency-Key", name).want(200)
			if p := r.do("POST", path, test.body, "Idempotency-Key", name).want(200); p.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%v", p.header)
			}
			if p := r.do("POST", path, test.body); p.status != http.StatusConflict {
				t.Errorf("%s: a second click: %d %s", test.body, p.status, p.body)
			}
			d := r.waitDetail(id, "is "+test.status, func(d client.RunDetail) bool { return d.Status == test.status && d.Mutation.State == test.state })
			if m := d.Mutation; string(m.Result) != test.result || string(m.ResolvedBy) != "admin" || m.ResolvedAt.IsZero() {
				t.Errorf("%s: %+v", test.body, m)
			}
			if test.state == "failed" { // the work starts again, in another run
				r.waitRuns("?lane="+name+"&status=paused:reconciliation", 2)
				r.do("POST", path, test.body).problem(409, "history")
			}
		}
		if n := r.entries("run.resolve"); n != len(tests) {
			t.Errorf("%d entries in the audit log", n)
		}
	})
}

// checkUnresolved tries what cannot be said about a call that is lost.
func checkUnresolved(t *testing.T, r *rig, id string) {
	t.Helper()
	path := "/api/v1/runs/" + id + "/resolve"
	if got := actionNames(r.detail(id).RunAnswers); got != "resolve[happened did-not-happen skip]" {
		t.Errorf("actions %s", got)
	}
	r.as(r.token("vera", userstore.RoleViewer, "*"), "POST", path, `{"outcome":"skip"}`).problem(403, "forbidden")
	r.do("GET", path, nil).problem(405, "method_not_allowed")
	r.do("POST", path, nil).problem(400, "malformed")
	for body, pointer := range map[string]string{
		`{"outcome":"maybe"}`: "/outcome", `{"outcome":""}`: "/outcome", `{}`: "/outcome", `{"outcome":"skip","result":1}`: "/result", `{"outcome":"skip","why":1}`: "/why",
	} {
		if p := r.do("POST", path, body).problem(422, "invalid"); !slices.Equal(pointers(p), []string{pointer}) {
			t.Errorf("%s: %+v", body, p.Errors)
		}
	}
	r.do("POST", path, map[string]any{"outcome": "happened", "result": strings.Repeat("x", testMaxPayload)}).problem(413, "too_large")
	r.do("POST", path, `{"outcome":"try-again"}`).problem(409, "cannot_ask")
	r.do("POST", "/api/v1/runs/"+id+"/resume", nil).problem(409, "outcome_unknown")
	r.do("POST", "/api/v1/runs/"+id+"/approve", nil).problem(409, "conflict")
}

// Context 3.7.1: while the other side is being asked nobody else decides; when
// that was given up, it can be asked once more.
func TestResolveWaitsForReconciliation(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("doubt", consuming("doubt", `await ctx.tools.desk.doubt({});`))
		r.publish("doubt", "t", "1")
		id := r.waitRuns("?lane=doubt&status=paused:reconciliation", 1)[0].ID
		path := "/api/v1/runs/" + id + "/resolve"
		if p := r.do("POST", path, `{"outcome":"happened"}`).problem(409, "reconciling"); !strings.Contains(p.Hint, "pawl why workflow doubt") {
			t.Errorf("%+v", p)
		}
		if got := r.detail(id).Actions; len(got) != 0 {
			t.Errorf("actions %v", got)
		}
		r.exec(`update mutations set state = 'indeterminate'`)
		if got := actionNames(r.detail(id).RunAnswers); got != "resolve[happened did-not-happen skip try-again]" {
			t.Errorf("actions %s", got)
		}
		var run client.AnsweredRun
		r.do("POST", path, `{"outcome":"try-again"}`).want(200).into(&run)
		if run.Mutation.State != "needs_reconcile" || run.Mutation.ReconcileAttempts != 0 || len(run.Actions) != 0 {
			t.Errorf("%+v", run.Mutation)
		}
	})
}
