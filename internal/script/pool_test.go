package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
)

// soon waits until cond holds. The bound only says when to give up.
func soon(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !cond() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("it did not happen that %s", what)
		}
	}
}

// state reads the pool's own books.
func (p *Pool) state() (idle, count, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle), p.count, len(p.waiting)
}

// idlePID is the process that runs the next phase.
func idlePID(t testing.TB, p *Pool) int {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		t.Fatal("no worker is idle")
	}
	return p.idle[len(p.idle)-1].cmd.Process.Pid
}

// gate is a host whose calls say that they have come and wait to be let go.
type gate struct {
	came chan string
	open chan struct{}
}

func newGate() *gate { return &gate{came: make(chan string, 100), open: make(chan struct{})} }

func (g *gate) Call(ctx context.Context, _ string, args json.RawMessage) (json.RawMessage, error) {
	select {
	case g.came <- string(args):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-g.open:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestWaitingCallersAreServedInOrder(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	program := compileTest(t, handler(`await ctx.peek(state)`))
	g := newGate()
	var done sync.WaitGroup
	for i := range 6 {
		done.Go(func() {
			_, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, Args: []rawJSON{mustJSON(t, fmt.Sprint(i))}}, g, Limits{})
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
		if i == 0 {
			<-g.came
		} else {
			soon(t, "a caller waits", func() bool { _, _, waiting := p.state(); return waiting == i })
		}
	}
	close(g.open)
	done.Wait()
	close(g.came)
	next := 1
	for args := range g.came {
		if want := fmt.Sprintf(`{"topic":"%d"}`, next); args != want {
			t.Errorf("%s came in the place of %s", args, want)
		}
		next++
	}
	if idle, count, waiting := p.state(); idle != 1 || count != 1 || waiting != 0 {
		t.Errorf("afterwards %d idle, %d workers, %d waiting", idle, count, waiting)
	}
}

func TestWaitingCallerCanGiveUp(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	g := newGate()
	first := make(chan error, 1)
	go func() {
		_, err := runBody(t, p, `await ctx.peek("a")`, g, Limits{})
		first <- err
	}()
	<-g.came
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("lease lost")
	second := make(chan error, 1)
	program := compileTest(t, handler("return 1"))
	go func() {
		_, err := p.Run(ctx, Request{Program: program, Handler: handlerPath}, nil, Limits{})
		second <- err
	}()
	soon(t, "the second waits", func() bool { _, _, waiting := p.state(); return waiting == 1 })
	cancel(reason)
	if err := <-second; !errors.Is(err, reason) {
		t.Errorf("the second ended with %v", err)
	}
	close(g.open)
	if err := <-first; err != nil {
		t.Errorf("the first ended with %v", err)
	}
	if got := valueOf(t, p, "return 1", nil); got != "1" {
		t.Errorf("the third got %s", got)
	}
}

func TestIdleWorkersEnd(t *testing.T) {
	p := newTestPool(t, Config{Workers: 4, Idle: 20 * time.Millisecond})
	for range 2 {
		if got := valueOf(t, p, "return 1", nil); got != "1" {
			t.Fatalf("got %s", got)
		}
		soon(t, "no worker is left", func() bool { idle, count, _ := p.state(); return idle == 0 && count == 0 })
	}
}

func TestPoolWithoutWorkHasNoProcesses(t *testing.T) {
	p := newTestPool(t, Config{})
	if idle, count, _ := p.state(); idle != 0 || count != 0 {
		t.Errorf("%d idle, %d workers", idle, count)
	}
}

func TestWorkersAreReplacedAfterTheirRuns(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1, RunsPerWorker: 3})
	seen := map[int]bool{}
	for i := range 6 {
		_ = valueOf(t, p, "return 1", nil)
		if i%3 != 2 { // after the third there is none
			seen[idlePID(t, p)] = true
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d processes served 6 phases, 3 each", len(seen))
	}
}

func TestKilledWorkerIsACrash(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	_ = valueOf(t, p, "return 1", nil)
	victim, err := os.FindProcess(idlePID(t, p))
	if err != nil {
		t.Fatal(err)
	}
	host := &fakeHost{answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return nil, victim.Kill()
	}}
	_, err = runBody(t, p, `try { await ctx.peek("a") } catch {} for (;;) await ctx.peek("b")`, host, Limits{})
	if !errors.Is(err, ErrWorkerCrashed) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v", err)
	}
	if got := valueOf(t, p, "return 1", nil); got != "1" {
		t.Errorf("the next got %s", got)
	}
}

