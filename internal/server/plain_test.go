package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// A slot whose job was deleted before its end was seen asks a person; one whose server
// was stopped on the way finds its job again.
func TestASlotWhoseJobLeftNoRecordIsUnknown(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		cfg := configOf(t, database)
		r := launch(t, cfg)
		u := &up{t, r.url, strings.TrimPrefix(r.auth, "Bearer ")}
		body := `{"name":"lost","run":{"job":{"task":"http","payload":{"url":"http://127.0.0.1:1/"}}},"cron":"0 0 1 1 *","timezone":"UTC"}`
		status, raw := u.ask(u.admin, "POST", "/api/v1/schedules", body)
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(raw), &made); status != http.StatusCreated || err != nil {
			t.Fatalf("%d %s", status, raw)
		}
		u.ask(u.admin, "POST", "/api/v1/schedules/"+made.ID+"/run", `{}`)
		slots := "/api/v1/schedules/" + made.ID + "/runs?limit=1"
		eventually(t, "its job waits for another attempt", func() bool {
			_, raw = u.ask(u.admin, "GET", "/api/v1/jobs", "")
			return strings.Contains(raw, `"http"`) && strings.Contains(raw, "127.0.0.1")
		})
		r.stop()
		r.change(`delete from jobs where task = 'http'`)
		r = launch(t, cfg)
		u.url = r.url
		eventually(t, "the slot ends", func() bool {
			_, raw = u.ask(u.admin, "GET", slots, "")
			return strings.Contains(raw, `"status":"error"`)
		})
		if !strings.Contains(raw, `"unknown":true`) || !strings.Contains(raw, "left no record") {
			t.Errorf("%s", raw)
		}
	})
}
