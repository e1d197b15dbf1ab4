package server

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// read answers a GET.
func (r *running) read(path string, into any) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), "GET", r.url+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", r.auth)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // a test
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("GET %s: %d %s, %v", path, resp.StatusCode, body, err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		r.t.Fatalf("GET %s: %v in %s", path, err, body)
	}
}

// hesitant is a workflow whose consumer looks at its event and takes nothing.
const hesitant = `export default {
	name: "hesitant", topics: { found: {} },
	producers: { look: { publishes: ["found"], schedule: { interval: "24h" }, handler: async () => {} } },
	consumers: { wait: { subscribe: ["found"], prepare: async () => ({ reservations: [], data: {} }), mutate: async () => {}, next: async () => {} } },
};`

func (r *running) deploy() {
	r.t.Helper()
	r.call("PUT", "/api/v1/workflows/hesitant", map[string]any{"script": hesitant, "filename": "hesitant.workflow.js"})
}

// a server that starts asks consumers whose events wait, also those of
// workflows that have a producer, once.
func TestAStartAsksConsumersWhoseEventsWait(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		cfg := configOf(t, url)
		r := launch(t, cfg)
		asked := func() (n int) {
			var list struct {
				Items []struct{ Handler, Status string }
			}
			r.read("/api/v1/runs?kind=workflow&lane=hesitant&limit=100", &list)
			for _, run := range list.Items {
				if run.Handler == "wait" && run.Status == "committed" {
					n++
				}
			}
			return n
		}
		r.deploy()
		eventually(t, "the new consumer is asked", func() bool { return asked() == 1 })
		r.call("POST", "/api/v1/workflows/hesitant/events", map[string]any{"topic": "found", "messageId": "1", "payload": map[string]any{}})
		eventually(t, "the event wakes it", func() bool { return asked() == 2 })
		r.stop()
		r = launch(t, cfg)
		eventually(t, "the start asks it again", func() bool { return asked() == 3 })
		r.stop()
	})
}

// a start also finds the workflow whose job somebody lost, and that is
// due.
func TestAStartFindsAWorkflowWithoutAJob(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		cfg := configOf(t, url)
		r := launch(t, cfg)
		looked := func(n int) func() bool {
			return func() bool {
				var list struct {
					Items []struct{ Handler, Status string }
				}
				r.read("/api/v1/runs?kind=workflow&lane=hesitant&limit=100", &list)
				list.Items = slices.DeleteFunc(list.Items, func(run struct{ Handler, Status string }) bool {
					return run.Handler != "look" || run.Status != "committed"
				})
				return len(list.Items) == n
			}
		}
		r.deploy()
		eventually(t, "the producer runs", looked(1))
		r.stop()
		r.change(`delete from jobs where task = 'pawl.workflow'`, `update producer_schedules set next_run_at = 1`)
		r = launch(t, cfg)
		eventually(t, "the producer runs although its job is gone", looked(2))
		r.stop()
	})
}

// where nobody works, every kind of lane says so.
func TestLanesSayThatNobodyWorks(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		cfg := configOf(t, url)
		cfg.Roles = []string{RoleAPI}
		r := launch(t, cfg)
		r.deploy()
		r.source("prices", "http://127.0.0.1:9/prices")
		r.schedule("later", "0 0 1 1 *")
		var list struct {
			Items []struct{ Kind, Status, IssueCode string }
		}
		r.read("/api/v1/lanes", &list)
		if len(list.Items) != 3 {
			t.Fatalf("there are %+v", list.Items)
		}
		for _, lane := range list.Items {
			if lane.Status != "Needs attention" || lane.IssueCode != "no_worker" {
				t.Errorf("nobody works, and the %s says %+v", lane.Kind, lane)
			}
		}
		r.stop()
	})
}

// Surface 2, 1: schedules, producers and sources leave out the days of the same
// calendars.
func TestAllKindsUseTheSameCalendars(t *testing.T) {
	cfg := configOf(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
	r := launch(t, cfg)
	r.call("PUT", "/api/v1/calendars/free", map[string]any{"name": "free", "days": []string{"2099-12-24"}})
	script := strings.Replace(hesitant, `{ interval: "24h" }`, `{ interval: "24h", except: ["calendar:free"], missed: { policy: "all" } }`, 1)
	r.call("PUT", "/api/v1/workflows/hesitant", map[string]any{"script": script, "filename": "hesitant.workflow.js"})
	r.call("PUT", "/api/v1/sources/daily", map[string]any{
		"name": "daily", "url": "http://127.0.0.1:1/x", "table": "days", "response": map[string]any{"raw": true}, "schedule": map[string]any{"cron": "0 9 * * *", "except": []string{"calendar:free"}},
	})
	var c struct{ UsedBy []string }
	r.read("/api/v1/calendars/free", &c)
	if want := []string{"workflow hesitant", "source daily"}; !slices.Equal(c.UsedBy, want) {
		t.Errorf("it is used by %q, not by %q", c.UsedBy, want)
	}
	var w struct {
		Producers []struct{ Schedule, NextRunAt string }
		Config    struct {
			Producers []struct {
				Schedule struct {
					Except []string
					Missed struct{ Policy string }
				}
			}
		}
	}
	r.read("/api/v1/workflows/hesitant", &w)
	if p := w.Producers[0]; p.Schedule != "Every day, except 1 day" || w.Config.Producers[0].Schedule.Missed.Policy != "all" {
		t.Errorf("%+v", w)
	}
}
