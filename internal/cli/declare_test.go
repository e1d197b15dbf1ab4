package cli

import (
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// A task is declared, changed, listed and deleted without anything but the program.
func TestDeclareTask(t *testing.T) {
	h := serve(t)
	defer h.end()
	h.shows([]string{"declare", "send-email", "--lease", "1m", "--max-attempts", "5", "--per-lane", "4", "--rate", "100/1m", "--rate-per", "lane", "--batch", "50/5s", "--keep-results", "2d"}, "task send-email declared\n")
	h.shows([]string{"get", "tasks"}, "send-email", "1m", "5", "4", "100/1m per lane", "50/5s", "2d")
	h.shows([]string{"get", "task", "send-email", "-o", "json"}, `"concurrencyPerLane": 4`)
	h.shows([]string{"declare", "send-email"}, "task send-email declared\n")
	h.shows([]string{"get", "task", "send-email", "-o", "json"}, `"lease": "30s"`, `"rate": null`)
	h.shows([]string{"enqueue", "send-email"}, "")
	h.pawl("delete", "task", "send-email").expect(t, pawl.ExitRefused, "(jobs_wait)")
	h.shows([]string{"cancel", "jobs", "--task", "send-email"}, "1")
	h.shows([]string{"delete", "task", "send-email"}, "deleted")
	h.pawl("declare", "send-email", "--rate", "fast").expect(t, pawl.ExitUsage, "--rate must be a number, a slash and a time")
	h.pawl("declare", "send-email", "--rate-per", "lane").expect(t, pawl.ExitUsage, "--rate-per needs --rate")
	h.pawl("declare", "send-email", "--lease", "1000h").expect(t, pawl.ExitFailed, "/lease")
	h.pawl("declare", "http").expect(t, pawl.ExitRefused, "(own_task)")
}
