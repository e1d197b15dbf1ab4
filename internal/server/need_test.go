package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// shop is a place whose prices can be fetched and where slots call; fetches wait while
// it is shut.
type shop struct {
	url     string
	shut    atomic.Pointer[chan struct{}] // nil: it is open
	fetches atomic.Int64
	calls   atomic.Int64
}

func openShop(t *testing.T) *shop {
	s := &shop{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/call" {
			s.calls.Add(1)
			return
		}
		s.fetches.Add(1)
		if shut := s.shut.Load(); shut != nil {
			select {
			case <-*shut:
			case <-r.Context().Done():
			}
		}
		_, _ = fmt.Fprint(w, `{"items":[{"id":1}]}`)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// definitions are in an order in which each names what comes later.
func (s *shop) definitions(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "kind: schedule\nname: nightly\nrun: {url: " + s.url + "/call}\ncron: 0 3 1 1 *\nneeds: [{source: prices, maxAge: 2s, wait: 5m}]\n",
		"b.workflow.js": `export default {
	name: "reorder", topics: { found: {} }, needs: [{ source: "prices", maxAge: "2s" }],
	producers: { look: { publishes: ["found"], schedule: { interval: "24h" }, handler: async () => {} } },
	consumers: { order: { subscribe: ["found"], prepare: async () => ({ reservations: [], data: {} }), mutate: async () => {}, next: async () => {} } },
};`,
		"z.yaml": "kind: source\nname: prices\nurl: " + s.url + "/prices\ntable: prices\nschedule: daily\nwrite: {key: [id]}\nresponse: {dataPath: items, fields: [{source: id, target: id, type: integer}]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Lanes wait for the sources that they need, on a real server: folders are applied in
// whatever order, a source that is too old fetches once for all who wait, its end
// wakes them, and it is not deleted while it is needed.
func TestLanesWaitForTheSourcesThatTheyNeed(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		s := openShop(t)
		u := start(t, database, func(c *Config) {
			c.Dirs, c.AllowPrivate = []string{s.definitions(t)}, []string{"127.0.0.1/32"}
		})
		status := func() string {
			_, raw := u.ask(u.admin, "GET", "/api/v1/lanes", "")
			return raw
		}
		eventually(t, "all are there, and the workflow has run", func() bool {
			text := status()
			return strings.Contains(text, `"nightly"`) && strings.Contains(text, `"reorder"`) && s.fetches.Load() > 0 && strings.Count(text, `"status":"Idle"`) == 3
		})
		gate := make(chan struct{})
		s.shut.Store(&gate)
		var id string
		eventually(t, "both wait", func() bool {
			if id == "" {
				_, list := u.ask(u.admin, "GET", "/api/v1/schedules?name=nightly", "")
				id = strings.Split(strings.Split(list, `"id":"`)[1], `"`)[0]
			}
			if text := status(); !strings.Contains(text, "The slot of") {
				u.ask(u.admin, "POST", "/api/v1/schedules/"+id+"/run", "")
			}
			u.ask(u.admin, "POST", "/api/v1/workflows/reorder/run", "")
			text := status()
			return strings.Contains(text, "The slot of ") && strings.Contains(text, "It waits for source prices, ") && strings.Contains(text, `"issueCode":"waiting_fresh"`)
		})
		fetched, called := s.fetches.Load(), s.calls.Load()
		if _, slots := u.ask(u.admin, "GET", "/api/v1/schedules/"+id+"/slots", ""); !strings.Contains(slots, `"disposition":"waiting_fresh"`) {
			t.Errorf("slots %s", slots)
		}
		if code, why := u.ask(u.admin, "DELETE", "/api/v1/sources/prices", ""); code != http.StatusConflict || why != "source_needed" {
			t.Errorf("deleting what is needed: %d %s", code, why)
		}
		s.shut.Store(nil)
		close(gate)
		eventually(t, "both went on", func() bool { return strings.Count(status(), `"status":"Idle"`) == 3 && s.calls.Load() == called+1 })
		if n := s.fetches.Load(); fetched > 2 && n > fetched+1 {
			t.Errorf("%d fetches, %d before the wait ended", n, fetched)
		}
		u.ask(u.admin, "DELETE", "/api/v1/schedules/"+id, "")
		u.ask(u.admin, "DELETE", "/api/v1/workflows/reorder", "")
		if code, why := u.ask(u.admin, "DELETE", "/api/v1/sources/prices", ""); code != http.StatusOK {
			t.Errorf("deleting what nobody needs: %d %s", code, why)
		}
	})
}

// Whoever may not run a source may not make it fetch by needing it, nor learns who
// does.
func TestNeedingASourceTakesTheRightToRunIt(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		s := openShop(t)
		u := start(t, database, func(c *Config) {
			c.Dirs, c.AllowPrivate = []string{s.definitions(t)}, []string{"127.0.0.1/32"}
		})
		narrow, _ := u.token("nora", "schedules:write", "jobs:write", "workflows:write")
		wide, _ := u.token("wilma", "schedules:write", "jobs:write", "sources:write", "workflows:write")
		schedule := `{"name":"s","run":{"url":"` + s.url + `/call"},"cron":"0 3 1 1 *","timezone":"UTC","needs":[{"source":"prices","maxAge":"1h"}]}`
		if code, why := u.ask(narrow, "POST", "/api/v1/schedules", schedule); code != http.StatusForbidden {
			t.Errorf("without the right: %d %s", code, why)
		}
		if code, why := u.ask(wide, "POST", "/api/v1/schedules", schedule); code != http.StatusCreated || !strings.Contains(why, `"needs":[{"source":"prices","maxAge":"1h"}]`) {
			t.Errorf("with the right: %d %s", code, why)
		}
		for token, want := range map[string]int{narrow: http.StatusForbidden, wide: http.StatusCreated} {
			body := `{"script":"export default {name: 'w', topics: {a: {}}, needs: [{source: 'prices', maxAge: '1h'}], consumers: {c: {subscribe: ['a'], prepare: async () => ({reservations: [], data: {}}), next: async () => {}}}}","filename":"w.workflow.js"}`
			if code, why := u.ask(token, "PUT", "/api/v1/workflows/w", body); code != want {
				t.Errorf("a workflow: %d %s, want %d", code, why, want)
			}
		}
		if code, why := u.ask(u.admin, "POST", "/api/v1/schedules", strings.Replace(schedule, `"prices"`, `"pricess"`, 1)); code != http.StatusUnprocessableEntity && code != http.StatusBadRequest {
			t.Errorf("a source that is not there: %d %s", code, why)
		}
	})
}
