package connector

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pawlrun/pawl"
)

// Error is a failed call. Who makes one decides the class, by what happened
// and never by the text of another error (context 3.8).
type Error struct {
	Class pawl.Class
	Code  string // a short word for programs, such as not_found or bad_arguments
	Msg   string // what went wrong, for people; holds no secret and no path of the host
	Hint  string // what to do about it

	// NotApplied is the statement that a mutation did not happen. False
	// means that nobody knows: a fault after the effect may have begun is
	// never NotApplied.
	NotApplied bool
	// NotSent says of a call that is NotApplied that nobody refused it: not one
	// byte of it left this host or, of a mail, not the dot that makes it one.
	// The next one then carries the same key.
	NotSent bool

	// Deferred says that our own limit said no, until RetryAfter is over. It
	// counts as no attempt.
	Deferred bool

	RetryAfter time.Duration // when the outside said how long to wait
	Err        error         // the cause, for logs
}

// Error describes the error with its cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Msg
	}
	return e.Msg + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeBadArguments is the code of a call whose arguments are not valid.
const CodeBadArguments = "bad_arguments"

// BadArguments is the error of a call that cannot be understood. Nothing was
// done.
func BadArguments(hint, format string, values ...any) *Error {
	return &Error{
		Class: pawl.ClassLogic, Code: CodeBadArguments, Hint: hint, NotApplied: true,
		Msg: fmt.Sprintf(format, values...),
	}
}

// Reason is what the system says went wrong, without the path that it adds:
// that may be made of secrets.
func Reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
