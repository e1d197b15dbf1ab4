package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

type createScheduleInput struct {
	OnceHeader
	Body client.ScheduleRequest
}

type createScheduleOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Location string   `header:"Location"`
	Body     client.CreatedSchedule
}

// createSchedule makes the schedule, its grant and its first slot, or nothing
// (C-24, C-28).
func (a *API) createSchedule(ctx context.Context, in *createScheduleInput) (*createScheduleOutput, error) {
	caller := callOf(ctx).token
	body, was, err := once(ctx, a, http.StatusCreated, &in.Body, whole, func(ctx context.Context, tx *store.Tx) (client.CreatedSchedule, error) {
		s, err := a.schedules.Create(ctx, tx, caller.User.ID, in.Body, actor(caller))
		if err == nil {
			err = mayRun(caller, s)
		}
		if err == nil {
			err = a.mayBring(caller, schedulestore.Schedule{}, s)
		}
		return client.CreatedSchedule{Schedule: scheduleOf(s)}, err
	})
	if err != nil {
		return nil, err
	}
	return &createScheduleOutput{was, "/api/v1/schedules/" + body.ID, body}, nil
}

type updateScheduleInput struct {
	MatchHeader
	SchedulePath
	OnceHeader
	Body client.SchedulePatch
}

type updateScheduleOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	ETag     string   `header:"ETag" doc:"Of the definition as it is now."`
	Body     client.UpdatedSchedule
}

func (a *API) updateSchedule(ctx context.Context, in *updateScheduleInput) (*updateScheduleOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	body, was, err := once(ctx, a, http.StatusOK, &in.Body, whole, func(ctx context.Context, tx *store.Tx) (client.UpdatedSchedule, error) {
		if in.IfMatch != "" || in.IfNoneMatch != "" {
			if err := a.expectSchedule(ctx, tx, access.Reach(caller, schedulesResource), in); err != nil {
				return client.UpdatedSchedule{}, err
			}
		}
		was, err := a.schedules.Owned(ctx, tx, access.Reach(caller, schedulesResource), in.ID)
		if err != nil {
			return client.UpdatedSchedule{}, err
		}
		s, err := a.schedules.Update(ctx, tx, access.Reach(caller, schedulesResource), in.ID, in.Body, actor(caller))
		if err == nil && !onlyStops(in.Body) {
			err = mayRun(caller, s)
		}
		if err == nil {
			err = a.mayBring(caller, was, s)
		}
		return client.UpdatedSchedule{Schedule: scheduleOf(s)}, err
	})
	if err != nil {
		return nil, err
	}
	return &updateScheduleOutput{was, scheduleTag(&body.Schedule), body}, nil
}

// expectSchedule refuses a change of a schedule that is not as the caller saw it.
func (a *API) expectSchedule(ctx context.Context, tx *store.Tx, owner string, in *updateScheduleInput) error {
	if _, err := a.schedules.Owned(ctx, tx, owner, in.ID); err != nil {
		return err
	}
	s, err := schedulestore.In(tx).HoldSchedule(ctx, in.ID)
	if err != nil {
		return err
	}
	was := scheduleOf(s)
	return in.expect(fmt.Sprintf("the schedule %q", was.Name), scheduleTag(&was))
}

// missingGraph warns of a graph that nobody here could run now. It can be there
// by the time it is due.
func (a *API) missingGraph(graphID string) []client.Warning {
	if a.cfg.FindGraph != nil {
		if e, ok := errors.AsType[*pawl.Error](a.cfg.FindGraph(graphID)); ok {
			return []client.Warning{{Message: e.Msg, Hint: client.NullString(e.Hint)}}
		}
	}
	return []client.Warning{}
}

// mayRun fails unless the caller may do what the schedule does. It is asked with
// the schedule as it will be, in the transaction that makes it so.
func mayRun(caller *userstore.Token, s schedulestore.Schedule) error {
	d := access.Definition{Graph: s.GraphID}
	for _, n := range schedule.RulesOf(s).Needs {
		d.Fetches = append(d.Fetches, n.Source)
	}
	if s.GraphID == work.Job {
		what, err := work.Read(s.Input)
		if err != nil {
			return err
		}
		d.Job = what.Job.Task
	}
	return access.Define(caller, d)
}

// ReasonCommands is why somebody may not bring a command.
const ReasonCommands = "commands_not_allowed"

// mayBring fails if the caller brings a command, or something that refers to
// secrets of the server, and may not: whoever runs the server decides that.
func (a *API) mayBring(caller *userstore.Token, was, now schedulestore.Schedule) error {
	if !work.Is(now.GraphID) || was.GraphID == now.GraphID && string(was.Input) == string(now.Input) {
		return nil
	}
	what, err := work.Read(now.Input)
	if err != nil {
		return err
	}
	does := "runs a command"
	if len(what.Command) == 0 {
		if !work.NamesSecrets(what) {
			return nil
		}
		does = "refers to variables of the server"
	}
	hint := "Put the definition into a folder that the server serves, or start the server with --allow-commands."
	if a.cfg.AllowCommands {
		if access.Allowed(caller, schedulesResource+":admin") {
			return nil
		}
		hint = "Ask an admin to apply it."
	}
	return &pawl.Error{Code: pawl.CodeForbidden, Reason: ReasonCommands, Op: "apply schedule", Msg: "the schedule " + does + ", which you may not bring to this server", Hint: hint}
}

