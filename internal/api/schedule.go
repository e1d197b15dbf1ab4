package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/terms"
)

// What belongs to a user, such as schedules and grants, is theirs alone: to
// others it looks as if it were not there. Those who may administer the
// resource reach everybody's by id, and list everybody's if they ask for all.

// AllInput asks for the things of everybody.
type AllInput struct {
	All bool `query:"all" doc:"Those of everybody, for admins. Else only your own."`
}

// owner is the user whose things are listed, empty for all.
func (in AllInput) owner(caller *userstore.Token, resource string) (string, error) {
	if !in.All {
		return caller.User.ID, nil
	}
	return "", access.Require(caller, resource+":admin")
}

const schedulesResource = "schedules"

func scheduleOf(s schedulestore.Schedule) client.Schedule {
	out := client.Schedule{
		ID: s.ID, Name: s.Name, OwnerUserID: s.OwnerUserID, ExecutionGrantID: s.GrantID, GraphID: s.GraphID, Input: s.Input, Cron: client.Cron(s.Cron), Timezone: s.Timezone, Timing: schedule.TimingOf(s), Begun: s.Begun,
		ConcurrencyPolicy: schedule.PolicyOf(s), Enabled: s.Enabled, Labels: s.Labels, Issue: s.Issue, CappedUntil: client.At(s.CappedUntil),
		NextRunAt: client.At(s.NextRunAt), LastRunAt: client.At(s.LastRunAt),
		CreatedAt: client.At(s.CreatedAt), UpdatedAt: client.At(s.UpdatedAt),
	}
	if work.Is(s.GraphID) {
		what, err := work.Read(s.Input)
		if err == nil {
			out.Run = &what
		}
		out.GraphID, out.Input = "", nil
	}
	rules := schedule.RulesOf(s)
	out.Idempotent, out.Missed, out.Retry = rules.Idempotent, rules.Missed, rules.Retry
	out.Keep, out.Expect, out.Needs = rules.Keep, rules.Expect, rules.Needs
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	if len(out.Input) == 0 {
		out.Input = json.RawMessage("{}")
	}
	return out
}

// SchedulePath is the input of requests about one schedule.
type SchedulePath struct {
	ID string `path:"id" example:"0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e" doc:"The schedule's id."`
}

// check refuses what no schedule can be called, before a database is asked.
func (p SchedulePath) check() error {
	if uuid.Validate(p.ID) != nil {
		return noSchedule(p.ID)
	}
	return nil
}

func noSchedule(id string) error {
	return &pawl.Error{Code: pawl.CodeNotFound, Op: "read schedule", Msg: fmt.Sprintf("there is no schedule %q", id), Hint: "pawl get schedules lists them."}
}

// readSchedule reads something of a schedule that the caller may see.
func (a *API) readSchedule(ctx context.Context, in SchedulePath, read func(ctx context.Context, tx *store.Tx, s schedulestore.Schedule) error) error {
	return a.readScheduleBy(ctx, in, a.schedules.Owned, read)
}

// findOwned finds a schedule that an owner may see.
type findOwned func(ctx context.Context, tx *store.Tx, owner, id string) (schedulestore.Schedule, error)

func (a *API) readScheduleBy(ctx context.Context, in SchedulePath, find findOwned, read func(ctx context.Context, tx *store.Tx, s schedulestore.Schedule) error) error {
	if err := in.check(); err != nil {
		return err
	}
	owner := access.Reach(callOf(ctx).token, schedulesResource)
	return a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := find(ctx, tx, owner, in.ID)
		if err != nil {
			return err
		}
		return read(ctx, tx, s)
	})
}

type scheduleOutput struct {
	ETag string `header:"ETag" doc:"Of the definition; send it in If-Match to change what you saw."`
	Body client.Schedule
}

func (a *API) getSchedule(ctx context.Context, in *SchedulePath) (*scheduleOutput, error) {
	out := &scheduleOutput{}
	err := a.readSchedule(ctx, *in, func(ctx context.Context, tx *store.Tx, s schedulestore.Schedule) error {
		out.Body = scheduleOf(s)
		out.ETag = scheduleTag(&out.Body)
		return addStanding(ctx, tx, &out.Body)
	})
	return out, err
}

