package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/execution/contract"
)

// fakeGraph is an execution service that keeps its word: one execution for a
// key and an attempt, whatever becomes of those who ask. It counts what it
// really did.
type fakeGraph struct {
	takes    time.Duration                                                                  // how long an execution takes
	abandons bool                                                                           // nobody executes what is under way
	stops    time.Duration                                                                  // how long it goes on once it was cancelled
	answer   func(key string, attempt int) contract.RunAnswerV1                             // nil succeeds
	refuse   func(key string, req contract.RunRequestV1) error                              // before anything happens
	down     func() error                                                                   // of the infrastructure, before anything happens
	lose     func() error                                                                   // of the infrastructure, after it happened
	resume   func(key string, answer json.RawMessage) (contract.RunAnswerV1, time.Duration) // nil succeeds

	refuseResume func() error // before the answer arrives

	mu      sync.Mutex
	runs    map[string]*fakeRun // by key; guarded by mu
	cancels []string            // keys; guarded by mu
}

// fakeRun is what happened under a key.
type fakeRun struct {
	graphID, grantID, input, runID string
	attempt                        int
	begun                          []time.Time // each execution
	ended                          []time.Time
	answer                         contract.RunAnswerV1
	changed                        chan struct{} // closed when endsAt moved
	asks                           bool          // waits for a person
	questions                      int           // that it asked
	resumed                        []string      // answers that arrived
}

func newFakeGraph() *fakeGraph { return &fakeGraph{runs: map[string]*fakeRun{}} }

func (r *fakeRun) endsAt() time.Time { return r.ended[len(r.ended)-1] }

func (f *fakeGraph) Run(ctx context.Context, key, graphID string, req contract.RunRequestV1) (contract.RunAnswerV1, error) {
	f.mu.Lock()
	down := f.down
	f.mu.Unlock()
	if down != nil {
		if err := down(); err != nil {
			return contract.RunAnswerV1{}, err
		}
	}
	f.mu.Lock()
	r := f.runs[key]
	switch {
	case r != nil && (r.graphID != graphID || r.grantID != req.ExecutionGrantID || r.input != string(req.Input)):
		f.mu.Unlock()
		return contract.RunAnswerV1{}, &pawl.Error{Code: pawl.CodeInvalid, Reason: execution.ReasonMismatch, Msg: "the key was used for another request"}
	case r != nil && time.Now().Before(r.endsAt()):
		f.mu.Unlock()
		return contract.RunAnswerV1{}, &execution.InProgressError{RunID: r.runID}
	case r != nil && (r.answer.OK || r.asks || r.answer.Unknown || req.Attempt <= r.attempt):
		f.mu.Unlock()
		return r.answer, nil
	}
	if f.refuse != nil {
		if err := f.refuse(key, req); err != nil {
			f.mu.Unlock()
			return contract.RunAnswerV1{}, err
		}
	}
	if r == nil {
		r = &fakeRun{graphID: graphID, grantID: req.ExecutionGrantID, input: string(req.Input), runID: req.RunID}
		f.runs[key] = r
	}
	r.attempt = req.Attempt
	f.begin(r, key, f.takes)
	f.mu.Unlock()
	return f.wait(ctx, r)
}

// set changes how it behaves while executions are under way.
func (f *fakeGraph) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// begin starts an execution; the caller holds mu.
func (f *fakeGraph) begin(r *fakeRun, key string, takes time.Duration) {
	r.begun, r.ended, r.changed = append(r.begun, time.Now()), append(r.ended, time.Now().Add(takes)), make(chan struct{})
	r.answer = contract.RunAnswerV1{OK: true, Output: json.RawMessage(`{"poem":"leaf"}`), TraceID: "t"}
	if f.answer != nil {
		r.answer = f.answer(key, r.attempt)
	}
	r.answer.RunID, r.answer.Attempt = r.runID, r.attempt
	r.noteQuestion()
}

func (r *fakeRun) noteQuestion() {
	if r.asks = len(r.answer.Interrupt) > 0; r.asks {
		r.questions++
		r.answer.QuestionID = fmt.Sprint("q", r.questions)
	}
}

