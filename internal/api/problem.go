package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
)

// Problem is how every error is told (RFC 9457).
type Problem struct {
	Type      string  `json:"type" example:"urn:pawl:problem:invalid" doc:"Names the kind of problem; it ends with the code."`
	Title     string  `json:"title" example:"The request is not valid" doc:"The kind of problem, in words."`
	Status    int     `json:"status" example:"422" doc:"The HTTP status."`
	Code      string  `json:"code" example:"invalid" doc:"The kind of problem, for programs."`
	Detail    string  `json:"detail" example:"The request has a fault." doc:"What went wrong this time."`
	Hint      string  `json:"hint" example:"Use RFC 3339 with an offset, such as 2030-01-31T09:00:00Z." doc:"What to do about it."`
	Errors    []Fault `json:"errors,omitempty" nullable:"false" doc:"The faults of the input, each with its place."`
	RequestID string  `json:"requestId" example:"0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e" doc:"The request, as it is called in the server's log."`

	header http.Header // to be sent with it
}

// Fault is one fault of the input.
type Fault struct {
	Pointer string `json:"pointer" example:"/runAt" doc:"Where: a JSON pointer into the body, or / and the name of a parameter or header. Empty is the whole body."`
	Message string `json:"message" example:"must be an RFC 3339 date-time" doc:"What is wrong there."`
	Line    int    `json:"line,omitempty" minimum:"1" example:"12" doc:"In a script: its line, counted from 1. Absent elsewhere."`
	Column  int    `json:"column,omitempty" minimum:"1" example:"5" doc:"In a script: the column in UTF-16 units, as editors count, from 1. Absent elsewhere."`
}

// Codes that only the API has, with the status of each; see pawl.Code for the
// others.
const (
	codeMalformed           = "malformed"            // 400: the body cannot be read
	codeMethodNotAllowed    = "method_not_allowed"   // 405
	codeNotAcceptable       = "not_acceptable"       // 406
	codeTimeout             = "timeout"              // 408: the body came too slowly
	codeUnsupportedMedia    = "unsupported_media"    // 415
	codeIdempotencyMismatch = "idempotency_mismatch" // 422: the key was used for another request
)

// Error makes a Problem an error, so that handlers can return it.
func (p *Problem) Error() string { return p.Detail }

// GetStatus tells huma the status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders tells huma which headers to send along.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType makes the answer application/problem+json.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// newProblem makes a problem; an empty hint is replaced by the usual one of
// its code.
func newProblem(status int, code, detail, hint string, faults ...Fault) *Problem {
	title, usual := wordsOf(code, status)
	if hint == "" {
		hint = usual
	}
	return &Problem{
		Type: "urn:pawl:problem:" + code, Title: title, Status: status, Code: code,
		Detail: sentence(detail), Hint: sentence(hint), Errors: faults, header: http.Header{},
	}
}

// wordsOf gives the title of a code and what usually helps.
func wordsOf(code string, status int) (title, hint string) {
	switch code {
	case string(pawl.CodeInvalid):
		return "The request is not valid", "Correct what the errors point at; /docs describes every request."
	case string(pawl.CodeUnauthorized):
		return "Who are you?", "Send the header Authorization: Bearer TOKEN with a token that is valid."
	case string(pawl.CodeForbidden):
		return "This is not allowed", "Use a token that has the scope."
	case string(pawl.CodeNotFound):
		return "There is no such thing", "Check the name or id; what belongs to somebody else looks as if it were not there."
	case string(pawl.CodeConflict):
		return "Refused in the present state", "Look at its state first."
	case string(pawl.CodeTooLarge):
		return "The request is too large", "Send less, or raise the limit of the server."
	case string(pawl.CodeUnavailable), string(pawl.CodeLeaseLost), string(pawl.CodeUnreachable):
		return "Not available now", "Try again in a moment."
	case codeMalformed:
		return "The body cannot be read", "Send one JSON object in UTF-8."
	case codeMethodNotAllowed:
		return "The method is not allowed here", "The header Allow lists the methods; /docs describes every route."
	case codeUnsupportedMedia:
		return "The content type is not supported", "Send the header Content-Type: application/json."
	case codeIdempotencyMismatch:
		return "The idempotency key was used for another request", "Use a new key for a new request, and the same key only to repeat one."
	case codePrecondition:
		return "It is not as you saw it", "Read it again, and send the ETag that it has now."
	case codeTimeout:
		return "The request came too slowly", "Send it again."
	}
	if status >= http.StatusInternalServerError {
		return "Internal error", "Look for the request's id in the log of the server."
	}
	return http.StatusText(status), "See /docs."
}

// problemOf tells any error as a problem. What has no code, or one that is
// nobody's business, becomes an internal error; secret reports that.
func problemOf(ctx context.Context, err error) (p *Problem, secret bool) {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p, false
	}
	e, ok := errors.AsType[*pawl.Error](err)
	switch {
	case ok && e.Code.HTTPStatus() == http.StatusInternalServerError:
	case ok:
		p := newProblem(e.Code.HTTPStatus(), string(e.Code), e.Msg, e.Hint, faultsOf(e)...)
		if e.Reason != "" { // the title stays that of the code
			p.Code, p.Type = e.Reason, "urn:pawl:problem:"+e.Reason
		}
		if p.Status == http.StatusServiceUnavailable {
			p.header.Set("Retry-After", "1")
		}
		return p, false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled) && ctx.Err() != nil:
		p := newProblem(http.StatusServiceUnavailable, string(pawl.CodeUnavailable), "the request took too long and was given up", "")
		p.header.Set("Retry-After", "1")
		return p, false
	}
	return newProblem(http.StatusInternalServerError, string(pawl.CodeInternal), "internal error", ""), true
}

// faultsOf tells the places of an error. Those in a script have a line and a
// column.
func faultsOf(e *pawl.Error) []Fault {
	places, ok := errors.AsType[script.Diagnostics](error(e))
	if ok = ok && len(places) == len(e.Fields); !ok {
		places = nil
	}
	var out []Fault
	for i, f := range e.Fields {
		fault := Fault{Pointer: f.Pointer, Message: f.Message}
		if ok {
			fault.Line, fault.Column = places[i].Line, places[i].Column
		}
		out = append(out, fault)
	}
	return out
}

// invalid is the problem of a request whose faults are known.
func invalid(hint string, faults ...Fault) *Problem {
	return newProblem(http.StatusUnprocessableEntity, string(pawl.CodeInvalid), countFaults(len(faults)), hint, faults...)
}

func countFaults(n int) string {
	if n == 1 {
		return "the request has a fault"
	}
	return "the request has several faults"
}

// sentence begins with a capital and ends with a full stop, unless that would
// become a part of a command that somebody is to type.
func sentence(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	if !strings.HasPrefix(s, "pawl ") {
		s = string(unicode.ToUpper(r)) + s[size:]
	}
	if last, _ := utf8.DecodeLastRuneInString(s); !strings.ContainsRune(".!?…", last) && !endsInCommand(s) {
		s += "."
	}
	return s
}

// endsInCommand reports whether the last words of a text are a command: those
// after a colon, or all of it.
func endsInCommand(s string) bool {
	if at := strings.LastIndex(s, ": "); at >= 0 {
		s = s[at+len(": "):]
	}
	return strings.HasPrefix(s, "pawl ")
}
