package langgraph

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/executor/runner"
)

// following is one call of Run.
type following struct {
	asker
	run       runner.Run
	assistant string
	emit      func(runner.Event) error

	memory    memory
	lastEvent string          // of the stream
	failure   string          // what the stream said about a failure
	billed    map[string]bool // messages whose usage was told, by id
}

// Run finds or starts the run and follows it to its end.
func (p *Provider) Run(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
	g, known := p.graph(r.Name)
	if !known {
		return runner.Final(runner.CodeNotFound, "there is no graph "+pawl.Quote(r.Name)), nil
	}
	m, err := remember(r)
	if err != nil {
		return runner.Result{}, err
	}
	r.Attempt = max(r.Attempt, 1)
	ctx, end := p.going.Begin(ctx, r)
	defer end()
	ctx, cancel := runner.Within(ctx, r, g.timeout)
	defer cancel()
	f := &following{asker: p.askFor(r), run: r, assistant: g.assistant, emit: emit, memory: m, lastEvent: "-1", billed: map[string]bool{}}
	if result, found, err := f.locate(ctx); err != nil || !found {
		return result, err
	}
	return f.follow(ctx)
}

// store tells what is to be remembered from now on.
func (f *following) store(m memory) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	f.memory = m
	return f.emit(runner.Event{Kind: runner.KindRemote, Remote: raw})
}

// settle is the end of what is remembered, with this result.
func (f *following) settle(result runner.Result) (runner.Result, error) {
	result.TraceID = f.memory.Run // LangGraph traces a run under its own id
	m := f.memory
	m.Settled = true
	return result, f.store(m)
}

// pause waits before something is asked again; false if ctx ended.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
