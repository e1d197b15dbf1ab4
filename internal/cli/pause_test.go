package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// A pause reads the same for every kind: what is refused says until when, by whom and
// why, as why and describe do, and lists do not call it disabled.
func TestAPauseReadsTheSameForEveryKind(t *testing.T) {
	h := serve(t)
	defer h.end()
	for name, text := range map[string]string{
		"hello.workflow.ts": helloScript,
		"all.yaml": "kind: source\nname: prices\nurl: https://example.com/prices\ntable: prices\nschedule: {interval: 1d, from: \"2099-01-01\"}\nresponse: {fields: [{source: id, target: id, type: integer}]}\n" +
			"---\nkind: schedule\nname: nightly\nrun: {url: \"https://example.com/\"}\ncron: 0 3 * * *\n",
	} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.shows([]string{"apply", "-f", "."}, "created")
	until := pawl.FormatTime(time.Now().Add(48 * time.Hour))
	for kind, name := range map[string]string{"workflow": "hello", "source": "prices", "schedule": "nightly"} {
		h.shows([]string{"pause", kind, name, "--until", until, "--note", "moving house"}, "paused until "+until)
		words, note := "is paused until "+until+", by admin since ", ": moving house"
		for _, verb := range []string{"why", "describe"} {
			h.shows([]string{verb, kind, name}, "It "+words, note+". It then continues by itself.")
		}
		h.pawl("run", kind, name).expect(t, pawl.ExitRefused, words, note+". (paused)", "Resume it first: pawl resume "+kind+" "+name)
		h.shows([]string{"get", kind + "s"}, "paused until "+until)
		h.shows([]string{"pause", kind, name}, kind+" "+name+" paused\n")
		h.pawl("run", kind, name).expect(t, pawl.ExitRefused, "is paused, by admin since ")
		h.shows([]string{"get", kind + "s"}, "paused")
	}
	if list := h.pawl("get", "schedules").stdout; strings.Contains(list, "disabled") {
		t.Errorf("a schedule that is paused is called disabled:\n%s", list)
	}
	h.shows([]string{"describe", "schedule", "nightly"}, "Status:       paused\n")
}
