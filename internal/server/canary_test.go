package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// A server with workers says when its canary came round; one without, and one whose
// settings say so, has none. Nobody sees its job.
func TestReadinessTellsOfTheCanary(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		u := start(t, database, func(*Config) {})
		eventually(t, "the canary comes round", func() bool {
			status, body := u.ask("", "GET", "/readyz", "")
			return status == http.StatusOK && strings.Contains(body, `"canary":"ok"`) && strings.Contains(body, `"milliseconds":`) && strings.Contains(body, `"endedAt":"`)
		})
		if _, jobs := u.ask(u.admin, "GET", "/api/v1/jobs?limit=100", ""); strings.Contains(jobs, "canary") {
			t.Errorf("its job is listed: %s", jobs)
		}
		_, numbers := u.ask(u.admin, "GET", "/metrics", "")
		if !strings.Contains(numbers, "\npawl_canary_round_trip_seconds ") || strings.Contains(numbers, "pawl.canary") {
			t.Error("its numbers are not those that are wanted")
		}
	})
	for name, change := range map[string]func(*Config){
		"no worker":  func(c *Config) { c.Roles = []string{RoleAPI} },
		"turned off": func(c *Config) { c.NoCanary = true },
	} {
		u := start(t, "sqlite:"+t.TempDir()+"/pawl.db", change)
		eventually(t, "it is ready", func() bool { status, _ := u.ask("", "GET", "/readyz", ""); return status == http.StatusOK })
		_, numbers := u.ask(u.admin, "GET", "/metrics", "")
		if _, body := u.ask("", "GET", "/readyz", ""); strings.Contains(body, "canary") || strings.Contains(numbers, "canary") {
			t.Errorf("%s: %s", name, body)
		}
	}
}
