package api

import (
	"context"
	"encoding/json"

	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/workflow"
)

// replayRequest says with which script a run is replayed.
type replayRequest struct {
	Script   string `json:"script,omitempty" doc:"Another script to run it with. Absent is the one that it had."`
	Filename string `json:"filename,omitempty" maxLength:"200" example:"mail.workflow.ts" doc:"The name of the script in messages."`
}

type replayRunInput struct {
	CheckedHeader
	RunPath
	Body *replayRequest
}

// Replay is a run that was run again with what it read then, and with calls
// switched off.
type Replay struct {
	RunID       string        `json:"runId"`
	Same        bool          `json:"same" doc:"It would do the same, or fail in the same way."`
	Differences []string      `json:"differences" nullable:"false" doc:"What it would do otherwise, in words."`
	Then        ReplayEffects `json:"then" doc:"What it did."`
	Now         ReplayEffects `json:"now" doc:"What it would do."`
	Logs        []string      `json:"logs" nullable:"false"`
	Error       *string       `json:"error" doc:"Why it fails now; null if it does not."`
}

// ReplayEffects are what a run meant to do.
type ReplayEffects struct {
	Reservations []workflow.Reservation `json:"reservations" nullable:"false"`
	Data         json.RawMessage        `json:"data"`
	Call         Maybe[ReplayCall]      `json:"call"`
	Events       []ReplayEvent          `json:"events" nullable:"false"`
	State        json.RawMessage        `json:"state"`
}

// ReplayCall is the call of mutate.
type ReplayCall struct {
	Tool      string          `json:"tool"`
	Method    string          `json:"method"`
	Arguments json.RawMessage `json:"arguments"`
}

// ReplayEvent is an event that was, or would be, published.
type ReplayEvent struct {
	Topic     string          `json:"topic"`
	MessageID string          `json:"messageId"`
	Payload   json.RawMessage `json:"payload"`
}

type replayRunOutput struct{ Body Replay }

// replayRun changes nothing: it is a POST because it carries a script.
func (a *API) replayRun(ctx context.Context, in *replayRunInput) (*replayRunOutput, error) {
	if err := a.check(ctx, in.Body); err != nil {
		return nil, err
	}
	body := replayRequest{}
	if in.Body != nil {
		body = *in.Body
	}
	if err := a.mayReplay(ctx, in.RunPath, body.Script != ""); err != nil {
		return nil, err
	}
	if body.Filename == "" {
		body.Filename = "replay.workflow.ts"
	}
	r, err := a.workflows.Replay(ctx, in.ID, body.Filename, body.Script)
	if err != nil {
		return nil, err
	}
	out := Replay{
		RunID: in.ID, Same: len(r.Differences) == 0, Differences: append([]string{}, r.Differences...),
		Then: a.effectsOf(r.Then), Now: a.effectsOf(r.Now), Logs: []string{}, Error: orNull(r.Failure),
	}
	for _, l := range r.Logs {
		out.Logs = append(out.Logs, l.Text)
	}
	return &replayRunOutput{out}, nil
}

// mayReplay fails unless the caller may see what a replay shows: the script, the
// state and the events of the workflow. A script of the caller's own can show
// all that the run was answered, so it is for those who could deploy it as well.
// A run that the caller may not see is not there.
func (a *API) mayReplay(ctx context.Context, in RunPath, ownScript bool) error {
	if err := in.check(); err != nil {
		return err
	}
	if err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := a.visibleRun(ctx, tx, in.ID)
		return err
	}); err != nil {
		return err
	}
	need := "workflows:read"
	if ownScript {
		need = "workflows:write"
	}
	return access.Require(callOf(ctx).token, need)
}

func (a *API) effectsOf(e workflow.Effects) ReplayEffects {
	out := ReplayEffects{Reservations: append([]workflow.Reservation{}, e.Reservations...), Data: e.Data, State: e.State, Events: []ReplayEvent{}}
	if e.Call != nil {
		out.Call = Maybe[ReplayCall]{&ReplayCall{e.Call.Tool, e.Call.Method, e.Call.Arguments}}
	}
	for _, event := range e.Events {
		out.Events = append(out.Events, ReplayEvent{event.Topic, event.MessageID, event.Payload})
	}
	return out
}
