package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
)

// Effects are what a run meant to do: what it took, called, published and kept.
type Effects struct {
	Reservations []Reservation
	Data         json.RawMessage
	Call         *TriedCall
	Events       []store.NewEvent
	State        json.RawMessage
}

// Replayed is a run that was run again with what it read then and with calls
// switched off.
type Replayed struct {
	Run     store.Run
	Then    Effects
	Now     Effects
	Logs    []script.LogLine
	Failure string // why it fails now; empty if it does not
	Class   pawl.Class
	// unknown: it would read something that the run did not, so that nothing
	// can be said about it.
	unknown bool
	// Differences are what is not the same, in words; empty if all is.
	Differences []string
}

// Replay runs a run again, with the script that it had or with another one,
// and tells what it would do otherwise. Nothing is stored and nothing is called.
// What the run did not read then cannot be read now either.
func (s *Service) Replay(ctx context.Context, runID, filename, source string) (Replayed, error) {
	r, err := s.recorded(ctx, runID)
	if err != nil {
		return Replayed{}, err
	}
	if source == "" {
		filename, source = r.version.Filename, r.version.Source
	}
	config, program, err := Inspect(ctx, s.cfg.Scripts, filename, source)
	if err != nil {
		return Replayed{}, err
	}
	out := Replayed{Run: r.run, Then: r.then}
	t := &trial{
		Try:     Try{Scripts: s.cfg.Scripts, Tools: s.cfg.Tools, Limits: s.cfg.Limits},
		program: program, config: config, scope: r.workflow.ID, runID: runID, at: r.run.CreatedAt, reads: r.reads, recorded: true,
		inputs: map[string]bool{}, states: map[string]json.RawMessage{},
	}
	for _, read := range r.reads {
		if read.Op == opState {
			t.states[r.run.Handler] = read.Answer
		}
	}
	done := Tried{Handler: r.run.Handler, Type: r.run.HandlerType}
	if r.run.HandlerType == pawl.HandlerProducer {
		p, ok := config.Producer(r.run.Handler)
		if !ok {
			return out, noHandler(r.run)
		}
		t.produce(ctx, p)
		done = t.done[0]
	} else {
		c, ok := config.Consumer(r.run.Handler)
		if !ok {
			return out, noHandler(r.run)
		}
		if r.result != nil {
			t.Result = r.result
		}
		t.phases(ctx, c, &done)
	}
	out.Failure, out.Class, out.Logs = done.Failure, done.Class, done.Logs
	out.Now = Effects{Call: done.Call, Events: done.Events, State: done.State}
	if done.Prepared != nil {
		out.Now.Reservations, out.Now.Data = done.Prepared.Reservations, done.Prepared.Data
	}
	out.unknown = t.missed
	out.Differences = differences(out.Then, out.Now)
	return out, ctx.Err()
}

func noHandler(r store.Run) error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "replay run", Msg: fmt.Sprintf("the script has no %s %q", r.HandlerType, r.Handler)}
}

// recordedRun is what is known of a run.
type recordedRun struct {
	run      store.Run
	workflow store.Workflow
	version  store.WorkflowVersion
	reads    []store.RunRead
	then     Effects
	result   json.RawMessage // what its call answered
}

func (s *Service) recorded(ctx context.Context, runID string) (r recordedRun, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		if r.run, err = tx.GetRun(ctx, runID); err != nil {
			return err
		}
		if r.run.Kind != pawl.KindWorkflow {
			return &pawl.Error{Code: pawl.CodeInvalid, Op: "replay run", Msg: "it is no run of a workflow"}
		}
		if r.workflow, err = tx.WorkflowByLane(ctx, r.run.Lane); err != nil {
			return err
		}
		if r.version, err = tx.GetWorkflowVersion(ctx, r.workflow.ID, r.run.ScriptVersion); err != nil {
			return err
		}
		if r.reads, err = tx.RunReads(ctx, runID); err != nil {
			return err
		}
		calls, err := tx.RunMutations(ctx, runID)
		if err != nil {
			return err
		}
		events, err := tx.EventsOfRun(ctx, r.workflow.ID, r.run)
		if err != nil {
			return err
		}
		return r.fill(calls, events)
	})
	return r, err
}

