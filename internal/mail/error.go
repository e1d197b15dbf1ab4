package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/visible"
)

// longestQuote is how much of what a server says is shown, in characters.
const longestQuote = 300

const hintLogin = "Check username and password of the connection."

// Error is why a message was not sent or, of [pawl.ClassIndeterminate], why
// nobody knows whether it was.
type Error struct {
	Class pawl.Class
	Code  string // a short word for programs
	Msg   string // what went wrong, for people; it may quote the server
	Hint  string // what to do about it
	// Interrupted says that the server did not refuse it: the dialogue ended
	// before the message was complete.
	Interrupted bool
	Err         error // the cause
}

func (e *Error) Error() string { return e.Msg }
func (e *Error) Unwrap() error { return e.Err }

// check is the fault of a step before the dot, or nil.
func (d *dialogue) check(step string, r reply, err error) error {
	switch {
	case err != nil:
		return d.lost(err)
	case r.ok():
		return nil
	case r.code >= 400:
		return refused(step, r)
	}
	return d.lost(errReply)
}

// refused is a step, or a message, that the server said no to.
func refused(step string, r reply) *Error {
	e := &Error{Class: pawl.ClassLogic, Code: "refused", Msg: "the server refused " + step + ": " + r.String()}
	switch {
	case r.code < 500:
		e.Class, e.Code = pawl.ClassTransient, "try_later"
	case r.code == 530 || r.code == 534 || r.code == 535 || r.code == 538:
		e.Class, e.Code, e.Hint = pawl.ClassAuth, "auth", hintLogin
	}
	return e
}

// lost is a dialogue that ended before the dot.
func (d *dialogue) lost(err error) *Error {
	if e := d.ended(); e != nil {
		return e
	}
	e := &Error{Class: pawl.ClassTransient, Code: "broken", Interrupted: true, Err: err, Msg: "the connection was lost before the message was sent"}
	if errors.Is(err, errReply) {
		e.Code, e.Msg = "strange", "the server gave an answer that is not SMTP"
	}
	return e
}

// ended is the fault of a call that was told to stop or ran out of time before
// the dot, or nil.
func (d *dialogue) ended() *Error {
	err := d.ctx.Err()
	if err == nil {
		return nil
	}
	e := &Error{Class: pawl.ClassTransient, Code: "interrupted", Interrupted: true, Err: err, Msg: "the call was cancelled before the message was sent"}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Code, e.Msg = "timeout", "the server was too slow; the message was not sent"
	}
	return e
}

// unanswered is a message of which nobody knows whether it was accepted.
func unanswered(m Encoded, err error) *Error {
	return &Error{
		Class: pawl.ClassIndeterminate, Code: "unanswered", Err: err,
		Msg:  "the server did not say whether it accepted the message " + m.ID,
		Hint: "Look for the Message-ID in the log of the server, or ask a recipient.",
	}
}

// tlsReason keeps what the library says about certificates, which helps, and
// drops what quotes the bytes of the server, which does not.
func tlsReason(err error) string {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the server does not speak TLS here"
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return "the connection was lost in the handshake"
	}
	return quote(err.Error())
}

// quote makes what a server says fit for a message.
func quote(said string) string { return visible.Excerpt(said, longestQuote) }
