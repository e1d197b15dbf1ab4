package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/client"
)

// request is a POST that a test sends.
type request struct {
	path string
	body any
}

// posts are the POSTs of the API, each with how to bring the server to where it
// is taken.
func (r *rig) posts(t *testing.T) map[string]func() request {
	workflow := func(name, script string) func(verb string) request {
		return func(verb string) request {
			r.deploy(name, script)
			runs := 1 // of the consumer, which is new
			if strings.Contains(script, "producers") {
				runs = 2
			}
			r.waitRuns("?lane="+name+"&status=committed", runs)
			r.eventually(name+" is idle", func() bool { return r.workflow(name).Status == "Idle" })
			return request{"/api/v1/workflows/" + name + "/" + verb, nil}
		}
	}
	source := func(name, verb string) request {
		r.apply(name, r.fetching("/prices", "table", "t_"+name))
		r.waitRuns("?kind=source&lane="+name+"&status=committed", 1)
		return request{"/api/v1/sources/" + name + "/" + verb, nil}
	}
	asked := func(verb string) request {
		name := "asks" + verb
		r.deploy(name, consuming(name, `await ctx.tools.desk.ask({});`))
		r.publish(name, "t", "1")
		return request{"/api/v1/runs/" + r.waitRuns("?lane="+name+"&status=paused:approval", 1)[0].ID + "/" + verb, nil}
	}
	backfill := func(name, verb string, before ...string) request {
		var b client.Backfill
		s := r.schedule(yearly(name, "x:asks"))
		r.do("POST", "/api/v1/schedules/"+s.ID+"/backfill", `{"from":"2010-06-01T00:00:00Z","to":"2020-06-01T00:00:00Z","perMinute":1}`).want(201).into(&b)
		path := "/api/v1/backfills/" + b.ID + "/"
		for _, v := range before {
			r.do("POST", path+v, map[string]string{"hash": b.Hash}).want(200)
		}
		if verb == "confirm" {
			return request{path + verb, map[string]string{"hash": b.Hash}}
		}
		return request{path + verb, nil}
	}
	return map[string]func() request{
		"/api/v1/hooks/{name}/deliveries/{id}/redeliver": func() request {
			return request{"/api/v1/hooks/walked/deliveries/" + r.putHook("walked", logging).ID + "/redeliver", nil}
		},
		"/api/v1/tasks/{name}/claim":    func() request { return request{r.served("claimed", "claim"), `{}`} },
		"/api/v1/tasks/{name}/complete": func() request { return r.leased("completed", "complete") },
		"/api/v1/tasks/{name}/fail":     func() request { return r.leased("failed", "fail") },
		"/api/v1/tasks/{name}/extend":   func() request { return r.leased("extended", "extend") },
		"/api/v1/jobs":                  func() request { return request{"/api/v1/jobs", `{"task":"echo","delay":"1h"}`} },
		"/api/v1/jobs:bulk":             func() request { return request{"/api/v1/jobs:bulk", `{"jobs":[{"task":"echo","delay":"1h"}]}`} },
		"/api/v1/jobs:retry": func() request {
			r.waitState(r.enqueue(map[string]any{"task": "fail", "lane": "again"}).ID, "failed")
			return request{"/api/v1/jobs:retry", `{"filter":{"lane":"again"}}`}
		},
		"/api/v1/jobs:cancel": func() request {
			r.enqueue(map[string]any{"task": "echo", "lane": "gone", "delay": "1h"})
			return request{"/api/v1/jobs:cancel", `{"filter":{"lane":"gone"}}`}
		},
		"/api/v1/jobs/{id}/retry": func() request {
			j := r.enqueue(map[string]any{"task": "fail"})
			r.waitState(j.ID, "failed")
			return request{"/api/v1/jobs/" + j.ID + "/retry", nil}
		},
		"/api/v1/prune":  func() request { return request{"/api/v1/prune", nil} },
		"/api/v1/tokens": func() request { return request{"/api/v1/tokens", `{"name":"x","scopes":["read"]}`} },
		"/api/v1/tokens/{id}/revoke": func() request {
			token := r.find(r.token("mallory", "viewer", "read"))
			return request{"/api/v1/tokens/" + token.ID + "/revoke", nil}
		},
		"/api/v1/workflows/{name}/run":    func() request { return workflow("torun", producing("torun", ``))("run") },
		"/api/v1/workflows/{name}/pause":  func() request { return workflow("topause", taking("topause"))("pause") },
		"/api/v1/workflows/{name}/resume": func() request { return workflow("toresume", taking("toresume"))("resume") },
		"/api/v1/workflows/{name}/events": func() request {
			return request{workflow("topublish", taking("topublish"))("events").path, `{"topic":"t","messageId":"1","payload":{}}`}
		},
		"/api/v1/inputs/{id}/skip": func() request {
			r.deploy("toskip", taking("toskip"))
			r.do("POST", "/api/v1/workflows/toskip/pause", nil).want(200)
			return request{"/api/v1/inputs/" + r.publish("toskip", "t", "1").CausedBy[0] + "/skip", nil}
		},
		"/api/v1/runs/{id}/cancel":  func() request { return asked("cancel") },
		"/api/v1/runs/{id}/approve": func() request { return asked("approve") },
		"/api/v1/runs/{id}/reject":  func() request { return asked("reject") },
		"/api/v1/runs/{id}/resume": func() request {
			r.deploy("broken", producing("broken", `throw new Error("no");`))
			return request{"/api/v1/runs/" + r.waitRuns("?lane=broken&status=failed:logic", 1)[0].ID + "/resume", nil}
		},
		"/api/v1/runs/{id}/resolve": func() request {
			r.deploy("lost", consuming("lost", `await ctx.tools.desk.lose({});`))
			r.publish("lost", "t", "1")
			return request{"/api/v1/runs/" + r.waitRuns("?lane=lost&status=paused:reconciliation", 1)[0].ID + "/resolve", `{"outcome":"happened"}`}
		},
		"/api/v1/runs/{id}/replay": func() request {
			r.deploy("past", producing("past", ``))
			return request{"/api/v1/runs/" + r.waitRuns("?lane=past&status=committed", 2)[0].ID + "/replay", nil}
		},
		"/api/v1/sources/{name}/run":    func() request { return source("sourcerun", "run") },
		"/api/v1/sources/{name}/pause":  func() request { return source("sourcepause", "pause") },
		"/api/v1/sources/{name}/resume": func() request { return source("sourceresume", "resume") },
		"/api/v1/sources/{name}/reset":  func() request { return source("sourcereset", "reset") },
		"/api/v1/sources/test":          func() request { return request{"/api/v1/sources/test", r.fetching("/prices")} },
		"/api/v1/schedules":             func() request { return request{"/api/v1/schedules", yearly("new", "http:poet")} },
		"/api/v1/schedules/{id}/run": func() request {
			return request{"/api/v1/schedules/" + r.schedule(yearly("runs-now", "http:poet")).ID + "/run", nil}
		},
		"/api/v1/schedules/{id}/pause": func() request {
			return request{"/api/v1/schedules/" + r.schedule(yearly("pauses", "http:poet")).ID + "/pause", `{"until":"2h"}`}
		},
		"/api/v1/schedules/{id}/resume": func() request {
			return request{"/api/v1/schedules/" + r.schedule(yearly("resumes", "http:poet")).ID + "/resume", nil}
		},
		"/api/v1/schedules/{id}/slots/{instant}/retry": func() request { return request{r.slotTo("retry"), nil} },
		"/api/v1/schedules/{id}/slots/{instant}/skip":  func() request { return request{r.slotTo("skip"), nil} },
		"/api/v1/schedules/{id}/backfill": func() request {
			return request{"/api/v1/schedules/" + r.schedule(yearly("tofill", "http:poet")).ID + "/backfill", `{"from":"2010-06-01T00:00:00Z","to":"2012-06-01T00:00:00Z"}`}
		},
		"/api/v1/backfills/{id}/confirm": func() request { return backfill("fillconfirm", "confirm") },
		"/api/v1/backfills/{id}/pause":   func() request { return backfill("fillpause", "pause", "confirm") },
		"/api/v1/backfills/{id}/resume":  func() request { return backfill("fillresume", "resume", "confirm", "pause") },
		"/api/v1/backfills/{id}/cancel":  func() request { return backfill("fillcancel", "cancel", "confirm") },
		"/api/v1/grants":                 func() request { return request{"/api/v1/grants", `{"graphs":["http:poet"]}`} },
		"/api/v1/grants/{id}/revoke": func() request {
			var g client.Grant
			r.do("POST", "/api/v1/grants", `{"graphs":["http:poet"]}`).want(201).into(&g)
			return request{"/api/v1/grants/" + g.ID + "/revoke", nil}
		},
		"/api/v1/connections/{name}/test": func() request { return request{"/api/v1/connections/shop/test", nil} },
		"/api/v1/connections/{name}/pins": func() request {
			pinned(t, r)
			return request{"/api/v1/connections/box/pins", `{"methods":["look"]}`}
		},
		"/api/v1/backup": func() request { return request{"/api/v1/backup", nil} },
	}
}