func (r *recordedRun) fill(calls []store.Mutation, events []store.Event) error {
	r.then.State = r.run.OutputState
	if len(r.run.PrepareResult) > 0 {
		var p Prepared
		if err := json.Unmarshal(r.run.PrepareResult, &p); err != nil {
			return err
		}
		r.then.Reservations, r.then.Data = p.Reservations, p.Data
	}
	for _, m := range calls {
		r.then.Call = &TriedCall{Tool: m.Tool, Method: m.Method, Arguments: m.Arguments}
		r.result = m.Result
	}
	for _, e := range events {
		r.then.Events = append(r.then.Events, store.NewEvent{Topic: e.Topic, MessageID: e.MessageID, Payload: e.Payload})
	}
	return nil
}

// differences says in words what one set of effects has and the other has not.
func differences(then, now Effects) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if a, b := asJSON(then.Reservations), asJSON(now.Reservations); a != b {
		say("it took %s and would take %s", a, b)
	}
	if a, b := canonical(then.Data), canonical(now.Data); a != b {
		say("prepare gave %s and would give %s", a, b)
	}
	switch {
	case then.Call != nil && now.Call == nil:
		say("it called %s.%s and would call nothing", then.Call.Tool, then.Call.Method)
	case then.Call == nil && now.Call != nil:
		say("it called nothing and would call %s.%s %s", now.Call.Tool, now.Call.Method, canonical(now.Call.Arguments))
	case then.Call != nil && (then.Call.Tool != now.Call.Tool || then.Call.Method != now.Call.Method || canonical(then.Call.Arguments) != canonical(now.Call.Arguments)):
		say("it called %s.%s %s and would call %s.%s %s", then.Call.Tool, then.Call.Method, canonical(then.Call.Arguments), now.Call.Tool, now.Call.Method, canonical(now.Call.Arguments))
	}
	for _, e := range then.Events {
		if i := indexOf(now.Events, e); i < 0 {
			say("it published %s %s and would not", e.Topic, e.MessageID)
		} else if a, b := canonical(e.Payload), canonical(now.Events[i].Payload); a != b {
			say("it published %s %s with %s and would with %s", e.Topic, e.MessageID, a, b)
		}
	}
	for _, e := range now.Events {
		if indexOf(then.Events, e) < 0 {
			say("it would publish %s %s", e.Topic, e.MessageID)
		}
	}
	if a, b := canonical(then.State), canonical(now.State); a != b {
		say("it kept %s and would keep %s", a, b)
	}
	return out
}

func indexOf(list []store.NewEvent, e store.NewEvent) int {
	return slices.IndexFunc(list, func(have store.NewEvent) bool { return have.Topic == e.Topic && have.MessageID == e.MessageID })
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return canonical(raw)
}

// canonical is JSON in one spelling; nothing is "nothing".
func canonical(raw json.RawMessage) string {
	var value any
	if len(raw) == 0 || json.Unmarshal(raw, &value) != nil || value == nil {
		return "nothing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return string(raw)
	}
	return string(text)
}

// answers is a host whose reads are those of a recorded run.
type answers struct {
	*host
	t *trial
}

// Call answers a read as it was answered then; anything else is the host's.
func (a answers) Call(ctx context.Context, op string, args json.RawMessage) (json.RawMessage, error) {
	if op != "peek" && op != "getByIds" && (op != "tool" || !a.rules.read) {
		return a.host.Call(ctx, op, args)
	}
	want := canonical(a.t.Tools.Redact(args))
	for i, r := range a.t.reads {
		if a.t.used[i] || r.Op != op || canonical(r.Call) != want {
			continue
		}
		a.t.used[i] = true
		switch {
		case r.Cut:
			return nil, a.refuse("replay_cut", "the answer of this %s was too large to be kept, so the run cannot be replayed", op)
		case r.Error != "":
			return nil, a.refuse("replay_error", "%s", r.Error)
		}
		return r.Answer, nil
	}
	a.t.missed = true
	return nil, a.refuse("replay_read", "the run did not do this %s then, so its answer is not known: %s", op, cutText(want, 200))
}

func (a answers) refuse(code, format string, values ...any) error {
	f := violation(code, format, values...)
	a.note(f)
	return script.Abort(f)
}
