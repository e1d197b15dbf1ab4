package workflow

import (
	"context"
	"encoding/json"
	"sync"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// recording is what a run read, out of which its replay is answered. A script
// reads many things at once, so every field is guarded.
type recording struct {
	run runstore.Run

	mu     sync.Mutex
	reads  map[string][]runstore.RunRead // by readKey, in their order, those not used yet; guarded by mu
	missed bool                          // something was asked for of which the answer is not known; guarded by mu
}

func newRecording(run runstore.Run, reads []runstore.RunRead) *recording {
	r := &recording{run: run, reads: map[string][]runstore.RunRead{}}
	for _, read := range reads {
		key := readKey(read.Op, read.Call)
		r.reads[key] = append(r.reads[key], read)
	}
	return r
}

// readKey is the same for the same read.
func readKey(op string, call json.RawMessage) string { return op + "\n" + canonical(call) }

// take returns the first answer to a read that was not given yet.
func (r *recording) take(key string) (read runstore.RunRead, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.reads[key]
	if len(left) == 0 {
		r.missed = true
		return runstore.RunRead{}, false
	}
	r.reads[key] = left[1:]
	r.missed = r.missed || left[0].Cut
	return left[0], true
}

// unknown reports whether the replay asked for something of which the answer
// is not known, so that nothing can be said about it.
func (r *recording) unknown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missed
}

// answers is a host whose reads are those of a recorded run.
type answers struct {
	*host
	t *trial
}

// Call answers a read as it was answered then; anything else is the host's.
func (a answers) Call(ctx context.Context, op string, args json.RawMessage) (json.RawMessage, error) {
	if op != "peek" && op != "getByIds" && (op != "tool" || !a.rules.read) {
		return a.host.Call(ctx, op, args)
	}
	if a.failed() {
		return nil, a.abort(ctx, errFailedAlready)
	}
	call := clipCall(a.t.Tools.Redact(args))
	r, known := a.t.recording.take(readKey(op, call))
	switch {
	case !known:
		return nil, a.end(ctx, violation("replay_read", "the run did not do this %s then, so its answer is not known: %s", op, cutText(string(call), 200)))
	case r.Cut:
		return nil, a.end(ctx, violation("replay_cut", "the answer of this %s was too large to be kept, so the run cannot be replayed", op))
	case r.Error != "": // which ended the run as it ends the replay
		return nil, a.end(ctx, &failure{class: cmpClass(a.t.recording.run.ErrorClass), code: a.t.recording.run.ErrorCode, text: r.Error})
	}
	return r.Answer, nil
}

// cmpClass is the class of a failed read: that of the run, which it ended.
func cmpClass(of pawl.Class) pawl.Class {
	if of == "" {
		return pawl.ClassLogic
	}
	return of
}

// end ends the phase for a reason.
func (a answers) end(ctx context.Context, f *failure) error {
	a.note(f)
	return a.abort(ctx, f)
}

var _ script.Host = answers{}
