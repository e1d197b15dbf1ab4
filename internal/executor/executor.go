// Package executor holds what runs graphs: a graph id, provider:name, names an
// executor of this package's Set and a graph of it.
//
// An executor is configured by the operator in a YAML definition of the
// connection folder; see Load. It runs a graph and tells truthfully what
// happened; who may run what, who pays, and what is tried again is decided by
// the caller (C-01, context 3.17).
//
// A runner is a folder of this one: a package that makes executors of one
// type. It stands on package runner, which has the words that runners and
// callers share; the callers know these words by the names here. To add a
// runner, write its package and add a line to builtin.
package executor

import (
	"context"
	"log/slog"

	execprog "github.com/pawlrun/pawl/internal/executor/exec"
	httpexec "github.com/pawlrun/pawl/internal/executor/http"
	"github.com/pawlrun/pawl/internal/executor/langgraph"
	"github.com/pawlrun/pawl/internal/executor/plain"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// The words of package runner, which documents them.
type (
	Run      = runner.Run
	Usage    = runner.Usage
	Event    = runner.Event
	Result   = runner.Result
	Executor = runner.Executor
)

// The kinds of events.
const (
	KindProgress = runner.KindProgress
	KindUsage    = runner.KindUsage
	KindRemote   = runner.KindRemote
)

// ErrCancelled is the cause to end the context of a run with that somebody
// cancelled; its result has the code aborted then.
var ErrCancelled = runner.ErrCancelled

// Env is what the process gives to its executors.
type Env struct {
	// Getenv is the environment that secrets come from.
	Getenv func(string) string
	// HTTP is the one client for calls to the outside.
	HTTP *outbound.Client
	// Workflow runs a workflow of this process as a graph of the provider
	// workflow, which is there without a definition. Nil: it is not there.
	Workflow func(ctx context.Context, name string, r Run, emit func(Event) error) (Result, error)
	// Jobs are what schedules enqueue. Nil: they cannot.
	Jobs plain.Jobs
	// CheckOnly is a folder that is only looked at: nothing is called, and
	// programs need not be installed.
	CheckOnly bool
	// Log is for what callers do not get to see. Nil means that nobody looks.
	Log *slog.Logger
}

// constructor makes a provider out of its definition. If it is not ok, it has
// noted why in the settings.
type constructor func(*connector.Settings) (p runner.Provider, ok bool)

// builtin are the runners by the type that definitions name.
func builtin() map[string]constructor {
	return map[string]constructor{
		"exec":      execprog.New,
		"http":      httpexec.New,
		"langgraph": langgraph.New,
	}
}

// workflowProvider is the provider that needs no definition.
const workflowProvider = "workflow"
