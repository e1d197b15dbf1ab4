package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// change is a request that changes something.
type change struct {
	path string
	body any
}

// changes lists for every route that changes something how to bring about that
// it does. A route that is added must be here, or among those that change
// nothing.
func changes() map[string]func(r *rig) change {
	workflow := func(action string) func(*rig) change {
		return func(r *rig) change {
			name := "me" + strings.ReplaceAll(action, "/", "-")
			r.deploy(name, producing(name, "return {}"))
			r.waitRuns("?lane="+name+"&status=committed", 2)
			if action == "/resume" {
				r.do("POST", "/api/v1/workflows/"+name+"/pause", nil).want(200)
			}
			return change{path: "/api/v1/workflows/" + name + action}
		}
	}
	source := func(action string) func(*rig) change {
		return func(r *rig) change {
			name := "s" + strings.TrimPrefix(action, "/")
			r.apply(name, r.fetching("/prices"))
			r.waitRuns("?kind=source&lane="+name+"&status=committed", 1)
			if action == "/resume" {
				r.do("POST", "/api/v1/sources/"+name+"/pause", nil).want(200)
			}
			return change{path: "/api/v1/sources/" + name + action}
		}
	}
	schedule := func(action string, body any) func(*rig) change {
		return func(r *rig) change {
			return change{"/api/v1/schedules/" + r.schedule(yearly(store.NewID(), "http:poet")).ID + action, body}
		}
	}
	out := map[string]func(r *rig) change{
		"DELETE /api/v1/workflows/{name}":      workflow(""),
		"POST /api/v1/workflows/{name}/run":    workflow("/run"),
		"POST /api/v1/workflows/{name}/pause":  workflow("/pause"),
		"POST /api/v1/workflows/{name}/resume": workflow("/resume"),
		"DELETE /api/v1/sources/{name}":        source(""),
		"POST /api/v1/sources/{name}/run":      source("/run"),
		"POST /api/v1/sources/{name}/pause":    source("/pause"),
		"POST /api/v1/sources/{name}/resume":   source("/resume"),
		"POST /api/v1/sources/{name}/reset":    source("/reset"),
		"PATCH /api/v1/schedules/{id}":         schedule("", map[string]any{"cron": "0 8 1 1 *"}),
		"DELETE /api/v1/schedules/{id}":        schedule("", nil),
		"POST /api/v1/schedules/{id}/run":      schedule("/run", nil),
		"POST /api/v1/schedules/{id}/pause":    schedule("/pause", map[string]any{"until": "2h", "note": "moving"}),
		"POST /api/v1/schedules/{id}/resume": func(r *rig) change {
			path := "/api/v1/schedules/" + r.schedule(yearly(store.NewID(), "http:poet")).ID
			r.do("POST", path+"/pause", nil).want(200)
			return change{path: path + "/resume"}
		},
		"POST /api/v1/schedules/{id}/backfill": schedule("/backfill", span()),
	}
	addPlainChanges(out)
	addRunChanges(out)
	addBackfillChanges(out)
	return out
}

func span() map[string]any {
	return map[string]any{"from": "2020-01-01T00:00:00Z", "to": "2022-01-02T00:00:00Z"}
}

