package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/workflow"
)

// The same content is the same version, whoever sends it how often, and
// a deploy tells what it did and what was there before.
func TestDeployTellsWhatItDid(t *testing.T) {
	both(t, func(r *rig) {
		put := func(text string, dry bool) (*reply, client.Deployment) {
			p := r.do("PUT", "/api/v1/workflows/orders", map[string]any{"script": text, "filename": "orders.workflow.js", "dryRun": dry}, "Idempotency-Key", "k")
			var d client.Deployment
			p.into(&d)
			return p, d
		}
		second := strings.ReplaceAll(orders, "filed: true", "filed: false")
		for _, c := range []struct {
			script   string
			dry      bool
			status   int
			what     string
			previous string
		}{
			{orders, true, 200, "created", ""},
			{orders, false, 201, "created", ""},
			{orders, false, 200, "unchanged", orders},
			{second, true, 200, "updated", orders},
			{second, false, 200, "updated", orders},
			{second, true, 200, "unchanged", second},
		} {
			p, d := put(c.script, c.dry)
			if p.want(c.status); d.Name != "orders" || d.What != c.what || d.DryRun != c.dry || d.Version != workflow.VersionOf("orders.workflow.js", c.script) || d.Warnings == nil {
				t.Errorf("%s, dry %v: %s", c.what, c.dry, p.body)
			}
			if (c.previous == "") != (d.PreviousScript == "") || c.previous != "" && string(d.PreviousScript) != c.previous {
				t.Errorf("%s, dry %v: previous %v", c.what, c.dry, d.PreviousScript)
			}
			if location := p.header.Get("Location"); (c.status == 201) != (location == "/api/v1/workflows/orders") {
				t.Errorf("%s: Location %q", c.what, location)
			}
			if n := r.count(`select count(*) from workflows`); c.status == 200 && c.what == "created" && n != 0 {
				t.Error("a dry run made a workflow")
			}
		}
		r.checkVersions(second)
		w := r.workflow("orders")
		if w.Script != second || w.VersionNumber != 2 || w.Filename != "orders.workflow.js" || w.Desired != "active" || w.DeployedAt.Before(w.CreatedAt.Time) {
			t.Errorf("%+v", w)
		}
	})
}

func (r *rig) checkVersions(second string) {
	r.t.Helper()
	r.do("PUT", "/api/v1/workflows/orders", map[string]any{"script": orders, "filename": "orders.workflow.js"}).want(200) // the first one again
	r.do("PUT", "/api/v1/workflows/orders", map[string]any{"script": second, "filename": "orders.workflow.js"}).want(200)
	var whole client.Workflow
	r.do("GET", "/api/v1/workflows/orders", nil).want(200).into(&whole)
	if all := pages[client.WorkflowSummary](r, "/api/v1/workflows?limit=1"); len(all) != 1 || all[0].VersionNumber != 2 || all[0].Version != whole.Version || all[0].Name != "orders" {
		r.t.Errorf("listed as %+v", all)
	}
	list := pages[client.WorkflowVersion](r, "/api/v1/workflows/orders/versions?limit=1")
	if len(list) != 2 || list[0].Number != 2 || !list[0].Active || list[1].Active || list[0].Script != nil || string(list[0].CreatedBy) != "admin" || list[0].CreatedAt.IsZero() {
		r.t.Errorf("versions %+v", list)
	}
	if list = pages[client.WorkflowVersion](r, "/api/v1/workflows/orders/versions?source=true"); *list[0].Script != second || *list[1].Script != orders {
		r.t.Errorf("versions with scripts %+v", list)
	}
}

