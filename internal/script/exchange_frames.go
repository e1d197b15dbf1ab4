package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/budget"
	"github.com/pawlrun/pawl/internal/visible"
)

// mostBytes is how long frames of a running phase may be.
func (x *exchange) mostBytes(k kind) int {
	switch k {
	case fromCall, fromTell:
		return x.limits.Payload + mostSite
	case fromLog:
		return mostLine
	case fromDone:
		return x.limits.Output + mostEnding
	case fromFailed:
		return mostEnding
	case fromNeed, fromDropped:
		return 0
	default:
		return -1
	}
}

// step handles one frame. It reports whether the phase has ended; an error is
// one of the worker, not of the script.
func (x *exchange) step() (done bool, err error) {
	f, err := readFrame(x.w.reader, x.mostBytes)
	if err != nil {
		return false, err
	}
	switch f.kind {
	case fromNeed:
		return false, x.sendProgram()
	case fromCall, fromTell:
		return false, x.take(f)
	case fromLog:
		return false, x.log(f)
	case fromDone, fromFailed:
		err := x.finish(f)
		return err == nil, err
	default:
		return false, fmt.Errorf("%w: kind %q", errProtocol, f.kind)
	}
}

func (x *exchange) sendProgram() error {
	if x.asked {
		return fmt.Errorf("%w: the program again", errProtocol)
	}
	x.asked = true
	return x.w.write(x.id, frame{kind: toProgram, id: x.id, payload: []byte(x.program.JavaScript())})
}

// take checks a call and has the host do it: one that needs no answer here and
// now, so that nothing later overtakes it, others beside the reader.
func (x *exchange) take(f frame) error {
	op, place, args, err := splitCall(f.payload)
	x.result.Calls++
	switch {
	case err != nil:
		return err
	case x.result.Calls > x.limits.HostCalls:
		return fmt.Errorf("%w: more than %d calls", errProtocol, x.limits.HostCalls)
	}
	if x.host == nil {
		x.refuse(op, place, errNoHost)
		return nil
	}
	ctx := context.WithValue(x.hostCtx, callNumber{}, x.result.Calls)
	held, err := x.hold(len(f.payload))
	if err != nil {
		return err
	}
	if f.kind == fromTell {
		defer held.Release()
		if !isTold(op) {
			return fmt.Errorf("%w: %q without an answer", errProtocol, visible.Truncate(op, 40))
		}
		if _, err := x.host.Call(ctx, op, args); err != nil {
			x.refuse(op, place, err)
		}
		return nil
	}
	if !isAsked(op) {
		held.Release()
		return fmt.Errorf("%w: %q with an answer", errProtocol, visible.Truncate(op, 40))
	}
	if err := x.open(f.id); err != nil {
		held.Release()
		return err
	}
	x.calls.Go(func() {
		defer held.Release()
		room := budget.NewCall(x.answers...)
		defer room.Release()
		answer, err := x.host.Call(budget.With(ctx, room), op, args)
		x.answer(f.id, op, place, answer, err)
	})
	return nil
}

// Arguments of a call are held as a frame, as JSON and by the host.
const (
	copiesOfArguments = 3
	smallArguments    = 64 << 10 // bytes, which do not count
)

// hold waits until the arguments of one more call may be held. Until then the
// worker is not read, and waits as well.
func (x *exchange) hold(size int) (*budget.Call, error) {
	held := budget.NewCall(x.arguments...)
	if size <= smallArguments {
		return held, nil
	}
	err := budget.Reserve(budget.With(x.reading, held), int64(size)*copiesOfArguments)
	if errors.Is(err, context.DeadlineExceeded) {
		err = os.ErrDeadlineExceeded // as the reader says it
	}
	return held, err
}

// errNoHost is a call in a phase that was run without a host.
var errNoHost = errors.New("nothing can be called here")

func isTold(op string) bool  { return op == "publish" || op == "registerInput" }
func isAsked(op string) bool { return op == "peek" || op == "getByIds" || op == "tool" }

// open notes a call that is with the host.
func (x *exchange) open(id uint32) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, twice := x.inFlight[id]; twice || len(x.inFlight) >= x.limits.InFlight {
		return fmt.Errorf("%w: more than %d calls in flight", errProtocol, x.limits.InFlight)
	}
	x.inFlight[id] = struct{}{}
	return nil
}

