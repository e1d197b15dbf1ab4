package api

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Two people who change one definition do not overwrite each other unseen: who
// sends the tag of what was read is refused if it was changed meanwhile.
func TestDefinitionIsChangedOnlyAsItWasSeen(t *testing.T) {
	both(t, func(r *rig) {
		schedule := r.schedule(yearly("poet", "http:poet"))
		things := map[string]struct {
			get, put, method string
			versions         []any
		}{
			"workflow": {"/api/v1/workflows/flow", "/api/v1/workflows/flow", "PUT", []any{
				map[string]any{"script": producing("flow", `ctx.log(1);`)}, map[string]any{"script": producing("flow", `ctx.log(2);`)}, map[string]any{"script": producing("flow", `ctx.log(3);`)},
			}},
			"source": {"/api/v1/sources/prices", "/api/v1/sources/prices", "PUT", []any{
				r.fetching("/prices", "description", "one"), r.fetching("/prices", "description", "two"), r.fetching("/prices", "description", "three"),
			}},
			"schedule": {"/api/v1/schedules/" + schedule.ID, "/api/v1/schedules/" + schedule.ID, "PATCH", []any{
				`{"cron":"0 1 1 1 *"}`, `{"cron":"0 2 1 1 *"}`, `{"cron":"0 3 1 1 *"}`,
			}},
			"schedule by name": {"/api/v1/schedules/" + schedule.ID, "/api/v1/schedules/by-name/poet", "PUT", []any{
				yearly("poet", "http:poet", "cron", "0 4 1 1 *"), yearly("poet", "http:poet", "cron", "0 5 1 1 *"), yearly("poet", "http:poet", "cron", "0 6 1 1 *"),
			}},
		}
		for name, thing := range things {
			change := func(version int, headers ...string) *reply {
				return r.do(thing.method, thing.put, thing.versions[version], headers...)
			}
			if p := change(0); p.status >= 300 {
				t.Fatalf("%s: %d %s", name, p.status, p.body)
			}
			tag := r.do("GET", thing.get, nil).want(200).header.Get("ETag")
			if !strings.HasPrefix(tag, `"`) || !strings.HasSuffix(tag, `"`) || len(tag) < 10 {
				t.Errorf("%s: tag %q", name, tag)
			}
			told := change(1, "If-Match", tag).want(200).header.Get("ETag")
			now := r.do("GET", thing.get, nil).want(200).header.Get("ETag")
			if told != now || now == tag {
				t.Errorf("%s: told %s, is %s, was %s", name, told, now, tag)
			}
			for header, value := range map[string]string{"If-Match": tag, "If-None-Match": "*"} {
				p := change(2, header, value).problem(http.StatusPreconditionFailed, "precondition_failed")
				if p.Hint == "" || !strings.Contains(p.Detail, strings.Fields(name)[0]) {
					t.Errorf("%s: %+v", name, p)
				}
			}
			change(2, "If-Match", "W/"+now).problem(http.StatusPreconditionFailed, "precondition_failed")
			change(2, "If-None-Match", now).problem(422, "invalid")
			if still := r.do("GET", thing.get, nil).header.Get("ETag"); still != now {
				t.Errorf("%s: a refused change left %s instead of %s", name, still, now)
			}
			change(2, "If-Match", `"other", `+now).want(200)
			change(1, "If-Match", "*").want(200)
			change(2).want(200)
		}
	})
}

func TestDefinitionThatIsNotThere(t *testing.T) {
	both(t, func(r *rig) {
		script := map[string]any{"script": producing("flow", ``)}
		r.do("PUT", "/api/v1/workflows/flow", script, "If-Match", `"x"`).problem(412, "precondition_failed")
		r.do("PUT", "/api/v1/workflows/flow", script, "If-Match", `*`).problem(412, "precondition_failed")
		r.do("PUT", "/api/v1/sources/prices", r.fetching("/prices"), "If-Match", `"x"`).problem(412, "precondition_failed")
		r.do("PUT", "/api/v1/schedules/by-name/poet", yearly("poet", "http:poet"), "If-Match", `"x"`).problem(412, "precondition_failed")
		if n := r.count(`select count(*) from workflows`) + r.count(`select count(*) from source_definitions`) + r.count(`select count(*) from schedules`); n != 0 {
			t.Errorf("%d things", n)
		}
		r.do("PUT", "/api/v1/workflows/flow", script, "If-None-Match", "*").want(http.StatusCreated)
		r.do("PUT", "/api/v1/sources/prices", r.fetching("/prices"), "If-None-Match", "*").want(http.StatusCreated)
		r.do("PUT", "/api/v1/schedules/by-name/poet", yearly("poet", "http:poet"), "If-None-Match", "*").want(http.StatusCreated)
	})
}

// Of many changes that saw the same, one is made.
func TestRivalsThatSawTheSame(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("poet", "http:poet"))
		tag := r.do("GET", "/api/v1/schedules/"+s.ID, nil).header.Get("ETag")
		var wg sync.WaitGroup
		var mu sync.Mutex
		made := 0
		for i := range 8 {
			wg.Go(func() {
				p := r.do("PATCH", "/api/v1/schedules/"+s.ID, `{"cron":"`+string(rune('0'+i))+` 1 1 1 *"}`, "If-Match", tag)
				mu.Lock()
				defer mu.Unlock()
				if p.status == 200 {
					made++
				} else if p.status != http.StatusPreconditionFailed {
					t.Errorf("%d %s", p.status, p.body)
				}
			})
		}
		wg.Wait()
		if made != 1 {
			t.Errorf("%d changes were made", made)
		}
	})
}

// A dry run tells the tag of what is in force.
func TestDryRunTellsTheTag(t *testing.T) {
	both(t, func(r *rig) {
		script := map[string]any{"script": producing("flow", ``), "dryRun": true}
		if tag := r.do("PUT", "/api/v1/workflows/flow", script).want(200).header.Get("ETag"); tag != "" {
			t.Errorf("nothing has the tag %s", tag)
		}
		r.deploy("flow", producing("flow", `ctx.log(1);`))
		r.apply("prices", r.fetching("/prices"))
		s := r.schedule(yearly("poet", "http:poet"))
		for get, dry := range map[string]*reply{
			"/api/v1/workflows/flow":    r.do("PUT", "/api/v1/workflows/flow", script),
			"/api/v1/sources/prices":    r.do("PUT", "/api/v1/sources/prices?dryRun=true", r.fetching("/prices", "description", "other")),
			"/api/v1/schedules/" + s.ID: r.do("PUT", "/api/v1/schedules/by-name/poet?dryRun=true", yearly("poet", "http:poet", "cron", "0 5 1 1 *")),
		} {
			if now := r.do("GET", get, nil).header.Get("ETag"); dry.want(200).header.Get("ETag") != now {
				t.Errorf("%s: %s, and the dry run told %s", get, now, dry.header.Get("ETag"))
			}
		}
	})
}
