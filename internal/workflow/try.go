package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// Try is a script to be tried out: its handlers run once, reads are real,
// nothing is stored and nothing outside is changed.
type Try struct {
	Scripts  Scripts
	Tools    *tool.Set
	Limits   script.Limits
	Filename string
	Script   string
	Events   []eventstore.NewEvent // to begin with
	// Result is what next is told that the call answered; nil is null.
	Result json.RawMessage
}

// Tried is what one handler did.
type Tried struct {
	Handler  string
	Type     pawl.HandlerType
	Prepared *Prepared
	Call     *TriedCall // what mutate would have called
	Events   []eventstore.NewEvent
	Inputs   []eventstore.Input
	State    json.RawMessage // nil if it returned none
	Logs     []script.LogLine
	Failure  string // why it failed, with the place; empty if it did not
	Class    pawl.Class
}

// TriedCall is a call that was not made.
type TriedCall struct {
	Tool, Method string
	Arguments    json.RawMessage
	Policy       tool.Policy
}

// maxTried bounds the runs of one consumer in a trial.
const maxTried = 20

// Run tries the script: every producer once, then consumers as long as they
// take events.
func (t Try) Run(ctx context.Context) (Config, []Tried, error) {
	config, program, err := Inspect(ctx, t.Scripts, t.Filename, t.Script)
	if err != nil {
		return Config{}, nil, err
	}
	r := &trial{Try: t, program: program, config: config, inputs: map[string]bool{}, states: map[string]json.RawMessage{}}
	for _, e := range t.Events {
		if !slices.Contains(config.Topics, e.Topic) {
			return config, nil, &pawl.Error{Code: pawl.CodeInvalid, Op: "try workflow", Msg: fmt.Sprintf("there is no topic %q; there are %s", e.Topic, quotedList(config.Topics))}
		}
		r.add(e)
	}
	for _, p := range config.Producers {
		r.produce(ctx, p)
	}
	for _, c := range config.Consumers {
		for range maxTried {
			if took := r.consume(ctx, c); !took {
				break
			}
		}
	}
	return config, r.done, ctx.Err()
}

// trial is the world of a script that is tried: topics in memory, real reads,
// and calls that are noted instead of made.
type trial struct {
	Try
	program *script.Program
	config  Config
	events  []eventstore.Event
	inputs  map[string]bool
	states  map[string]json.RawMessage
	done    []Tried
	would   *TriedCall

	// A run that is replayed: whose it is, what it read and what it called;
	// nil for a script that is tried.
	scope     string
	recording *recording
	rights    rights        // what it may call; nil is everything
	call      *recordedCall // nil if it called nothing
}

func (r *trial) add(e eventstore.NewEvent) {
	if i := slices.IndexFunc(r.events, func(have eventstore.Event) bool { return have.Topic == e.Topic && have.MessageID == e.MessageID }); i >= 0 {
		return
	}
	r.events = append(r.events, eventstore.Event{Topic: e.Topic, MessageID: e.MessageID, Payload: e.Payload, Status: eventstore.EventPending, CreatedAt: phaseNow()})
}

func (r *trial) host(rules rules, publishes, subscribes []string) *host {
	h := &host{rules: rules, world: r, now: phaseNow(), scope: r.scope, publishes: publishes, subscribes: subscribes}
	if r.recording != nil {
		h.now = r.recording.run.CreatedAt
	}
	return h
}

// run runs a phase and notes what it did; nil says that it failed.
func (r *trial) run(ctx context.Context, h *host, path string, done *Tried, args ...json.RawMessage) *script.Result {
	var calls script.Host = h
	var runID string
	var stands time.Time
	switch {
	case r.recording != nil:
		calls, runID, stands = answers{h, r}, r.recording.run.ID, standsFor(r.recording.run)
	case done.Type == pawl.HandlerProducer: // as if it were due now
		stands = h.now
	}
	function := path[strings.LastIndexByte(path, '.')+1:]
	result, err := r.Scripts.Run(ctx, script.Request{
		Program: r.program, Handler: path, Args: args, Now: h.now, Seed: seedOf(runID, function), Scope: r.scope, ScheduledFor: stands, EndsAtCall: h.mutate,
	}, calls, r.Limits)
	done.Logs = append(done.Logs, result.Logs...)
	if h.call != nil {
		return &result
	}
	if f := h.failureOf(err); f != nil {
		done.Failure, done.Class = f.text, f.class
		return nil
	}
	return &result
}

// keep notes what a phase published and returned, as a commit would.
func (r *trial) keep(h *host, result *script.Result, done *Tried) {
	if fault := checkState(result); fault != "" {
		done.Failure, done.Class = fault, pawl.ClassLogic
		return
	}
	done.Events, done.Inputs = h.events, h.inputs
	for _, e := range h.events {
		r.add(e)
	}
	for _, i := range h.inputs {
		r.inputs[i.ID] = true
	}
	if result.HasValue {
		done.State = result.Value
		r.states[done.Handler] = result.Value
	}
}

func (r *trial) produce(ctx context.Context, p Producer) {
	done := Tried{Handler: p.Name, Type: pawl.HandlerProducer}
	h := r.host(producerRules, p.Publishes, nil)
	if result := r.run(ctx, h, "producers."+p.Name+".handler", &done, orAbsent(r.states[p.Name])...); result != nil {
		r.keep(h, result, &done)
	}
	r.done = append(r.done, done)
}

