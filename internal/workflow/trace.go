package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// What is kept of what a run read, so that it can be replayed.
const (
	maxReads     = 500
	maxReadBytes = 1 << 20   // of all answers
	maxReadOne   = 256 << 10 // of one answer
	maxCall      = 4 << 10   // of the arguments of one read; larger ones are clipped
	maxErrorText = 4 << 10   // of the error of one read
)

// trace is what a run logged and read since its last transition, which writes
// it down.
type trace struct {
	mu    sync.Mutex
	lines []runstore.LogLine // guarded by mu, as are the others
	reads []runstore.RunRead
	right []workflowstore.Right // calls that are not known to be stored
	made  int                   // reads so far
	bytes int                   // of answers that were kept

	logged int // lines that are stored
}

// addLogs notes what a phase logged.
func (t *trace) addLogs(phase pawl.Phase, r script.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range r.Logs {
		t.lines = append(t.lines, runstore.LogLine{Phase: phase, At: l.At, Level: l.Level, Text: l.Text})
	}
	if r.LogsCut {
		t.lines = append(t.lines, runstore.LogLine{Phase: phase, At: time.Now(), Level: "warn", Text: "(more was logged than is kept)"})
	}
}

// warn notes something that the host has to say about a phase.
func (t *trace) warn(phase pawl.Phase, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, runstore.LogLine{Phase: phase, At: time.Now(), Level: "warn", Text: text})
}

// read notes a read and its answer; what is too much is told to be missing.
func (t *trace) read(phase pawl.Phase, op string, call, answer json.RawMessage, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.made++; t.made > maxReads {
		return
	}
	r := runstore.RunRead{Phase: phase, Op: op, Call: call, At: time.Now()}
	switch {
	case err != nil:
		r.Error = cutText(failureFrom(err).text, maxErrorText)
	case len(answer) > maxReadOne || t.bytes+len(answer) > maxReadBytes:
		r.Cut = true
	default:
		r.Answer = answer
		t.bytes += len(answer)
	}
	t.reads = append(t.reads, r)
}

// calls notes a call that says something about rights, once.
func (t *trace) calls(r workflowstore.Right) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.right, r) {
		t.right = append(t.right, r)
	}
}

// opState is how the state that a handler was given is recorded.
const opState = "state"

// begins notes the state that the handler is given.
func (x *execution) begins() {
	if x.state != nil {
		x.trace.read(x.run.Phase, opState, json.RawMessage("null"), x.state, nil)
	}
}

// flush writes down what was gathered, in the transaction of a transition.
func (x *execution) flush(ctx context.Context, tx *store.Tx) error {
	x.trace.mu.Lock()
	rights, logged := x.trace.right, x.trace.logged
	lines, reads, first := x.trace.lines, x.trace.reads, min(x.trace.made, maxReads)-len(x.trace.reads)
	x.trace.mu.Unlock()
	if err := runstore.In(tx).AddRunLogs(ctx, x.run.ID, logged, x.redactedLines(lines)); err != nil {
		return err
	}
	if len(reads) > 0 && x.run.ID == x.view.row.ID { // it goes on: what counts is what it reads now
		if err := runstore.In(tx).ForgetRunReads(ctx, x.run.ID, first); err != nil {
			return err
		}
	}
	if err := runstore.In(tx).AddRunReads(ctx, x.id, x.run.ID, first, x.redacted(reads)); err != nil {
		return err
	}
	if len(rights) > 0 {
		if err := workflowstore.In(tx).AddRights(ctx, x.id, rights); err != nil {
			return err
		}
	}
	tx.AfterCommit(func() {
		x.rightsKept(x.id, rights)
		x.trace.mu.Lock()
		defer x.trace.mu.Unlock()
		x.trace.right, x.trace.logged = x.trace.right[len(rights):], logged+len(lines)
		x.trace.lines, x.trace.reads = x.trace.lines[len(lines):], x.trace.reads[len(reads):]
	})
	return nil
}

func (x *execution) redactedLines(lines []runstore.LogLine) []runstore.LogLine {
	out := make([]runstore.LogLine, len(lines))
	for i, l := range lines {
		l.Text = x.cfg.Tools.RedactText(l.Text)
		out[i] = l
	}
	return out
}

// redacted takes secrets out of what was answered, whoever put them there. The
// arguments come without.
func (x *execution) redacted(reads []runstore.RunRead) []runstore.RunRead {
	out := make([]runstore.RunRead, len(reads))
	for i, r := range reads {
		r.Answer, r.Error = x.cfg.Tools.Redact(r.Answer), x.cfg.Tools.RedactText(r.Error)
		out[i] = r
	}
	return out
}

// clipCall shortens arguments for the record: a long value becomes its size and
// its hash, by which a replay knows it again.
func clipCall(call json.RawMessage) json.RawMessage {
	if len(call) <= maxCall {
		return call
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(call, &fields) == nil {
		for name, value := range fields {
			if len(value) > 128 {
				fields[name] = clipped(value)
			}
		}
		if short := asJSON(fields); len(short) <= maxCall {
			return short
		}
	}
	return clipped(call)
}

func clipped(value json.RawMessage) json.RawMessage {
	text := canonical(value)
	sum := sha256.Sum256([]byte(text))
	return asJSON(map[string]any{"clipped": len(text), "sha256": hex.EncodeToString(sum[:])})
}
