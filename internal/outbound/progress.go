package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
)

// progress is how far one request got. The transport reports from several
// goroutines, also after it returned, so every step is atomic.
type progress struct {
	asked     atomic.Bool // the transport accepted the request as well formed
	secured   atomic.Bool // the TLS handshake began
	connected atomic.Bool // bytes of the request may leave from here on
	answered  atomic.Bool // the first byte of the answer arrived

	permission *permission // nil: none is needed
}

// watch returns a context that makes the transport report to p.
func (p *progress) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { p.asked.Store(true) },
		TLSHandshakeStart:    func() { p.secured.Store(true) },
		GotConn:              func(httptrace.GotConnInfo) { p.permission.connected(); p.connected.Store(true) },
		GotFirstResponseByte: func() { p.answered.Store(true) },
	})
}

// explain turns the transport's error into an Error. The kind comes from how
// far the request got, not from the text of the error.
func (p *progress) explain(ctx context.Context, hop *http.Request, err error) *Error {
	if p.permission.denial() != nil {
		return p.notPermitted(hop)
	}
	e := Error{MaybeSent: p.connected.Load(), Err: err}
	blocked, isBlocked := errors.AsType[*refusal](err)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case isBlocked:
		e.Kind, e.Err = KindBlocked, nil // whose text names the address
		e.Reason, e.Hint = blocked.describe(hop.URL.Hostname())
	case ctx.Err() != nil:
		e.Kind, e.Reason, e.Err = interrupted(ctx, p.connected.Load())
	case !p.asked.Load():
		// The text is not shown: it quotes whatever stands where a name should.
		e.Kind, e.Reason = KindInvalid, "the method or the name of a header is not valid"
	case isDNS:
		e.Kind, e.Reason = KindDNS, dnsReason(dns)
	case !p.connected.Load():
		e.Kind, e.Reason = p.unconnected(err)
	case isTimeout(err):
		e.Kind, e.Reason = KindTimeout, "no answer in time"
	case p.answered.Load():
		e.Kind, e.Reason = KindUnreadable, "the answer could not be read"
	default:
		e.Kind, e.Reason = KindBroken, "the connection ended before an answer"
	}
	return newError(hop, e)
}

// notPermitted explains a call that was not to leave any more.
func (p *progress) notPermitted(hop *http.Request) *Error {
	sent := p.connected.Load() && p.permission.written.Load()
	reason := "not sent, because another node may have taken over"
	if sent {
		reason = "cut off, because another node may have taken over"
	}
	return newError(hop, Error{Kind: KindCancelled, MaybeSent: sent, Reason: reason, Err: p.permission.denial()})
}

// interrupted explains a call whose context ended. The error keeps both the
// context's own error and the cause that was given for it.
func interrupted(ctx context.Context, sent bool) (Kind, string, error) {
	when := "before anything was sent"
	if sent {
		when = "while waiting for the answer"
	}
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case errors.Is(cause, context.DeadlineExceeded): // also that of limitWait
		err = cause
	case !errors.Is(cause, err):
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return KindTimeout, "timed out " + when, err
	}
	return KindCancelled, "cancelled " + when, err
}

// unconnected explains a failure to connect or to shake hands.
func (p *progress) unconnected(err error) (Kind, string) {
	errno, hasErrno := errors.AsType[syscall.Errno](err)
	switch {
	case p.secured.Load() && isTimeout(err):
		return KindTimeout, "timed out in the TLS handshake"
	case p.secured.Load():
		return KindTLS, "no secure connection: " + tlsReason(err)
	case isTimeout(err):
		return KindTimeout, "timed out while connecting"
	case hasErrno:
		return KindConnect, errno.Error()
	}
	return KindConnect, "no connection"
}

func dnsReason(err *net.DNSError) string {
	if err.IsNotFound {
		return "no such host"
	}
	return "the name could not be resolved"
}

// tlsReason keeps what the library says about certificates and alerts, which
// helps, and drops what quotes the server's bytes, which does not.
func tlsReason(err error) string {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the server does not speak TLS"
	}
	return excerpt(err.Error())
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// tell explains a refusal to whoever asked for a host. An address that they
// wrote themselves is told; which one of the operator's network a name has is
// not theirs to know, nor of which kind it is.
func (r *refusal) describe(host string) (reason, hint string) {
	_, err := netip.ParseAddr(host)
	if err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return r.Error(), r.hint()
	}
	return "the name leads to an address that is not public", "whoever runs the server can look the address up and allow it with --allow-private"
}

// hint says how an operator opens the way to the refused address.
func (r *refusal) hint() string {
	if !r.addr.IsValid() {
		return ""
	}
	return fmt.Sprintf("allow it with --allow-private %s/%d", r.addr, r.addr.BitLen())
}
