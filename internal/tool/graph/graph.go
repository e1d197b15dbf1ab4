// Package graphtool is the connector of graphs: a script runs a graph under a
// grant, as a schedule would. The execution service runs it once for the key of
// the call, and can be asked later what became of it.
package graphtool

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

const largestArguments = 1 << 20 // bytes

// Graph is the connection to one graph.
type Graph struct {
	graph, grant string
	run          connector.RunGraph
}

// New makes the connection that a definition describes:
//
//	graph: langgraph:poet
//	grant: 0192...
func New(s *connector.Settings) (connector.Connection, bool) {
	var written struct {
		Graph string `json:"graph" definition:"required"`
		Grant string `json:"grant" definition:"required"`
	}
	if !s.Read(&written) {
		return nil, false
	}
	if s.Graph == nil && !s.CheckOnly {
		s.Add("/graph", "graphs cannot be run here")
		return nil, false
	}
	return &Graph{graph: written.Graph, grant: written.Grant, run: s.Graph}, true
}

// Methods lists run.
func (g *Graph) Methods() []connector.Method {
	return []connector.Method{{Name: "run", Mutation: true, Reconciles: true}}
}

// Address is the graph and the grant that it runs under.
func (g *Graph) Address(connector.Call) string {
	return "run the graph " + g.graph + " under the grant " + g.grant
}

type arguments struct {
	Input json.RawMessage `json:"input"`
}

// Call runs the graph and waits for its end:
//
//	run({input}) -> {runId, output}
func (g *Graph) Call(ctx context.Context, c connector.Call) (json.RawMessage, error) {
	if c.Method != "run" {
		return nil, &connector.Error{Class: pawl.ClassLogic, Code: "unknown_method", NotApplied: true, Msg: "a graph connection has no method " + pawl.Quote(c.Method), Hint: "The method is run."}
	}
	var a arguments
	if err := connector.DecodeArguments(c.Args, largestArguments, &a); err != nil {
		return nil, err
	}
	if len(a.Input) == 0 {
		a.Input = json.RawMessage("{}")
	}
	result, err := g.run(ctx, connector.GraphCall{GraphID: g.graph, GrantID: g.grant, Key: c.Key, Input: a.Input})
	return result, fault(err)
}

// Reconcile asks what became of an earlier call.
func (g *Graph) Reconcile(ctx context.Context, c connector.Call) (connector.Answer, error) {
	result, err := g.run(ctx, connector.GraphCall{GraphID: g.graph, GrantID: g.grant, Key: c.Key, OnlyLook: true})
	switch {
	case err == nil:
		return connector.Answer{State: connector.Applied, Result: result}, nil
	case errors.Is(err, pawl.ErrNotFound): // whoever makes the call may be about to claim its key
		return connector.Answer{State: connector.Absent}, nil
	}
	if e, ok := errors.AsType[*connector.Error](err); ok && e.NotApplied {
		return connector.Answer{State: connector.NotApplied}, nil
	}
	return connector.Answer{}, fault(err)
}

// fault is the error of a run. What the service does not say for certain is not
// known.
func fault(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*connector.Error](err); ok {
		return e
	}
	out := &connector.Error{Class: pawl.ClassIndeterminate, Code: "internal", Msg: "the outcome of the graph is unknown", Err: err}
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok {
		return out
	}
	out.Code, out.Hint = string(e.Code), e.Hint
	if e.Reason != "" {
		out.Code = e.Reason
	}
	switch e.Code {
	case pawl.CodeForbidden:
		out.Class, out.Msg, out.NotApplied = pawl.ClassPermission, e.Msg, true
	case pawl.CodeNotFound:
		out.Class, out.Msg, out.NotApplied = pawl.ClassPrecondition, e.Msg, true
	case pawl.CodeInvalid, pawl.CodeTooLarge:
		out.Class, out.Msg, out.NotApplied = pawl.ClassLogic, e.Msg, true
	default: // it may have begun
	}
	return out
}
