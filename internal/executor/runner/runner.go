// Package runner is the seam between Pawl and what runs graphs. A runner is a
// package that builds an Executor out of a definition; package executor lists
// the runners, loads the definitions and finds executors by graph id. Nothing
// here knows where a graph runs.
//
// It also has what the runners share: how a run is described to a graph and
// what a graph answers (Body, ReadAnswer), how a run is stopped (Going,
// Within, Ended), and what is remembered about a call that is made again
// (Memory).
package runner

import (
	"context"
	"encoding/json"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
)

// Run is one run of a graph that an executor is asked for.
type Run struct {
	RunID        string // stays the same over all attempts of a slot
	Attempt      int    // from 1; stays the same when a crashed run is taken over
	ScheduleID   string // empty if no schedule asked for the run
	Schedule     string // its name
	Timezone     string // of the schedule
	ScheduledFor time.Time
	Idempotent   bool   // whoever asks says that it may be started twice
	Retries      bool   // whoever asks says that a failure that is known may be followed by another start
	Asked        bool   // a person asked for this attempt
	GraphID      string // provider:name
	Name         string // the second part of the graph id
	Input        json.RawMessage
	Key          string          // of the run: {scheduleId}:{scheduledFor}; see Memory.Key for that of a call
	Timeout      time.Duration   // 0: that of the definition
	Remote       json.RawMessage // what the last Remote event or Result told; nil at first
	Caller       Caller          // of this attempt; in no event and in no result
	Resume       json.RawMessage // the answer of a person to an interrupt; nil: not a resumption
}

// Usage is what one unit of a run cost, such as one call of a model.
type Usage struct {
	Unit, Model  string // either may be empty
	InputTokens  int64
	CachedTokens int64 // a part of the input
	OutputTokens int64
	Cost         pawl.USD
	CostTold     bool // the executor says what it cost; else its tokens tell
}

// The kinds of events.
const (
	KindProgress = "progress"
	KindUsage    = "usage"
	KindRemote   = "remote"
	KindOutput   = "output"
)

// Event is something that happens while a graph runs. The same usage may be
// told again when a run is taken over; its unit tells.
type Event struct {
	Kind   string
	Text   string          // of progress
	Usage  *Usage          // of usage
	Remote json.RawMessage // of remote: to be given back in Run.Remote
	Output json.RawMessage // of output: what there is so far, for whoever looks
}

// Result is how a run ended.
type Result struct {
	OK      bool
	Output  json.RawMessage
	TraceID string

	// Code and Message say why it is not OK. The code is one of the closed set
	// of schedule runs.
	Code, Message string

	// Interrupt is what the graph asks a person. The run has neither worked nor
	// failed: it goes on with Run.Resume.
	Interrupt json.RawMessage

	// Unknown says that nobody knows whether the graph ran. It must not be
	// started again without a person.
	Unknown bool

	Retry      bool          // trying again may help, and is safe
	RetryAfter time.Duration // how long to wait before that, at least

	// Remote is what is remembered from now on, stored in the transaction of the
	// result; nil leaves it as the last Remote event told it.
	Remote json.RawMessage
}

// Executor runs the graphs of one provider. It is safe for concurrent use.
type Executor interface {
	// Run starts the graph, or finds the run that it started before, by Remote
	// or by key, follows it to its end and drains its events into emit before
	// it returns. emit blocks; a Remote event is stored before the call goes
	// out that it protects, and an error of emit ends Run at once.
	//
	// An error is one of the infrastructure, or the end of ctx: the outcome of
	// the run is not known here, and asking again with the latest Remote tells
	// it.
	Run(ctx context.Context, r Run, emit func(Event) error) (Result, error)

	// Cancel asks for the end of a run that Run follows, here or elsewhere.
	// The result of Run then has the code aborted. What is over, or was never
	// begun, is no error.
	Cancel(ctx context.Context, r Run) error
}

// Provider is an Executor with the list of its graphs.
type Provider interface {
	Executor
	// Graphs are the graphs that there are by name; nil means that only the
	// other side knows.
	Graphs() map[string]Graph
}

// Graph describes a graph to people.
type Graph struct {
	Timeout time.Duration
}

// The codes that an executor gives to failures; a part of the closed set.
const (
	CodeRateLimit      = string(contract.RateLimit)
	CodeTimeout        = string(contract.Timeout)
	CodeAborted        = string(contract.Aborted)
	CodeInvalidRequest = string(contract.InvalidRequest)
	CodeNotFound       = string(contract.NotFound)
	CodeInternal       = string(contract.Internal)
)

// Failure is a result of this code. Trying again may help against the codes
// rate_limit, timeout and internal.
func Failure(code, message string) Result {
	retry := code == CodeRateLimit || code == CodeTimeout || code == CodeInternal
	return Result{Code: code, Message: message, Retry: retry}
}

// Final is a result of this code that trying again would not change.
func Final(code, message string) Result { return Result{Code: code, Message: message} }

// Unknown is the result of a run of which nobody knows whether it took place.
func Unknown(message string) Result {
	return Result{Code: CodeInternal, Message: message, Unknown: true}
}

// Progress is the event that tells a text.
func Progress(text string) Event { return Event{Kind: KindProgress, Text: Excerpt(text)} }