// addStanding adds what is known of a schedule beside its definition: whether what is
// expected of it is met, and what was said when it was paused.
func addStanding(ctx context.Context, tx *store.Tx, s *client.Schedule) error {
	if s.Expect == nil && s.Enabled {
		return nil
	}
	row, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, s.ID)
	s.Expectations, s.Pause = expectationsOf(terms.VerdictsOf(row.Expect, row.Expected)), pauseOf(row.Pause)
	return pawl.IgnoreNotFound(err)
}

type listSchedulesInput struct {
	PageInput
	AllInput
	Name string `query:"name" doc:"Only the one of yours with this name."`
}

const scheduleCursor = "schedule"

// listSchedules goes by name, or by id through those of everybody.
func (a *API) listSchedules(ctx context.Context, in *listSchedulesInput) (*output[client.SchedulePage], error) {
	after, err := in.place(scheduleCursor)
	if err != nil {
		return nil, err
	}
	if after != "" && textFault(after, maxName) != "" {
		return nil, badCursor()
	}
	if in.Name != "" {
		return a.scheduleByName(ctx, in.Name)
	}
	owner, err := in.owner(callOf(ctx).token, schedulesResource)
	if err != nil {
		return nil, err
	}
	cursor := func(s schedulestore.Schedule) string {
		if owner == "" {
			return s.ID
		}
		return s.Name
	}
	out := &output[client.SchedulePage]{}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		list, err := schedulestore.In(tx).ListSchedules(ctx, owner, after, in.Limit+1)
		if err != nil {
			return err
		}
		out.Body = client.SchedulePage(cutPage(list, in.Limit, scheduleCursor, cursor, scheduleOf))
		return tx.Each(ctx, len(out.Body.Items), func(ctx context.Context, tx *store.Tx, i int) error {
			return addStanding(ctx, tx, &out.Body.Items[i])
		})
	})
	return out, err
}

// scheduleByName is a list of the caller's schedule of that name, or of none.
func (a *API) scheduleByName(ctx context.Context, name string) (*output[client.SchedulePage], error) {
	out := &output[client.SchedulePage]{client.SchedulePage{Items: []client.Schedule{}}}
	if fault := textFault(name, maxName); fault != "" {
		return nil, invalid("", client.Fault{Pointer: "/name", Message: fault})
	}
	owner := callOf(ctx).token.User.ID
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := schedulestore.In(tx).ScheduleByName(ctx, owner, name)
		if err == nil {
			out.Body.Items = []client.Schedule{scheduleOf(s)}
			return addStanding(ctx, tx, &out.Body.Items[0])
		} else if errors.Is(err, pawl.ErrNotFound) {
			return nil
		}
		return err
	})
	return out, err
}

type nextInput struct {
	SchedulePath
	Count int    `query:"count" minimum:"1" maximum:"500" default:"10" doc:"How many."`
	After string `query:"after" format:"date-time" doc:"Those after this instant; absent is now."`
}

func (a *API) nextOfSchedule(ctx context.Context, in *nextInput) (*output[client.NextInstants], error) {
	after, err := instantParameter("/after", in.After, time.Now())
	if err != nil {
		return nil, err
	}
	out := &output[client.NextInstants]{client.NextInstants{Items: []client.NextInstant{}}}
	err = a.readSchedule(ctx, in.SchedulePath, func(ctx context.Context, tx *store.Tx, s schedulestore.Schedule) error {
		list, words, err := a.schedules.Next(ctx, tx, s, after, in.Count)
		if err != nil {
			return err
		}
		out.Body.Enabled, out.Body.Schedule, out.Body.Items = s.Enabled, words, out.Body.Items[:0]
		for _, next := range list {
			out.Body.Items = append(out.Body.Items, client.NextInstant{At: client.At(next.Time), Local: next.Local, ClockChange: next.ClockChange, StartsAt: client.At(next.Start)})
		}
		return nil
	})
	return out, err
}

// instantParameter reads an instant of a query; absent is the usual one.
func instantParameter(pointer, text string, usual time.Time) (time.Time, error) {
	if text == "" {
		return usual, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, invalid("Use RFC 3339 in UTC, such as 2030-01-31T09:00:00Z.", client.Fault{Pointer: pointer, Message: "must be an RFC 3339 date-time"})
	}
	return t.UTC(), nil
}
