package demo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The demo against the real server: every promise holds, and the story is
// told. It takes as long as the demo does.
func TestDemoKeepsItsPromises(t *testing.T) {
	var out strings.Builder
	dir := t.TempDir()
	if err := Run(t.Context(), Config{Out: &out, Addr: "127.0.0.1:0", Dir: dir, Once: true}); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, words := range []string{"Every promise was kept.", "order 7 → 200", "order 3 → 500", "reminder, version 4 → 200", "is a private address", "customer 5 at the till",
		"died in the middle of page 5", "needs approval", "approved ", "healed ", "a poem and a receipt"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("the story lacks %q", words)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "pawl.db")); err != nil {
		t.Errorf("the data was not kept: %v", err)
	}
}

func TestDemoEndsWhenItsTimeIsOver(t *testing.T) {
	var out strings.Builder
	if err := Run(t.Context(), Config{Out: &out, Addr: "127.0.0.1:0", Length: 200 * time.Millisecond}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "not all were shown") {
		t.Error(out.String())
	}
}

// When the scenes are over, the world goes on, something waits for a person,
// and the way into the pages is told.
func TestDemoGoesOnUntilItIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out strings.Builder
	heard := writer(func(text string) {
		out.WriteString(text)
		if strings.Contains(text, "a sailing boat: in the browser, or pawl approve ") {
			cancel()
		}
	})
	if err := Run(ctx, Config{Out: heard, Addr: "127.0.0.1:0"}); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, words := range []string{"Every promise was kept.", "/signin?code=", "pawl get approvals", "Press Ctrl-C to stop."} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("it lacks %q:\n%s", words, out.String())
		}
	}
}

func TestInterruptIsARegularEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	heard := writer(func(string) { cancel() }) // at the first line of the story
	if err := Run(ctx, Config{Out: heard, Addr: "127.0.0.1:0"}); err != nil {
		t.Error(err)
	}
}

func TestServerThatCannotStartIsTold(t *testing.T) {
	err := Run(t.Context(), Config{Out: &strings.Builder{}, Addr: "127.0.0.1:99999"})
	if err == nil || !strings.Contains(err.Error(), "99999") {
		t.Errorf("got %v", err)
	}
}

type writer func(string)

func (w writer) Write(b []byte) (int, error) { w(string(b)); return len(b), nil }
