package script

import (
	"errors"
	"fmt"

	"github.com/pawlrun/pawl"
)

// How a phase can end badly, for errors.Is.
var (
	// ErrTimeout is a limit of time; LimitError.Limit says which.
	ErrTimeout = errors.New("the script ran too long")
	ErrMemory  = errors.New("the script used too much memory")
	ErrStack   = errors.New("the script nested calls too deeply")
	// ErrOutput is a result, or the arguments or the answer of a call, that
	// is too large.
	ErrOutput    = errors.New("the script's data is too large")
	ErrHostCalls = errors.New("the script made too many calls")
	// ErrNeverSettles is a promise that nothing is left to settle.
	ErrNeverSettles = errors.New("the handler waits for a promise that nothing will settle")
	// ErrAborted is a phase that the host ended; see Aborted.
	ErrAborted = errors.New("the host ended the phase")
	// ErrWorkerCrashed is a worker process that ended by itself or broke the
	// protocol. The phase may have made calls before.
	ErrWorkerCrashed = errors.New("the script's process ended unexpectedly")
)

// Place is a position in the script as its author wrote it. Line and Column
// count from 1; a zero Line means that the place is not known.
type Place struct {
	File   string
	Line   int
	Column int
}

// String returns file:line:column, or nothing for an unknown place.
func (p Place) String() string {
	if p.Line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Thrown is an exception that the handler did not catch.
type Thrown struct {
	Name    string // such as TypeError; empty when the value was no Error
	Message string
	Stack   string // one "at function (file:line:column)" per line
	Place          // of the innermost frame
}

// Error begins with the place, when it is known.
func (e *Thrown) Error() string {
	s := e.Message
	if e.Name != "" {
		s = e.Name + ": " + e.Message
	}
	return placed(e.Place, s)
}

func placed(p Place, s string) string {
	if p.Line == 0 {
		return s
	}
	return p.String() + ": " + s
}

// Limit names one of Limits.
type Limit string

// The limits that end a phase.
const (
	LimitCPU       Limit = "cpu"
	LimitWall      Limit = "wall"
	LimitHeap      Limit = "heap"
	LimitStack     Limit = "stack"
	LimitHostCalls Limit = "hostCalls"
	LimitPayload   Limit = "payload"
	LimitOutput    Limit = "output"
)

// LimitError is a phase that went over one of its limits.
type LimitError struct {
	Limit   Limit
	Allowed string // such as "30s"
	Stack   string
	Place   // where the script was, when that is known
}

// Error says which limit it was and what it allows.
func (e *LimitError) Error() string {
	return placed(e.Place, e.Unwrap().Error()+": the limit for "+e.what()+" is "+e.Allowed)
}

// Unwrap returns the sentinel of the limit.
func (e *LimitError) Unwrap() error {
	switch e.Limit {
	case LimitCPU, LimitWall:
		return ErrTimeout
	case LimitHeap:
		return ErrMemory
	case LimitStack:
		return ErrStack
	case LimitHostCalls:
		return ErrHostCalls
	case LimitPayload, LimitOutput:
		return ErrOutput
	}
	return ErrOutput
}

func (e *LimitError) what() string {
	switch e.Limit {
	case LimitCPU:
		return "its own processor time"
	case LimitWall:
		return "a phase with its calls"
	case LimitHeap:
		return "memory"
	case LimitStack:
		return "nested calls"
	case LimitHostCalls:
		return "calls of a phase"
	case LimitPayload:
		return "the data of one call"
	case LimitOutput:
		return "what a handler returns"
	}
	return string(e.Limit)
}

// allowed writes the limit's value.
func (l Limits) allowed(limit Limit) string {
	switch limit {
	case LimitCPU:
		return l.CPU.String()
	case LimitWall:
		return l.Wall.String()
	case LimitHeap:
		return sizeText(l.Heap)
	case LimitStack:
		return fmt.Sprint(l.Stack)
	case LimitHostCalls:
		return fmt.Sprint(l.HostCalls)
	case LimitPayload:
		return sizeText(int64(l.Payload))
	case LimitOutput:
		return sizeText(int64(l.Output))
	}
	return ""
}

// Aborted is a phase that the host ended. errors.Is finds ErrAborted and the
// host's own error in it.
type Aborted struct {
	Op    string // the call that the host objected to
	Cause error
	place func() Place
}

// Place is where the script made the call. It is found out when somebody asks: that a
// call ends its phase is mostly as it should be.
func (e *Aborted) Place() Place {
	if e.place == nil {
		return Place{}
	}
	return e.place()
}

// Error begins with the place, when it is known.
func (e *Aborted) Error() string { return placed(e.Place(), e.Op+": "+e.Cause.Error()) }

// Unwrap returns ErrAborted and the host's error.
func (e *Aborted) Unwrap() []error { return []error{ErrAborted, e.Cause} }

// Abort marks an error of Host.Call: the phase ends, and no line of the script
// runs after the call, whatever it catches.
func Abort(err error) error { return &abort{err} }

type abort struct{ cause error }

func (a *abort) Error() string { return a.cause.Error() }
func (a *abort) Unwrap() error { return a.cause }

// Class says what a failed phase means for its run. The class of an aborted
// phase is that of its cause, which only the host knows.
func Class(err error) pawl.Class {
	if _, ok := errors.AsType[*Thrown](err); ok {
		return pawl.ClassLogic
	}
	if e, ok := errors.AsType[*LimitError](err); ok && e.Limit == LimitWall {
		// A script without calls meets its limit of processor time first, so
		// it was the outside that took long.
		return pawl.ClassTransient
	}
	for _, logic := range []error{ErrTimeout, ErrMemory, ErrStack, ErrOutput, ErrHostCalls, ErrNeverSettles} {
		if errors.Is(err, logic) {
			return pawl.ClassLogic
		}
	}
	return pawl.ClassInternal
}
