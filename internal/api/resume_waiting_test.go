package api

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
)

// X-07, context 3.7.6: resuming answers no question and decides about no call. Of
// a run that waits for one of these it is refused, with the command that does; of
// its workflow it changes nothing, and what is answered says what it waits for.
func TestResumeOfWhatWaitsIsRefused(t *testing.T) {
	both(t, func(r *rig) {
		for name, c := range map[string]struct{ call, status, reason, hint string }{
			"asks":   {"ask", "paused:approval", "approval", "pawl approve RUN"},
			"lost":   {"lose", "paused:reconciliation", "outcome_unknown", "pawl resolve RUN --outcome happened|did-not-happen|skip"},
			"doubts": {"doubt", "paused:reconciliation", "reconciling", "pawl why workflow doubts"},
		} {
			r.deploy(name, consuming(name, `if (prepared.reservations.length) { await ctx.tools.desk.`+c.call+`({}); }`))
			r.publish(name, "t", "1")
			run := r.waitRuns("?kind=workflow&lane="+name+"&status="+c.status, 1)[0]
			asked := func() int { return r.count(`select count(*) from mutations where run_id = $1`, run.ID) }
			before := asked()
			if p := r.do("POST", "/api/v1/runs/"+run.ID+"/resume", nil).problem(409, c.reason); !strings.Contains(p.Hint, strings.Replace(c.hint, "RUN", run.ID, 1)) {
				t.Errorf("%s: %+v", name, p)
			}
			var w client.Workflow
			if r.do("POST", "/api/v1/workflows/"+name+"/resume", nil).want(200).into(&w); string(w.IssueCode) != c.reason || w.Status == "Idle" {
				t.Errorf("%s: it is %s (%s)", name, w.Status, w.IssueCode)
			}
			now := r.detail(run.ID)
			if string(now.Status) != c.status || asked() != before || strings.Contains(actionNames(now.RunAnswers), "resume") {
				t.Errorf("%s: the run is %s with %d calls, and offers %s", name, now.Status, asked(), actionNames(now.RunAnswers))
			}
		}
		if n := r.entries("run.resume") + r.entries("workflow.resume"); n != 0 {
			t.Errorf("%d resumptions are in the audit log", n)
		}
	})
}
