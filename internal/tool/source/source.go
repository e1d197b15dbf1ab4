// Package sourcetool is the connector of sources: scripts read what sources fetched.
// It only reads, and only rows that belong to a source.
package sourcetool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/budget"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

const (
	largestArguments = 8 << 10 // bytes
	largestAnswer    = 4 << 20 // bytes, of JSON
	mostRows         = 1000
	usualRows        = 100
)

// Sources is the connection to the tables of some or all sources.
type Sources struct {
	names []string // empty: all
	read  connector.ReadRows
}

// New makes the connection that a definition describes:
//
//	sources: [prices-aapl]     # absent: every source
func New(s *connector.Settings) (connector.Connection, bool) {
	var written struct {
		Sources []string `json:"sources" definition:"nonempty"`
	}
	if !s.Read(&written) {
		return nil, false
	}
	if s.Rows == nil && !s.CheckOnly {
		s.Add("", "sources cannot be read here: there are none")
		return nil, false
	}
	return &Sources{names: written.Sources, read: s.Rows}, true
}

// Methods lists rows.
func (c *Sources) Methods() []connector.Method { return []connector.Method{{Name: "rows"}} }

type arguments struct {
	Source *string `json:"source"`
	Limit  *int    `json:"limit"`
	Cursor *string `json:"cursor"`
}

// Call reads rows of a source, the newest first:
//
//	rows({source, limit, cursor}) -> {rows, nextCursor}
func (c *Sources) Call(ctx context.Context, call connector.Call) (json.RawMessage, error) {
	if call.Method != "rows" {
		return nil, &connector.Error{Class: pawl.ClassLogic, Code: "unknown_method", Msg: "a source connection has no method " + pawl.Quote(call.Method), Hint: "The method is rows."}
	}
	var a arguments
	if err := connector.DecodeArguments(call.Args, largestArguments, &a); err != nil {
		return nil, err
	}
	name, err := c.source(a.Source)
	if err != nil {
		return nil, err
	}
	limit, cursor := usualRows, ""
	if a.Limit != nil {
		limit = *a.Limit
	}
	if limit < 1 || limit > mostRows {
		return nil, connector.BadArguments("", "limit must be 1 to %d", mostRows)
	}
	if a.Cursor != nil {
		cursor = *a.Cursor
	}
	if err := budget.Reserve(ctx, 4*largestAnswer); err != nil {
		return nil, fault(name, err)
	}
	list, next, err := c.read(ctx, name, cursor, limit)
	if err != nil {
		return nil, fault(name, err)
	}
	if list == nil {
		list = []map[string]any{}
	}
	raw, err := json.Marshal(map[string]any{"rows": list, "nextCursor": next})
	if err == nil && len(raw) > largestAnswer {
		return nil, &connector.Error{
			Class: pawl.ClassLogic, Code: "too_large", Msg: fmt.Sprintf("%d rows of the source %s have more than the %d MiB that one call answers", len(list), pawl.Quote(name), largestAnswer>>20),
			Hint: "Ask for fewer with limit, and go on with nextCursor.",
		}
	}
	return raw, err
}

func (c *Sources) source(given *string) (string, error) {
	switch {
	case given == nil && len(c.names) == 1:
		return c.names[0], nil
	case given == nil || *given == "":
		return "", connector.BadArguments("Name a source, such as {source: \"prices\"}.", "source is missing")
	case len(c.names) > 0 && !slices.Contains(c.names, *given):
		return "", &connector.Error{
			Class: pawl.ClassPermission, Code: "not_allowed", Msg: "this connection may not read the source " + pawl.Quote(*given),
			Hint: "It may read " + strings.Join(c.names, ", ") + ".",
		}
	}
	return *given, nil
}

func fault(name string, err error) *connector.Error {
	out := &connector.Error{Class: pawl.ClassTransient, Code: "unavailable", Msg: "the rows of the source " + pawl.Quote(name) + " cannot be read", Err: err}
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok {
		return out
	}
	out.Code, out.Hint = string(e.Code), e.Hint
	switch e.Code {
	case pawl.CodeNotFound:
		out.Class, out.Msg = pawl.ClassPrecondition, "there is no source "+pawl.Quote(name)
	case pawl.CodeInvalid:
		out.Class, out.Msg = pawl.ClassLogic, out.Msg+": "+e.Msg
	default: // the store is away
	}
	return out
}

// Reconcile has nothing to tell: a read has no outcome.
func (c *Sources) Reconcile(context.Context, connector.Call) (connector.Answer, error) {
	return connector.Answer{}, &connector.Error{Class: pawl.ClassLogic, Code: "unknown_method", Msg: "reads have no outcome to ask for"}
}
