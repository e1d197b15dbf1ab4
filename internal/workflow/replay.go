package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// MaxReplays is how many replays people have at once in one process; others
// are refused. They run in workers of their own (Options.Trials), so that real
// runs never wait for them.
const MaxReplays = 2

// Effects are what a run meant to do: what it took, called, published and kept.
type Effects struct {
	Reservations []Reservation
	Data         json.RawMessage
	Call         *TriedCall
	Events       []eventstore.NewEvent
	State        json.RawMessage
}

// Replayed is a run that was run again with what it read then and with calls
// switched off.
type Replayed struct {
	Run     runstore.Run
	Then    Effects
	Now     Effects
	Logs    []script.LogLine
	Failure string // why it fails now; empty if it does not
	Class   pawl.Class
	// Unknown: it would read something of which the answer is not known, so
	// that nothing can be said about it.
	Unknown bool
	// Differences are what is not the same, in words; empty if all is. A run
	// that failed and fails again in the same way is the same.
	Differences []string
}

// Replay runs a run again, with the script that it had or with another one,
// and tells what it would do otherwise. Nothing is stored and nothing is called.
// What the run did not read then cannot be read now either. It fails with
// pawl.ErrUnavailable while there are as many replays as there may be.
func (s *Service) Replay(ctx context.Context, runID, filename, source string) (Replayed, error) {
	select {
	case s.replays <- struct{}{}:
		defer func() { <-s.replays }()
	default:
		return Replayed{}, &pawl.Error{
			Code: pawl.CodeUnavailable, Reason: "busy", Op: "replay run", Msg: fmt.Sprintf("%d runs are being replayed already", MaxReplays),
			Hint: "Try again when they have ended.",
		}
	}
	return s.replayWith(ctx, runID, proposed{filename: filename, source: source})
}

// proposed is a script to replay a run with; without a source it is the one that
// the run had.
type proposed struct {
	filename, source string
	rights           rights // what it may call; nil is everything
}

func (s *Service) replayWith(ctx context.Context, runID string, script proposed) (Replayed, error) {
	r, err := s.recorded(ctx, runID)
	if err != nil {
		return Replayed{}, err
	}
	if script.source == "" {
		script.filename, script.source = r.version.Filename, r.version.Source
	}
	config, program, err := Inspect(ctx, s.cfg.Trials, script.filename, script.source)
	if err != nil {
		return Replayed{}, err
	}
	t := &trial{
		Try:     Try{Scripts: s.cfg.Trials, Tools: s.cfg.Tools, Limits: s.cfg.Limits},
		program: program, config: config, scope: r.workflow.ID, recording: newRecording(r.run, r.reads), call: r.call, rights: script.rights,
		inputs: map[string]bool{}, states: map[string]json.RawMessage{},
	}
	for _, read := range r.reads {
		if read.Op == opState {
			t.states[r.run.Handler] = read.Answer
		}
	}
	done, err := t.again(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Replayed{}, err
	}
	now := Effects{Call: done.Call, Events: done.Events, State: done.State}
	if done.Prepared != nil {
		now.Reservations, now.Data = done.Prepared.Reservations, done.Prepared.Data
	}
	failure := s.cfg.Tools.RedactText(done.Failure)
	out := Replayed{
		Run: r.run, Then: s.shown(r.then), Now: s.shown(now), Failure: failure, Class: done.Class, Unknown: t.recording.unknown(),
		Differences: differences(r.then, now, s.cfg.Tools.Redact),
	}
	for _, l := range done.Logs {
		l.Text = s.cfg.Tools.RedactText(l.Text)
		out.Logs = append(out.Logs, l)
	}
	if d := failureDifference(r.run, failure, done.Class); d != "" {
		out.Differences = append(out.Differences, d)
	}
	return out, nil
}

// shown takes secrets out of what a replay tells, as every other answer does.
func (s *Service) shown(e Effects) Effects {
	e.Data, e.State = s.cfg.Tools.Redact(e.Data), s.cfg.Tools.Redact(e.State)
	if e.Call != nil {
		call := *e.Call
		call.Arguments = s.cfg.Tools.Redact(call.Arguments)
		e.Call = &call
	}
	events := make([]eventstore.NewEvent, len(e.Events))
	for i, event := range e.Events {
		event.Payload = s.cfg.Tools.Redact(event.Payload)
		events[i] = event
	}
	e.Events = events
	return e
}

