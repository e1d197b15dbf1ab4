// Package tool holds what scripts may touch: ctx.tools.NAME.METHOD(arguments)
// is the call of a method of a connection of this package's Set.
//
// A connection is configured by the operator in a YAML definition; see Load.
// Each of its methods is a read or a mutation, and has a policy: allow, ask or
// deny. What a phase may call, what is asked of a person and what is recorded
// about a call is decided by the caller; a connection only acts, and tells
// truthfully what happened (context 3.3, 3.5, 3.6, 3.8).
//
// A connector is a folder of this one: a package that makes connections of one
// type. It stands on package connector, which has the words that connectors
// and callers share; the callers know these words by the names here. To add a
// connector, write its package and add a line to builtin.
package tool

import "github.com/pawlrun/pawl/internal/tool/connector"

// The words of package connector, which documents them.
type (
	Method     = connector.Method
	Call       = connector.Call
	Connection = connector.Connection
	Answer     = connector.Answer
	State      = connector.State
	Error      = connector.Error
	Env        = connector.Env
)

// The answers of Reconcile.
const (
	Applied    = connector.Applied
	NotApplied = connector.NotApplied
	Absent     = connector.Absent
	Later      = connector.Later
)