// onlyStops reports whether a change does nothing but switch a schedule off.
func onlyStops(in client.SchedulePatch) bool {
	if in.Enabled == nil || *in.Enabled {
		return false
	}
	in.Enabled = nil
	return reflect.ValueOf(in).IsZero()
}

type changeScheduleInput struct {
	SchedulePath
	OnceHeader
}

type deleteScheduleOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.DeletedSchedule
}

func (a *API) deleteSchedule(ctx context.Context, in *changeScheduleInput) (*deleteScheduleOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	body, was, err := once(ctx, a, http.StatusOK, struct{}{}, whole, func(ctx context.Context, tx *store.Tx) (client.DeletedSchedule, error) {
		revoked, err := a.schedules.Delete(ctx, tx, access.Reach(caller, schedulesResource), in.ID, actor(caller))
		return client.DeletedSchedule{ID: in.ID, GrantRevoked: revoked}, err
	})
	if err != nil {
		return nil, err
	}
	return &deleteScheduleOutput{was, body}, nil
}

type runScheduleOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Slot
}

// runSchedule makes a slot of this instant. The check and the slot are one
// transaction, so a refusal changed nothing.
func (a *API) runSchedule(ctx context.Context, in *changeScheduleInput) (*runScheduleOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	body, was, err := once(ctx, a, http.StatusAccepted, struct{}{}, whole, func(ctx context.Context, tx *store.Tx) (client.Slot, error) {
		s, err := a.schedules.Owned(ctx, tx, access.Reach(caller, schedulesResource), in.ID)
		if err == nil {
			err = mayRun(caller, s)
		}
		if err != nil {
			return client.Slot{}, err
		}
		slot, err := a.schedules.RunNow(ctx, tx, s.OwnerUserID, in.ID, actor(caller))
		return schedule.SlotOf(slot), err
	})
	if err != nil {
		return nil, err
	}
	return &runScheduleOutput{was, body}, nil
}

type applyScheduleInput struct {
	MatchHeader
	Assumed
	Name   string `path:"name" example:"morning-poet" doc:"The name; that in the body is the same."`
	DryRun bool   `query:"dryRun" doc:"Check and compare only; change nothing."`
	Body   client.ScheduleRequest
}

type applyScheduleOutput struct {
	Status   int
	Location string `header:"Location"`
	ETag     string `header:"ETag" doc:"Of the active definition."`
	Body     client.AppliedSchedule
}

// errDryRun takes back what was only tried.
var errDryRun = errors.New("a dry run changes nothing")

// applySchedule makes a schedule of the caller or changes the one of that name.
// The same definition changes nothing, so it needs no idempotency key. What the
// body leaves out of an existing schedule stays: its grant, its policy, and
// whether it is switched on.
func (a *API) applySchedule(ctx context.Context, in *applyScheduleInput) (*applyScheduleOutput, error) {
	if in.Body.Name != in.Name {
		return nil, invalid("Apply each schedule under its own name.", client.Fault{Pointer: "/name", Message: fmt.Sprintf("must be that of the address, %q", in.Name)})
	}
	ctx, err := in.in(ctx, in.DryRun)
	if err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	out := &applyScheduleOutput{Status: http.StatusOK}
	err = a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		what, was, now, err := a.schedules.Apply(ctx, tx, caller.User.ID, in.Body, actor(caller))
		if err == nil {
			err = mayRun(caller, now)
		}
		if err == nil {
			err = a.mayBring(caller, was, now)
		}
		if err != nil {
			return err
		}
		out.Body = client.AppliedSchedule{What: what, DryRun: in.DryRun, Schedule: scheduleOf(now), Warnings: a.missingGraph(now.GraphID)}
		out.ETag = scheduleTag(&out.Body.Schedule)
		previous := client.Schedule{}
		if was.ID != "" {
			previous = scheduleOf(was)
			out.Body.Previous = &previous
		}
		if in.DryRun {
			out.ETag = scheduleTag(&previous)
		}
		if err := in.expect(fmt.Sprintf("your schedule %q", in.Name), scheduleTag(&previous)); err != nil {
			return err
		}
		if in.DryRun {
			return errDryRun
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return nil, err
	}
	if out.Body.What == schedule.Created && !in.DryRun {
		out.Status, out.Location = http.StatusCreated, "/api/v1/schedules/"+out.Body.Schedule.ID
	}
	return out, nil
}
