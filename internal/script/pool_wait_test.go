package script

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// A phase that ends at its call needs no worker while the host is busy with it: a
// hundred calls under way leave the one worker free.
func TestAPhaseThatEndsAtItsCallFreesItsWorker(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	g, calls := newGate(), sync.WaitGroup{}
	program := compileTest(t, handler(`ctx.log("before"); try { await ctx.tools.a.b(state) } finally { ctx.log("after"); ctx.publish("after", {}) }`))
	for range 100 {
		calls.Go(func() {
			result, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, Args: []rawJSON{rawJSON("1")}, EndsAtCall: true}, g, Limits{})
			if err != nil || result.HasValue || result.Calls != 1 || len(result.Logs) != 1 {
				t.Errorf("it ended with %v and %+v", err, result)
			}
		})
	}
	for range 100 {
		<-g.came
	}
	if got := valueOf(t, p, "return 1", nil); got != "1" {
		t.Errorf("the worker gave %s", got)
	}
	if idle, count, _ := p.state(); idle != 1 || count != 1 {
		t.Errorf("%d idle, %d workers", idle, count)
	}
	close(g.open)
	calls.Wait()
}

// What a script does without waiting for an answer it does before its phase ends:
// a second call beside the first is seen by the host, and so is an abort by it.
func TestAPhaseThatEndsAtItsCallMakesAllCallsOfThatMoment(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	program := compileTest(t, handler(`const both = [ctx.tools.a.first(), ctx.tools.a.second()]; await null; ctx.tools.a.third(); await Promise.all(both); ctx.tools.a.never()`))
	host := &fakeHost{answer: func(_ context.Context, _ string, args json.RawMessage) (json.RawMessage, error) {
		return nil, Abort(errNotAllowed)
	}}
	for range 20 {
		_, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, EndsAtCall: true}, host, Limits{})
		if !errors.Is(err, errNotAllowed) {
			t.Fatalf("it ended with %v", err)
		}
	}
	if slices.ContainsFunc(host.seen(), func(call string) bool { return call == `tool {"connection":"a","method":"never"}` }) {
		t.Error("the script went on after its call")
	}
	host = &fakeHost{}
	if _, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, EndsAtCall: true}, host, Limits{}); err != nil || len(host.seen()) != 3 {
		t.Errorf("the host saw %q (%v)", host.seen(), err)
	}
}

// The time of a phase is also that of its call, whoever has the worker.
func TestAPhaseThatEndsAtItsCallKeepsItsTime(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	ended := make(chan error, 1)
	host := &fakeHost{answer: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}}
	program := compileTest(t, handler(`await ctx.tools.a.b()`))
	_, _ = p.Run(t.Context(), Request{Program: program, Handler: handlerPath, EndsAtCall: true}, host, Limits{Wall: 50 * time.Millisecond})
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the call ended with %v", err)
	}
}

// twoWorkers makes a pool in which one worker has a program ready and a phase of it
// under way, and another one is idle.
func twoWorkers(t *testing.T, wait time.Duration) (p *Pool, program *Program, g *gate, done *sync.WaitGroup) {
	t.Helper()
	p, g, done = newTestPool(t, Config{Workers: 2}), newGate(), &sync.WaitGroup{}
	p.patience, p.enough = wait, 2
	program = compileTest(t, handler(`if (state) await ctx.peek("a"); return 1`))
	other, before := compileTest(t, handler(`await ctx.peek("a")`)), newGate()
	var first sync.WaitGroup
	first.Go(func() { _, _ = p.Run(t.Context(), Request{Program: other, Handler: handlerPath}, before, Limits{}) })
	<-before.came
	done.Go(func() {
		if _, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, Args: []rawJSON{rawJSON("1")}}, g, Limits{}); err != nil {
			t.Error(err)
		}
	})
	<-g.came
	close(before.open)
	first.Wait()
	return p, program, g, done
}

// knowing counts the workers that have a program.
func (p *Pool) knowing(program *Program) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.idle {
		if w.knows[program.Version] {
			n++
		}
	}
	return n
}

// A phase would rather wait a little than have its program prepared once more, but
// whoever wants another program is not kept by it.
func TestAPhaseWaitsForTheWorkerThatHasItsProgram(t *testing.T) {
	p, program, g, done := twoWorkers(t, time.Minute)
	done.Go(func() {
		if _, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath}, nil, Limits{}); err != nil {
			t.Error(err)
		}
	})
	soon(t, "the phase waits", func() bool { idle, _, waiting := p.state(); return idle == 1 && waiting == 1 })
	if got := valueOf(t, p, "return 2", nil); got != "2" {
		t.Errorf("another program gave %s", got)
	}
	close(g.open)
	done.Wait()
	if n := p.knowing(program); n != 1 {
		t.Errorf("%d workers prepared the program", n)
	}
}

func TestAPhaseDoesNotWaitForItsWorkerForLong(t *testing.T) {
	p, program, g, done := twoWorkers(t, time.Millisecond)
	if _, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath}, nil, Limits{}); err != nil {
		t.Fatal(err)
	}
	close(g.open)
	done.Wait()
	if n := p.knowing(program); n != 2 {
		t.Errorf("%d workers prepared the program", n)
	}
}

// As many workers as processors keep all of them busy, so the next one is started
// only if none of them is free soon.
func TestAWorkerIsStartedIfNoneIsFreeSoon(t *testing.T) {
	for _, wait := range []time.Duration{time.Minute, time.Millisecond} {
		p, g := newTestPool(t, Config{Workers: 2}), newGate()
		p.patience, p.enough = wait, 1
		var done sync.WaitGroup
		for _, body := range []string{`await ctx.peek("a")`, `await ctx.peek("b")`} {
			done.Go(func() {
				if _, err := runBody(t, p, body, g, Limits{}); err != nil {
					t.Error(err)
				}
			})
			if wait == time.Millisecond {
				<-g.came
			}
		}
		want := 2
		if wait == time.Minute {
			want = 1
			<-g.came
			soon(t, "the other one waits", func() bool { _, _, waiting := p.state(); return waiting == 1 })
		}
		if _, count, _ := p.state(); count != want {
			t.Errorf("with a patience of %v there are %d workers", wait, count)
		}
		close(g.open)
		done.Wait()
	}
}
