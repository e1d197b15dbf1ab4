package cli

import (
	"os"
	"path/filepath"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
)

func TestTypesArePrintedOrWritten(t *testing.T) {
	r := run(t, "types")
	r.expect(t, pawl.ExitDone)
	if r.stdout != script.Types() || r.stderr != "" {
		t.Errorf("%d bytes on stdout, and %q", len(r.stdout), r.stderr)
	}
	dir := t.TempDir()
	for range 2 { // an older file is replaced
		r = call{dir: dir}.run(t, "types", "--out", "pawl.d.ts")
		r.expect(t, pawl.ExitDone, "wrote pawl.d.ts")
		if r.stdout != "" {
			t.Errorf("stdout: %s", r.stdout)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "pawl.d.ts"))
	if err != nil || string(text) != script.Types() {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	call{dir: dir}.run(t, "types", "--out", filepath.Join("absent", "pawl.d.ts")).expect(t, pawl.ExitFailed, "write types")
	run(t, "types", "extra").expect(t, pawl.ExitUsage, `does not take "extra"`)
}
