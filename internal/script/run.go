package script

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/budget"
)

// Host is what a script can reach. The operations and their arguments, with
// the type of the answer:
//
//	peek           {topic, limit?}                         events
//	getByIds       {topic, ids}                            events
//	tool           {connection, method, args?}             what the tool answers
//	publish        {topics, event}                         none
//	registerInput  {inputId, source, type, id, title}      none
//
// Arguments come from a script: they are JSON and nothing more is sure.
//
// Call is called by several goroutines at once, with one exception: publish
// and registerInput come one by one, in the order of the script, and no later
// call begins before they return. ctx ends when the phase does.
//
// An error of peek, getByIds or tool rejects the script's promise with the
// error's text, unless it is marked by Abort. An error marked by Abort, and
// any error of publish or registerInput, ends the phase with Aborted.
type Host interface {
	Call(ctx context.Context, op string, args json.RawMessage) (json.RawMessage, error)
}

// CallNumber is the number of a call in the order of the script, from 1 on, by
// the context that Host.Call is given; zero if nobody counts.
func CallNumber(ctx context.Context) int {
	number, _ := ctx.Value(callNumber{}).(int)
	return number
}

type callNumber struct{}

// Request is one phase to run.
type Request struct {
	Program *Program
	// Handler is the path of a function of the definition, such as
	// producers.pollMail.handler or consumers.addRow.prepare.
	Handler string
	// Args follow ctx. A last one that is nil is absent: undefined to the
	// handler, where null would be null.
	Args []json.RawMessage
	// Scope is mixed into the ids of inputs: the workflow that they are of.
	Scope string
	// Now is the only time that the script sees.
	Now time.Time
	// Seed decides what Math.random returns.
	Seed uint64
	// ScheduledFor is the instant that the run stands for, ctx.scheduledFor; zero
	// is null.
	ScheduledFor time.Time
	// EndsAtCall ends the script where it waits for an answer of the host, as if
	// the handler had returned nothing there: whoever answers needs no worker.
	EndsAtCall bool
}

// Result is what a phase left.
type Result struct {
	Value    json.RawMessage
	HasValue bool // false for undefined: the handler returned nothing
	Logs     []LogLine
	// LogsCut says that lines over Limits.Log are missing.
	LogsCut bool
	Calls   int           // host calls made
	CPU     time.Duration // of the script; zero when its worker was killed
	Wall    time.Duration
}

// LogLine is one line that the script logged.
type LogLine struct {
	At    time.Time
	Level string // debug, info, warn or error
	Text  string
}

// Run runs one phase in a fresh environment and returns what its handler
// returned. It returns when the handler has ended and every host call that it
// made has returned, in this order.
//
// A failed phase is a *Thrown, a *LimitError, an *Aborted, ErrNeverSettles or
// ErrWorkerCrashed; when ctx ends, it is its cause. The Result then still has
// the logs.
func (p *Pool) Run(ctx context.Context, req Request, host Host, limits Limits) (Result, error) {
	if req.Handler == "" {
		return Result{}, &pawl.Error{Code: pawl.CodeInvalid, Op: "run a script", Msg: "no handler is named"}
	}
	return p.run(ctx, req, host, limits)
}

func (p *Pool) run(ctx context.Context, req Request, host Host, limits Limits) (Result, error) {
	x, payload, err := p.prepare(req, host, limits)
	if err != nil {
		return Result{}, err
	}
	ctx, leave, err := p.enter(ctx)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	w, err := p.acquire(ctx, req.Program.Version)
	if err != nil {
		return Result{}, fmt.Errorf("wait for a script worker: %w", err)
	}
	x.w = w
	err = x.converse(ctx, payload)
	if x.reusable {
		p.release(w)
	} else {
		p.discard(w)
	}
	x.calls.Wait()
	x.cancelHost()
	x.result.Wall = time.Since(x.start)
	return x.result, x.verdict(err)
}

func instantText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return pawl.FormatTime(at)
}

// prepare checks a request and encodes it.
func (p *Pool) prepare(req Request, host Host, limits Limits) (*exchange, []byte, error) {
	limits, err := limits.complete(p.cfg.Heap)
	if err != nil {
		return nil, nil, err
	}
	args, err := joinArgs(req.Args)
	if err != nil {
		return nil, nil, fmt.Errorf("run %s: %w", req.Handler, err)
	}
	if len(args) > mostPayload {
		return nil, nil, &LimitError{Limit: LimitPayload, Allowed: sizeText(mostPayload)}
	}
	payload := runHeader{
		Program: req.Program.Version, Handler: req.Handler, Scope: req.Scope, Now: req.Now.UnixMilli(), Seed: req.Seed, Limits: limits,
		ScheduledFor: instantText(req.ScheduledFor), EndsAtCall: req.EndsAtCall,
	}.before(args)
	return &exchange{
		program: req.Program, host: host, limits: limits, inFlight: map[uint32]struct{}{},
		answers:   []*budget.Pool{budget.New(limits.Bytes), p.answers},
		arguments: []*budget.Pool{budget.New(limits.Bytes / 2), p.arguments},
	}, payload, nil
}