// A script that is refused changes nothing, and every fault has its place.
func TestDeployRefusesWithPlaces(t *testing.T) {
	both(t, func(r *rig) {
		for _, c := range []struct {
			name, script string
			message      string
			line, column int
		}{
			{"syntax", "export default {\n  name: 'x',,\n}", `Expected identifier but found ","`, 2, 13},
			{"import", `import fs from "fs"; export default { fs }`, `"fs" cannot be imported`, 1, 16},
			{"no export", "const a = 1;", "no default export", 1, 1},
			{"fields", "export default {\n name: \"x\",\n topics: {},\n nonsense: 1,\n}", `unknown field "nonsense"`, 4, 2},
			{"throws", "\nthrow new Error('too early');", "too early", 2, 11},
			{"other name", producing("other", ""), `name is "other"`, 0, 0},
		} {
			p := r.do("PUT", "/api/v1/workflows/x", map[string]any{"script": c.script, "filename": "dir/x.workflow.ts"}).problem(422, "invalid")
			i := slices.IndexFunc(p.Errors, func(f client.Fault) bool { return strings.Contains(f.Message, c.message) })
			if i < 0 {
				t.Errorf("%s: %+v", c.name, p.Errors)
				continue
			}
			f := p.Errors[i]
			if f.Pointer != "/script" || f.Line != c.line || f.Column != c.column || c.line > 0 && !strings.HasPrefix(f.Message, fmt.Sprintf("dir/x.workflow.ts:%d:%d: ", c.line, c.column)) {
				t.Errorf("%s: %+v, want %d:%d", c.name, f, c.line, c.column)
			}
		}
		for _, c := range []struct {
			body    any
			pointer string
		}{
			{map[string]any{"script": ""}, "/script"},
			{map[string]any{}, "/script"},
			{map[string]any{"script": 5}, "/script"},
			{map[string]any{"script": "a\x00b"}, "/script"},
			{map[string]any{"script": "x", "filename": "a\nb"}, "/filename"},
			{map[string]any{"script": "x", "filename": strings.Repeat("x", 257)}, "/filename"},
			{map[string]any{"script": "x", "file": "y"}, "/file"},
			{map[string]any{"script": "x", "dryRun": "yes"}, "/dryRun"},
		} {
			if p := r.do("PUT", "/api/v1/workflows/x", c.body).problem(422, "invalid"); !slices.Equal(pointers(p), []string{c.pointer}) {
				t.Errorf("%v: %+v", c.body, p.Errors)
			}
		}
		r.do("PUT", "/api/v1/workflows/x", `{"script":`).problem(400, "malformed")
		if n := r.count(`select count(*) from workflows`) + r.count(`select count(*) from audit_log where action like 'workflow%'`); n != 0 {
			t.Errorf("what was refused left %d rows", n)
		}
	})
}

// A script may have 512 KiB, however large a job's payload may be, and its
// name is made up if it has none.
func TestScriptsMayBeLargerThanPayloads(t *testing.T) {
	both(t, func(r *rig) {
		large := orders + strings.Repeat("// padding <&>\n", (script.MaxSource-len(orders))/15)
		r.do("PUT", "/api/v1/workflows/orders", map[string]any{"script": large}).want(201)
		if w := r.workflow("orders"); w.Script != large || w.Filename != "orders.workflow.ts" {
			t.Errorf("%d bytes in %s", len(w.Script), w.Filename)
		}
		p := r.do("PUT", "/api/v1/workflows/orders", map[string]any{"script": large + strings.Repeat("//", 10)}).problem(413, "too_large")
		if !slices.Equal(pointers(p), []string{"/script"}) {
			t.Errorf("%+v", p)
		}
		for _, body := range []string{strings.Repeat("x", maxScriptBody+1), strings.Repeat(" ", testMaxPayload+bodyRoom+1)} {
			if p := r.do("POST", "/api/v1/workflows/orders/events", body).problem(413, "too_large"); !strings.Contains(p.Detail, "bytes") {
				t.Errorf("%+v", p)
			}
		}
		r.do("PUT", "/api/v1/workflows/orders", strings.Repeat("x", maxScriptBody+1)).problem(413, "too_large")
	})
}

func TestWorkflowShowsWhatItDeclaresAndKeeps(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("mail", `export default {
  name: "mail", topics: { found: {}, told: {} },
  producers: {
    hourly: { publishes: ["found"], schedule: { interval: "1h" }, handler: async () => ({ cursor: 1 }) },
    daily: { publishes: ["found"], schedule: { cron: "0 9 * * 1-5", timezone: "Europe/Berlin" }, handler: async () => {} },
  },
  consumers: {
    tell: { subscribe: ["found"], publishes: ["told"], prepare: async (ctx) => ({ reservations: [], data: {}, wakeAt: new Date(ctx.now() + 3600000).toISOString() }), next: async () => {} },
    note: { subscribe: ["told"], prepare: async () => ({ reservations: [], data: {} }), mutate: async () => {} },
  },
};`)
		r.waitRuns("?lane=mail&status=committed", 4)
		w := r.workflow("mail")
		raw, _ := json.Marshal(w.Config)
		want := `{"topics":["found","told"],"producers":[{"name":"hourly","publishes":["found"],"schedule":{"interval":"1h"}},` +
			`{"name":"daily","publishes":["found"],"schedule":{"cron":"0 9 * * 1-5","timezone":"Europe/Berlin"}}],` +
			`"consumers":[{"name":"tell","subscribe":["found"],"publishes":["told"],"hasMutate":false,"hasNext":true},` +
			`{"name":"note","subscribe":["told"],"publishes":[],"hasMutate":true,"hasNext":false}]}`
		if string(raw) != want {
			t.Errorf("config %s\nwant   %s", raw, want)
		}
		var told []string
		for _, h := range w.Handlers {
			told = append(told, fmt.Sprintf("%s %s %v %v", h.Name, h.Type, h.HasState, !h.WakeAt.IsZero()))
		}
		if got := fmt.Sprint(told); got != "[hourly producer true false daily producer false false tell consumer false true note consumer false false]" {
			t.Errorf("handlers %s", got)
		}
		if len(w.Producers) != 2 {
			t.Fatalf("producers %+v", w.Producers)
		}
		for _, p := range w.Producers {
			if p.LastRunAt.IsZero() || !p.RequestedAt.IsZero() || !p.NextRunAt.After(p.LastRunAt.Time) || p.Name == "hourly" && p.Schedule != "Every hour" || p.Schedule == "" {
				t.Errorf("producer %+v", p)
			}
		}
		if w.NextAt.IsZero() || w.NextText == "" || !strings.HasPrefix(string(w.NextText), "Next in ") {
			t.Errorf("next %v %v", w.NextAt, w.NextText)
		}
	})
}