func TestIdleWorkerThatDiedIsNotUsed(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	_ = valueOf(t, p, "return 1", nil)
	w := p.idle[0]
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-w.gone
	if got := valueOf(t, p, "return 2", nil); got != "2" {
		t.Errorf("got %s", got)
	}
}

func TestCancellingEndsThePhase(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for name, body := range map[string]string{
		"busy":     `ctx.peek("a"); for (;;) {}`,
		"built-in": `ctx.peek("a"); Array.prototype.reverse.call({ length: 2 ** 53 - 1 })`,
		"waiting":  `await ctx.peek("a")`,
		"catching": `for (;;) { try { await ctx.peek("a") } catch {} }`,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			reason := errors.New("a person said stop")
			g := newGate()
			program := compileTest(t, handler(body))
			ended := make(chan error, 1)
			go func() {
				_, err := p.Run(ctx, Request{Program: program, Handler: handlerPath}, g, Limits{})
				ended <- err
			}()
			<-g.came
			cancel(reason)
			if err := <-ended; !errors.Is(err, reason) {
				t.Errorf("ended with %v", err)
			}
		})
	}
	if got := valueOf(t, p, "return 1", nil); got != "1" {
		t.Errorf("afterwards: %s", got)
	}
}

func TestWallTimeIncludesCalls(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for _, body := range []string{`await ctx.peek("a")`, `try { await ctx.peek("a") } catch {} for (;;) await ctx.peek("b")`} {
		_, err := runBody(t, p, body, newGate(), Limits{Wall: 150 * time.Millisecond})
		limit, ok := errors.AsType[*LimitError](err)
		if !ok || limit.Limit != LimitWall || !errors.Is(err, ErrTimeout) || Class(err) != pawl.ClassTransient {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestWaitingForTheHostIsNotProcessorTime(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	host := &fakeHost{answer: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil, nil
	}}
	result, err := runBody(t, p, `for (let i = 0; i < 8; i++) await ctx.peek("a"); return 1`, host, Limits{CPU: 500 * time.Millisecond})
	if err != nil || result.Wall < 800*time.Millisecond {
		t.Errorf("%v after %s", err, result.Wall)
	}
}

func TestProcessorTimeIsToldApart(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	_, err := runBody(t, p, `for (;;) {}`, nil, Limits{CPU: 50 * time.Millisecond})
	if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Limit != LimitCPU {
		t.Errorf("got %v", err)
	}
}

func TestClosingEndsEverything(t *testing.T) {
	p, err := NewPool(Config{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	g := newGate()
	program := compileTest(t, handler(`await ctx.peek("a")`))
	ended := make(chan error, 2)
	run := func() {
		_, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath}, g, Limits{})
		ended <- err
	}
	go run()
	<-g.came
	go run()
	soon(t, "the second waits", func() bool { _, _, waiting := p.state(); return waiting == 1 })
	p.Close()
	p.Close() // again is nothing
	for range 2 {
		if err := <-ended; !errors.Is(err, pawl.ErrUnavailable) {
			t.Errorf("a phase ended with %v", err)
		}
	}
	if _, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath}, g, Limits{}); !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("a closed pool: %v", err)
	}
	if _, err := p.Compile(t.Context(), "x.ts", "1"); !errors.Is(err, pawl.ErrUnavailable) {
		t.Errorf("a closed pool compiles: %v", err)
	}
}

