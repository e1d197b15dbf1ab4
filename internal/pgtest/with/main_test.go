//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// A command's temporary folder is open to all users, as that of the system, and
// gone with the command.
func TestFastTemporaryFilesAreRemoved(t *testing.T) {
	t.Setenv(pgtest.EnvURL, "postgres://nobody@127.0.0.1:1/none") // no server is needed
	seen := filepath.Join(t.TempDir(), "seen")
	code, err := run(t.Context(), false, true, []string{"sh", "-c", `echo "${TMPDIR:-}" > ` + seen + ` && [ -k "${TMPDIR:-/tmp}" ]`})
	if code != 0 || err != nil {
		t.Fatalf("code %d, %v", code, err)
	}
	text, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(text))
	if !strings.HasPrefix(dir, "/dev/shm/") {
		return // too little memory here: the command's folder is the usual one
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left behind (%v)", dir, err)
	}
}

func TestAServerIsKeptUntilItIsInterrupted(t *testing.T) {
	t.Setenv(pgtest.EnvURL, "")
	ctx, cancel := context.WithCancel(t.Context())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	t.Cleanup(func() { os.Stdout = stdout })
	done := make(chan error, 1)
	go func() {
		_, err := run(ctx, false, true, nil)
		_ = w.Close() // ends the reading below, if nothing was printed
		done <- err
	}()
	line := make([]byte, 200)
	n, err := r.Read(line)
	if err != nil || !strings.HasPrefix(string(line[:n]), "export "+pgtest.EnvURL+"='postgres://") {
		t.Errorf("it prints %q (%v)", line[:n], err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("it ends with %v", err)
	}
}