// taking is a workflow of this name that takes events and calls nothing.
func taking(name string) string { return consuming(name, ``) }

// changeNothing are the POSTs that are carried out again: they have no effect, or,
// as a claim, one that is undone by itself.
func changeNothing() []string {
	return []string{"/api/v1/tasks/{name}/claim", "/api/v1/backup", "/api/v1/runs/{id}/replay", "/api/v1/sources/test", "/api/v1/connections/{name}/test"}
}

// Every POST takes an Idempotency-Key: sent twice it acts once, and the key
// cannot be used for anything else. A route that is added is covered, or fails
// here.
func TestEveryPostIsActedOnOnce(t *testing.T) {
	both(t, func(r *rig) {
		posts := r.posts(t)
		var described []string
		for _, op := range r.operations() {
			if op.method != http.MethodPost {
				continue
			}
			described = append(described, op.path)
			if !slices.ContainsFunc(parameters(op), func(p string) bool { return p == "Idempotency-Key" }) {
				t.Errorf("POST %s does not tell of Idempotency-Key", op.path)
			}
		}
		slices.Sort(described)
		if diff := cmp.Diff(described, sortedKeys(posts)); diff != "" {
			t.Errorf("routes and requests differ: %s", diff)
		}
		for i, route := range sortedKeys(posts) {
			if route == "/api/v1/backup" && r.db.Shared() {
				continue // PostgreSQL has a tool of its own
			}
			r.twice(route, posts[route](), "key-"+string(rune('a'+i%26))+string(rune('a'+i/26)))
		}
	})
}