// A call that fails because the phase ends is not told to the script, which
// would catch it and decide something that it decides otherwise next time.
func TestEndingIsNotToldToTheScript(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for range 20 {
		ctx, cancel := context.WithCancelCause(t.Context())
		host := &fakeHost{answer: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
			cancel(pawl.ErrUnavailable)
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		_, err := p.Run(ctx, Request{Program: compileTest(t, handler(`try { await ctx.peek("a") } catch { return "caught" }`)), Handler: handlerPath}, host, Limits{})
		if !errors.Is(err, pawl.ErrUnavailable) {
			t.Fatalf("the phase ended with %v", err)
		}
	}
}

func TestManyPhasesAtOnceDoNotMix(t *testing.T) {
	p := newTestPool(t, Config{Workers: 3, RunsPerWorker: 7})
	program := compileTest(t, handler(`
let sum = 0;
for (let i = 0; i < 5; i++) sum += (await ctx.tools.a.b({ n: state })).args.n;
ctx.log("mine", state);
return sum`))
	var done sync.WaitGroup
	for i := range 60 {
		done.Go(func() {
			host := &fakeHost{answer: echo}
			result, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, Args: []rawJSON{mustJSON(t, i)}}, host, Limits{})
			if err != nil || string(result.Value) != fmt.Sprint(5*i) || len(result.Logs) != 1 || result.Logs[0].Text != fmt.Sprint("mine ", i) {
				t.Errorf("phase %d: %s, %v, %v", i, result.Value, err, result.Logs)
			}
		})
	}
	done.Wait()
	if _, count, _ := p.state(); count > 3 {
		t.Errorf("%d workers", count)
	}
}

func TestWorkersKeepManyPrograms(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for round := range 2 {
		for i := range mostPrograms + 10 {
			if got := valueOf(t, p, fmt.Sprintf("return %d", i), nil); got != fmt.Sprint(i) {
				t.Fatalf("round %d: program %d gave %s", round, i, got)
			}
		}
	}
}

// A program goes to a worker that has it ready, if one is idle: with many
// programs, each worker would else have to prepare all of them.
func TestAProgramStaysWithItsWorker(t *testing.T) {
	p := newTestPool(t, Config{Workers: 2})
	programs := []*Program{compileTest(t, handler(`await ctx.peek("a"); return 1`)), compileTest(t, handler(`await ctx.peek("a"); return 2`))}
	var both, done sync.WaitGroup
	both.Add(2)
	for _, program := range programs { // at once, so that each has a worker of its own
		done.Go(func() {
			host := &fakeHost{answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
				both.Done()
				both.Wait()
				return json.RawMessage(`[]`), nil
			}}
			if _, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath}, host, Limits{}); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	for i := range 6 {
		if _, err := p.Run(t.Context(), Request{Program: programs[i%2], Handler: handlerPath}, &fakeHost{answer: echo}, Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range p.idle {
		if len(w.knows) != 1 {
			t.Errorf("a worker has run %d of the two programs", len(w.knows))
		}
	}
	// A third one goes to the worker that was used last, so that the other one can
	// end if nobody comes back to it.
	last := p.idle[1]
	third := compileTest(t, handler(`return 3`))
	if _, err := p.Run(t.Context(), Request{Program: third, Handler: handlerPath}, nil, Limits{}); err != nil {
		t.Fatal(err)
	}
	if !last.knows[third.Version] {
		t.Error("a new program kept a worker from ending")
	}
}

func TestPoolInsideAWorkerIsRefused(t *testing.T) {
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	os.Args = []string{"pawl", workerWord, "1"}
	if _, err := NewPool(Config{}); !errors.Is(err, errTooEarly) {
		t.Errorf("got %v", err)
	}
}

func TestPoolSettingsAreChecked(t *testing.T) {
	for _, cfg := range []Config{{Workers: -1}, {Idle: -1}, {RunsPerWorker: -1}, {Heap: 1}} {
		if _, err := NewPool(cfg); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
