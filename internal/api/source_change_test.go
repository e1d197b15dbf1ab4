package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// The same definition is the same version, whoever sends it how often and in
// which form, and applying tells what it did and what was there before.
func TestApplyTellsWhatItDid(t *testing.T) {
	both(t, func(r *rig) {
		first, second := r.fetching("/prices"), r.fetching("/prices", "description", "Daily prices")
		for _, c := range []struct {
			definition map[string]any
			dry        bool
			status     int
			what       string
			previous   string
		}{
			{first, true, 200, "created", ""},
			{first, false, 201, "created", ""},
			{first, false, 200, "unchanged", `"labels"`},
			{second, true, 200, "updated", `"labels"`},
			{second, false, 200, "updated", `"labels"`},
			{second, true, 200, "unchanged", `"Daily prices"`},
			{r.fetching("/prices", "description", "Daily prices", "name", "prices", "kind", "source"), false, 200, "unchanged", `"Daily prices"`},
		} {
			p := r.do("PUT", fmt.Sprintf("/api/v1/sources/prices?dryRun=%v", c.dry), c.definition).want(c.status)
			var d client.AppliedSource
			p.into(&d)
			if d.Name != "prices" || d.What != c.what || d.DryRun != c.dry || len(d.Version) != 64 || !strings.Contains(string(d.Definition), `"name":"prices"`) {
				t.Errorf("%s, dry %v: %s", c.what, c.dry, p.body)
			}
			if (c.previous == "") != (string(d.Previous) == "null") || !strings.Contains(string(d.Previous), c.previous) {
				t.Errorf("%s, dry %v: previous %s", c.what, c.dry, d.Previous)
			}
			if location := p.header.Get("Location"); (c.status == 201) != (location == "/api/v1/sources/prices") {
				t.Errorf("%s: Location %q", c.what, location)
			}
			if n := r.count(`select count(*) from source_definitions`); c.status == 200 && c.what == "created" && n != 0 {
				t.Error("a dry run made a source")
			}
		}
		stored := r.source("prices")
		if d := r.do("PUT", "/api/v1/sources/prices", string(stored.Definition)).want(200); !strings.Contains(string(d.body), `"what":"unchanged"`) {
			t.Errorf("what is read cannot be sent back: %s", d.body)
		}
		list := pages[client.SourceVersion](r, "/api/v1/sources/prices/versions?limit=1")
		if len(list) != 2 || list[0].Number != 2 || !list[0].Active || list[1].Active || list[0].Version != stored.Version || string(list[0].CreatedBy) != "admin" || list[0].Definition != nil {
			t.Errorf("versions %+v", list)
		}
		if list = pages[client.SourceVersion](r, "/api/v1/sources/prices/versions?definition=true"); string(list[0].Definition) != string(stored.Definition) {
			t.Errorf("versions %+v", list)
		}
		if n := r.count(`select count(*) from audit_log where action in ('source.create', 'source.update')`); n != 2 {
			t.Errorf("%d entries in the audit log", n)
		}
		r.waitRuns("?lane=prices&status=active", 0)
	})
}

func TestApplyTakesYAML(t *testing.T) {
	both(t, func(r *rig) {
		yaml := func(text string) *reply {
			return r.do("PUT", "/api/v1/sources/prices", text, "Content-Type", "application/yaml; charset=utf-8")
		}
		yaml(r.pricesYAML()).want(201)
		yaml("---\n" + r.pricesYAML()).want(200)
		p := yaml(strings.Replace(r.pricesYAML(), "schedule: hourly", "schedule: hurly", 1)).problem(422, "invalid")
		if !slices.Equal(pointers(p), []string{"/schedule"}) || !strings.HasPrefix(p.Errors[0].Message, "prices.yaml:5:") {
			t.Errorf("%+v", p.Errors)
		}
		if p = yaml(r.pricesYAML()+"---\n"+strings.Replace(r.pricesYAML(), "name: prices", "name: other", 1)).problem(422, "invalid"); !strings.Contains(p.Errors[0].Message, "has 2") {
			t.Errorf("%+v", p.Errors)
		}
		if p = yaml(strings.Replace(r.pricesYAML(), "name: prices", "name: other", 1)).problem(422, "invalid"); !slices.Equal(pointers(p), []string{"/name"}) {
			t.Errorf("%+v", p.Errors)
		}
		r.waitRuns("?lane=prices&status=committed", 1)
	})
}

