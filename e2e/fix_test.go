package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// with a repairer a script that fails is mended, checked by replays and
// put in force, and the run is retried at once; people see the difference.
func TestScriptIsMendedByACommand(t *testing.T) {
	s := serveClerk(t, "sqlite:.pawl/pawl.db")
	s.kill()
	mender := filepath.Join(s.dir, "mend.sh")
	// It gets the evidence on stdin; the mended script lies in a file.
	if err := os.WriteFile(mender, []byte("#!/bin/sh\ncat > \"$1/evidence.json\"\ncat \"$1/mended.ts\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "mended.ts"), []byte(clerk), 0o600); err != nil {
		t.Fatal(err)
	}
	s.args = append(s.args, "--auto-fix", "command", "--auto-fix-command", mender, "--auto-fix-command", s.dir)
	s.start()
	s.deploy(strings.Replace(clerk, "if (!order) return", `if (order?.messageId === "bad") null.x; if (!order) return`, 1))
	s.order("good")
	s.eventually("the good order is in the book", func() bool { return slices.Equal(s.lines(), []string{"good"}) })
	s.order("bad")
	s.eventually("the bad order is in the book", func() bool { return slices.Equal(s.lines(), []string{"good", "bad"}) })
	s.eventually("it is idle", func() bool { return s.lane().Status == "Idle" })
	out, code := s.pawl("describe", "workflow", "clerk")
	if code != 0 || !strings.Contains(out, "activated by") || !strings.Contains(out, `-        if (order?.messageId === "bad") null.x;`) {
		t.Errorf("describe: exit %d\n%s", code, out)
	}
	evidence, err := os.ReadFile(filepath.Join(s.dir, "evidence.json"))
	if err != nil || !strings.Contains(string(evidence), "clerk.workflow.ts:") || !strings.Contains(string(evidence), `"reads"`) {
		t.Errorf("the evidence lacks the place or the reads (%v): %.400s", err, evidence)
	}
}
