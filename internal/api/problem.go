package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/script"
)

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

// problem is a client.Problem that handlers can return as an error.
type problem struct {
	client.Problem
	header http.Header // to be sent with it
}

// Error is what went wrong.
func (p *problem) Error() string { return p.Detail }

// GetStatus tells huma the status.
func (p *problem) GetStatus() int { return p.Status }

// GetHeaders tells huma which headers to send along.
func (p *problem) GetHeaders() http.Header { return p.header }

// ContentType makes the answer application/problem+json.
func (p *problem) ContentType(string) string { return "application/problem+json" }

// newProblem makes a problem; an empty hint is replaced by the usual one of
// its code.
func newProblem(status int, code, detail, hint string, faults ...client.Fault) *problem {
	title, usual := wordsOf(code, status)
	if hint == "" {
		hint = usual
	}
	return &problem{client.Problem{
		Type: "urn:pawl:problem:" + code, Title: title, Status: status, Code: code,
		Detail: sentence(detail), Hint: sentence(hint), Errors: faults,
	}, http.Header{}}
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
		return "Not found", "Check the name or ID. Resources of other users are reported as not found."
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
func problemOf(ctx context.Context, err error) (p *problem, secret bool) {
	if p, ok := errors.AsType[*problem](err); ok {
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
func faultsOf(e *pawl.Error) []client.Fault {
	places, ok := errors.AsType[script.Diagnostics](error(e))
	if ok = ok && len(places) == len(e.Fields); !ok {
		places = nil
	}
	var out []client.Fault
	for i, f := range e.Fields {
		fault := client.Fault{Pointer: f.Pointer, Message: f.String()}
		if ok {
			fault.Line, fault.Column = places[i].Line, places[i].Column
		}
		out = append(out, fault)
	}
	return out
}

// invalid is the problem of a request whose faults are known.
func invalid(hint string, faults ...client.Fault) *problem {
	return newProblem(http.StatusUnprocessableEntity, string(pawl.CodeInvalid), countFaults(len(faults)), hint, faults...)
}

func countFaults(n int) string {
	if n == 1 {
		return "the request has a fault"
	}
	return "the request has several faults"
}

// sentence begins with a capital and ends with a full stop, unless that would
// become a part of a command that somebody is to type, or of the name of a file.
func sentence(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	if first, _, _ := strings.Cut(s, " "); first != "pawl" && !isPlace(first) {
		s = string(unicode.ToUpper(r)) + s[size:]
	}
	if last, _ := utf8.DecodeLastRuneInString(s); !strings.ContainsRune(".!?…", last) && !endsInCommand(s) {
		s += "."
	}
	return s
}

// isPlace reports whether a word is a place in a file, such as prices.yaml:5:10:
func isPlace(word string) bool {
	_, line, found := strings.Cut(word, ":")
	return found && line != "" && line[0] >= '0' && line[0] <= '9'
}

// endsInCommand reports whether the last words of a text are a command: those
// after a colon, or all of it.
func endsInCommand(s string) bool {
	if at := strings.LastIndex(s, ": "); at >= 0 {
		s = s[at+len(": "):]
	}
	return strings.HasPrefix(s, "pawl ")
}
