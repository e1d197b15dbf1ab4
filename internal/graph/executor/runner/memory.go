package runner

import (
	"encoding/json"
	"fmt"
)

// State is how far a call came that is remembered.
type State string

// The states of a call. The zero one means that none was made.
const (
	StateGoing State = "going" // it may have been made, and its end was not seen
	StateAsks  State = "asks"  // it ended with a question to a person
	StateOver  State = "over"  // it ended
)

// Memory is the Remote of runners whose graphs answer one call. It numbers the
// answers of people, so that each gets an idempotency key of its own while a
// repeated call gets the one it had.
type Memory struct {
	Attempt int   `json:"attempt"`
	Resumes int   `json:"resumes,omitempty"`
	State   State `json:"state"`
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
	next := Memory{Attempt: r.Attempt, State: StateGoing}
	switch {
	case r.Resume == nil:
	case m.State == StateAsks || m.Resumes == 0:
		next.Resumes = m.Resumes + 1
	default: // the same answer once more
		next.Resumes = m.Resumes
	}
	return next
}

// Key is the idempotency key of the call.
func (m Memory) Key(run string) string {
	if m.Resumes == 0 {
		return run
	}
	return fmt.Sprintf("%s:resume-%d", run, m.Resumes)
}

// Event tells the memory in a state.
func (m Memory) Event(state State) Event {
	m.State = state
	raw, _ := json.Marshal(m) // numbers and texts always can be
	return Event{Kind: KindRemote, Remote: raw}
}

// After is the event that follows a call with this result.
func (m Memory) After(result Result) Event {
	if result.Interrupt != nil {
		return m.Event(StateAsks)
	}
	return m.Event(StateOver)
}