// again runs the phases of the recorded run.
func (r *trial) again(ctx context.Context) (Tried, error) {
	of := r.recording.run
	done := Tried{Handler: of.Handler, Type: of.HandlerType}
	if of.HandlerType == pawl.HandlerProducer {
		p, ok := r.config.Producer(of.Handler)
		if !ok {
			return done, noHandler(of)
		}
		r.produce(ctx, p)
		return r.done[0], nil
	}
	c, ok := r.config.Consumer(of.Handler)
	if !ok {
		return done, noHandler(of)
	}
	if r.recording.onlyNext() { // prepare and mutate are those of the run before it
		done.Prepared = &Prepared{}
		if err := json.Unmarshal(of.PrepareResult, done.Prepared); err != nil {
			return done, err
		}
		if r.call != nil {
			done.Call = r.call.made()
		}
		r.next(ctx, c, of.PrepareResult, of.MutationResult, &done)
		return done, nil
	}
	r.phases(ctx, c, &done)
	return done, nil
}

// onlyNext reports whether the run began with what an earlier one had done, so
// that only next is its own.
func (r *recording) onlyNext() bool {
	if r.run.RetryOf == "" || len(r.run.PrepareResult) == 0 || len(r.run.MutationResult) == 0 {
		return false
	}
	return len(r.reads) == 0
}

func noHandler(r runstore.Run) error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "replay run", Msg: fmt.Sprintf("the script has no %s %q", r.HandlerType, r.Handler)}
}

// recordedRun is what is known of a run.
type recordedRun struct {
	run      runstore.Run
	workflow workflowstore.Workflow
	version  workflowstore.WorkflowVersion
	reads    []runstore.RunRead
	then     Effects
	call     *recordedCall
}

// recordedCall is the call of a run, or the one that it asked for.
type recordedCall struct {
	tool, method string
	arguments    json.RawMessage
	state        pawl.MutationState // empty: a person was asked, and it was not made
}

func (c *recordedCall) made() *TriedCall {
	return &TriedCall{Tool: c.tool, Method: c.method, Arguments: c.arguments}
}

func (s *Service) recorded(ctx context.Context, runID string) (r recordedRun, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		if r.run, err = runstore.In(tx).GetRun(ctx, runID); err != nil {
			return err
		}
		if r.run.Kind != pawl.KindWorkflow {
			return &pawl.Error{Code: pawl.CodeInvalid, Op: "replay run", Msg: "it is not a run of a workflow"}
		}
		if r.workflow, err = workflowstore.In(tx).WorkflowByLane(ctx, r.run.Lane); err != nil {
			return err
		}
		if r.version, err = workflowstore.In(tx).GetWorkflowVersion(ctx, r.workflow.ID, r.run.ScriptVersion); err != nil {
			return err
		}
		if r.reads, err = runstore.In(tx).RunReads(ctx, runID); err != nil {
			return err
		}
		if r.call, err = callOf(ctx, tx, r.run); err != nil {
			return err
		}
		events, err := eventstore.In(tx).EventsOfRun(ctx, r.workflow.ID, r.run)
		if err != nil {
			return err
		}
		return r.fill(events)
	})
	return r, err
}

// callOf reads the last call of a run, or the one that it asks for; nil if
// there is none. A run that went on after a crash has its call in the one
// before it.
func callOf(ctx context.Context, tx *store.Tx, r runstore.Run) (*recordedCall, error) {
	for of := r; ; {
		calls, err := mutationstore.In(tx).RunMutations(ctx, of.ID)
		if err != nil {
			return nil, err
		}
		if n := len(calls); n > 0 {
			m := calls[n-1]
			return &recordedCall{m.Tool, m.Method, m.Arguments, m.State}, nil
		}
		if of.RetryOf == "" || !run.MutationApplied(of.HandlerType, of.Phase) {
			break
		}
		if of, err = runstore.In(tx).GetRun(ctx, of.RetryOf); err != nil {
			return nil, err
		}
	}
	a, err := askedBy(ctx, tx, r)
	if err != nil || a == nil {
		return nil, err
	}
	return &recordedCall{tool: a.Tool, method: a.Method, arguments: a.Arguments}, nil
}

func (r *recordedRun) fill(events []eventstore.Event) error {
	r.then.State = r.run.OutputState
	if len(r.run.PrepareResult) > 0 {
		var p Prepared
		if err := json.Unmarshal(r.run.PrepareResult, &p); err != nil {
			return errors.Join(errors.New("read the stored result of prepare"), err)
		}
		r.then.Reservations, r.then.Data = p.Reservations, p.Data
	}
	if r.call != nil {
		r.then.Call = r.call.made()
	}
	for _, e := range events {
		r.then.Events = append(r.then.Events, eventstore.NewEvent{Topic: e.Topic, MessageID: e.MessageID, Payload: e.Payload})
	}
	return nil
}