// What is refused changes nothing, and every fault has its place.
func TestApplyRefusesWithPlaces(t *testing.T) {
	both(t, func(r *rig) {
		for _, c := range []struct {
			definition any
			pointers   []string
		}{
			{map[string]any{}, []string{"/url", "/table", "/response/fields"}},
			{r.fetching("/prices", "schedule", "sometimes"), []string{"/schedule"}},
			{r.fetching("/prices", "tabel", "x", "url", "ftp://x/"), []string{"/url", "/tabel"}},
			{r.fetching("/prices", "write", map[string]any{"key": []any{"nothing"}}), []string{"/write/key/0"}},
			{r.fetching("/prices", "name", "other"), []string{"/name"}},
			{r.fetching("/prices", "kind", "workflow"), []string{"/kind"}},
			{r.fetching("/prices", "table", "jobs"), []string{"/table"}},
			{[]any{}, []string{""}},
		} {
			got := pointers(r.do("PUT", "/api/v1/sources/prices", c.definition).problem(422, "invalid"))
			slices.Sort(got)
			slices.Sort(c.pointers)
			if !slices.Equal(got, c.pointers) {
				t.Errorf("%v: %v, want %v", c.definition, got, c.pointers)
			}
		}
		if p := r.do("PUT", "/api/v1/sources/No%20Name", r.fetching("/prices")).problem(422, "invalid"); !slices.Equal(pointers(p), []string{"/name"}) {
			t.Errorf("%+v", p.Errors)
		}
		r.do("PUT", "/api/v1/sources/prices", `{"url":`).problem(400, "malformed")
		r.do("PUT", "/api/v1/sources/prices", `{"url":"a","url":"b"}`).problem(400, "malformed")
		r.do("PUT", "/api/v1/sources/prices", "").problem(400, "malformed")
		r.do("PUT", "/api/v1/sources/prices", "a=b", "Content-Type", "application/x-www-form-urlencoded").problem(415, "unsupported_media")
		r.do("PUT", "/api/v1/sources/prices", strings.Repeat(" ", definition.LargestFile+1)).problem(413, "too_large")
		if n := r.count(`select count(*) from source_definitions`) + r.count(`select count(*) from audit_log where action like 'source%'`); n != 0 {
			t.Errorf("what was refused left %d rows", n)
		}
		r.exec(`create table taken (id text)`)
		if p := r.do("PUT", "/api/v1/sources/prices", r.fetching("/prices", "table", "taken")); p.status != 409 && p.status != 422 || !strings.Contains(string(p.body), `"code":"table_mismatch"`) {
			t.Errorf("%d %s", p.status, p.body)
		}
	})
}

// A run now is one request however often it is sent, and is refused with its
// own reason and without an effect.
func TestRunOfASourceNow(t *testing.T) {
	both(t, func(r *rig) {
		r.applyPrices("prices")
		first := r.do("POST", "/api/v1/sources/prices/run", nil, "Idempotency-Key", "k").want(http.StatusAccepted)
		runs := r.waitRuns("?lane=prices&status=committed", 2)
		if runs[0].Trigger != "manual" || runs[0].Progress.RowsNew != 0 || runs[0].Progress.RowsSame != 4 {
			t.Errorf("%+v", runs[0])
		}
		again := r.do("POST", "/api/v1/sources/prices/run", nil, "Idempotency-Key", "k").want(http.StatusAccepted)
		if again.header.Get("Idempotency-Replayed") != "true" || string(again.body) != string(first.body) {
			t.Errorf("%v %s", again.header, again.body)
		}
		r.apply("slow", r.fetching("/slow", "table", "slow"))
		r.apply("busy", r.fetching("/busy", "table", "busy"))
		r.apply("paused", r.fetching("/prices", "table", "paused", "status", "stopped"))
		<-r.outside.entered
		r.waitRuns("?lane=busy&status=paused:transient", 1)
		for name, code := range map[string]string{"slow": "run_active", "busy": "backing_off", "paused": "paused"} {
			if p := r.do("POST", "/api/v1/sources/"+name+"/run", nil).problem(409, code); !strings.Contains(p.Detail, name) {
				t.Errorf("%s: %q", name, p.Detail)
			}
		}
		if n := r.count(`select count(*) from audit_log where action = 'source.run'`); n != 1 {
			t.Errorf("asked for %d times", n)
		}
		if s := r.source("busy"); s.Retries.Count != 1 || s.Retries.NextAt.IsZero() || !s.Freshness.Failed || s.Totals.Failures != 1 || string(s.IssueCode) != "backing_off" {
			t.Errorf("%+v %+v", s.Lane, s.Retries)
		}
		if s := r.source("slow"); s.Status != "Running" || s.LastRun.Status != "active" || !s.NextAt.IsZero() {
			t.Errorf("%+v", s.Lane)
		}
		close(r.outside.release)
		r.waitRuns("?lane=slow&status=committed", 1)
	})
}

