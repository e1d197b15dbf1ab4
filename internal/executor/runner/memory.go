package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// State is how far a call came that is remembered.
type State string

// The states of a call. The zero one means that none was made.
const (
	StateGoing State = "going" // it may have been made, and the graph has not answered it
	StateAsks  State = "asks"  // the graph answered with a question to a person
	StateOver  State = "over"  // the graph answered
)

// Memory is the Remote of runners whose graphs answer one call. It gives every
// call its idempotency key: one that is made again because nobody knows what
// became of it has the key it had, and one that asks for something new has a
// key of its own:
//
//	{key}                     the first start
//	{key}:attempt-2           the start of attempt 2, after the graph answered that it failed
//	{key}:resume-1            the first answer of a person
//	{key}:attempt-2:resume-1  the same of attempt 2
//
// What is no answer of the graph (no connection, a timeout, a status other than
// 2xx) does not end a call: the next attempt makes the same one again.
type Memory struct {
	Attempt int             `json:"attempt"`
	Start   int             `json:"start,omitempty"` // the attempt whose start has a key of its own; 0: the first
	Resumes int             `json:"resumes,omitempty"`
	State   State           `json:"state"`
	Resume  json.RawMessage `json:"resume,omitempty"` // the answer of a person that the call carries
}

// Remember is what an earlier call of the run left behind; the zero Memory if
// there was none.
func Remember(r Run) (Memory, error) {
	var m Memory
	if len(r.Remote) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(r.Remote, &m); err != nil {
		return m, fmt.Errorf("read what is remembered of the run: %w", err)
	}
	return m, nil
}

// Next is the call that the run asks for.
func (m Memory) Next(r Run) Memory {
	next := Memory{Attempt: r.Attempt, Start: m.Start, State: StateGoing}
	switch {
	case r.Resume != nil && (m.State == StateAsks || m.Resumes == 0):
		next.Resumes, next.Resume = m.Resumes+1, r.Resume
	case r.Resume != nil: // the same answer once more
		next.Resumes, next.Resume = m.Resumes, r.Resume
	case m.State == StateGoing: // the same call once more
		next.Resumes, next.Resume = m.Resumes, m.Resume
	case r.Attempt > m.Attempt && m.State != "":
		next.Start = r.Attempt
	}
	return next
}

// Key is the idempotency key of the call.
func (m Memory) Key(run string) string {
	if m.Start > 0 {
		run = fmt.Sprintf("%s:attempt-%d", run, m.Start)
	}
	if m.Resumes > 0 {
		run = fmt.Sprintf("%s:resume-%d", run, m.Resumes)
	}
	return run
}

// Event tells that the call is made now.
func (m Memory) Event() Event { return Event{Kind: KindRemote, Remote: m.json()} }

// Call makes the next call of a run whose graph answers in one piece: it is told
// before it is made, can be stopped, and has its time. do makes it, and says
// whether its result is the graph's own word.
func (g *Going) Call(ctx context.Context, r Run, m Memory, limit time.Duration, emit func(Event) error, do func(ctx context.Context, r Run, key string) (result Result, answered bool, err error)) (Result, error) {
	call := m.Next(r)
	r.Resume = call.Resume
	if err := emit(call.Event()); err != nil {
		return Result{}, err
	}
	ctx, end := g.Begin(ctx, r)
	defer end()
	ctx, cancel := Within(ctx, r, limit)
	defer cancel()
	result, answered, err := do(ctx, r, call.Key(r.Key))
	if err != nil {
		return Result{}, err
	}
	return call.Answered(result, answered), nil
}

// Answered is the result of the call with what is remembered of it, which is
// stored together with the result. A call that the graph did not answer is
// remembered as one that may be under way.
func (m Memory) Answered(result Result, byGraph bool) Result {
	switch {
	case result.Interrupt != nil:
		m.State, m.Resume = StateAsks, nil
	case byGraph:
		m.State, m.Resume = StateOver, nil
	}
	result.Remote = m.json()
	return result
}

func (m Memory) json() json.RawMessage {
	raw, err := json.Marshal(m)
	if err != nil { // what a person answered is JSON; it was checked
		m.Resume = nil
		raw, _ = json.Marshal(m)
	}
	return raw
}
