package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Whoever makes or changes a schedule that runs a workflow needs the right to
// run workflows, at every door of schedules; switching it off needs no more
// than schedules (P1 12).
func TestSchedulesOfWorkflowsNeedTheRightToRunThem(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("pay", producing("pay", "return {}"))
		both, narrow := r.token("ada", userstore.RoleOperator, "schedules:write", "workflows:write"), r.token("ada", userstore.RoleOperator, "schedules:write", "workflows:read")
		refused := func(p *reply) {
			t.Helper()
			if p := p.problem(403, "forbidden"); !strings.Contains(p.Detail, "workflows:write") || !strings.Contains(p.Detail, "runs the workflow pay") {
				t.Errorf("%+v", p)
			}
		}
		refused(r.as(narrow, "POST", "/api/v1/schedules", yearly("mine", "workflow:pay")))
		refused(r.as(narrow, "PUT", "/api/v1/schedules/by-name/mine", yearly("mine", "workflow:pay")))
		if n := r.count(`select (select count(*) from schedules) + (select count(*) from execution_grants) + (select count(*) from schedule_runs)`); n != 0 {
			t.Errorf("%d rows of what was refused", n)
		}
		var harmless, s client.Schedule
		r.as(narrow, "POST", "/api/v1/schedules", yearly("other", "http:poet")).want(http.StatusCreated).into(&harmless)
		refused(r.as(narrow, "PATCH", "/api/v1/schedules/"+harmless.ID, map[string]any{"graphId": "workflow:pay"}))
		r.as(both, "POST", "/api/v1/schedules", yearly("mine", "workflow:pay")).want(http.StatusCreated).into(&s)
		path := "/api/v1/schedules/" + s.ID
		refused(r.as(narrow, "PATCH", path, map[string]any{"cron": "* * * * *"}))
		refused(r.as(narrow, "PATCH", path, map[string]any{"enabled": false, "cron": "* * * * *"}))
		refused(r.as(narrow, "PATCH", path, map[string]any{"enabled": true}))
		refused(r.as(narrow, "POST", path+"/run", nil))
		span := map[string]any{"from": "2020-01-01T00:00:00Z", "to": "2022-01-02T00:00:00Z"}
		refused(r.as(narrow, "POST", path+"/backfill", span))
		var b client.Backfill
		r.as(both, "POST", path+"/backfill", span).want(http.StatusCreated).into(&b)
		refused(r.as(narrow, "POST", "/api/v1/backfills/"+b.ID+"/confirm", map[string]any{"hash": b.Hash}))
		r.as(both, "POST", "/api/v1/backfills/"+b.ID+"/confirm", map[string]any{"hash": b.Hash}).want(200)
		r.as(narrow, "POST", "/api/v1/backfills/"+b.ID+"/pause", nil).want(200)
		refused(r.as(narrow, "POST", "/api/v1/backfills/"+b.ID+"/resume", nil))
		refused(r.as(narrow, "POST", path+"/pause", map[string]any{"until": "1h"})) // which would enable it
		r.as(narrow, "POST", path+"/pause", map[string]any{"note": "stop"}).want(200)
		refused(r.as(narrow, "POST", path+"/resume", nil))
		r.as(narrow, "PATCH", path, map[string]any{"enabled": false}).want(200)
		r.as(narrow, "DELETE", path, nil).want(200)
	})
}

// Whoever makes a source that gives a workflow events, or writes with a
// connection, needs the right for that (P1 12).
func TestSourcesNeedTheRightForWhatTheyDo(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("pay", producing("pay", "return {}"))
		narrow := r.token("ada", userstore.RoleOperator, "sources:write")
		for _, c := range []struct {
			field, detail string
			value         map[string]any
			scopes        []string
		}{
			{"publish", "publishes events to the workflow pay: this needs the scope workflows:write", map[string]any{"workflow": "pay", "topic": "found"}, []string{"sources:write", "workflows:write"}},
			{"write", "writes with the connection books: this needs the scope connections:write", map[string]any{"key": []any{"id"}, "connection": "books"}, []string{"sources:write", "connections:write"}},
		} {
			d := r.fetching("/prices", c.field, c.value)
			for _, query := range []string{"", "?dryRun=true"} {
				if p := r.as(narrow, "PUT", "/api/v1/sources/prices"+query, d).problem(403, "forbidden"); !strings.Contains(p.Detail, c.detail) {
					t.Errorf("%+v", p)
				}
			}
			if r.count(`select count(*) from source_definitions`) != 0 {
				t.Error("what was refused is there")
			}
			full := r.token("ada", userstore.RoleOperator, c.scopes...)
			r.as(full, "PUT", "/api/v1/sources/prices", d).want(http.StatusCreated)
			if c.field == "write" { // its rows are elsewhere, and so is what is deleted
				r.as(narrow, "DELETE", "/api/v1/sources/prices", nil).problem(403, "forbidden")
			}
			r.as(narrow, "DELETE", "/api/v1/sources/prices?keepRows=true", nil).want(200)
		}
	})
}

// A replay shows what belongs to the workflow; with a script of one's own it
// shows all that the run was answered (P0 3).
func TestReplayNeedsTheRightForWhatItShows(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("mail", producing("mail", "return {}"))
		id := r.waitRuns("?kind=workflow&status=committed", 2)[0].ID
		path := "/api/v1/runs/" + id + "/replay"
		own := map[string]any{"script": producing("mail", `ctx.log("mine"); return {}`)}
		runs := r.token("ada", userstore.RoleViewer, "runs:read")
		reader, writer := r.token("bob", userstore.RoleOperator, "runs:read", "workflows:read"), r.token("cleo", userstore.RoleOperator, "runs:read", "workflows:write")
		for _, c := range []struct {
			token  string
			body   any
			status int
		}{{runs, nil, 403}, {runs, own, 403}, {reader, nil, 200}, {reader, own, 403}, {writer, nil, 200}, {writer, own, 200}} {
			r.as(c.token, "POST", path, c.body).want(c.status)
		}
		s := r.schedule(yearly("poet", "http:poet"))
		r.runSchedule(s.ID)
		foreign := r.waitRuns("?kind=schedule&status=committed", 1)[0].ID
		for _, gone := range []string{foreign, "0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e", "none"} {
			for _, body := range []any{nil, own} {
				r.as(writer, "POST", "/api/v1/runs/"+gone+"/replay", body).problem(404, "not_found")
			}
		}
	})
}

// The scope of services can be given, by admins alone (P1 12).
func TestTokensForServicesCanBeMade(t *testing.T) {
	both(t, func(r *rig) {
		body := map[string]any{"name": "worker", "scopes": []any{"graphs:execute"}, "user": "worker"}
		var made client.NewToken
		r.do("POST", "/api/v1/tokens", body).want(http.StatusCreated).into(&made)
		if token := r.find(string(made.Text)); token.User.Role != userstore.RoleAdmin || len(token.Scopes) != 1 {
			t.Errorf("%+v", token)
		}
		for _, path := range []string{"/api/v1/jobs", "/api/v1/schedules", "/api/v1/tokens"} { // it may do nothing else
			r.as(string(made.Text), "GET", path, nil).problem(403, "forbidden")
		}
		bob := r.token("bob", userstore.RoleOperator, "*")
		r.as(bob, "POST", "/api/v1/tokens", body).problem(403, "forbidden")
		r.as(r.token("cleo", userstore.RoleAdmin, "tokens:admin"), "POST", "/api/v1/tokens", body).problem(403, "forbidden")
	})
}
