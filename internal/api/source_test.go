package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// A source that was applied fetches by itself, and everything about that can
// be read: its rows, what did not fit, its runs and how fresh it is.
func TestSourceIsFetchedAndTold(t *testing.T) {
	both(t, func(r *rig) {
		r.applyPrices("prices")
		s := r.source("prices")
		if s.Kind != "source" || s.Status != "Idle" || s.Issue != "" || s.Schedule != "Every hour" || s.NextAt.IsZero() || s.Labels["team"] != "data" || s.Table != "prices" || s.Host != "127.0.0.1:"+r.outside.port {
			t.Errorf("%+v", s.Lane)
		}
		if s.Freshness.LastSuccessAt.IsZero() || s.Freshness.LastAttemptAt.IsZero() || s.Freshness.Failed || s.Totals != (client.SourceTotals{Rows: 4, Failures: 0}) || s.Quota.Limited || s.Quota.Limit != nil || s.Retries.Count != 0 || s.Retries.Max != 5 {
			t.Errorf("%+v %+v %+v %+v", s.Freshness, s.Totals, s.Quota, s.Retries)
		}
		last := s.LastRun
		if last == nil || last.Status != "committed" || last.HandlerType != "source" || last.Lane != "prices" || len(s.Recent) != 1 || s.Recent[0].ID != last.ID {
			t.Fatalf("last %+v, recent %+v", last, s.Recent)
		}
		want := client.SourceProgress{Pages: 2, Requests: 2, RowsRead: 5, RowsNew: 4, Rejects: 1, Bytes: last.Progress.Bytes}
		if got := last.Progress.SourceProgress; got != want || got.Bytes == 0 || s.Recent[0].Progress.SourceProgress != want {
			t.Errorf("progress %+v", got)
		}
		var gates []string
		for _, g := range s.Gates {
			gates = append(gates, fmt.Sprintf("%s %v %v", g.Name, g.Open, !g.Until.IsZero()))
		}
		if got := strings.Join(gates, ", "); got != "wanted true false, schedule false true, in_flight true false, quota true false, retry true false, worker true false, halt true false" {
			t.Errorf("gates %s", got)
		}
		if s.Version == "" || s.VersionNumber != 1 || s.Pagination == "" || s.DueAt.IsZero() || !s.RequestedAt.IsZero() || string(s.Mark) != "null" {
			t.Errorf("%+v", s)
		}
		list := pages[client.SourceSummary](r, "/api/v1/sources?limit=1")
		if len(list) != 1 || list[0].Name != "prices" || list[0].LastRun.Progress.RowsNew != 4 || list[0].Totals.Rows != 4 {
			t.Errorf("%+v", list)
		}
	})
}

// Rows have the names of their columns and JSON's own types.
func TestRowsOfASourceArePaged(t *testing.T) {
	both(t, func(r *rig) {
		r.applyPrices("prices")
		for _, limit := range []int{1, 2, 3, 4, 50} {
			var ids []string
			for _, row := range pages[client.SourceRow](r, fmt.Sprintf("/api/v1/sources/prices/rows?limit=%d", limit)) {
				ids = append(ids, fmt.Sprint(row["id"]))
			}
			if slices.Sort(ids); !slices.Equal(ids, []string{"1", "3", "4", "5"}) {
				t.Errorf("limit %d: %v", limit, ids)
			}
		}
		rows := pages[client.SourceRow](r, "/api/v1/sources/prices/rows?limit=50")
		i := slices.IndexFunc(rows, func(row client.SourceRow) bool { return row["id"] == 1.0 })
		raw, _ := json.Marshal(rows[i])
		for _, part := range []string{`"close":1.5`, `"day":"2030-01-01"`, `"at":"2030-01-01T10:00:00.000Z"`, `"more":{"a":1}`, `"_run":"`} {
			if !strings.Contains(string(raw), part) {
				t.Errorf("%s lacks %s", raw, part)
			}
		}
		rejects := pages[client.Reject](r, "/api/v1/sources/prices/rejects?limit=1")
		if len(rejects) != 1 || rejects[0].Page != 1 || rejects[0].Row != 2 || !strings.Contains(rejects[0].Reason, "close") || !strings.Contains(rejects[0].Raw, `"n/a"`) || rejects[0].RunID != r.source("prices").Recent[0].ID || rejects[0].CreatedAt.IsZero() {
			t.Errorf("%+v", rejects)
		}
		foreign := string(pageOf([]int{1}, "job", "5").NextCursor)
		for _, path := range []string{"sources", "sources/prices/rows", "sources/prices/rejects", "sources/prices/versions", "schemas"} {
			if p := r.do("GET", "/api/v1/"+path+"?cursor="+foreign, nil).problem(422, "invalid"); !slices.Equal(pointers(p), []string{"/cursor"}) {
				t.Errorf("%s: %+v", path, p.Errors)
			}
		}
		for _, place := range []string{"x", "\x00"} {
			cursor := string(pageOf([]int{1}, rowCursor, place).NextCursor)
			if p := r.do("GET", "/api/v1/sources/prices/rows?cursor="+cursor, nil).problem(422, "invalid"); !slices.Equal(pointers(p), []string{"/cursor"}) {
				t.Errorf("%q: %+v", place, p.Errors)
			}
		}
	})
}

