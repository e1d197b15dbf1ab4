package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
	"github.com/pawlrun/pawl/internal/visible"
)

// codeHandshake is the code of a server that is there and with which no
// session could be begun.
const codeHandshake = "handshake"

// effectOf speaks the language of package outbound.
func effectOf(mutation bool) outbound.Effect {
	if mutation {
		return outbound.Mutation
	}
	return outbound.Read
}

// callFault is what became of a call for which the SDK returned an error. Its
// text decides nothing: what the transports noted does, and the code of an
// answer.
func (c *Connection) callFault(ctx context.Context, s *session, err error, notes *trip, mutation bool) *connector.Error {
	arrived, status, failure, retryAfter := notes.facts()
	answer, isAnswer := errors.AsType[*jsonrpc.Error](err)
	switch {
	case isAnswer && answer.Code == jsonrpc.CodeInvalidParams:
		return &connector.Error{
			Class: pawl.ClassLogic, Code: connector.CodeBadArguments, NotApplied: true,
			Msg: "the server does not accept the arguments: " + quote(c.redact.Text(answer.Message)),
		}
	case isAnswer && answer.Code == jsonrpc.CodeMethodNotFound:
		return &connector.Error{
			Class: pawl.ClassLogic, Code: "unknown_method", NotApplied: true,
			Msg: "the server does not know what it is asked for: " + quote(c.redact.Text(answer.Message)),
		}
	case failure != nil:
		return networkFault(failure, mutation)
	case status != 0 && (status < 200 || status > 299):
		return statusFault(status, mutation, retryAfter)
	case ctx.Err() != nil:
		return interrupted(ctx, mutation, arrived)
	case isAnswer && arrived && !errors.Is(err, sdk.ErrConnectionClosed):
		return &connector.Error{
			Class: classOf(mutation, pawl.ClassLogic), Code: "tool_error", NotApplied: !mutation,
			Msg: "the server answered with an error: " + quote(c.redact.Text(answer.Message)),
		}
	case s.carry.overflowed():
		return unreadable(mutation && arrived, "too_large", "the server sent a message that is too large", nil)
	}
	return &connector.Error{
		Class: classOf(mutation && arrived, pawl.ClassTransient), Code: "server_ended", NotApplied: !mutation || !arrived, NotSent: !arrived,
		Msg: "the server ended, or gave no answer that can be read", Err: c.clean(err),
	}
}

// classOf is the class of a failure, or indeterminate if it may have happened.
func classOf(unknown bool, class pawl.Class) pawl.Class {
	if unknown {
		return pawl.ClassIndeterminate
	}
	return class
}

func networkFault(failure *outbound.Error, mutation bool) *connector.Error {
	verdict := failure.Verdict(effectOf(mutation))
	return &connector.Error{
		Class: verdict.Class, Code: string(failure.Kind), NotApplied: verdict.Happened == outbound.NotHappened, NotSent: !failure.MaybeSent,
		Msg: failure.Error(), Hint: failure.Hint,
	}
}

func statusFault(status int, mutation bool, retryAfter time.Duration) *connector.Error {
	verdict := outbound.JudgeStatus(effectOf(mutation), status)
	return &connector.Error{
		Class: verdict.Class, Code: fmt.Sprintf("http_%d", status), NotApplied: verdict.Happened == outbound.NotHappened,
		Msg: strings.TrimSpace(fmt.Sprintf("the server answered %d %s", status, http.StatusText(status))), RetryAfter: retryAfter,
	}
}

// interrupted is a call whose context ended.
func interrupted(ctx context.Context, mutation, arrived bool) *connector.Error {
	cause := context.Cause(ctx)
	e := &connector.Error{
		Class: classOf(mutation && arrived, pawl.ClassTransient), NotApplied: !mutation || !arrived, NotSent: !arrived,
		Code: "interrupted", Msg: "the call was cancelled", Err: cause,
	}
	switch {
	case errors.Is(cause, errTimeout), errors.Is(cause, context.DeadlineExceeded):
		e.Code, e.Msg = "timeout", "the server did not answer in time"
		e.Hint = "If the tool needs longer, set timeout in the definition of the connection."
	case errors.Is(cause, errClosed):
		e.Code, e.Msg = "closed", "the connection was closed during the call"
	}
	return e
}

