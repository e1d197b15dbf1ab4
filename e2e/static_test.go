package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The program that users get is built without a C compiler and without the flags
// of tests: its database, its scripts and its server work.
func TestTheProgramWithoutC(t *testing.T) {
	t.Parallel()
	static := filepath.Join(t.TempDir(), "pawl")
	// On a new machine everything is compiled for it, beside other tests.
	build := exec.CommandContext(t.Context(), "go", "build", "-o", static, "github.com/pawlrun/pawl/cmd/pawl")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	demo := exec.CommandContext(ctx, static, "demo")
	demo.Dir = t.TempDir()
	demo.Cancel = func() error { return demo.Process.Signal(os.Interrupt) }
	demo.WaitDelay = 30 * time.Second
	out, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{"ordered": true, "recorded": true, "wrote": true, "on time": true} // workflows, a schedule, a timer
	var said strings.Builder
	for lines := bufio.NewScanner(out); len(wanted) > 0 && lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		for what := range wanted {
			if strings.Contains(lines.Text(), " "+what) {
				delete(wanted, what)
			}
		}
	}
	cancel()
	_ = demo.Wait() // it was interrupted
	if len(wanted) > 0 {
		t.Errorf("the demo never said %v:\n%s", wanted, said.String())
	}
}