// Runs of sources are runs like all others, and tell what they did.
func TestRunsOfSourcesAreListed(t *testing.T) {
	both(t, func(r *rig) {
		r.applyPrices("prices")
		for _, query := range []string{"?kind=source", "?lane=prices", "?kind=source&lane=prices&status=committed"} {
			runs := r.runs(query)
			if len(runs) != 1 || runs[0].Kind != "source" || runs[0].Phase != "committed" || runs[0].Trigger != "schedule" || runs[0].Progress == nil || runs[0].Progress.RowsNew != 4 {
				t.Errorf("%s: %+v", query, runs)
			}
		}
		var d client.RunDetail
		r.do("GET", "/api/v1/runs/"+r.runs("")[0].ID, nil).want(200).into(&d)
		if d.Lane != "prices" || d.Progress.Pages != 2 || len(d.Actions) != 0 || len(d.Chain) != 1 || d.Approval != nil || string(d.ScriptVersion) != r.source("prices").Version {
			t.Errorf("%+v", d)
		}
		if got := r.runs("?kind=workflow&lane=prices"); len(got) != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// A source is a lane, listed after the workflows, and tells why it waits.
func TestSourcesAreLanes(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("zoo", consuming("zoo", ""))
		r.applyPrices("prices")
		r.applyPrices("quotes")
		for _, path := range []string{"/api/v1/lanes?limit=1", "/api/v1/lanes?limit=2", "/api/v1/lanes?limit=50"} {
			var told []string
			for _, l := range pages[client.Lane](r, path) {
				told = append(told, l.Kind+" "+l.Name)
			}
			if !slices.Equal(told, []string{"workflow zoo", "source prices", "source quotes"}) {
				t.Errorf("%s: %v", path, told)
			}
		}
		if list := pages[client.Lane](r, "/api/v1/lanes?kind=source&limit=50"); len(list) != 2 || list[0].LastActivity.Text != "Fetched 5 rows, 4 new, 1 rejected" {
			t.Errorf("%+v", list)
		}
		run := r.runs("?lane=prices")[0]
		var y client.LaneWhy
		r.do("GET", "/api/v1/lanes/source/prices/why?at="+pawl.FormatTime(run.CreatedAt.Time), nil).want(200).into(&y)
		if !slices.Equal(closedGates(y), []string{"schedule"}) || y.Next == "" || len(y.Recent) != 1 || y.Around.Before.ID != run.ID || y.Gates[1].Until.IsZero() {
			t.Errorf("%+v", y)
		}
		if p := r.do("GET", "/api/v1/lanes/source/price/why", nil).problem(404, "not_found"); !strings.Contains(p.Hint, `"prices"`) {
			t.Errorf("%+v", p)
		}
	})
}

// what our own limit puts off is told, and is nobody's failure.
func TestQuotaOfASourceIsTold(t *testing.T) {
	both(t, func(r *rig) {
		limited := strings.Replace(r.outside.URL, "127.0.0.1", "localhost", 1)
		r.apply("prices", r.fetching("/prices", "url", limited+"/prices"))
		r.waitRuns("?lane=prices&status=committed", 1)
		s := r.source("prices")
		if q := s.Quota; !q.Limited || *q.Limit != 2 || *q.Left != 0 || q.ResetAt.IsZero() || s.Gates[3].Open || s.Gates[3].Until.IsZero() {
			t.Errorf("%+v %+v", q, s.Gates[3])
		}
		r.do("POST", "/api/v1/sources/prices/run", nil).want(202)
		if s = r.source("prices"); s.RequestedAt.IsZero() || len(s.Recent) != 1 || s.Retries.Count != 0 {
			t.Errorf("%+v", s)
		}
		p := r.do("POST", "/api/v1/sources/test", r.fetching("/prices", "url", limited+"/prices")).problem(503, "fetch_deferred")
		if wait := p.Detail; !strings.Contains(wait, "localhost") {
			t.Errorf("%+v", p)
		}
		if r.outside.requests() != 2 {
			t.Errorf("%d requests", r.outside.requests())
		}
	})
}

func TestUnknownSourceIsNotFound(t *testing.T) {
	both(t, func(r *rig) {
		r.apply("prices", r.fetching("/prices"))
		for _, q := range []struct{ method, path string }{
			{"GET", ""}, {"DELETE", ""}, {"POST", "/run"}, {"POST", "/pause"}, {"POST", "/resume"}, {"POST", "/reset"}, {"GET", "/rows"}, {"GET", "/rejects"}, {"GET", "/versions"},
		} {
			for _, name := range []string{"price", "nothing-like-it", "a%00b", "%20", strings.Repeat("x", 300)} {
				p := r.do(q.method, "/api/v1/sources/"+name+q.path, nil).problem(404, "not_found")
				if strings.Contains(p.Hint, `Did you mean "prices"?`) != (name == "price") {
					t.Errorf("%s %s%s: hint %q", q.method, name, q.path, p.Hint)
				}
			}
		}
		r.waitRuns("?lane=prices&status=committed", 1)
	})
}

// Editors get the schemas of what people define.
func TestSchemasAreServed(t *testing.T) {
	both(t, func(r *rig) {
		list := pages[client.SchemaPlace](r, "/api/v1/schemas?limit=1")
		if len(list) != 6 || list[0].Kind != "calendar" || list[1].Kind != "hook" || list[2].Kind != "prices" || list[3].Kind != "provider" || list[4].Kind != "schedule" || list[5].Kind != "source" {
			t.Fatalf("%+v", list)
		}
		for _, place := range list {
			p := r.do("GET", place.Path, nil).want(200)
			var schema map[string]any
			p.into(&schema)
			if p.header.Get("Content-Type") != "application/json" || schema["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
				t.Errorf("%s: %v", place.Kind, schema["$schema"])
			}
		}
		if p := r.do("GET", "/api/v1/schemas/sorce", nil).problem(404, "not_found"); !strings.Contains(p.Hint, `"source"`) {
			t.Errorf("%+v", p)
		}
	})
}
