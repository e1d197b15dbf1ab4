package langgraph

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	"github.com/pawlrun/pawl/internal/executor/runner"
)

// start makes the thread of the attempt and asks for a run.
func (f *following) start(ctx context.Context) (runner.Result, bool, error) {
	thread := threadOf(f.run.RunID, f.run.Attempt)
	problem := f.call(ctx, http.MethodPost, "/threads", map[string]any{
		"thread_id": thread, "if_exists": "do_nothing", "metadata": f.metadata(),
	}, nil)
	if problem != nil {
		return f.refused(ctx, problem)
	}
	if err := f.store(memory{Thread: thread, Attempt: f.run.Attempt}); err != nil {
		return runner.Result{}, false, err
	}
	return f.ask(ctx, map[string]any{"input": f.run.Input}, f.metadata())
}

// resume goes on with the answer of a person where a run asked for it.
func (f *following) resume(ctx context.Context) (runner.Result, bool, error) {
	thread, of := f.memory.Thread, f.memory.Run
	if thread == "" {
		thread = threadOf(f.run.RunID, f.run.Attempt)
	}
	if f.memory.asked() {
		of = f.memory.ResumeOf
	}
	if of == "" {
		asking, problem := f.newest(ctx, thread, "")
		switch {
		case problem != nil && !problem.gone():
			return f.refused(ctx, problem)
		case asking == nil:
			return runner.Unknown("the server no longer knows the run that asked"), false, nil
		}
		of = asking.RunID
	}
	answered, problem := f.newest(ctx, thread, of)
	switch {
	case problem != nil && problem.gone():
		return runner.Unknown("the server no longer knows the run that asked"), false, nil
	case problem != nil:
		return f.refused(ctx, problem)
	case answered != nil:
		return f.adopt(located{thread, *answered})
	}
	if err := f.store(memory{Thread: thread, Attempt: f.run.Attempt, ResumeOf: of}); err != nil {
		return runner.Result{}, false, err
	}
	metadata := f.metadata()
	metadata[metaResumeOf] = of
	return f.ask(ctx, map[string]any{"command": map[string]any{"resume": f.run.Resume}}, metadata)
}

// ask asks for a run on the remembered thread. When the answer is lost, the
// run is looked for, and never asked for a second time.
func (f *following) ask(ctx context.Context, what, metadata map[string]any) (runner.Result, bool, error) {
	body := map[string]any{
		"assistant_id": f.assistant, "metadata": metadata, "multitask_strategy": "reject",
		"stream_mode": []string{"updates", "custom"}, "stream_resumable": true, "on_disconnect": "continue",
	}
	maps.Copy(body, what)
	var made serverRun
	problem := f.call(ctx, http.MethodPost, "/threads/"+f.memory.Thread+"/runs", body, &made)
	switch {
	case problem == nil && made.RunID != "":
		m := f.memory
		m.Run = made.RunID
		return runner.Result{}, true, f.store(m)
	case problem != nil && !problem.maybeSent && !problem.busy():
		return f.neverBegan(ctx, problem.result)
	}
	return f.findLost(ctx, problem)
}

// neverBegan is the result of a request that the server refused, or that did
// not reach it.
func (f *following) neverBegan(ctx context.Context, result runner.Result) (runner.Result, bool, error) {
	if ended, is, err := runner.Ended(ctx); is {
		if err != nil {
			return runner.Result{}, false, err
		}
		result = ended
	}
	result, err := f.settle(result)
	return result, false, err
}

// findLost finds the run of a request whose answer was lost, or that was
// refused because the thread is busy.
func (f *following) findLost(ctx context.Context, problem *fault) (runner.Result, bool, error) {
	stopped, ended, err := runner.Ended(ctx)
	if err != nil {
		return runner.Result{}, false, err
	}
	run := f.pollForRun(context.WithoutCancel(ctx)) // its time may be over, but then it has to be ended
	switch {
	case run != nil:
		return f.adopt(located{f.memory.Thread, *run})
	case problem != nil && problem.busy():
		return f.neverBegan(ctx, problem.result)
	case ended:
		stopped.Unknown, stopped.Retry = true, false
		return stopped, false, nil
	case problem != nil:
		return runner.Result{}, false, fmt.Errorf("start the run: %s; it may have been started", problem.result.Message)
	}
	return runner.Result{}, false, fmt.Errorf("start the run: the answer names none")
}

// pollForRun looks several times for the run that was just asked for.
func (f *following) pollForRun(ctx context.Context) *serverRun {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	const tries = 4
	wait := shortestPause
	for range tries {
		run, problem := f.newest(ctx, f.memory.Thread, f.memory.ResumeOf)
		if problem == nil && run != nil {
			return run
		}
		if !pause(ctx, wait) {
			return nil
		}
		wait *= 2
	}
	return nil
}
