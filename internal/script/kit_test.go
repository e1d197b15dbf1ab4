package script

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"
)

// testNow is what scripts take for the present.
var testNow = time.Date(2026, 3, 29, 1, 2, 3, 456e6, time.UTC)

// newTestPool makes a pool that ends with the test.
func newTestPool(t testing.TB, cfg Config) *Pool {
	t.Helper()
	p, err := NewPool(cfg)
	if err != nil {
		t.Fatalf("make a pool: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

func compileTest(t testing.TB, source string) *Program {
	t.Helper()
	program, err := Compile("test.workflow.ts", source)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return program
}

// handler makes a script of the body of one producer's handler.
func handler(body string) string {
	return "export default { producers: { p: { handler: async (ctx, state) => {\n" + body + "\n} } } }"
}

const handlerPath = "producers.p.handler"

// runBody runs the body of a handler.
func runBody(t testing.TB, p *Pool, body string, host Host, limits Limits, args ...json.RawMessage) (Result, error) {
	t.Helper()
	return p.Run(t.Context(), Request{
		Program: compileTest(t, handler(body)), Handler: handlerPath, Args: args, Now: testNow, Seed: 7,
	}, host, limits)
}

// valueOf runs a body that must succeed and returns its value as text.
func valueOf(t testing.TB, p *Pool, body string, host Host, args ...json.RawMessage) string {
	t.Helper()
	result, err := runBody(t, p, body, host, Limits{}, args...)
	if err != nil {
		t.Fatalf("run: %v\nlogs %v", err, result.Logs)
	}
	return string(result.Value)
}

// fakeHost answers calls with a function, and remembers them.
type fakeHost struct {
	answer func(ctx context.Context, op string, args json.RawMessage) (json.RawMessage, error)

	mu    sync.Mutex
	calls []string
}

func (h *fakeHost) Call(ctx context.Context, op string, args json.RawMessage) (json.RawMessage, error) {
	h.mu.Lock()
	h.calls = append(h.calls, fmt.Sprintf("%s %s", op, args))
	h.mu.Unlock()
	if h.answer == nil {
		return nil, nil
	}
	return h.answer(ctx, op, args)
}

func (h *fakeHost) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.calls...)
}

// echo answers every call with its own arguments.
func echo(_ context.Context, _ string, args json.RawMessage) (json.RawMessage, error) {
	return args, nil
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// atomicMax counts, and remembers the most.
type atomicMax struct {
	mu sync.Mutex
	n  int
}

func (a *atomicMax) add(n int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n += n
	return a.n
}

func (a *atomicMax) max(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n = max(a.n, n)
}

func (a *atomicMax) value() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

type rawJSON = json.RawMessage

// silentHost answers with the arguments and remembers nothing.
type silentHost struct{}

func (silentHost) Call(_ context.Context, _ string, args json.RawMessage) (json.RawMessage, error) {
	return args, nil
}
