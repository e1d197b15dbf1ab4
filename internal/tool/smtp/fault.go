package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// longestQuote is how much of what a server says is shown, in characters.
const longestQuote = 300

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
func refused(step string, r reply) *connector.Error {
	fault := &connector.Error{
		Class: pawl.ClassLogic, Code: "refused", NotApplied: true,
		Msg: fmt.Sprintf("the server refused %s: %d %s", step, r.code, r.text),
	}
	switch {
	case r.code < 500:
		fault.Class, fault.Code = pawl.ClassTransient, "try_later"
	case r.code == 530 || r.code == 534 || r.code == 535 || r.code == 538:
		fault.Class, fault.Code, fault.Hint = pawl.ClassAuth, "auth", "Check username and password of the connection."
	}
	return fault
}

// notLetIn is a login that failed.
func (s *Server) notLetIn(r reply) *connector.Error {
	return &connector.Error{
		Class: pawl.ClassAuth, Code: "auth", NotApplied: true,
		Msg:  fmt.Sprintf("the server does not let %s in: %d %s", pawl.Quote(s.username), r.code, r.text),
		Hint: "Check username and password of the connection.",
	}
}

// lost is a dialogue that ended before the dot.
func (d *dialogue) lost(err error) *connector.Error {
	if fault := d.ended(); fault != nil {
		return fault
	}
	fault := &connector.Error{
		Class: pawl.ClassTransient, Code: "broken", NotApplied: true, NotSent: true, Err: err,
		Msg: "the connection was lost before the message was sent",
	}
	if errors.Is(err, errReply) {
		fault.Code, fault.Msg = "strange", "the server gave an answer that is not SMTP"
	}
	return fault
}

// ended is the fault of a call that was told to stop or ran out of time before
// the dot, or nil.
func (d *dialogue) ended() *connector.Error {
	switch err := d.ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &connector.Error{Class: pawl.ClassTransient, Code: "timeout", NotApplied: true, NotSent: true, Err: err, Msg: "the server was too slow; the message was not sent"}
	default:
		return &connector.Error{Class: pawl.ClassTransient, Code: "interrupted", NotApplied: true, NotSent: true, Err: err, Msg: "the call was told to stop before the message was sent"}
	}
}

// unanswered is a message of which nobody knows whether it was accepted.
func unanswered(m message, err error) *connector.Error {
	return &connector.Error{
		Class: pawl.ClassIndeterminate, Code: "unanswered", Err: err,
		Msg:  "the server did not say whether it accepted the message " + m.id,
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

// quote makes what a server says fit for a message: one line of bounded
// length.
func quote(said string) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(said, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	})
	line := []rune(strings.Join(words, " "))
	if len(line) > longestQuote {
		return string(line[:longestQuote]) + "..."
	}
	return string(line)
}
