package pawl

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Code says what kind of error it is, in one word that programs can compare.
type Code string

// The codes. Each maps to one HTTP status and one exit code.
const (
	CodeInvalid      Code = "invalid"      // the request or definition is wrong; the message says where
	CodeUsage        Code = "usage"        // the command line is wrong
	CodeUnauthorized Code = "unauthorized" // no token, or a token that is not known
	CodeForbidden    Code = "forbidden"    // the token lacks the scope
	CodeNotFound     Code = "not_found"    // absent, or foreign
	CodeConflict     Code = "conflict"     // refused in the present state
	CodeTooLarge     Code = "too_large"    // over a limit
	CodeUnavailable  Code = "unavailable"  // try again later
	CodeLeaseLost    Code = "lease_lost"   // another node owns the lane; nothing was written
	CodeSchema       Code = "schema"       // the database has a schema this program does not know
	CodeUnreachable  Code = "unreachable"  // the server did not answer
	CodeInternal     Code = "internal"     // a fault of Pawl itself
)

// Error is the one error type of Pawl. Msg says what went wrong, Hint what to
// do about it; Err is the cause, shown in logs only.
type Error struct {
	Code   Code
	Reason string // narrows the code for programs, such as run_active; mostly empty
	Op     string // what was being done, as a verb phrase
	Msg    string
	Hint   string
	Fields []Field // places in the input, for CodeInvalid
	Err    error
}

// Field is one fault in some input, with its place.
type Field struct {
	Place          // in a file; the zero Place for input that came over the network
	Pointer string // JSON pointer, such as /runAt
	Message string
	Hint    string // what to do about it, if that is not for the error as a whole
}

// Full is the message with its hint.
func (f Field) Full() string {
	switch first, _ := utf8.DecodeRuneInString(f.Hint); {
	case f.Hint == "":
		return f.Message
	case unicode.IsUpper(first): // a sentence of its own
		return strings.TrimSuffix(f.Message, ".") + ". " + f.Hint
	}
	return f.Message + "; " + f.Hint
}

// String is the message after its place, as compilers write it.
func (f Field) String() string {
	if f.File == "" {
		return f.Full()
	}
	return f.Place.String() + ": " + f.Full()
}

// Place is where something is in a file. Line and column count from 1; a line
// of 0 is the file as a whole.
type Place struct {
	File         string
	Line, Column int
}

// String is file:line:column, as far as it is known.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Error describes the error with its operation and cause.
func (e *Error) Error() string {
	s := e.Msg
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches another *Error by its code, so that errors.Is(err, ErrNotFound)
// works for every error of that code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Msg == ""
}

// Sentinels for errors.Is.
var (
	ErrInvalid     = &Error{Code: CodeInvalid}
	ErrNotFound    = &Error{Code: CodeNotFound}
	ErrConflict    = &Error{Code: CodeConflict}
	ErrUnavailable = &Error{Code: CodeUnavailable}
	ErrLeaseLost   = &Error{Code: CodeLeaseLost}
	ErrSchema      = &Error{Code: CodeSchema}
)

// IgnoreNotFound is the error, unless it says that something is absent.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// ErrorCode returns the code of the outermost *Error in err's chain, and
// CodeInternal for any other non-nil error.
func ErrorCode(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// HTTPStatus maps a code to the status of the answer that carries it.
func (c Code) HTTPStatus() int {
	switch c {
	case CodeInvalid, CodeUsage:
		return http.StatusUnprocessableEntity
	case CodeUnauthorized:
		return http.StatusUnauthorized
	case CodeForbidden:
		return http.StatusForbidden
	case CodeNotFound:
		return http.StatusNotFound
	case CodeConflict:
		return http.StatusConflict
	case CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case CodeUnavailable, CodeLeaseLost, CodeUnreachable:
		return http.StatusServiceUnavailable
	case CodeSchema, CodeInternal:
		return http.StatusInternalServerError
	}
	return http.StatusInternalServerError
}

// Exit codes of the command line.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitRefused     = 4
	ExitNotAllowed  = 5
	ExitUnreachable = 6
)

// ExitCode maps a code to the exit code of the command that met it.
func (c Code) ExitCode() int {
	switch c {
	case "":
		return ExitDone
	case CodeUsage:
		return ExitUsage
	case CodeNotFound:
		return ExitNotFound
	case CodeConflict:
		return ExitRefused
	case CodeUnauthorized, CodeForbidden:
		return ExitNotAllowed
	case CodeUnreachable:
		return ExitUnreachable
	case CodeInvalid, CodeTooLarge, CodeUnavailable, CodeLeaseLost, CodeSchema, CodeInternal:
		return ExitFailed
	}
	return ExitFailed
}