func addPlainChanges(out map[string]func(r *rig) change) {
	later := map[string]any{"task": "echo", "delay": "1h"}
	out["POST /api/v1/jobs"] = func(*rig) change { return change{"/api/v1/jobs", later} }
	out["DELETE /api/v1/jobs/{id}"] = func(r *rig) change { return change{path: "/api/v1/jobs/" + r.enqueue(later).ID} }
	out["POST /api/v1/jobs:bulk"] = func(*rig) change { return change{"/api/v1/jobs:bulk", map[string]any{"jobs": []any{later}}} }
	out["POST /api/v1/jobs:cancel"] = func(r *rig) change {
		r.enqueue(map[string]any{"task": "echo", "delay": "1h", "lane": "to-cancel"})
		return change{"/api/v1/jobs:cancel", `{"filter":{"lane":"to-cancel"}}`}
	}
	out["POST /api/v1/jobs:retry"] = func(r *rig) change {
		r.waitState(r.enqueue(map[string]any{"task": "fail", "lane": "to-retry"}).ID, store.JobFailed)
		return change{"/api/v1/jobs:retry", `{"filter":{"lane":"to-retry"}}`}
	}
	out["POST /api/v1/jobs/{id}/retry"] = func(r *rig) change {
		j := r.enqueue(map[string]any{"task": "fail"})
		r.waitState(j.ID, store.JobFailed)
		return change{path: "/api/v1/jobs/" + j.ID + "/retry"}
	}
	out["PUT /api/v1/halt"] = func(*rig) change { return change{client.HaltPath, map[string]any{"note": "why"}} }
	out["DELETE /api/v1/halt"] = func(r *rig) change {
		r.do("PUT", client.HaltPath, nil).want(200)
		return change{path: client.HaltPath}
	}
	out["PUT /api/v1/tasks/{name}"] = func(*rig) change { return change{"/api/v1/tasks/tnew", map[string]any{}} }
	out["DELETE /api/v1/tasks/{name}"] = func(r *rig) change {
		r.declare("tdel", nil)
		return change{path: "/api/v1/tasks/tdel"}
	}
	out["POST /api/v1/prune"] = func(*rig) change { return change{path: "/api/v1/prune"} }
	out["POST /api/v1/backup"] = func(*rig) change { return change{path: "/api/v1/backup"} }
	out["PUT /api/v1/workflows/{name}"] = func(*rig) change {
		return change{"/api/v1/workflows/new", map[string]any{"script": producing("new", "return {}"), "filename": "new.workflow.js"}}
	}
	out["PUT /api/v1/sources/{name}"] = func(r *rig) change { return change{"/api/v1/sources/snew", r.fetching("/prices")} }
	out["PUT /api/v1/hooks/{name}"] = func(*rig) change { return change{"/api/v1/hooks/hnew", hookOf(logging)} }
	out["DELETE /api/v1/hooks/{name}"] = func(r *rig) change {
		r.putHook("hdel", logging)
		return change{path: "/api/v1/hooks/hdel"}
	}
	out["POST /api/v1/hooks/{name}/deliveries/{id}/redeliver"] = func(r *rig) change {
		return change{path: "/api/v1/hooks/hagain/deliveries/" + r.putHook("hagain", logging).ID + "/redeliver"}
	}
	out["POST /api/v1/schedules"] = func(*rig) change { return change{"/api/v1/schedules", yearly("created", "http:poet")} }
	out["PUT /api/v1/schedules/by-name/{name}"] = func(*rig) change {
		return change{"/api/v1/schedules/by-name/applied", yearly("applied", "http:poet")}
	}
	calendar := func(name string) change {
		return change{"/api/v1/calendars/" + name, map[string]any{"name": name, "days": []any{"2099-01-01"}}}
	}
	out["PUT /api/v1/calendars/{name}"] = func(*rig) change { return calendar("cnew") }
	out["DELETE /api/v1/calendars/{name}"] = func(r *rig) change {
		r.do("PUT", "/api/v1/calendars/cold", calendar("cold").body).want(http.StatusCreated)
		return change{path: "/api/v1/calendars/cold"}
	}
	for _, verb := range []string{"skip", "retry"} {
		out["POST /api/v1/schedules/{id}/slots/{instant}/"+verb] = func(r *rig) change { return change{path: r.slotTo(verb)} }
	}
	out["POST /api/v1/grants"] = func(*rig) change { return change{"/api/v1/grants", map[string]any{"graphs": []any{"http:poet"}}} }
	out["POST /api/v1/grants/{id}/revoke"] = func(r *rig) change {
		return change{path: "/api/v1/grants/" + r.grantOf("admin", `{"graphs":["http:poet"]}`) + "/revoke"}
	}
	out["PATCH /api/v1/billing/accounts/{id}"] = func(r *rig) change {
		var page client.Page[client.Account]
		r.schedule(yearly("with-an-account", "http:poet"))
		r.do("GET", "/api/v1/billing/accounts", nil).want(200).into(&page)
		return change{accountsPath + page.Items[0].ID, `{"balanceUsd":7}`}
	}
	out["POST /api/v1/connections/{name}/pins"] = func(*rig) change {
		return change{"/api/v1/connections/box/pins", map[string]any{"methods": []any{"news"}}}
	}
	out["POST /api/v1/tokens"] = func(*rig) change {
		return change{"/api/v1/tokens", map[string]any{"name": "x", "scopes": []any{"read"}}}
	}
	token := func(r *rig) string {
		return "/api/v1/tokens/" + r.find(r.token("ada", userstore.RoleViewer, "read")).ID
	}
	out["DELETE /api/v1/tokens/{id}"] = func(r *rig) change { return change{path: token(r)} }
	out["POST /api/v1/tokens/{id}/revoke"] = func(r *rig) change { return change{path: token(r) + "/revoke"} }
}

