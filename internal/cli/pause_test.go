package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// The whole program: a pause says until when, by whom and why, and nonsense is refused
// with what to write instead.
func TestPauseUntil(t *testing.T) {
	h := serve(t)
	defer h.end()
	if err := os.WriteFile(filepath.Join(h.dir, "hello.workflow.ts"), []byte(helloScript), 0o600); err != nil {
		t.Fatal(err)
	}
	h.shows([]string{"apply", "-f", "."}, "workflow hello created\n")
	for _, until := range []string{"yesterday", "-2h", "0s", "2001-01-01", "2001-01-01T00:00:00Z", "h", "25:00"} {
		h.pawl("pause", "workflow", "hello", "--until", until).expect(t, pawl.ExitUsage, "--until", "Use a")
	}
	for _, until := range []string{"4000d", "2100-01-01"} {
		h.pawl("pause", "workflow", "hello", "--until", until).expect(t, pawl.ExitFailed, "/until", "within 10 years")
	}
	h.pawl("pause", "workflow", "hello", "--note", strings.Repeat("x", 501)).expect(t, pawl.ExitFailed, "/note")
	h.shows([]string{"pause", "workflow", "hello", "--until", "2h", "--note", "moving house"}, "workflow hello paused until 2")
	h.shows([]string{"get", "workflows"}, "Stopped", "It is paused until ")
	h.shows([]string{"describe", "workflow", "hello"}, "by admin", "moving house. It then continues by itself.")
	h.shows([]string{"why", "workflow", "hello"}, "moving house", "It does nothing until its pause is over, at ")
	h.shows([]string{"pause", "workflow", "hello"}, "workflow hello paused\n")
	if r := h.pawl("why", "workflow", "hello"); strings.Contains(r.stdout, "moving house") || !strings.Contains(r.stdout, "resume it to continue") {
		t.Errorf("what was said before stays: %s", r.stdout)
	}
	h.shows([]string{"pause", "workflow", "hello", "--until", "1s"}, "workflow hello paused until 2")
	h.until("Idle", "get", "workflows")
}
