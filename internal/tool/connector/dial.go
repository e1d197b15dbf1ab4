package connector

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
)

// Dial connects to an address that may be called, for connectors that speak
// something else than HTTP.
func (e Env) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if e.HTTP == nil {
		return nil, errors.New("there is no network here")
	}
	return e.HTTP.Dial(ctx, network, address)
}

// DialFault is why a server could not be reached. Nothing was sent to it.
func DialFault(server string, err error) *Error {
	fault := func(class pawl.Class, code, hint, reason string) *Error {
		return &Error{Class: class, Code: code, Hint: hint, NotApplied: true, NotSent: true, Msg: "connect to " + server + ": " + reason, Err: err}
	}
	dns, isDNS := errors.AsType[*net.DNSError](err)
	number, hasNumber := errors.AsType[syscall.Errno](err)
	timed, isNet := errors.AsType[net.Error](err)
	switch {
	case isDNS && dns.IsNotFound:
		return fault(pawl.ClassTransient, "dns", "", "no such host")
	case isDNS:
		return fault(pawl.ClassTransient, "dns", "", "the name could not be resolved")
	case isNet && timed.Timeout() || errors.Is(err, context.DeadlineExceeded):
		return fault(pawl.ClassTransient, "timeout", "", "no connection in time")
	case errors.Is(err, context.Canceled):
		return fault(pawl.ClassTransient, "interrupted", "", "the call was cancelled before it was connected")
	case hasNumber:
		return fault(pawl.ClassTransient, "unreachable", "", number.Error())
	}
	if blocked, ok := errors.AsType[*outbound.Error](err); ok && blocked.Kind == outbound.KindBlocked {
		return fault(pawl.ClassPermission, "blocked", blocked.Hint, blocked.Reason)
	}
	return fault(pawl.ClassTransient, "unreachable", "", "no connection")
}