// What is not there is 404 wherever it is asked for, with the name that was
// probably meant, and whatever the name looks like.
func TestUnknownWorkflowIsNotFound(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("orders", orders)
		requests := []struct{ method, path string }{
			{"GET", ""}, {"DELETE", ""}, {"POST", "/run"}, {"POST", "/pause"}, {"POST", "/resume"},
			{"GET", "/inputs"}, {"GET", "/outputs"}, {"GET", "/events"}, {"GET", "/versions"}, {"POST", "/events"},
		}
		for _, q := range requests {
			var body any
			if q.method == "POST" && q.path == "/events" {
				body = map[string]any{"topic": "order", "messageId": "1"}
			}
			for _, name := range []string{"order", "nothing-like-it", "a%00b", "%20", strings.Repeat("x", 300)} {
				p := r.do(q.method, "/api/v1/workflows/"+name+q.path, body).problem(404, "not_found")
				if strings.Contains(p.Hint, `Did you mean "orders"?`) != (name == "order") {
					t.Errorf("%s %s%s: hint %q", q.method, name, q.path, p.Hint)
				}
			}
		}
		for _, path := range []string{"/api/v1/lanes/workflow/order/why", "/api/v1/lanes/workflow/a%00b/why", "/api/v1/lanes/source/orders/why", "/api/v1/lanes/workflows/orders/why"} {
			if p := r.do("GET", path, nil).problem(404, "not_found"); strings.Contains(path, "workflows/") && !strings.Contains(p.Hint, `"workflow"`) {
				t.Errorf("%s: %q", path, p.Hint)
			}
		}
		for _, path := range []string{"/api/v1/inputs/x", "/api/v1/inputs/a%00b", "/api/v1/runs/x", "/api/v1/runs/a%00b"} {
			r.do("GET", path, nil).problem(404, "not_found")
		}
		for _, path := range []string{"/api/v1/inputs/x/skip", "/api/v1/inputs/a%00b/skip", "/api/v1/runs/x/cancel", "/api/v1/runs/a%00b/cancel"} {
			r.do("POST", path, nil).problem(404, "not_found")
		}
	})
}

func TestViewersReadAndOperatorsDeploy(t *testing.T) {
	both(t, func(r *rig) {
		viewer, operator := r.token("vera", userstore.RoleViewer, "*"), r.token("otto", userstore.RoleOperator, "workflows:write")
		body := map[string]any{"script": orders}
		r.as(viewer, "PUT", "/api/v1/workflows/orders", body).problem(403, "forbidden")
		r.as(operator, "PUT", "/api/v1/workflows/orders", body).want(201)
		r.as(viewer, "GET", "/api/v1/workflows/orders", nil).want(200)
		r.as(viewer, "POST", "/api/v1/workflows/orders/pause", nil).problem(403, "forbidden")
		r.as(operator, "GET", "/api/v1/runs", nil).problem(403, "forbidden")
		if list := pages[client.WorkflowVersion](r, "/api/v1/workflows/orders/versions?limit=5"); string(list[0].CreatedBy) != "otto" {
			t.Errorf("deployed by %s", string(list[0].CreatedBy))
		}
		if n := r.count(`select count(*) from audit_log where action = 'workflow.deploy' and actor like 'otto (token %'`); n != 1 {
			t.Errorf("%d entries in the audit log", n)
		}
	})
}

// A process without workflows has no routes of theirs.
func TestWithoutWorkflowsThereAreNoLanes(t *testing.T) {
	a := New(Config{})
	if doc := a.surface.huma.OpenAPI(); doc.Paths["/api/v1/lanes"] != nil || doc.Paths["/api/v1/jobs"] == nil {
		t.Errorf("routes %v", sortedKeys(doc.Paths))
	}
}