func (f *fakeGraph) wait(ctx context.Context, r *fakeRun) (contract.RunAnswerV1, error) {
	for {
		f.mu.Lock()
		end, changed := r.endsAt(), r.changed
		f.mu.Unlock()
		if !time.Now().Before(end) {
			break
		}
		select {
		case <-time.After(time.Until(end)):
		case <-changed:
		case <-ctx.Done():
			return contract.RunAnswerV1{}, context.Cause(ctx)
		}
	}
	if f.lose != nil {
		if err := f.lose(); err != nil {
			return contract.RunAnswerV1{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return r.answer, nil
}

func (f *fakeGraph) Cancel(_ context.Context, key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancels = append(f.cancels, key)
	r := f.runs[key]
	if r == nil {
		return &pawl.Error{Code: pawl.CodeNotFound, Msg: "there is no such run"}
	}
	if !r.asks && !time.Now().Before(r.endsAt()) {
		return nil
	}
	r.asks, r.answer = false, contract.RunAnswerV1{ErrorCode: contract.Aborted, ErrorMessage: "the run was cancelled", RunID: r.runID, Attempt: r.attempt}
	if end := time.Now().Add(f.stops); end.Before(r.endsAt()) {
		r.ended[len(r.ended)-1] = end
		close(r.changed)
		r.changed = make(chan struct{})
	}
	return nil
}

func (f *fakeGraph) Resume(ctx context.Context, key, question string, answer []byte) (contract.RunAnswerV1, error) {
	f.mu.Lock()
	r := f.runs[key]
	switch {
	case r == nil:
		f.mu.Unlock()
		return contract.RunAnswerV1{}, &pawl.Error{Code: pawl.CodeNotFound, Msg: "there is no such run"}
	case time.Now().Before(r.endsAt()):
		f.mu.Unlock()
		return contract.RunAnswerV1{}, &execution.InProgressError{RunID: r.runID}
	case !r.asks, question != r.answer.QuestionID:
		f.mu.Unlock()
		return r.answer, nil
	}
	if f.refuseResume != nil {
		f.mu.Unlock()
		return contract.RunAnswerV1{}, f.refuseResume()
	}
	r.resumed, r.asks = append(r.resumed, string(answer)), false
	r.answer = contract.RunAnswerV1{OK: true, RunID: r.runID, Attempt: r.attempt}
	takes := f.takes
	if f.resume != nil {
		r.answer, takes = f.resume(key, answer)
		r.noteQuestion()
	}
	r.ended[len(r.ended)-1], r.changed = time.Now().Add(takes), make(chan struct{})
	f.mu.Unlock()
	return f.wait(ctx, r)
}

func (f *fakeGraph) Outcome(_ context.Context, key string) (contract.RunAnswerV1, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch r := f.runs[key]; {
	case r == nil:
		return contract.RunAnswerV1{}, &pawl.Error{Code: pawl.CodeNotFound, Msg: "there is no such run"}
	case time.Now().Before(r.endsAt()) && f.abandons:
		return contract.RunAnswerV1{}, execution.Abandoned(r.runID)
	case time.Now().Before(r.endsAt()):
		return contract.RunAnswerV1{}, &execution.InProgressError{RunID: r.runID}
	default:
		return r.answer, nil
	}
}

// executed are the keys that really ran with how often, as "15:04" or
// "15:04 x2", of one schedule.
func (f *fakeGraph) executed(scheduleID string) (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, r := range f.runs {
		if rest, ok := strings.CutPrefix(key, scheduleID+":"); ok {
			word := rest[len("2000-01-01T"):len("2000-01-01T15:04")]
			if n := len(r.begun); n > 1 {
				word += " x" + string(rune('0'+n))
			}
			out = append(out, word)
		}
	}
	slices.Sort(out)
	return out
}

// overlaps tells of two executions of a schedule that ran at the same time;
// empty if none did.
func (f *fakeGraph) overlaps(scheduleID string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	type span struct {
		key      string
		from, to time.Time
	}
	var all []span
	for key, r := range f.runs {
		if rest, ok := strings.CutPrefix(key, scheduleID+":"); ok {
			for i := range r.begun {
				all = append(all, span{rest, r.begun[i], r.ended[i]})
			}
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
	for i := 1; i < len(all); i++ {
		if all[i].from.Before(all[i-1].to) {
			return fmt.Sprintf("%v and %v", all[i-1], all[i])
		}
	}
	return ""
}

var errDown = errors.New("connection refused")

// seen is what happened under a key so far; nil if nothing did.
func (f *fakeGraph) seen(key string) *fakeRun {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[key]
	if r == nil {
		return nil
	}
	told := *r
	told.begun, told.ended, told.resumed = slices.Clone(r.begun), slices.Clone(r.ended), slices.Clone(r.resumed)
	return &told
}

// all is what happened under every key so far.
func (f *fakeGraph) all() map[string]*fakeRun {
	f.mu.Lock()
	keys := slices.Collect(maps.Keys(f.runs))
	f.mu.Unlock()
	out := map[string]*fakeRun{}
	for _, key := range keys {
		out[key] = f.seen(key)
	}
	return out
}

// cancelled are the keys that somebody wanted to end.
func (f *fakeGraph) cancelled() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.cancels)
}
