package schedule

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// poet is an executor that keeps its word: whoever asks again with a key gets what
// was written under it. It counts what it really did.
type poet struct {
	takes    time.Duration
	services []*execution.Service // of all processes, which end with the test

	mu    sync.Mutex
	keys  map[string]int // how often each was written for; guarded by mu
	asked int            // guarded by mu
	usage *runner.Usage  // that it reports; guarded by mu

	program func(r runner.Run) runner.Result // it is one that keeps no word; nil: it is not; guarded by mu
	starts  []runner.Run                     // of the program; guarded by mu
	going   runner.Going
}

// runProgram runs a program that is started once for an attempt.
func (p *poet) runProgram(ctx context.Context, r runner.Run, emit func(runner.Event) error, program func(r runner.Run) runner.Result) (runner.Result, error) {
	m, err := runner.Remember(r)
	if err != nil {
		return runner.Result{}, err
	}
	if m.State == runner.StateGoing && m.Attempt == r.Attempt && !r.Idempotent {
		return runner.Unknown("its end was not seen"), nil
	}
	return p.going.Call(ctx, r, m, 0, emit, func(ctx context.Context, r runner.Run, _ string) (runner.Result, bool, error) {
		p.mu.Lock()
		p.starts = append(p.starts, r)
		p.mu.Unlock()
		select {
		case <-time.After(p.takes):
		case <-ctx.Done():
			return runner.Result{}, false, context.Cause(ctx)
		}
		result := program(r)
		return result, !result.Unknown, nil
	})
}

// started is how often the program was started.
func (p *poet) started() []runner.Run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.starts)
}

func (p *poet) setProgram(program func(r runner.Run) runner.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.program = program
}

// Lookup finds itself.
func (p *poet) Lookup(string) (runner.Executor, string, error) { return p, "poet", nil }

// Run writes a poem for a key.
func (p *poet) Run(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
	p.mu.Lock()
	p.asked++
	if p.keys[r.Key] == 0 {
		p.keys[r.Key]++
	}
	usage, program := p.usage, p.program
	p.mu.Unlock()
	if program != nil {
		return p.runProgram(ctx, r, emit, program)
	}
	if usage != nil {
		if err := emit(runner.Event{Kind: runner.KindUsage, Usage: usage}); err != nil {
			return runner.Result{}, err
		}
	}
	select {
	case <-time.After(p.takes):
	case <-ctx.Done():
		return runner.Result{}, context.Cause(ctx)
	}
	return runner.Result{OK: true, Output: json.RawMessage(`{"poem":"leaf"}`), TraceID: "t"}, nil
}

// Cancel has nothing to end.
func (p *poet) Cancel(context.Context, runner.Run) error { return nil }

// wrote is for how many keys it wrote, and how often it was asked.
func (p *poet) wrote() (keys, asked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.keys), p.asked
}

// service is the execution service of a process of the kit's node.
func (p *poet) service(k *kit) *execution.Service {
	k.t.Helper()
	s, err := execution.New(execution.Config{DB: k.db, Graphs: p, Node: "host"})
	if err == nil {
		_, err = s.Recover(k.t.Context())
	}
	if err != nil {
		k.t.Fatal(err)
	}
	p.services = append(p.services, s)
	return s
}

// end ends what is left of all processes.
func (p *poet) end() {
	for _, s := range p.services {
		_ = s.Close(context.Background())
	}
}

// withPoet is inTime with the execution service in the process.
func withPoet(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) {
		synctest.Test(t, func(t *testing.T) { test(t, newKitWith(t, url, &poet{keys: map[string]int{}})) })
	})
}
