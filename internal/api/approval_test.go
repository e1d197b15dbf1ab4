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

// What people are asked is listed, the newest first, by its state.
func TestApprovalsAreListedByState(t *testing.T) {
	both(t, func(r *rig) {
		var ids []string
		for i := range 3 {
			name := fmt.Sprintf("asks%d", i)
			r.deploy(name, consuming(name, `await ctx.tools.desk.ask({ "to": "ann" });`))
			r.publish(name, "t", "1")
			ids = append(ids, r.waitRuns("?lane="+name+"&status=paused:approval", 1)[0].ID)
		}
		r.do("POST", "/api/v1/runs/"+ids[0]+"/reject", nil).want(200)
		r.exec(`update approvals set created_at = 5 where run_id = $1`, ids[2]) // the oldest
		list := pages[client.Approval](r, "/api/v1/approvals?limit=1")
		if len(list) != 2 || list[0].RunID != ids[1] || list[1].RunID != ids[2] || list[0].Workflow != "asks1" || list[0].State != "pending" ||
			string(list[0].Arguments) != `{"to":"ann"}` || list[0].Title != "" || !list[0].DecidedAt.IsZero() {
			t.Errorf("%+v", list)
		}
		if list := pages[client.Approval](r, "/api/v1/approvals?limit=1&order=oldest"); len(list) != 2 || list[0].RunID != ids[2] || list[1].RunID != ids[1] {
			t.Errorf("the oldest first: %+v", list)
		}
		newest := r.do("GET", "/api/v1/approvals?limit=1", nil).want(200)
		var first client.Page[client.Approval]
		newest.into(&first)
		r.do("GET", "/api/v1/approvals?limit=1&order=oldest&cursor="+string(first.NextCursor), nil).problem(422, "invalid")
		p := r.do("GET", "/api/v1/approvals?state=rejected", nil).want(200)
		var raw struct{ Items []map[string]json.RawMessage }
		p.into(&raw)
		want := strings.Fields("address arguments createdAt decidedAt decidedBy expiresAt hash id method runId state title tool workflow")
		if len(raw.Items) != 1 || !slices.Equal(sortedKeys(raw.Items[0]), want) || string(raw.Items[0]["decidedBy"]) != `"admin"` || string(raw.Items[0]["decidedAt"]) == "null" {
			t.Errorf("%s", p.body)
		}
		for _, state := range []string{"approved", "expired", "used"} {
			if got := pages[client.Approval](r, "/api/v1/approvals?limit=5&state="+state); len(got) != 0 {
				t.Errorf("%s: %+v", state, got)
			}
		}
		if got := pages[client.Approval](r, "/api/v1/approvals?limit=1&workflow=asks2"); len(got) != 1 || got[0].RunID != ids[2] {
			t.Errorf("those of one workflow: %+v", got)
		}
		if got := pages[client.Approval](r, "/api/v1/approvals?limit=1&workflow=asks0"); len(got) != 0 {
			t.Errorf("those of one workflow: %+v", got)
		}
		if p := r.do("GET", "/api/v1/approvals?workflow=ask1", nil).problem(404, "not_found"); !strings.Contains(p.Hint, `"asks1"`) {
			t.Errorf("%+v", p)
		}
		r.do("GET", "/api/v1/approvals?workflow=%00", nil).problem(404, "not_found")
		r.do("GET", "/api/v1/approvals?state=maybe", nil).problem(422, "invalid")
		r.do("GET", "/api/v1/approvals?cursor=x", nil).problem(422, "invalid")
		r.as(r.token("vera", userstore.RoleViewer, "read"), "GET", "/api/v1/approvals", nil).want(200)
		r.do("POST", "/api/v1/approvals", nil).problem(405, "method_not_allowed")
	})
}

// Whoever says always is not asked again for that method and workflow, until
// somebody takes it back.
func TestAlwaysHoldsUntilItIsRevoked(t *testing.T) {
	both(t, func(r *rig) {
		const rules, rule = "/api/v1/workflows/asking/approvals/rules", "/api/v1/workflows/asking/approvals/rules/desk/ask"
		id := r.askedRun().ID
		if got := pages[client.ApprovalRule](r, rules+"?limit=5"); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		r.do("DELETE", rule, nil).problem(404, "not_found")
		r.do("POST", "/api/v1/runs/"+id+"/approve", `{"always":true}`).want(200)
		got := pages[client.ApprovalRule](r, rules+"?limit=1")
		if len(got) != 1 || got[0].Workflow != "asking" || got[0].Tool != "desk" || got[0].Method != "ask" || string(got[0].CreatedBy) != "admin" || got[0].CreatedAt.IsZero() {
			t.Errorf("%+v", got)
		}
		r.eventually("the call is made", func() bool { return len(r.desk.things()) == 1 })
		r.publish("asking", "t", "2")
		r.eventually("another is made unasked", func() bool { return len(r.desk.things()) == 2 })

		r.as(r.token("vera", userstore.RoleViewer, "*"), "DELETE", rule, nil).problem(403, "forbidden")
		r.do("DELETE", "/api/v1/workflows/askin/approvals/rules/desk/ask", nil).problem(404, "not_found")
		r.do("GET", "/api/v1/workflows/askin/approvals/rules", nil).problem(404, "not_found")
		r.do("DELETE", rule, nil).want(204)
		if p := r.do("DELETE", rule, nil).problem(404, "not_found"); !strings.Contains(p.Detail, "no standing approval for desk.ask") {
			t.Errorf("%+v", p)
		}
		if e := r.audited("approval.revoke", "workflow:asking"); string(e.Detail) != `{"method":"ask","tool":"desk"}` || r.entries("approval.revoke") != 1 {
			t.Errorf("%s", e.Detail)
		}
		if got := pages[client.ApprovalRule](r, rules+"?limit=5"); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		r.publish("asking", "t", "3")
		r.waitRuns("?lane=asking&status=paused:approval", 1)
	})
}

func TestFollowingGoesOnBehindWhatIsGone(t *testing.T) {
	list := []string{"a", "c", "d"}
	for _, tt := range []struct {
		after string
		most  int
		want  string
	}{{"", 2, "[a c]"}, {"", 9, "[a c d]"}, {"a", 9, "[c d]"}, {"b", 1, "[c]"}, {"d", 1, "[]"}, {"x", 1, "[]"}} {
		if got := fmt.Sprint(following(list, tt.after, tt.most, func(s string) string { return s })); got != tt.want {
			t.Errorf("after %q: %s, want %s", tt.after, got, tt.want)
		}
	}
}