// consume runs a consumer once and reports whether it took events.
func (r *trial) consume(ctx context.Context, c Consumer) bool {
	done := Tried{Handler: c.Name, Type: pawl.HandlerConsumer}
	took := r.phases(ctx, c, &done)
	r.done = append(r.done, done)
	return took && done.Failure == ""
}

func (r *trial) phases(ctx context.Context, c Consumer, done *Tried) (took bool) {
	path := "consumers." + c.Name + "."
	h := r.host(prepareRules, nil, c.Subscribe)
	result := r.run(ctx, h, path+"prepare", done, orAbsent(r.states[c.Name])...)
	if result == nil {
		return false
	}
	prepared, err := CheckPrepared(result.Value, result.HasValue, c, h.now)
	if err == nil {
		err = r.reserve(prepared)
	}
	if err != nil {
		done.Failure, done.Class = textOf(err), pawl.ClassLogic
		return false
	}
	done.Prepared = &prepared
	raw, err := json.Marshal(prepared)
	if err != nil {
		done.Failure, done.Class = err.Error(), pawl.ClassInternal
		return false
	}
	outcome, ok := r.mutateOnce(ctx, c, prepared, raw, done)
	if !ok {
		return false
	}
	r.next(ctx, c, raw, outcome, done)
	return prepared.Reserved() > 0
}

func (r *trial) next(ctx context.Context, c Consumer, prepared, outcome json.RawMessage, done *Tried) {
	if !c.HasNext {
		return
	}
	h := r.host(nextRules, c.Publishes, nil)
	if result := r.run(ctx, h, "consumers."+c.Name+".next", done, prepared, outcome); result != nil {
		r.keep(h, result, done)
	}
}

// mutateOnce runs mutate up to its call, and makes up the result for next.
func (r *trial) mutateOnce(ctx context.Context, c Consumer, p Prepared, raw json.RawMessage, done *Tried) (json.RawMessage, bool) {
	if !c.HasMutate || p.Reserved() == 0 {
		return json.RawMessage(resultNone), true
	}
	r.would = nil
	if r.run(ctx, r.host(mutateRules, nil, nil), "consumers."+c.Name+".mutate", done, raw) == nil {
		return nil, false
	}
	if done.Call = r.would; done.Call == nil {
		return json.RawMessage(resultNone), true
	}
	if r.recording != nil {
		return r.answered(done)
	}
	outcome, err := appliedResult(r.Result)
	if err != nil {
		done.Failure, done.Class = textOf(err), pawl.ClassInternal
		return nil, false
	}
	return outcome, true
}

// answered is what became of the call of a recorded run. One that was not made,
// or did not happen, ends the replay as it ended the run: what would have come
// next is not known. So it is of a call that was another one then.
func (r *trial) answered(done *Tried) (json.RawMessage, bool) {
	of := r.recording.run
	if len(of.MutationResult) > 0 {
		return of.MutationResult, true
	}
	if r.call != nil && sameCall(*r.call.made(), *done.Call, r.Tools.Redact) {
		done.Failure, done.Class = of.ErrorMessage, of.ErrorClass
	}
	return nil, false
}

func (r *trial) reserve(p Prepared) error {
	if r.recording != nil { // what was pending then is not known; the difference tells
		return nil
	}
	for _, res := range p.Reservations {
		for _, id := range res.IDs {
			i := slices.IndexFunc(r.events, func(e eventstore.Event) bool {
				return e.Topic == res.Topic && e.MessageID == id && e.Status == eventstore.EventPending
			})
			if i < 0 {
				return &pawl.Error{Code: pawl.CodeInvalid, Msg: fmt.Sprintf("there is no pending event %q in topic %q", id, res.Topic)}
			}
			r.events[i].Status = eventstore.EventConsumed
		}
	}
	return nil
}

func (r *trial) peek(_ context.Context, topic string, limit int) (out []eventstore.Event, _ error) {
	for _, e := range r.events {
		if e.Topic == topic && e.Status == eventstore.EventPending && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

func (r *trial) byMessage(_ context.Context, topic string, ids []string) (out []eventstore.Event, _ error) {
	for _, e := range r.events {
		if e.Topic == topic && slices.Contains(ids, e.MessageID) {
			out = append(out, e)
		}
	}
	return out, nil
}

func (r *trial) knownInput(_ context.Context, id string) (bool, error) {
	return r.inputs[id] || r.recording != nil, nil
}

func (r *trial) lookup(connection, method string) (tool.Target, error) {
	t, err := r.Tools.Lookup(connection, method)
	t.Policy = tool.Allow // nothing is sent, so nobody is asked
	if err == nil {
		err = r.rights.check(connection, method)
	}
	return t, err
}

func (r *trial) read(ctx context.Context, t tool.Target, args json.RawMessage) (json.RawMessage, error) {
	return t.Connection.Call(ctx, tool.Call{Method: t.Method.Name, Args: args})
}

func (r *trial) noted(string, json.RawMessage, json.RawMessage, error) {}

func (r *trial) approved(context.Context, tool.Target, json.RawMessage) (bool, error) {
	return true, nil
}

// mutate is called once in a phase, whatever the script calls at once.
func (r *trial) mutate(_ context.Context, t tool.Target, args json.RawMessage) *calledMutation {
	found, err := r.Tools.Lookup(t.Name, t.Method.Name)
	if err != nil {
		return &calledMutation{err: err}
	}
	r.would = &TriedCall{Tool: t.Name, Method: t.Method.Name, Policy: found.Policy, Arguments: orNullJSON(args)}
	return &calledMutation{}
}
