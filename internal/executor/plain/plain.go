// Package plain runs what schedules run without a graph: a command of this
// machine, a call of a URL, a job of the queue. The input of a run is a
// client.PlainRun.
//
// What runs is started once for an attempt, and an attempt is what whoever asks
// says it is. A failure that is known (an exit code, a timeout of a command, an
// answer that is not 2xx, a request that was never sent) says that another attempt
// may help. If it is not known whether it ran, because this process died while it
// did or because the connection ended after the request was sent, that is said,
// and nothing is started again unless it may be started twice (Run.Idempotent).
//
// Secrets are references, ${NAME}, that are resolved for one start from the
// environment of this process. What comes back has their names in their places.
package plain

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/redact"
)

// kept is how much of each output is kept, in bytes.
const kept = 64 << 10

// Env is what the process gives to plain runs.
type Env struct {
	Getenv func(string) string
	HTTP   *outbound.Client
	Jobs   Jobs // nil: there is no queue
	Log    *slog.Logger
}

// Jobs enqueues the jobs of runs and tells what became of them.
type Jobs interface {
	// Enqueue adds the job of an attempt, once, and returns its id.
	Enqueue(ctx context.Context, of JobOf, job client.PlainJob) (id int64, err error)
	// Outcome tells how a job ended; not done while it waits or runs.
	Outcome(ctx context.Context, id int64) (out JobOutcome, done bool, err error)
	// Cancel takes back a job that has not begun.
	Cancel(ctx context.Context, id int64) error
}

// JobOf is what a job is for.
type JobOf struct {
	RunID      string
	Attempt    int
	ScheduleID string
}

// JobOutcome is how a job ended.
type JobOutcome struct {
	OK      bool
	Message string // why not
	Result  json.RawMessage
	Lost    bool // it left no record: nobody knows whether it ran
}

// Provider runs plain runs. It is safe for concurrent use.
type Provider struct {
	env   Env
	grace time.Duration // from telling a command to end to killing it
	going runner.Going
}

// New makes the provider, which needs no definition.
func New(env Env) *Provider {
	if env.Log == nil {
		env.Log = slog.New(slog.DiscardHandler)
	}
	return &Provider{env: env, grace: killAfter}
}

// Graphs are those of work.Provider.
func (p *Provider) Graphs() map[string]runner.Graph {
	return map[string]runner.Graph{"command": {Timeout: work.Longest}, "url": {Timeout: work.URLTimeout}, "job": {Timeout: work.Longest}}
}

// Run does what the input says.
func (p *Provider) Run(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
	what, err := work.Read(r.Input)
	if err != nil {
		return runner.Final(runner.CodeInvalidRequest, "what is to run cannot be read"), nil //nolint:nilerr // it is the outcome
	}
	memory, err := runner.Remember(r)
	if err != nil {
		return runner.Result{}, err
	}
	if what.Job != nil {
		return p.job(ctx, what, r, emit)
	}
	if memory.State == runner.StateGoing && memory.Attempt == r.Attempt && !r.Idempotent {
		return runner.Unknown("it was started, and its end was not seen"), nil
	}
	return p.going.Call(ctx, r, memory, work.Timeout(what), emit, func(ctx context.Context, r runner.Run, _ string) (runner.Result, bool, error) {
		result, err := p.start(ctx, what, r, emit)
		return result, err == nil && !result.Unknown, err
	})
}

func (p *Provider) start(ctx context.Context, what client.PlainRun, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
	if r.Name == "command" {
		return p.command(ctx, what, r, emit)
	}
	return p.call(ctx, what, r)
}

// Cancel ends a run, if it goes on here.
func (p *Provider) Cancel(_ context.Context, r runner.Run) error {
	p.going.Stop(r.RunID)
	return nil
}

// secrets are those of one start.
type secrets struct {
	getenv func(string) string
	found  []redact.Secret
	faults []error
}

// resolve is a text with what its references stand for.
func (s *secrets) resolve(text string) string {
	value, err := definition.ResolveVariables(text, func(name string) string {
		value := s.getenv(name)
		if value != "" {
			s.found = append(s.found, redact.Secret{Name: name, Value: value})
		}
		return value
	})
	if err != nil {
		s.faults = append(s.faults, err)
	}
	return value
}

// longest is how many bytes a secret may take, in the longest of its forms.
func (s *secrets) longest() (most int) {
	for _, secret := range s.found {
		most = max(most, 6*len(secret.Value)) // as JSON writes what is not printable
	}
	return min(most, margin)
}

// missing is the failure of a start that lacks a variable.
func (s *secrets) missing() (runner.Result, bool) {
	if len(s.faults) == 0 {
		return runner.Result{}, false
	}
	return again(runner.CodeInvalidRequest, errors.Join(s.faults...).Error()+"; set it where the server runs"), true
}

// again is a failure that is known, so that another attempt may follow.
func again(code, message string) runner.Result {
	return runner.Result{Code: code, Message: message, Retry: true}
}

// withOutput adds what was left behind to a result.
func withOutput(r runner.Result, out client.PlainOutput) runner.Result {
	r.Output = encode(out)
	return r
}

func encode(out client.PlainOutput) json.RawMessage {
	raw, _ := json.Marshal(out) // of types that can be JSON
	return raw
}

// showEvery is how often what a command has written is shown while it runs, if
// there is something new; what is long is shown less often.
const (
	showEvery     = time.Second
	showLongEvery = 5 * time.Second
	showLong      = 8 << 10 // bytes
)
