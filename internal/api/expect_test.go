package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
)

// What is expected of a lane, and whether it is met, is part of it wherever it is
// read, and what makes no sense is refused.
func TestExpectationsAreShown(t *testing.T) {
	both(t, func(r *rig) {
		r.apply("prices", r.fetching("/prices", "expect", map[string]any{"freshWithin": "2h", "rows": 5}))
		r.deploy("mail", strings.Replace(producing("mail", "return {}"), "name:", `expect: { freshWithin: "2h" }, name:`, 1))
		s := r.schedule(map[string]any{"name": "s", "cron": "0 3 1 1 *", "timezone": "UTC", "graphId": "x:poet", "expect": map[string]any{"doneBy": "07:00"}})
		r.waitRuns("?lane=mail&status=committed", 2)
		r.waitRuns("?kind=source&lane=prices&status=committed", 1)
		const judged = `{"of":"x","verdicts":[{"name":"freshWithin","met":false,"since":"2030-01-31T09:00:00Z","sentence":"It is stale."},{"name":"doneBy","met":false,"since":"2030-01-31T09:00:00Z","sentence":"It is late."}]}`
		r.exec(`update lanes set expected = $1, state = 'Needs attention'`, judged)
		var lanes client.Page[client.Lane]
		r.do("GET", "/api/v1/lanes", nil).want(http.StatusOK).into(&lanes)
		told := map[string]string{}
		for _, l := range lanes.Items {
			told[l.Name] = l.Status + " " + string(l.IssueCode) + " " + string(l.Issue)
		}
		for name, want := range map[string]string{"prices": "It is stale.", "mail": "It is stale.", "s": "It is late."} {
			if told[name] != "Needs attention expectation "+want {
				t.Errorf("%s: %s", name, told[name])
			}
		}
		var src client.Source
		r.do("GET", "/api/v1/sources/prices", nil).want(http.StatusOK).into(&src)
		if e := src.Expectations; len(e) != 2 || e[0].Met || e[0].Sentence != "It is stale." || e[0].Since.UnixMilli() != 1896080400000 || !e[1].Met || !strings.Contains(string(src.Definition), `"rows":5`) {
			t.Errorf("%+v %s", e, src.Definition)
		}
		var w client.Workflow
		r.do("GET", "/api/v1/workflows/mail", nil).want(http.StatusOK).into(&w)
		if w.Config.Expect == nil || w.Config.Expect.FreshWithin != "2h" || len(w.Expectations) != 1 {
			t.Errorf("%+v, %+v", w.Config, w.Expectations)
		}
		var sch client.Schedule
		r.do("GET", "/api/v1/schedules/"+s.ID, nil).want(http.StatusOK).into(&sch)
		var page, named client.SchedulePage
		r.do("GET", "/api/v1/schedules", nil).want(http.StatusOK).into(&page)
		r.do("GET", "/api/v1/schedules?name=s", nil).want(http.StatusOK).into(&named)
		for _, one := range []client.Schedule{sch, page.Items[0], named.Items[0]} {
			if one.Expect == nil || one.Expect.DoneBy != "07:00" || len(one.Expectations) != 1 || one.Expectations[0].Sentence != "It is late." {
				t.Errorf("%+v", one)
			}
		}
		if y := r.why("mail", ""); len(y.Expectations) != 1 || y.Do != "pawl run workflow mail" {
			t.Errorf("%+v", y.Lane)
		}
		p := r.do("POST", "/api/v1/schedules", map[string]any{"name": "t", "cron": "0 3 * * *", "timezone": "UTC", "graphId": "x:poet", "expect": map[string]any{"rows": "many"}})
		if p.status != http.StatusUnprocessableEntity || !strings.Contains(string(p.body), "/expect/rows") || !strings.Contains(string(p.body), "is not a number of rows") {
			t.Errorf("%d %s", p.status, p.body)
		}
	})
}
