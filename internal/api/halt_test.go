package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func (r *rig) haltAll(note string) (h client.Halt) {
	r.t.Helper()
	r.do("PUT", client.HaltPath, map[string]any{"note": note}).want(http.StatusOK).into(&h)
	return h
}

func (r *rig) whyAt(kind, name, query string) (y client.LaneWhy) {
	r.t.Helper()
	r.do("GET", "/api/v1/lanes/"+kind+"/"+name+"/why"+query, nil).want(http.StatusOK).into(&y)
	return y
}

// While everything is halted nothing of any kind starts, what is asked for by hand
// is refused with what to do, and everybody is told. Afterwards what waited runs.
func TestNothingStartsWhileEverythingIsHalted(t *testing.T) {
	both(t, func(r *rig) {
		r.schedule(yearly("poem", "http:poet"))
		slot := r.slotTo("retry")
		h := r.haltAll("the shop is closed")
		if !h.Halted || h.By != "admin" || h.Note != "the shop is closed" || time.Since(h.Since.Time) > time.Minute {
			t.Fatalf("%+v", h)
		}
		r.deploy("hello", producing("hello", "return {}"))
		r.apply("prices", r.fetching("/prices"))
		job := r.enqueue(map[string]any{"task": "echo"})
		if d := r.putHook("ring", `"run":{"schedule":"poem"}`); d.Outcome != "pending" || !strings.Contains(string(d.Reason), "halted") {
			t.Errorf("a delivery: %+v", d)
		}
		for _, path := range []string{
			"/api/v1/workflows/hello/run", "/api/v1/sources/prices/run", slot,
			"/api/v1/hooks/ring/deliveries/d1/redeliver",
		} {
			p := r.do("POST", path, nil).problem(http.StatusConflict, "halted")
			if !strings.Contains(p.Hint, "pawl unhalt") || !strings.Contains(p.Detail, "the shop is closed") {
				t.Errorf("%s: %+v", path, p)
			}
		}
		var poem client.Page[client.Schedule]
		r.do("GET", "/api/v1/schedules", nil).want(200).into(&poem)
		for i := range poem.Items {
			id := poem.Items[i].ID
			r.do("POST", "/api/v1/schedules/"+id+"/run", nil).problem(http.StatusConflict, "halted")
			r.do("POST", "/api/v1/schedules/"+id+"/backfill", span()).problem(http.StatusConflict, "halted")
		}
		const told = "by admin: the shop is closed."
		for kind, name := range map[string]string{"workflow": "hello", "source": "prices", "schedule": "poem"} {
			y := r.whyAt(kind, name, "?at="+h.Since.Format(time.RFC3339Nano))
			if y.Status != "Stopped" || y.IssueCode != "halted" || !strings.HasSuffix(string(y.Issue), told) || y.Do != "pawl unhalt" || y.Next != "It starts nothing until the halt is lifted." {
				t.Errorf("%s: %+v", kind, y)
			}
			if gate := y.Gates[len(y.Gates)-1]; gate.Name != "halt" || gate.Open || !strings.HasSuffix(gate.Text, told) {
				t.Errorf("%s: %+v", kind, gate)
			}
			if !strings.Contains(y.Around.Text, "Everything was halted from ") || !strings.HasSuffix(y.Around.Text, told) {
				t.Errorf("%s: %s", kind, y.Around.Text)
			}
		}
		if p := r.as("", "GET", "/readyz", nil).want(http.StatusOK); !strings.Contains(string(p.body), `"halted":{"since":"`) || strings.Contains(string(p.body), "closed") {
			t.Errorf("%s", p.body)
		}
		if n := len(r.runs("?limit=100")); n != 0 || len(r.ran) > 0 {
			t.Errorf("%d runs and %d jobs", n, len(r.ran))
		}
		r.do("DELETE", client.HaltPath, nil).want(http.StatusNoContent)
		r.waitRuns("?lane=hello&status=committed", 2)
		r.waitRuns("?kind=source&lane=prices&status=committed", 1)
		r.waitState(job.ID, "succeeded")
		r.waitRuns("?kind=schedule&status=committed", 1) // of the delivery
		for kind, name := range map[string]string{"workflow": "hello", "source": "prices", "schedule": "poem"} {
			r.eventually(kind+" is idle", func() bool { return r.whyAt(kind, name, "").Status == "Idle" })
			if y := r.whyAt(kind, name, "?at="+h.Since.Format(time.RFC3339Nano)); !strings.Contains(y.Around.Text, " to ") || !strings.HasSuffix(y.Around.Text, told) {
				t.Errorf("%s: %s", kind, y.Around.Text)
			}
		}
	})
}

// The switch is an administrator's. Moving it to where it is changes nothing, and
// what is moved is in the audit log.
func TestTheHaltIsForAdministrators(t *testing.T) {
	both(t, func(r *rig) {
		operator, viewer := r.token("olga", userstore.RoleOperator, "*"), r.token("vic", userstore.RoleViewer, "*")
		narrow := r.token("admin", userstore.RoleAdmin, "write")
		for _, token := range []string{operator, viewer, narrow} {
			r.as(token, "PUT", client.HaltPath, map[string]any{"note": "mine"}).problem(http.StatusForbidden, "forbidden")
			r.as(token, "DELETE", client.HaltPath, nil).problem(http.StatusForbidden, "forbidden")
			r.as(token, "GET", client.HaltPath, nil).want(http.StatusOK)
		}
		r.as("", "PUT", client.HaltPath, nil).problem(http.StatusUnauthorized, "unauthorized")
		audited := func() int { return r.count(`select count(*) from audit_log where subject = 'server'`) }
		r.do("DELETE", client.HaltPath, nil).want(http.StatusNoContent)
		if p := r.do("GET", client.HaltPath, nil).want(200); string(p.body) != `{"halted":false,"since":null,"by":null,"note":null}`+"\n" || audited() != 0 {
			t.Errorf("%s, %d entries", p.body, audited())
		}
		first := r.haltAll("one")
		for _, c := range []struct {
			note, want string
			entries    int
		}{{"", "one", 1}, {"one", "one", 1}, {" two ", "two", 2}} {
			if h := r.haltAll(c.note); h.Since != first.Since || string(h.Note) != c.want || audited() != c.entries {
				t.Errorf("%q: %+v, %d entries", c.note, h, audited())
			}
		}
		r.as(operator, "DELETE", client.HaltPath, nil).problem(http.StatusForbidden, "forbidden")
		for _, bad := range []string{`{"note":1}`, `{"nota":"x"}`, `{"note":"a\nb"}`, `{"note":"` + strings.Repeat("x", 501) + `"}`, `[`} {
			if p := r.do("PUT", client.HaltPath, bad); p.status < 400 || p.status >= 500 {
				t.Errorf("%.30s: %d", bad, p.status)
			}
		}
		r.do("DELETE", client.HaltPath, nil).want(http.StatusNoContent)
		r.do("DELETE", client.HaltPath, nil).want(http.StatusNoContent)
		if audited() != 3 {
			t.Errorf("%d entries", audited())
		}
	})
}
