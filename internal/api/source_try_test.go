package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
)

// A definition can be tried out: what it would write is told, and nothing is
// written.
func TestTryingASourceWritesNothing(t *testing.T) {
	both(t, func(r *rig) {
		p := r.do("POST", "/api/v1/sources/test", r.fetching("/prices")).want(200)
		var tried client.SourceTrial
		p.into(&tried)
		if len(tried.Fields) != 5 || tried.Fields[1] != (client.SourceField{Source: "close", Target: "close", Type: "number", Required: false}) || tried.RowsRead != 4 || len(tried.Rows) != 4 || tried.More {
			t.Errorf("%s", p.body)
		}
		raw, _ := json.Marshal(tried.Rows[0])
		if string(raw) != `{"at":"2030-01-01T10:00:00.000Z","close":1.5,"day":"2030-01-01","id":1,"more":{"a":1}}` {
			t.Errorf("%s", raw)
		}
		if tried.Rejected != 1 || len(tried.Rejects) != 1 || tried.Rejects[0].Row != 2 || !strings.Contains(tried.Rejects[0].Reason, "close") {
			t.Errorf("%+v", tried.Rejects)
		}
		if q := tried.Requests; len(q) != 2 || q[0].Status != 200 || q[0].Rows != 2 || q[0].Bytes == 0 || !strings.HasPrefix(q[0].URL, r.outside.URL+"/prices?") {
			t.Errorf("%+v", q)
		}
		r.do("POST", "/api/v1/sources/test?pages=1&rows=1", r.pricesYAML(), "Content-Type", "application/yaml").want(200).into(&tried)
		if len(tried.Rows) != 1 || len(tried.Requests) != 1 {
			t.Errorf("%+v", tried)
		}
		if r.do("POST", "/api/v1/sources/test?pages=1", r.fetching("/prices")).want(200).into(&tried); !tried.More {
			t.Errorf("%+v", tried)
		}
		if n := r.count(`select count(*) from source_definitions`) + r.count(`select count(*) from runs`); n != 0 {
			t.Errorf("%d rows", n)
		}
	})
}

// What goes wrong outside is told with what was tried.
func TestTryingASourceTellsWhatWentWrong(t *testing.T) {
	both(t, func(r *rig) {
		for path, want := range map[string]struct {
			status int
			code   string
		}{
			"/busy": {503, "fetch_http_status"}, "/locked": {422, "fetch_unauthorized"}, "/page": {422, "fetch_not_json"}, "/nothing": {422, "fetch_http_status"},
		} {
			p := r.do("POST", "/api/v1/sources/test", r.fetching(path)).problem(want.status, want.code)
			if p.Title != "The fetch did not work" || !strings.Contains(p.Detail, "first page, GET "+r.outside.URL+path) {
				t.Errorf("%s: %+v", path, p)
			}
		}
		// The second page is the same as the first one.
		p := r.do("POST", "/api/v1/sources/test?pages=3", r.fetching("/prices", "offsetPagination", map[string]any{"pageParam": "leaf", "limit": 3, "hasMorePath": "more"})).problem(422, "fetch_loop")
		if !strings.Contains(p.Detail, "page 1, GET "+r.outside.URL+"/prices") {
			t.Errorf("%+v", p)
		}
		if p := r.do("POST", "/api/v1/sources/test", r.fetching("/prices", "schedule", "sometimes")).problem(422, "invalid"); len(p.Errors) != 1 {
			t.Errorf("%+v", p)
		}
		r.do("POST", "/api/v1/sources/test?pages=0", r.fetching("/prices")).problem(422, "invalid")
	})
}
