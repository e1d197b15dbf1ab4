package langgraph

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/executor/runner"
)

// serverRun is a run as the server tells it.
type serverRun struct {
	RunID     string         `json:"run_id"`
	Status    string         `json:"status"`
	CreatedAt string         `json:"created_at"`
	Metadata  map[string]any `json:"metadata"`
}

// The statuses of a run at the server.
const (
	statusPending     = "pending"
	statusRunning     = "running"
	statusSuccess     = "success"
	statusError       = "error"
	statusTimeout     = "timeout"
	statusInterrupted = "interrupted"
)

func (r serverRun) isActive() bool { return r.Status == statusPending || r.Status == statusRunning }

// Names in the metadata of threads and runs.
const (
	metaRun       = "pawl_run"
	metaAttempt   = "attempt"
	metaKey       = "key"
	metaAccount   = "billing_account"
	metaResumeOf  = "resume_of"
	metaCancelled = "pawl_cancelled" // of a thread: the run that somebody cancelled
)

func (f *following) metadata() map[string]any {
	out := map[string]any{metaRun: f.run.RunID, metaAttempt: f.run.Attempt, metaKey: f.run.Key}
	if f.run.Caller.AccountID != "" {
		out[metaAccount] = f.run.Caller.AccountID
	}
	return out
}

// locate finds the run to follow, or starts it. If it is not found, the result
// or the error says why.
func (f *following) locate(ctx context.Context) (result runner.Result, found bool, err error) {
	if f.memory.follows(f.run) {
		return runner.Result{}, true, nil
	}
	if f.memory.asked() {
		result, found, done, err := f.locateAsked(ctx)
		if done || err != nil {
			return result, found, err
		}
	}
	if f.run.Resume != nil {
		return f.resume(ctx)
	}
	earlier, problem := f.search(ctx)
	if problem != nil {
		return f.refused(ctx, problem)
	}
	if earlier != nil {
		return f.adopt(*earlier)
	}
	return f.start(ctx)
}

// locateAsked looks for the run of a request whose answer was not seen. It is
// done unless that never arrived.
func (f *following) locateAsked(ctx context.Context) (result runner.Result, found, done bool, err error) {
	run, problem := f.newest(ctx, f.memory.Thread, f.memory.ResumeOf)
	switch {
	case problem != nil && problem.gone():
		return runner.Unknown("the server was asked for the run and no longer knows its thread"), false, true, nil
	case problem != nil:
		result, found, err = f.refused(ctx, problem)
		return result, found, true, err
	case run != nil:
		result, found, err = f.adopt(located{f.memory.Thread, *run})
		return result, found, true, err
	case f.memory.ResumeOf != "" && f.run.Resume == nil: // the answer of the person got lost; it is asked again
		f.memory.Run, f.memory.ResumeOf = f.memory.ResumeOf, ""
		return runner.Result{}, true, true, nil
	}
	return runner.Result{}, false, false, nil
}

// located is a run with its thread.
type located struct {
	thread string
	run    serverRun
}

// adopt remembers a run that was found, to follow it.
func (f *following) adopt(l located) (runner.Result, bool, error) {
	resumeOf, _ := l.run.Metadata[metaResumeOf].(string)
	m := memory{Thread: l.thread, Attempt: f.run.Attempt, Run: l.run.RunID, ResumeOf: resumeOf}
	return runner.Result{}, true, f.store(m)
}

// search looks for a run of this key on the threads of this attempt and of
// those before it. One of an earlier attempt counts if it goes on or worked.
func (f *following) search(ctx context.Context) (*located, *fault) {
	const furthest = 10 // attempts back
	for attempt := f.run.Attempt; attempt > max(0, f.run.Attempt-furthest); attempt-- {
		thread := threadOf(f.run.RunID, attempt)
		run, problem := f.newest(ctx, thread, "")
		switch {
		case problem != nil && problem.gone():
		case problem != nil:
			return nil, problem
		case run != nil && (attempt == f.run.Attempt || run.isActive() || run.Status == statusSuccess):
			return &located{thread, *run}, nil
		}
	}
	return nil, nil // there is none, which is the usual case and no fault
}

// newest is the latest run of a thread with the key; of those that answer the
// question of another run, if one is named. It is nil if there is none.
func (f *following) newest(ctx context.Context, thread, resumeOf string) (*serverRun, *fault) {
	var runs []serverRun
	if problem := f.call(ctx, http.MethodGet, "/threads/"+thread+"/runs?limit=100", nil, &runs); problem != nil {
		return nil, problem
	}
	runs = slices.DeleteFunc(runs, func(r serverRun) bool {
		return r.RunID == "" || r.Metadata[metaKey] != f.run.Key || resumeOf != "" && r.Metadata[metaResumeOf] != resumeOf
	})
	if len(runs) == 0 {
		return nil, nil // as above
	}
	latest := slices.MaxFunc(runs, func(a, b serverRun) int { return strings.Compare(a.CreatedAt, b.CreatedAt) })
	return &latest, nil
}

// refused is the result of a question that the server did not answer. Nothing
// was started by it.
func (f *following) refused(ctx context.Context, problem *fault) (runner.Result, bool, error) {
	if result, ended, err := runner.Ended(ctx); ended {
		return result, false, err
	}
	if f.memory.asked() || f.memory.follows(f.run) {
		return runner.Result{}, false, fmt.Errorf("find the run: %s", problem.result.Message)
	}
	return problem.result, false, nil
}
