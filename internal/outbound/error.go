package outbound

import (
	"net/http"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/visible"
)

// Kind says where a call went wrong.
type Kind string

// The kinds of failures. The set is closed.
const (
	KindInvalid    Kind = "invalid"    // the request cannot be made
	KindBlocked    Kind = "blocked"    // the address is not public and not allowed
	KindDNS        Kind = "dns"        // the name does not resolve
	KindConnect    Kind = "connect"    // no connection: refused, unreachable
	KindTLS        Kind = "tls"        // no secure connection
	KindTimeout    Kind = "timeout"    // a deadline passed, at any stage
	KindCancelled  Kind = "cancelled"  // the caller gave up, at any stage
	KindBroken     Kind = "broken"     // the connection ended before an answer
	KindUnreadable Kind = "unreadable" // an answer began and could not be read
	KindTooLarge   Kind = "too_large"  // the answer is over the limit
	KindRedirect   Kind = "redirect"   // the answer is a redirect that is not followed
)

// Error is a call that gave no usable answer. It is also a *pawl.Error for
// errors.As, with a code, a message and the hint.
type Error struct {
	Kind Kind
	// Class is Verdict(EffectOf(Method)).Class.
	Class pawl.Class
	// MaybeSent false guarantees that the server did not get the request. After
	// a redirect it speaks of the last request: those before it were answered.
	MaybeSent bool
	// Status is that of an answer whose head arrived, else 0.
	Status int
	Method string
	Host   string // with the port when the URL has one
	Reason string // safe to show
	Hint   string // what to do about it, or empty
	Err    error  // the cause; its text may quote what the server sent
}

// newError completes e for a request.
func newError(req *http.Request, e Error) *Error {
	e.Method = orDefault(req.Method, http.MethodGet)
	if req.URL != nil {
		e.Host = excerpt(req.URL.Host)
	}
	e.Class = e.Verdict(EffectOf(e.Method)).Class
	return &e
}

// Error names the method, the host and the reason.
func (e *Error) Error() string {
	if e.Host == "" {
		return e.Method + ": " + e.Reason
	}
	return e.Method + " " + e.Host + ": " + e.Reason
}

// Unwrap returns the error as a *pawl.Error, and the cause.
func (e *Error) Unwrap() []error {
	general := &pawl.Error{Code: e.code(), Msg: e.Error(), Hint: e.Hint}
	if e.Err == nil {
		return []error{general}
	}
	return []error{general, e.Err}
}

func (e *Error) code() pawl.Code {
	switch e.Kind {
	case KindInvalid, KindBlocked, KindRedirect:
		return pawl.CodeInvalid
	case KindTooLarge:
		return pawl.CodeTooLarge
	case KindDNS, KindConnect, KindTLS, KindTimeout, KindCancelled, KindBroken, KindUnreadable:
		return pawl.CodeUnavailable
	}
	return pawl.CodeInternal
}

// Verdict says what the failure means for a request of the given effect. Class
// has the answer for the method; a POST that only searches passes Read.
func (e *Error) Verdict(effect Effect) Verdict {
	if e.Status != 0 {
		// The status was received: a body that got lost does not change a no.
		if v := JudgeStatus(effect, e.Status); !v.OK() {
			return v
		}
	}
	switch {
	case e.Kind == KindBlocked:
		return Verdict{pawl.ClassPermission, NotHappened}
	case e.Kind == KindInvalid:
		return Verdict{pawl.ClassLogic, NotHappened}
	case e.Kind == KindTooLarge:
		return unknownOr(effect, pawl.ClassLogic) // asking again would not make it smaller
	case e.MaybeSent:
		return unknownOr(effect, pawl.ClassTransient)
	}
	return Verdict{pawl.ClassTransient, NotHappened}
}

// excerpt makes foreign text fit for a message.
func excerpt(s string) string { return visible.Excerpt(s, 200) }