func addRunChanges(out map[string]func(r *rig) change) {
	// asked brings a run of a new workflow to where it asks.
	asked := func(r *rig, name string) string {
		r.deploy(name, strings.ReplaceAll(asking, `"asking"`, `"`+name+`"`))
		r.publish(name, "t", "1")
		return "/api/v1/runs/" + r.waitRuns("?lane="+name+"&status=paused:approval", 1)[0].ID
	}
	for _, what := range []string{"approve", "reject", "cancel"} {
		out["POST /api/v1/runs/{id}/"+what] = func(r *rig) change { return change{path: asked(r, "to-"+what) + "/" + what} }
	}
	out["POST /api/v1/runs/{id}/resume"] = func(r *rig) change {
		r.deploy("broken", producing("broken", `throw new Error("no");`))
		return change{path: "/api/v1/runs/" + r.waitRuns("?lane=broken&status=failed:logic", 1)[0].ID + "/resume"}
	}
	out["POST /api/v1/runs/{id}/resolve"] = func(r *rig) change {
		r.deploy("lost", consuming("lost", `await ctx.tools.desk.lose({});`))
		r.publish("lost", "t", "1")
		return change{"/api/v1/runs/" + r.waitRuns("?lane=lost&status=paused:reconciliation", 1)[0].ID + "/resolve", `{"outcome":"skip"}`}
	}
	out["DELETE /api/v1/workflows/{name}/approvals/rules/{tool}/{method}"] = func(r *rig) change {
		r.do("POST", asked(r, "ruled")+"/approve", `{"always":true}`).want(200)
		return change{path: "/api/v1/workflows/ruled/approvals/rules/desk/ask"}
	}
	out["POST /api/v1/workflows/{name}/events"] = func(r *rig) change {
		r.deploy("told", consuming("told", ""))
		return change{"/api/v1/workflows/told/events", map[string]any{"topic": "t", "messageId": "1"}}
	}
	out["POST /api/v1/inputs/{id}/skip"] = func(r *rig) change {
		r.deploy("skipping", strings.Replace(consuming("skipping", ""), "ids.length ?", "false ?", 1))
		return change{path: "/api/v1/inputs/" + r.publish("skipping", "t", "1").CausedBy[0] + "/skip"}
	}
}

func addBackfillChanges(out map[string]func(r *rig) change) {
	for _, what := range []string{"confirm", "pause", "resume", "cancel"} {
		out["POST /api/v1/backfills/{id}/"+what] = func(r *rig) change {
			var b client.Backfill
			r.do("POST", "/api/v1/schedules/"+r.schedule(yearly("backfilled-"+what, "http:poet")).ID+"/backfill", span()).want(201).into(&b)
			path, hash := "/api/v1/backfills/"+b.ID+"/", map[string]any{"hash": b.Hash}
			if what == "confirm" {
				return change{path + what, hash}
			}
			r.exec(`update backfills set state = 'running' where id = $1`, b.ID) // without its job, so that it stays so
			if what == "resume" {
				r.do("POST", path+"pause", nil).want(200)
			}
			return change{path: path + what}
		}
	}
}

// harmless are the routes that change nothing although they are no GET.
func harmless() map[string]bool {
	return map[string]bool{
		"POST /api/v1/runs/{id}/replay": true, "POST /api/v1/sources/test": true, "POST /api/v1/connections/{name}/test": true,
	}
}

// ofWorkers are what programs say about jobs in their hands. That is in the history of
// jobs, with the name of the worker.
func ofWorkers() map[string]bool {
	return map[string]bool{
		"POST /api/v1/tasks/{name}/claim": true, "POST /api/v1/tasks/{name}/complete": true, "POST /api/v1/tasks/{name}/fail": true, "POST /api/v1/tasks/{name}/extend": true,
	}
}