// Pausing cancels what is under way; twice is the same as once.
func TestPauseResumeAndResetASource(t *testing.T) {
	both(t, func(r *rig) {
		r.apply("slow", r.fetching("/slow"))
		<-r.outside.entered
		change := func(what string) (s client.Source) {
			r.do("POST", "/api/v1/sources/slow/"+what, nil).want(200).into(&s)
			return s
		}
		for range 2 {
			if s := change("pause"); s.Status != "Stopped" || !s.Paused || s.Issue == "" || !s.NextAt.IsZero() {
				t.Errorf("paused: %+v", s.Lane)
			}
		}
		r.waitRuns("?lane=slow&status=cancelled", 1)
		close(r.outside.release)
		for range 2 {
			if s := change("resume"); s.Paused || s.Status == "Stopped" {
				t.Errorf("resumed: %+v", s.Lane)
			}
		}
		if n := r.count(`select count(*) from audit_log where action in ('source.pause', 'source.resume')`); n != 2 {
			t.Errorf("%d entries in the audit log, want one of each", n)
		}
		r.apply("busy", r.fetching("/busy"))
		r.waitRuns("?lane=busy&status=paused:transient", 1)
		r.do("POST", "/api/v1/sources/busy/reset", nil, "Idempotency-Key", "k").want(200)
		r.waitRuns("?lane=busy&status=paused:transient", 2) // it is tried again at once
		if p := r.do("POST", "/api/v1/sources/busy/reset", nil, "Idempotency-Key", "k").want(200); p.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%v", p.header)
		}
		if p := r.do("POST", "/api/v1/sources/busy/reset", `{"al":true}`).problem(422, "invalid"); !slices.Equal(pointers(p), []string{"/al"}) {
			t.Errorf("%+v", p)
		}
	})
}

// With all, reset also forgets how far the incremental cursor has come.
func TestResetForgetsTheMark(t *testing.T) {
	both(t, func(r *rig) {
		r.apply("prices", r.fetching("/prices", "incremental", map[string]any{"param": "since", "cursorPath": "id"}))
		r.waitRuns("?lane=prices&status=committed", 1)
		if s := r.source("prices"); string(s.Mark) != `"5"` {
			t.Errorf("mark %s", s.Mark)
		}
		var s client.Source
		if r.do("POST", "/api/v1/sources/prices/reset", `{}`).want(200).into(&s); string(s.Mark) != `"5"` {
			t.Errorf("mark %s", s.Mark)
		}
		if r.do("POST", "/api/v1/sources/prices/reset", `{"all":true}`).want(200).into(&s); string(s.Mark) != `null` {
			t.Errorf("mark %s", s.Mark)
		}
		if e := r.audited("source.reset", "source:prices"); !strings.Contains(string(e.Detail), "all") {
			t.Errorf("%s", e.Detail)
		}
	})
}

