package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// call is a command that a test runs in-process.
type call struct {
	dir      string // a fresh one if empty
	env      map[string]string
	terminal bool
	width    int
	stdin    string
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

// process makes a process that belongs to a test, with what it wrote.
func (c call) process(t *testing.T, args ...string) (p *Process, stdout, stderr *output) {
	t.Helper()
	if c.dir == "" {
		c.dir = t.TempDir()
	}
	stdout, stderr = &output{}, &output{}
	return &Process{
		Args: args, Getenv: func(name string) string { return c.env[name] }, Stdin: strings.NewReader(c.stdin),
		Stdout: stdout, Stderr: stderr, Dir: c.dir, StdinTerminal: c.terminal, StdoutTerminal: c.terminal, StderrTerminal: c.terminal, Width: c.width,
	}, stdout, stderr
}

func (c call) run(t *testing.T, args ...string) result {
	t.Helper()
	p, stdout, stderr := c.process(t, args...)
	return result{Run(t.Context(), p), stdout.String(), stderr.String()}
}

// run runs a command in a fresh folder with an empty environment.
func run(t *testing.T, args ...string) result { t.Helper(); return call{}.run(t, args...) }

// expect fails the test unless the command ended with the code and said all
// of the words on stderr.
func (r result) expect(t *testing.T, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d; stderr:\n%s", r.code, code, r.stderr)
	}
	for _, w := range words {
		if !strings.Contains(r.stderr, w) {
			t.Errorf("stderr lacks %q:\n%s", w, r.stderr)
		}
	}
}

// output can be read while a command writes to it.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	waiting []waiter
}

type waiter struct {
	word string
	seen chan struct{}
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(b)
	rest := o.waiting[:0]
	for _, w := range o.waiting {
		if strings.Contains(o.text.String(), w.word) {
			close(w.seen)
		} else {
			rest = append(rest, w)
		}
	}
	o.waiting = rest
	return n, err
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await waits until a word was written.
func (o *output) await(ctx context.Context, t *testing.T, word string) {
	t.Helper()
	w := waiter{word, make(chan struct{})}
	o.mu.Lock()
	if strings.Contains(o.text.String(), word) {
		close(w.seen)
	} else {
		o.waiting = append(o.waiting, w)
	}
	o.mu.Unlock()
	select {
	case <-w.seen:
	case <-ctx.Done():
		t.Fatalf("%q was not written:\n%s", word, o.String())
	}
}

// folder makes a folder with files in it.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
