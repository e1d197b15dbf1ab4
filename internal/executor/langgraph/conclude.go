package langgraph

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/pawlrun/pawl/internal/executor/runner"
)

// threadState is the state of a thread as the server tells it.
type threadState struct {
	Values     json.RawMessage   `json:"values"`
	Next       []string          `json:"next"`
	Interrupts []json.RawMessage `json:"interrupts"`
	Tasks      []struct {
		Error      json.RawMessage   `json:"error"`
		Interrupts []json.RawMessage `json:"interrupts"`
	} `json:"tasks"`
	Metadata struct {
		RunID string `json:"run_id"`
	} `json:"metadata"`
}

// conclude tells the end of a run that has ended. It is not over if the server
// cannot be asked about it now.
func (f *following) conclude(ctx context.Context, run serverRun) (result runner.Result, over bool, err error) {
	state, problem := f.state(ctx)
	switch {
	case problem != nil && problem.passes():
		return runner.Result{}, false, nil
	case problem != nil:
		return runner.Result{}, true, fmt.Errorf("read the state of the run: %s", problem.result.Message)
	}
	if err := f.emitUsage(state.Values, true); err != nil {
		return runner.Result{}, true, err
	}
	cancelled := false
	if run.Status != statusSuccess {
		if cancelled, problem = f.wasCancelled(ctx); problem != nil && problem.passes() {
			return runner.Result{}, false, nil
		}
	}
	result, err = f.settle(f.meaning(run, state, cancelled))
	return result, true, err
}

// meaning is what the status of a run and its state say together.
func (f *following) meaning(run serverRun, state threadState, cancelled bool) runner.Result {
	asks := state.asks()
	switch {
	case cancelled, run.Status == statusInterrupted && asks == nil:
		return runner.Final(runner.CodeAborted, "the run was cancelled")
	case run.Status == statusTimeout:
		return runner.Failure(runner.CodeTimeout, "the server ended the run because it took too long")
	case run.Status == statusError || state.failed():
		return runner.Failure(runner.CodeInternal, f.reason(state))
	case asks != nil:
		return runner.Result{Interrupt: asks}
	case run.Status == statusSuccess:
		return runner.Result{OK: true, Output: state.output()}
	}
	return runner.Failure(runner.CodeInternal, "the run ended as "+runner.Excerpt(run.Status))
}

// state is the state of the thread that the remembered run left. When another
// run came after it, the state is searched in the history.
func (f *following) state(ctx context.Context) (threadState, *fault) {
	var state threadState
	thread := "/threads/" + f.memory.Thread
	problem := f.call(ctx, http.MethodGet, thread+"/state", nil, &state)
	if problem != nil || state.Metadata.RunID == "" || state.Metadata.RunID == f.memory.Run {
		return state, problem
	}
	var history []threadState
	if problem := f.call(ctx, http.MethodGet, thread+"/history?limit=100", nil, &history); problem != nil {
		return state, problem
	}
	for _, earlier := range history { // the latest first
		if earlier.Metadata.RunID == f.memory.Run {
			return earlier, nil
		}
	}
	return threadState{}, nil // it ended before it did anything
}

// wasCancelled reports whether somebody cancelled the run.
func (f *following) wasCancelled(ctx context.Context) (bool, *fault) {
	var thread struct {
		Metadata map[string]any `json:"metadata"`
	}
	problem := f.call(ctx, http.MethodGet, "/threads/"+f.memory.Thread, nil, &thread)
	return thread.Metadata[metaCancelled] == f.memory.Run, problem
}

// field is one of the values of the state, or nil.
func (s threadState) field(name string) json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(s.Values, &fields) // a state that is no object has no fields
	if string(fields[name]) == "null" {
		return nil
	}
	return fields[name]
}

// output are the values without what the server adds to them.
func (s threadState) output() json.RawMessage {
	if s.field("__interrupt__") == nil {
		return s.Values
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(s.Values, &fields) // it has a field
	delete(fields, "__interrupt__")
	raw, _ := json.Marshal(fields) // it was JSON before
	return raw
}

// asks is the list of what the graph asks a person, or nil. A graph that stops
// before a node without a question asks whether to go on.
func (s threadState) asks() json.RawMessage {
	asked := append([]json.RawMessage{}, s.Interrupts...)
	if len(asked) == 0 {
		for _, task := range s.Tasks {
			asked = append(asked, task.Interrupts...)
		}
	}
	if raw := s.field("__interrupt__"); len(asked) == 0 && raw != nil {
		return raw
	}
	var whole any = asked
	switch {
	case len(asked) == 0 && len(s.Next) == 0:
		return nil
	case len(asked) == 0:
		whole = []any{map[string]any{"value": map[string]any{"next": s.Next}}}
	}
	raw, _ := json.Marshal(whole) // it was JSON before
	return raw
}

func (s threadState) failed() bool { return s.field("__error__") != nil }

// reason is why the run failed, by the stream or by the state.
func (f *following) reason(s threadState) string {
	if f.failure != "" {
		return f.failure
	}
	for _, task := range s.Tasks {
		if said := failureText(task.Error); said != "" {
			return said
		}
	}
	if said := failureText(s.field("__error__")); said != "" {
		return said
	}
	return "the graph failed and did not say why"
}

// failureText is the message of a failure. Servers write it as a text, as an
// object with a message, or as the JSON of such an object in a text; also in
// each other.
func failureText(raw json.RawMessage) string {
	const deepest = 4
	for range deepest {
		var said string
		if json.Unmarshal(raw, &said) == nil {
			if !json.Valid([]byte(said)) {
				return runner.Excerpt(said)
			}
			raw = json.RawMessage(said)
			continue
		}
		var object struct {
			Message json.RawMessage `json:"message"`
		}
		if json.Unmarshal(raw, &object) != nil || len(object.Message) == 0 {
			break
		}
		raw = object.Message
	}
	return ""
}