// twice sends a request twice with one key, and then another one.
func (r *rig) twice(route string, q request, key string) {
	r.t.Helper()
	entries := func() int { return r.count(`select count(*) from audit_log where action <> 'database.backup'`) }
	first := r.do("POST", q.path, q.body, "Idempotency-Key", key)
	if first.status >= 300 {
		r.t.Errorf("%s: %d %s", route, first.status, first.body)
		return
	}
	before := entries()
	again := r.do("POST", q.path, q.body, "Idempotency-Key", key)
	if again.status != first.status {
		r.t.Errorf("%s: %d, then %d %s", route, first.status, again.status, again.body)
	}
	if entries() != before {
		r.t.Errorf("%s: the second time is in the audit log", route)
	}
	harmless := slices.Contains(changeNothing(), route)
	if again.header.Get("Idempotency-Replayed") != map[bool]string{true: "", false: "true"}[harmless] {
		r.t.Errorf("%s: replayed %q", route, again.header.Get("Idempotency-Replayed"))
	}
	if !harmless && route != "/api/v1/tokens" && string(first.body) != string(again.body) { // the text of a token is shown once
		r.t.Errorf("%s: first\n%s\nthen\n%s", route, first.body, again.body)
	}
	r.do("POST", "/api/v1/jobs", `{"task":"echo","delay":"2h","payload":"`+key+`"}`, "Idempotency-Key", key).problem(422, "idempotency_mismatch")
}

// parameters are the names of the parameters of an operation.
func parameters(op operation) (names []string) {
	list, _ := op.raw["parameters"].([]any)
	for _, p := range list {
		if p, ok := p.(map[string]any); ok {
			name, _ := p["name"].(string)
			names = append(names, name)
		}
	}
	return names
}
