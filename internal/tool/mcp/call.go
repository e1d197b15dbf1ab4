package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/budget"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

const (
	largestResult = 4 << 20 // bytes, of JSON
	pingLimit     = 5 * time.Second
)

// The causes of the end of a call.
var (
	errTimeout = errors.New("the timeout of the connection is over")
	errClosed  = errors.New("the connection is being closed")
)

// Call calls a tool. Its errors are *connector.Error.
func (c *Connection) Call(ctx context.Context, call connector.Call) (json.RawMessage, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	if err := budget.Reserve(ctx, 2*largestMessage); err != nil {
		return nil, &connector.Error{Class: pawl.ClassTransient, Code: "busy", NotApplied: true, Msg: "too much data is being read by others", Err: err}
	}
	result, again, fault := c.try(ctx, call)
	if fault != nil && again {
		result, _, fault = c.try(ctx, call)
	}
	if fault != nil {
		return nil, fault
	}
	return result, nil
}

// limit makes a context end with the timeout and with the connection.
func (c *Connection) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, c.cfg.timeout, errTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(errClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		cancelTimeout()
	}
}

// try makes a call once. again says that the server certainly did not act on
// it and that a new session may help.
func (c *Connection) try(ctx context.Context, call connector.Call) (result json.RawMessage, again bool, fault *connector.Error) {
	s, fault := c.acquire(ctx)
	if fault != nil {
		return nil, false, fault
	}
	if err := c.freshen(ctx, s); err != nil {
		return nil, c.sessionLost(ctx, s, &trip{}), c.listFault(ctx, err)
	}
	tool, fault := c.admit(call.Method)
	if fault != nil {
		return nil, false, fault
	}
	mutation := c.cfg.mutation(tool)
	if mutation && call.Key == "" {
		// It was looked up as a read, and pinned as a mutation since.
		return nil, false, c.blocked(tool, "tool_changed", "the tool "+pawl.Quote(tool.Name)+" changes things, and is called as one that only reads")
	}
	arguments, fault := checkArguments(call.Args, tool)
	if fault != nil {
		return nil, false, fault
	}
	return c.send(ctx, s, tool, mutation, &sdk.CallToolParams{Name: tool.Name, Arguments: arguments, Meta: metaOf(call)})
}

// metaOf carries the idempotency key, for servers that care.
func metaOf(call connector.Call) sdk.Meta {
	if call.Key == "" {
		return nil
	}
	return sdk.Meta{"pawl.run/idempotencyKey": call.Key}
}

func (c *Connection) send(ctx context.Context, s *session, tool definition, mutation bool, params *sdk.CallToolParams) (json.RawMessage, bool, *connector.Error) {
	notes := &trip{}
	answer, err := s.client.CallTool(notes.attach(ctx), params)
	if err != nil {
		again := c.sessionLost(ctx, s, notes)
		return nil, again, c.callFault(ctx, s, err, notes, mutation)
	}
	if answer.IsError || answer.NeedsInput() {
		return nil, false, c.toolFault(tool, answer, mutation)
	}
	result, err := json.Marshal(resultOf(answer))
	if err != nil {
		return nil, false, unreadable(mutation, "unreadable", "the answer of the server cannot be read", err)
	}
	if len(result) > largestResult {
		return nil, false, unreadable(mutation, "too_large", "the result of the tool has more than 4 MiB", nil)
	}
	return c.redact.JSON(result), false, nil
}

// sessionLost looks after the session of a call that failed: one that is of no
// use any more is dropped. It reports whether the call is to be made again:
// whether the session was lost before the server could act on the call.
func (c *Connection) sessionLost(ctx context.Context, s *session, notes *trip) bool {
	arrived, status, failure, _ := notes.facts()
	switch {
	case ctx.Err() != nil:
		if errors.Is(context.Cause(ctx), errTimeout) {
			c.spawn(func() { c.ping(s) }) //nolint:contextcheck // the call is over; this ends with the connection
		}
		return false
	case status == http.StatusBadRequest || status == http.StatusNotFound:
		// What a server answers that no longer knows the session.
		s.drop()
		return s.client.ID() != ""
	case failure != nil && !arrived:
		return false // the network is down; the session may be as good as ever
	case arrived:
		return false
	}
	s.drop()
	return true
}

// ping drops a session that does not answer any more. An error of the server
// is an answer, too.
func (c *Connection) ping(s *session) {
	ctx, cancel := context.WithTimeout(c.life, min(pingLimit, c.cfg.timeout))
	defer cancel()
	err := s.client.Ping(ctx, nil)
	if err != nil && ctx.Err() != nil && c.life.Err() == nil {
		c.log.Warn("the MCP server no longer answers; a new session is opened")
		s.drop()
	}
}

// content is the result of a tool that has no structured one.
type content struct {
	Content []sdk.Content `json:"content"`
	Text    string        `json:"text"` // that of all items
}

// resultOf is what scripts get.
func resultOf(answer *sdk.CallToolResult) any {
	if answer.StructuredContent != nil {
		return answer.StructuredContent
	}
	items := answer.Content
	if items == nil {
		items = []sdk.Content{}
	}
	return content{Content: items, Text: textOf(answer)}
}

// textOf joins the texts of an answer.
func textOf(answer *sdk.CallToolResult) string {
	var texts []string
	for _, item := range answer.Content {
		if text, ok := item.(*sdk.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// unreadable is an answer that came and is of no use. What it stands for may
// have happened.
func unreadable(mutation bool, code, msg string, cause error) *connector.Error {
	class := pawl.ClassLogic // asking again would not help
	if mutation {
		class = pawl.ClassIndeterminate
	}
	return &connector.Error{Class: class, Code: code, Msg: msg, NotApplied: !mutation, Err: cause}
}