// standing is what people decide about, as it is.
func (r *rig) standing() string {
	r.t.Helper()
	return r.texts(
		`select name || desired || coalesce(deleted_at, 0) from workflows order by 1`, `select workflow_id || number from workflow_versions order by 1`,
		`select id || state from approvals order by 1`, `select count(*) || '' from approval_rules`, `select id || coalesce(resolved_by, '') from mutations order by 1`,
		`select name || version || status || coalesce(paused_at, 0) || coalesce(deleting_at, 0) from source_definitions order by 1`,
		`select id || cron || enabled || coalesce(deleted_at, 0) from schedules order by 1`, `select id || coalesce(revoked_at, 0) from execution_grants order by 1`,
		`select id || state from backfills order by 1`, `select count(*) || '' from schedule_runs`, `select id || coalesce(balance, 0) from billing_accounts order by 1`,
		`select id || coalesce(revoked_at, 0) from tokens order by 1`, `select id || '' || rev from jobs where owner <> '' order by 1`,
		`select name || definition from worker_tasks order by 1`,
		`select count(*) || '' from events`, `select id || coalesce(skipped_at, 0) from inputs order by 1`,
	)
}

// texts are the rows of one column that each statement reads.
func (r *rig) texts(statements ...string) (out string) {
	r.t.Helper()
	r.write(func(ctx context.Context, tx *store.Tx) error {
		out = ""
		for _, sql := range statements {
			rows, err := tx.Query(ctx, sql)
			if err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
			for rows.Next() {
				var text string
				if err := rows.Scan(&text); err != nil {
					rows.Close()
					return err
				}
				out += text + "\n"
			}
			rows.Close()
			if err := rows.Err(); err != nil {
				return err
			}
			out += "\n"
		}
		return nil
	})
	return out
}

// settle waits until nothing is under way, and nothing will be at once.
func (r *rig) settle() {
	r.t.Helper()
	var running, due int
	defer func() {
		if r.t.Failed() {
			r.t.Logf("%d are running, %d are due, of %s", running, due, r.texts(`select distinct task || ' ' || coalesce(lane, '') from jobs where state = 0 order by 1`))
		}
	}()
	r.eventually("nothing is under way", func() bool {
		running, due = r.queue.Running(), r.count(`select count(*) from jobs where state = 0 and run_at <= $1`, time.Now().Add(3*time.Second).UnixMilli())
		return running == 0 && due == 0
	})
}

// lines counts what the admin did.
func (r *rig) lines() int {
	r.t.Helper()
	return r.count(`select count(*) from audit_log where actor like 'admin (token %'`)
}

// P1 15: every route that changes something writes one line of the audit log,
// in the transaction of the change: where the line cannot be written, nothing
// is changed.
func TestEveryChangeIsInTheAuditLog(t *testing.T) {
	both(t, func(r *rig) {
		desk := tool.Named{Name: "desk", Type: "test", Connection: r.desk}
		box := &pinnedDesk{desk: r.desk, pins: []tool.Pin{{Method: "news", State: "new", Now: "n1"}}}
		r.api.tools = mustSet(t, tool.Named{Name: "box", Type: "mcp", Connection: box}, desk)
		all := changes()
		for _, op := range r.operations() {
			route := op.method + " " + op.path
			if op.method == http.MethodGet || op.method == http.MethodHead || harmless()[route] || ofWorkers()[route] {
				continue
			}
			prepare := all[route]
			if prepare == nil {
				t.Errorf("%s: nobody knows how it changes something", route)
				continue
			}
			if route == "POST /api/v1/backup" && r.db.Name() == "postgres" {
				continue // refused there
			}
			r.settle() // what is due when everything is halted stays so
			c := prepare(r)
			r.settle()
			before, pins := r.standing(), fmt.Sprint(box.pins)
			r.exec(`alter table audit_log rename to audit_away`)
			p := r.do(op.method, c.path, c.body)
			r.exec(`alter table audit_away rename to audit_log`)
			if after := r.standing(); p.status < 500 || after != before || fmt.Sprint(box.pins) != pins {
				t.Errorf("%s: without its line: %d %s\nbefore %s\nafter %s", route, p.status, p.body, before, after)
			}
			lines := r.lines()
			if p := r.do(op.method, c.path, c.body); p.status >= 300 {
				t.Errorf("%s: %d %s", route, p.status, p.body)
			}
			if n := r.lines() - lines; n != 1 {
				t.Errorf("%s: %d lines", route, n)
			}
			if route == "PUT "+client.HaltPath { // or nothing else goes on
				r.do("DELETE", client.HaltPath, nil).want(http.StatusNoContent)
			}
		}
	})
}