// answer sends what the host answered. A write that does not arrive is not an
// error here: the reader notices that the worker is gone.
func (x *exchange) answer(id uint32, op, place string, value json.RawMessage, err error) {
	x.mu.Lock()
	delete(x.inFlight, id)
	x.mu.Unlock()
	_, aborted := errors.AsType[*abort](err)
	switch {
	case aborted:
		x.refuse(op, place, err)
	case err != nil && x.hostCtx.Err() != nil:
		// The phase is ending, and the call failed by it. A script that caught
		// that would go another way than it goes when it runs again.
	case err != nil:
		text, _ := json.Marshal(map[string]string{"message": visible.Truncate(err.Error(), mostText)}) // a string is always JSON
		_ = x.w.write(x.id, frame{kind: toRefuse, id: id, payload: text})
	case len(value) > x.limits.Payload:
		x.stop(x.over(LimitPayload))
	case len(value) == 0:
		_ = x.w.write(x.id, frame{kind: toAnswer, id: id, payload: []byte("null")})
	default:
		_ = x.w.write(x.id, frame{kind: toAnswer, id: id, payload: value})
	}
}

// refuse ends the phase for the host. An error that is only the echo of a
// phase that is ending anyway does not count.
func (x *exchange) refuse(op, place string, err error) {
	if over := x.hostCtx.Err(); over != nil && errors.Is(err, over) {
		return
	}
	if marked, ok := errors.AsType[*abort](err); ok {
		err = marked.cause
	}
	aborted := &Aborted{Op: op, Cause: err, place: func() Place {
		_, where := x.program.mapStack(place)
		return where
	}}
	x.mu.Lock()
	if x.refused == nil {
		x.refused = aborted
	}
	x.mu.Unlock()
	x.stop(aborted)
}

// log keeps a line. An empty frame says that lines are missing; a worker sends
// it once and is then silent.
func (x *exchange) log(f frame) error {
	if x.result.LogsCut {
		return fmt.Errorf("%w: a line after the last", errProtocol)
	}
	level, text, whole := strings.Cut(string(f.payload), "\x00")
	x.logged += len(text) + lineCost
	if !whole || x.logged > x.limits.Log {
		x.result.LogsCut = true
		return nil
	}
	switch level {
	case "debug", "info", "warn", "error":
	default:
		return fmt.Errorf("%w: a line of level %q", errProtocol, visible.Truncate(level, 40))
	}
	text = visible.Truncate(x.program.mapText(text), mostLine)
	x.result.Logs = append(x.result.Logs, LogLine{At: time.Now(), Level: level, Text: text})
	return nil
}

// finish takes the ending that the worker tells.
func (x *exchange) finish(f frame) error {
	if f.id != x.id {
		return fmt.Errorf("%w: the ending of another phase", errProtocol)
	}
	var end ending
	value, err := splitHeader(f.payload, &end)
	if err != nil {
		return err
	}
	if f.kind == fromFailed {
		x.failure = x.failed(end)
		value, end.HasValue = nil, false
	}
	if end.HasValue && !json.Valid(value) || !end.HasValue && len(value) > 0 {
		return fmt.Errorf("%w: a result that is not JSON", errProtocol)
	}
	if len(value) > x.limits.Output {
		return fmt.Errorf("%w: a result of %d bytes", errProtocol, len(value))
	}
	if end.HasValue {
		x.result.Value, x.result.HasValue = wellFormed(value), true
	}
	x.result.CPU = max(end.CPU, 0)
	x.reusable = !end.Retire
	return nil
}

// failed turns the worker's words into an error.
func (x *exchange) failed(end ending) error {
	var stack string
	var place Place
	if end.Thrown != nil {
		stack, place = x.program.mapStack(end.Thrown.Stack)
	}
	switch {
	case end.Limit != "":
		e := x.over(end.Limit)
		e.Stack, e.Place = stack, place
		return e
	case end.Never || end.Thrown == nil:
		return ErrNeverSettles
	}
	return &Thrown{
		Name: visible.Truncate(end.Thrown.Name, mostText), Message: visible.Truncate(end.Thrown.Message, mostText) + missing(end.Thrown), Stack: stack, Place: place,
	}
}

// missing says what to use instead of something that scripts know from
// elsewhere and do not find here.
func missing(thrown *scriptError) string {
	if thrown.Name != "ReferenceError" {
		return ""
	}
	switch thrown.Message {
	case "'fetch' is not defined", "'XMLHttpRequest' is not defined", "'WebSocket' is not defined":
		return " (other systems are available through ctx.tools only: add a connection of type http)"
	case "'setTimeout' is not defined", "'setInterval' is not defined":
		return " (there are no timers: a producer has a schedule, and prepare can return wakeAt)"
	case "'process' is not defined":
		return " (a script has no environment: secrets belong into connections)"
	}
	return ""
}
