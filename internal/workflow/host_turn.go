package workflow

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/pawlrun/pawl/internal/script"
)

// enter counts a call that is with the host.
func (h *host) enter() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
}

// leave counts one less; unless the phase was over before the call was, so that
// it is known that the call was under way then.
func (h *host) leave(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls--
}

// noteSecond notes that mutate makes another call that changes something while
// the first is under way. Only the first is made, and a script that believes
// otherwise must not go on as if all were well.
func (h *host) noteSecond(op string, args json.RawMessage) {
	var in struct{ Connection, Method string }
	if op != "tool" || !h.rules.mutate || json.Unmarshal(args, &in) != nil {
		return
	}
	if t, err := h.world.lookup(in.Connection, in.Method); err == nil && !t.Method.Mutation {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noteSecondLocked(in.Connection, in.Method)
}

func (h *host) noteSecondLocked(connection, method string) {
	if h.first != nil || h.second != nil {
		return
	}
	h.second = violation(codeSecondCall, "tools.%s.%s was called in mutate in addition to another call; mutate makes one call, and only the first was made", connection, method)
}

// codeSecondCall is the code of a run whose mutate made more than one call.
const codeSecondCall = "second_call"

// secondCall is the failure of a mutate that made more than one call, or nil.
func (h *host) secondCall() *failure {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.second
}

// turns lets calls begin in the order in which the script made them, although
// each comes on a goroutine of its own. The zero value is ready.
type turns struct {
	mu   sync.Mutex
	next map[int]chan struct{} // by number: closed when its turn has come
	over map[int]bool          // calls that need their turn no more
	last int                   // all up to here are over
}

// wait returns when all calls before this one have begun, or the phase is over.
func (t *turns) wait(ctx context.Context) {
	number := script.CallNumber(ctx)
	if number == 0 { // nobody counts
		return
	}
	t.mu.Lock()
	if t.last >= number-1 {
		t.mu.Unlock()
		return
	}
	if t.next == nil {
		t.next = map[int]chan struct{}{}
	}
	turn := make(chan struct{})
	t.next[number] = turn
	t.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
	}
}

// done lets the next call begin. It may be called twice.
func (t *turns) done(ctx context.Context) {
	number := script.CallNumber(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if number <= t.last {
		return
	}
	if t.over == nil {
		t.over = map[int]bool{}
	}
	t.over[number] = true
	for t.over[t.last+1] {
		delete(t.over, t.last+1)
		t.last++
	}
	if turn := t.next[t.last+1]; turn != nil {
		close(turn)
		delete(t.next, t.last+1)
	}
}