// A run of a source can be cancelled, once, and never asks anybody.
func TestRunOfASourceIsCancelledAndNotAnswered(t *testing.T) {
	both(t, func(r *rig) {
		r.apply("slow", r.fetching("/slow"))
		<-r.outside.entered
		active := r.waitRuns("?lane=slow&status=active", 1)[0]
		var d client.RunDetail
		if r.do("GET", "/api/v1/runs/"+active.ID, nil).want(200).into(&d); len(d.Actions) != 1 || d.Actions[0].Name != "cancel" {
			t.Errorf("%+v", d.Actions)
		}
		for what, body := range map[string]any{"approve": nil, "reject": nil, "resume": nil, "resolve": map[string]any{"outcome": "happened"}} {
			if p := r.do("POST", "/api/v1/runs/"+active.ID+"/"+what, body).problem(409, "conflict"); !strings.Contains(p.Detail, `source "slow"`) {
				t.Errorf("%s: %+v", what, p)
			}
		}
		r.do("POST", "/api/v1/runs/"+active.ID+"/replay", nil).problem(422, "invalid")
		var run client.Run
		r.do("POST", "/api/v1/runs/"+active.ID+"/cancel", nil, "Idempotency-Key", "k").want(200).into(&run)
		if run.Status != "cancelled" || run.EndedAt.IsZero() || run.Lane != "slow" || run.Progress == nil {
			t.Errorf("%+v", run)
		}
		r.do("POST", "/api/v1/runs/"+active.ID+"/cancel", nil).problem(409, "conflict")
		if n := r.count(`select count(*) from audit_log where action = 'run.cancel'`); n != 1 {
			t.Errorf("%d entries in the audit log", n)
		}
		close(r.outside.release)
		r.do("POST", "/api/v1/sources/slow/run", nil).want(202)
		r.waitRuns("?lane=slow&status=committed", 1)
		r.do("POST", "/api/v1/runs/"+active.ID+"/cancel", nil).problem(409, "history")
	})
}

// A source that was deleted is gone with its rows, unless these are to stay;
// its runs can still be read.
func TestDeletedSourceIsGone(t *testing.T) {
	both(t, func(r *rig) {
		for i, query := range []string{"", "?keepRows=true"} {
			r.apply("prices", r.fetching("/prices"))
			r.waitRuns("?kind=source&lane=prices&status=committed", i+1)
			if s := r.source("prices"); len(s.Recent) != 1 {
				t.Errorf("it has runs of an earlier one: %+v", s.Recent)
			}
			var told client.DeletedSource
			r.do("DELETE", "/api/v1/sources/prices"+query, nil).want(200).into(&told)
			kept := 4 * i
			if left := r.count(`select count(*) from prices`); told != (client.DeletedSource{Name: "prices", Rows: int64(4 - kept)}) || left != kept {
				t.Errorf("%q: %+v, %d rows are left", query, told, left)
			}
			r.do("DELETE", "/api/v1/sources/prices", nil).problem(404, "not_found")
			r.do("GET", "/api/v1/sources/prices", nil).problem(404, "not_found")
		}
	})
}

func TestViewersReadSourcesAndOperatorsApply(t *testing.T) {
	both(t, func(r *rig) {
		viewer, operator := r.token("vera", userstore.RoleViewer, "*"), r.token("otto", userstore.RoleOperator, "sources:write")
		r.as(viewer, "PUT", "/api/v1/sources/prices", r.fetching("/prices")).problem(403, "forbidden")
		r.as(operator, "PUT", "/api/v1/sources/prices", r.fetching("/prices")).want(201)
		r.as(viewer, "GET", "/api/v1/sources/prices", nil).want(200)
		r.as(viewer, "POST", "/api/v1/sources/prices/pause", nil).problem(403, "forbidden")
		r.as(viewer, "POST", "/api/v1/sources/test", r.fetching("/prices")).problem(403, "forbidden")
		r.as(operator, "GET", "/api/v1/runs", nil).problem(403, "forbidden")
		if n := r.count(`select count(*) from audit_log where action = 'source.create' and actor like 'otto (token %'`); n != 1 {
			t.Errorf("%d entries in the audit log", n)
		}
		r.waitRuns("?lane=prices&status=committed", 1)
	})
}