// toolFault is an answer that says that the tool did not work. Nobody can tell
// what a mutation did before it noticed.
func (c *Connection) toolFault(tool definition, answer *sdk.CallToolResult, mutation bool) *connector.Error {
	msg := "the tool " + pawl.Quote(tool.Name) + " answered with an error"
	if text := textOf(answer); text != "" {
		msg += ": " + quote(c.redact.Text(text))
	}
	if answer.NeedsInput() {
		msg = "the tool " + pawl.Quote(tool.Name) + " asks for more input, which Pawl does not give to servers"
	}
	return &connector.Error{Class: classOf(mutation, pawl.ClassLogic), Code: "tool_error", Msg: msg, NotApplied: !mutation}
}

// listFault is why a tool could not be looked at before it was called.
func (c *Connection) listFault(ctx context.Context, err error) *connector.Error {
	if ctx.Err() != nil {
		return interrupted(ctx, false, false)
	}
	return &connector.Error{
		Class: pawl.ClassTransient, Code: "server_ended", NotApplied: true, NotSent: true,
		Msg: "the server did not list its tools", Err: c.clean(err),
	}
}

// startFault is why a session could not be begun.
func (c *Connection) startFault(err error) *connector.Error {
	if own, ok := errors.AsType[*connector.Error](err); ok {
		return own
	}
	return &connector.Error{
		Class: pawl.ClassTransient, Code: "not_started", NotApplied: true, NotSent: true,
		Msg: "the MCP server cannot be started", Err: c.clean(err),
	}
}

// connectFault is why a server that is there gave no session. It is never the
// fault of a script.
func (c *Connection) connectFault(ctx context.Context, err error, carry carrier, notes *trip) *connector.Error {
	_, status, failure, retryAfter := notes.facts()
	var e *connector.Error
	switch {
	case failure != nil:
		e = networkFault(failure, false)
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests:
		e = statusFault(status, false, retryAfter)
	default:
		e = &connector.Error{Class: pawl.ClassTransient, Code: codeHandshake, Msg: "the MCP server gives no session", Err: c.clean(err)}
		if ctx.Err() != nil {
			e.Msg = "the MCP server does not answer"
		} else if why := carry.explain(); why != nil {
			e.Err = why
		}
	}
	if e.Class == pawl.ClassLogic {
		e.Class = pawl.ClassPrecondition
	}
	e.NotApplied, e.NotSent = true, true
	return e
}

// endFault is why a session ended.
func (c *Connection) endFault(s *session) *connector.Error {
	return &connector.Error{
		Class: pawl.ClassTransient, Code: "server_ended", NotApplied: true, NotSent: true,
		Msg: "the session with the MCP server ended", Err: s.carry.explain(),
	}
}

// mayBeVersion reports whether a session may begin in another version of the
// protocol.
func mayBeVersion(err error) bool {
	e, ok := errors.AsType[*connector.Error](err)
	return ok && e.Code == codeHandshake
}

// lastingClass reports whether a failure lasts until somebody does something
// about it.
func lastingClass(class pawl.Class) bool {
	return class == pawl.ClassAuth || class == pawl.ClassPermission || class == pawl.ClassPrecondition
}

// waitUntil is the failure for a call that has to wait for a session.
func waitUntil(failure *connector.Error, next time.Time) *connector.Error {
	if failure == nil {
		return &connector.Error{Class: pawl.ClassTransient, Code: "not_ready", NotApplied: true, NotSent: true, Msg: "there is no session with the MCP server yet"}
	}
	e := *failure
	e.RetryAfter = max(e.RetryAfter, time.Until(next), 0)
	return &e
}

// quote makes text of a server fit for a message.
func quote(text string) string { return visible.Excerpt(text, 500) }
