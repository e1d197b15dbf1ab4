package api

import (
	"context"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/workflow"
)

type replayRunInput struct {
	CheckedHeader
	RunPath
	Body *client.ReplayRequest
}

// replayRun changes nothing: it is a POST because it carries a script.
func (a *API) replayRun(ctx context.Context, in *replayRunInput) (*output[client.Replay], error) {
	if err := a.check(ctx, in.Body); err != nil {
		return nil, err
	}
	body := client.ReplayRequest{}
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
	out := client.Replay{
		RunID: in.ID, Same: len(r.Differences) == 0, Differences: append([]string{}, r.Differences...),
		Then: a.effectsOf(r.Then), Now: a.effectsOf(r.Now), Logs: []string{}, Error: client.NullString(r.Failure),
	}
	for _, l := range r.Logs {
		out.Logs = append(out.Logs, l.Text)
	}
	return &output[client.Replay]{out}, nil
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

func (a *API) effectsOf(e workflow.Effects) client.ReplayEffects {
	out := client.ReplayEffects{Reservations: mapAll(e.Reservations, func(r workflow.Reservation) client.Reservation { return client.Reservation(r) }), Data: e.Data, State: e.State, Events: []client.ReplayEvent{}}
	if e.Call != nil {
		out.Call = &client.ReplayCall{Tool: e.Call.Tool, Method: e.Call.Method, Arguments: e.Call.Arguments}
	}
	for _, event := range e.Events {
		out.Events = append(out.Events, client.ReplayEvent{Topic: event.Topic, MessageID: event.MessageID, Payload: event.Payload})
	}
	return out
}
