// Package peer puts an engine of durable workflows into a process of its own.
// The measuring program sends one Request to its standard input as a line of
// JSON and reads one Answer from its standard output. Its standard input stays
// open as long as somebody waits: when it ends, so does the process.
package peer

import (
	"context"
	"time"
)

// Steps is how many durable steps a workflow has. They do nothing.
const Steps = 3

// Request is what to measure.
type Request struct {
	Database  string        // URL of an empty PostgreSQL database
	Workflows int           // how many
	WarmUp    int           // how many before them, which are not measured
	OneByOne  bool          // the next one starts when the one before is done
	Limit     time.Duration // for everything
}

// Answer is what came of it. Seconds mean nothing with an error.
type Answer struct {
	Version string // of the engine
	AtOnce  int    // how many workflows were under way at once
	Seconds float64
	Error   string
}

// Engine runs workflows of three steps.
type Engine interface {
	// Run starts a workflow and returns when its caller knows that it is done.
	// Its methods may be called by many at once.
	Run(ctx context.Context) error
	// Done counts the workflows of which the database says that they are done.
	Done(ctx context.Context) (int, error)
	// Executed counts the steps that were executed.
	Executed() int
	Close()
}

// Program is an engine, ready to be opened.
type Program struct {
	Module string // whose version it tells
	AtOnce int    // how many workflows at once suit it, when they are many
	Open   func(ctx context.Context, database string) (Engine, error)
}
