package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// The whole program: one switch, and nothing starts until it is moved back.
func TestHaltAndUnhalt(t *testing.T) {
	h := serve(t)
	defer h.end()
	h.shows([]string{"unhalt"}, "nothing was halted")
	h.shows([]string{"halt", "--note", "moving house"}, "everything is halted since ", " by admin")
	h.shows([]string{"halt"}, "everything is halted since ")
	if err := os.WriteFile(filepath.Join(h.dir, "hello.workflow.ts"), []byte(helloScript), 0o600); err != nil {
		t.Fatal(err)
	}
	h.shows([]string{"apply", "-f", "."}, "workflow hello created\n")
	h.until("Stopped", "get", "workflows")
	h.shows([]string{"why", "workflow", "hello"}, "by admin: moving house", "pawl unhalt")
	h.shows([]string{"status"}, "Everything has been halted since ", "pawl unhalt", "1 stopped")
	h.pawl("run", "workflow", "hello").expect(t, pawl.ExitRefused, "(halted)", "pawl unhalt")
	if r := h.pawl("get", "runs", "-o", "json"); strings.Contains(r.stdout, "hello") {
		t.Errorf("something ran: %s", r.stdout)
	}
	h.shows([]string{"unhalt"}, "the halt is lifted after ")
	h.until("done", "get", "inputs", "hello")
	h.shows([]string{"status"}, "Nothing needs attention")
	h.pawl("halt", "--note", strings.Repeat("x", 501)).expect(t, pawl.ExitFailed, "/note")
}
