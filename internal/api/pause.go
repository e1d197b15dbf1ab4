package api

import (
	"context"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/when"
)

// pauseHint is how an end of a pause is written.
const pauseHint = "Write a time to come, such as 2026-12-24T18:00:00+01:00, or a duration, such as 90m or 2d; or leave it out."

// PauseBody says for how long something is paused, and why.
type PauseBody struct {
	Body *client.PauseRequest
}

// request is what was asked for, which may be nothing.
func (b PauseBody) request() client.PauseRequest {
	if b.Body == nil {
		return client.PauseRequest{}
	}
	return *b.Body
}

// pauseTerms are what a request says. Durations count from now, by the clock of the server.
func pauseTerms(in client.PauseRequest, now time.Time) (lane.PauseTerms, error) {
	t := lane.PauseTerms{Note: in.Note}
	if in.Until == "" {
		return t, nil
	}
	at, err := time.Parse(time.RFC3339, in.Until)
	if err != nil {
		d, notInterval := when.ParseInterval(in.Until)
		if notInterval != nil {
			return t, invalid(pauseHint, client.Fault{Pointer: "/until", Message: "must be a time (RFC 3339) or a duration"})
		}
		at = now.Add(min(d, 2*lane.MaxPause)) // which is too long, and does not overflow
	}
	t.Until = at
	return t, nil
}

// pauseOf tells what was said about a pause; nil if nobody knows.
func pauseOf(p runstore.Pause) *client.Pause {
	if p.At.IsZero() {
		return nil
	}
	out := lane.PauseOf(p)
	return &out
}

type pauseWorkflowInput struct {
	WorkflowPath
	OnceHeader
	PauseBody
}

func (a *API) pauseWorkflow(ctx context.Context, in *pauseWorkflowInput) (*changeWorkflowOutput, error) {
	return a.changeWorkflow(ctx, in.Name, in.request(), func(ctx context.Context, tx *store.Tx, name, by string) (bool, error) {
		how, err := pauseTerms(in.request(), tx.Now)
		if err != nil {
			return false, err
		}
		return a.workflows.Pause(ctx, tx, name, by, how)
	})
}

type pauseSourceInput struct {
	SourcePath
	OnceHeader
	PauseBody
}

func (a *API) pauseSource(ctx context.Context, in *pauseSourceInput) (*changeSourceOutput, error) {
	return a.changeSource(ctx, in.Name, in.request(), func(ctx context.Context, tx *store.Tx, by string) error {
		how, err := pauseTerms(in.request(), tx.Now)
		if err == nil {
			_, err = a.sources.Pause(ctx, tx, in.Name, by, how)
		}
		return err
	})
}

type pauseScheduleInput struct {
	SchedulePath
	OnceHeader
	PauseBody
}

type changeScheduleOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Schedule
}

// pauseSchedule switches a schedule off. One that is to come on again by itself may do
// what the schedule does only if the caller may: it can have been off before.
func (a *API) pauseSchedule(ctx context.Context, in *pauseScheduleInput) (*changeScheduleOutput, error) {
	return a.changeSchedule(ctx, in.SchedulePath, in.request(), func(ctx context.Context, tx *store.Tx, owner, by string) (schedulestore.Schedule, error) {
		how, err := pauseTerms(in.request(), tx.Now)
		if err != nil {
			return schedulestore.Schedule{}, err
		}
		s, err := a.schedules.Pause(ctx, tx, owner, in.ID, by, how)
		if err == nil && !how.Until.IsZero() {
			err = mayRun(callOf(ctx).token, s)
		}
		return s, err
	})
}

func (a *API) resumeSchedule(ctx context.Context, in *changeScheduleInput) (*changeScheduleOutput, error) {
	return a.changeSchedule(ctx, in.SchedulePath, struct{}{}, func(ctx context.Context, tx *store.Tx, owner, by string) (schedulestore.Schedule, error) {
		on := true
		s, err := a.schedules.Update(ctx, tx, owner, in.ID, client.SchedulePatch{Enabled: &on}, by)
		if err == nil {
			err = mayRun(callOf(ctx).token, s)
		}
		return s, err
	})
}

// changeSchedule makes a change that may have been made before, and answers with the
// schedule as it is then.
func (a *API) changeSchedule(ctx context.Context, in SchedulePath, request any,
	change func(ctx context.Context, tx *store.Tx, owner, by string) (schedulestore.Schedule, error),
) (*changeScheduleOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	body, was, err := once(ctx, a, http.StatusOK, request, whole, func(ctx context.Context, tx *store.Tx) (client.Schedule, error) {
		s, err := change(ctx, tx, access.Reach(caller, schedulesResource), actor(caller))
		if err != nil {
			return client.Schedule{}, err
		}
		out := scheduleOf(s)
		err = addStanding(ctx, tx, &out)
		return out, err
	})
	if err != nil {
		return nil, err
	}
	return &changeScheduleOutput{was, body}, nil
}
