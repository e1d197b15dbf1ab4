package peer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fake is an engine without a database.
type fake struct {
	repeats int // steps that are executed once more, of each workflow
	loses   bool
	hangs   bool
	fails   error

	done, executed, under, most atomic.Int64
}

func (f *fake) Run(ctx context.Context) error {
	now := f.under.Add(1)
	defer f.under.Add(-1)
	for most := f.most.Load(); now > most && !f.most.CompareAndSwap(most, now); most = f.most.Load() {
	}
	if f.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	for range 20 { // others may begin as well, if they are let
		runtime.Gosched()
	}
	f.executed.Add(int64(Steps + f.repeats))
	if !f.loses {
		f.done.Add(1)
	}
	return f.fails
}

func (f *fake) Done(context.Context) (int, error) { return int(f.done.Load()), nil }
func (f *fake) Executed() int                     { return int(f.executed.Load()) }
func (f *fake) Close()                            {}

// answer serves one request to the engine, as its process would.
func answer(f *fake, req Request) Answer {
	in, out := io.Pipe()
	go func() { _ = json.NewEncoder(out).Encode(req) }()
	defer out.Close() //nolint:errcheck // a pipe in memory
	p := Program{AtOnce: 4, Open: func(context.Context, string) (Engine, error) { return f, nil }}
	return p.serve(context.Background(), in, func() {})
}

func TestWorkflowsAreMeasured(t *testing.T) {
	for _, oneByOne := range []bool{true, false} {
		f := &fake{}
		got := answer(f, Request{Workflows: 500, WarmUp: 50, OneByOne: oneByOne, Limit: time.Minute})
		if got.Error != "" || got.Seconds <= 0 {
			t.Errorf("one by one %v: %+v", oneByOne, got)
		}
		if n := f.done.Load(); n != 550 {
			t.Errorf("%d workflows ran, want 550", n)
		}
		if most := f.most.Load(); oneByOne && most != 1 || !oneByOne && (most < 2 || most > 4) {
			t.Errorf("one by one %v: %d were under way at once", oneByOne, most)
		}
	}
}

func TestWhatVoidsANumber(t *testing.T) {
	for _, test := range []struct {
		name   string
		engine *fake
		want   string
	}{
		{"a step twice", &fake{repeats: 1}, "4 steps were executed, which should be 3"},
		{"the database does not agree", &fake{loses: true}, "not done in 50ms: the database has 0 workflows that are done, of 1"},
		{"it hangs", &fake{hangs: true}, "not done in 50ms"},
		{"it fails", &fake{fails: errors.New("no luck")}, "no luck"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := answer(test.engine, Request{Workflows: 1, Limit: 50 * time.Millisecond})
			if !strings.Contains(got.Error, test.want) || got.Seconds != 0 {
				t.Errorf("answer %+v, want the error %q and no number", got, test.want)
			}
		})
	}
}

func TestAnEngineEndsWithItsAsker(t *testing.T) {
	in, out := io.Pipe()
	go func() {
		_ = json.NewEncoder(out).Encode(Request{Workflows: 1, Limit: time.Minute})
		_ = out.Close()
	}()
	alone := make(chan struct{})
	p := Program{AtOnce: 1, Open: func(context.Context, string) (Engine, error) { return &fake{hangs: true}, nil }}
	got := p.serve(t.Context(), in, func() { close(alone) })
	if !strings.Contains(got.Error, "nobody waits") {
		t.Errorf("answer %+v", got)
	}
	<-alone
}

// TestMain is also the process of a peer, when Ask starts it.
func TestMain(m *testing.M) {
	switch os.Getenv("PAWL_BENCH_FAKE") {
	case "":
		os.Exit(m.Run())
	case "dies":
		_, _ = os.Stderr.WriteString("out of luck")
		os.Exit(3)
	case "hangs":
		Main(Program{AtOnce: 1, Open: func(context.Context, string) (Engine, error) { return &fake{hangs: true}, nil }})
	case "works":
		Main(Program{AtOnce: 7, Open: func(context.Context, string) (Engine, error) { return &fake{}, nil }})
	}
}

func TestAskingAProcess(t *testing.T) {
	t.Setenv("PAWL_BENCH_FAKE", "works")
	got, err := Ask(t.Context(), os.Args[0], Request{Workflows: 10, Limit: time.Minute})
	if err != nil || got.AtOnce != 7 || got.Seconds <= 0 {
		t.Errorf("answer %+v, %v", got, err)
	}
	t.Setenv("PAWL_BENCH_FAKE", "dies")
	if _, err = Ask(t.Context(), os.Args[0], Request{Workflows: 10, Limit: time.Minute}); err == nil || !strings.Contains(err.Error(), "its last words: out of luck") {
		t.Errorf("a process that dies: %v", err)
	}
	t.Setenv("PAWL_BENCH_FAKE", "hangs")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err = Ask(ctx, os.Args[0], Request{Workflows: 10, Limit: time.Minute}); err == nil {
		t.Error("a process that hangs has answered")
	}
}
