package langgraph

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/internal/executor/runner"
)

const (
	shortestPause = 100 * time.Millisecond // before a run is asked about again
	longestPause  = 5 * time.Second
	stopTimeout   = 20 * time.Second // for ending a run whose time is over
)

// follow drains the stream of the remembered run until the server says that it
// ended, and tells how. A server that does not answer is asked until the time
// of the run is over: a restart is not the end.
func (f *following) follow(ctx context.Context) (runner.Result, error) {
	wait := shortestPause
	for {
		events, err := f.stream(ctx)
		if err != nil {
			return runner.Result{}, err
		}
		if events > 0 {
			wait = shortestPause
		}
		result, over, err := f.check(ctx)
		if over || err != nil {
			return result, err
		}
		if !pause(ctx, wait) {
			return f.stop(ctx)
		}
		wait = min(2*wait, longestPause)
	}
}

func (f *following) path() string {
	return "/threads/" + f.memory.Thread + "/runs/" + f.memory.Run
}

// check asks the server what became of the run.
func (f *following) check(ctx context.Context) (result runner.Result, over bool, err error) {
	var run serverRun
	problem := f.call(ctx, http.MethodGet, f.path(), nil, &run)
	if ctx.Err() != nil {
		result, err = f.stop(ctx)
		return result, true, err
	}
	switch {
	case problem != nil && problem.gone():
		result = runner.Unknown("the server no longer knows the run; it may have been restarted")
		result.TraceID = f.memory.Run
		return result, true, nil
	case problem != nil && problem.passes():
		return runner.Result{}, false, nil
	case problem != nil:
		return runner.Result{}, true, fmt.Errorf("follow the run: %s", problem.result.Message)
	case run.isActive():
		return runner.Result{}, false, nil
	}
	return f.conclude(ctx, run)
}

// stop ends a run whose time is over, or that somebody cancelled. If the
// process stops, the run goes on, to be found again.
func (f *following) stop(ctx context.Context) (runner.Result, error) {
	result, _, err := runner.Ended(ctx)
	if err != nil {
		return runner.Result{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if !f.end(ctx, f.memory.Thread, f.memory.Run) {
		result.Unknown, result.Retry, result.TraceID = true, false, f.memory.Run
		result.Message += "; the server did not say that it ended there"
		return result, nil
	}
	if state, problem := f.state(ctx); problem == nil { // what it cost until then
		if err := f.emitUsage(state.Values, true); err != nil {
			return runner.Result{}, err
		}
	}
	return f.settle(result)
}

// end asks the server to end a run and reports whether it has ended.
func (p asker) end(ctx context.Context, thread, run string) bool {
	path := "/threads/" + thread + "/runs/" + run
	intent := map[string]any{"metadata": map[string]any{metaCancelled: run}}
	_ = p.call(ctx, http.MethodPatch, "/threads/"+thread, intent, nil) // without it the run ends all the same
	for wait := shortestPause; ; wait *= 2 {
		_ = p.call(ctx, http.MethodPost, path+"/cancel?wait=true&action=interrupt", map[string]any{}, nil) // what counts is the state after it
		var now serverRun
		problem := p.call(ctx, http.MethodGet, path, nil, &now)
		switch {
		case problem == nil && !now.isActive():
			return true
		case problem != nil && !problem.passes():
			return false
		case !pause(ctx, wait):
			return false
		}
	}
}

// Cancel ends the run at the server; Run tells its end.
func (p *Provider) Cancel(ctx context.Context, r runner.Run) error {
	p.going.Stop(r.RunID)
	m, err := remember(r)
	if err != nil {
		return err
	}
	if m.Settled {
		return nil
	}
	r.Attempt = max(r.Attempt, 1)
	server := p.askFor(r)
	if m.Run == "" {
		f := &following{asker: server, run: r}
		found, problem := f.search(ctx)
		switch {
		case problem != nil:
			return fmt.Errorf("find the run: %s", problem.result.Message)
		case found == nil:
			return nil
		}
		m.Thread, m.Run = found.thread, found.run.RunID
	}
	var now serverRun
	problem := server.call(ctx, http.MethodGet, "/threads/"+m.Thread+"/runs/"+m.Run, nil, &now)
	switch {
	case problem != nil && problem.gone(), problem == nil && !now.isActive():
		return nil
	case problem != nil:
		return fmt.Errorf("find the run: %s", problem.result.Message)
	}
	if !server.end(ctx, m.Thread, m.Run) {
		return fmt.Errorf("cancel the run: the server did not say that it ended")
	}
	return nil
}
