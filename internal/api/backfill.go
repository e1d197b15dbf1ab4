package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func backfillOf(b schedulestore.Backfill, plan schedule.Plan, counts map[string]int) client.Backfill {
	n := func(s contract.SlotStatus) int { return counts[string(s)] }
	return client.Backfill{
		ID: b.ID, ScheduleID: b.ScheduleID, From: client.At(b.From), To: client.At(b.To), Hash: b.Hash, State: b.State,
		PerMinute: b.PerMinute, EstimateUSD: (*pawl.USD)(b.Estimate), Total: b.Total, Skipped: plan.Skipped, Before: plan.Before, Begun: b.Begun,
		GrantID: client.NullString(plan.GrantID), Uncovered: uncoveredOf(plan),
		Counts: client.BackfillCounts{
			Pending: n(run.SlotPending), Running: n(run.SlotRunning), Success: n(run.SlotSuccess), Error: n(run.SlotError), Skipped: n(run.SlotSkipped),
		},
		CreatedBy: userOf(b.CreatedBy), CreatedAt: client.At(b.CreatedAt),
		ConfirmedBy: client.NullString(userOf(b.ConfirmedBy)), ConfirmedAt: client.At(b.ConfirmedAt), UpdatedAt: client.At(b.UpdatedAt),
	}
}

func uncoveredOf(plan schedule.Plan) []client.UncoveredSlots {
	out := make([]client.UncoveredSlots, len(plan.Uncovered))
	for i, u := range plan.Uncovered {
		out[i] = client.UncoveredSlots{GraphID: u.GraphID, Slots: u.Slots, Code: string(u.Code), Message: u.Message}
	}
	return out
}

func plannedSlots(plan schedule.Plan) []client.PlannedSlot {
	out := make([]client.PlannedSlot, len(plan.Slots))
	for i, s := range plan.Slots {
		out[i] = client.PlannedSlot{At: s.At, Revision: s.Revision, GraphID: s.GraphID, Was: s.Was}
	}
	return out
}

// tellBackfill reads a backfill as it is now.
func (a *API) backfillAnswer(ctx context.Context, tx *store.Tx, owner, id string, slots bool) (client.Backfill, error) {
	b, plan, counts, err := a.schedules.Backfill(ctx, tx, owner, id)
	if err != nil {
		return client.Backfill{}, err
	}
	out := backfillOf(b, plan, counts)
	if slots {
		out.Slots = plannedSlots(plan)
	}
	return out, nil
}

type planBackfillInput struct {
	SchedulePath
	OnceHeader
	Body client.BackfillRequest
}

type backfillOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Backfill
}

// planBackfill tells what would run and what it would cost. Nothing runs until
// somebody confirms the plan (C-60, C-79).
func (a *API) planBackfill(ctx context.Context, in *planBackfillInput) (*backfillOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	owner := access.Reach(caller, schedulesResource)
	ask := schedule.BackfillAsk{From: in.Body.From.Time, To: in.Body.To.Time, PerMinute: in.Body.PerMinute, GrantID: in.Body.GrantID, Failed: slices.Contains(in.Body.Include, "failed")}
	body, was, err := once(ctx, a, http.StatusCreated, &in.Body, whole, func(ctx context.Context, tx *store.Tx) (client.Backfill, error) {
		if err := a.mayRunID(ctx, tx, caller, in.ID); err != nil {
			return client.Backfill{}, err
		}
		b, err := a.schedules.PlanBackfill(ctx, tx, owner, in.ID, ask, actor(caller))
		if err != nil {
			return client.Backfill{}, err
		}
		return a.backfillAnswer(ctx, tx, owner, b.ID, true)
	})
	if err != nil {
		return nil, err
	}
	return &backfillOutput{was, body}, nil
}

// BackfillPath is the input of requests about one backfill.
type BackfillPath struct {
	ID string `path:"id" example:"0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e" doc:"The backfill's id."`
}

func (p BackfillPath) check() error {
	if uuid.Validate(p.ID) != nil {
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "read backfill", Msg: fmt.Sprintf("there is no backfill %q", p.ID)}
	}
	return nil
}

type getBackfillInput struct {
	BackfillPath
	Slots bool `query:"slots" doc:"With the plan, slot by slot."`
}

type listBackfillsInput struct {
	SchedulePath
	PageInput
}

const backfillCursor = "backfill"

func (a *API) listBackfills(ctx context.Context, in *listBackfillsInput) (*pageOutput[client.Backfill], error) {
	at, id, err := in.placeInTime(backfillCursor)
	if err != nil {
		return nil, err
	}
	out := &pageOutput[client.Backfill]{}
	err = a.readSchedule(ctx, in.SchedulePath, func(ctx context.Context, tx *store.Tx, s schedulestore.Schedule) error {
		list, err := schedulestore.In(tx).BackfillsBefore(ctx, s.ID, store.Place{CreatedAt: at, ID: id}, in.Limit+1)
		if err != nil {
			return err
		}
		cursor := func(b schedulestore.Backfill) string { return timeCursor(b.CreatedAt, b.ID) }
		out.Body = cutPage(list, in.Limit, backfillCursor, cursor, func(b schedulestore.Backfill) (told client.Backfill) {
			if err == nil {
				told, err = a.backfillAnswer(ctx, tx, s.OwnerUserID, b.ID, false)
			}
			return told
		})
		return err
	})
	return out, err
}

func (a *API) getBackfill(ctx context.Context, in *getBackfillInput) (*output[client.Backfill], error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	owner, out := access.Reach(callOf(ctx).token, schedulesResource), &output[client.Backfill]{}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		out.Body, err = a.backfillAnswer(ctx, tx, owner, in.ID, in.Slots)
		return err
	})
	return out, err
}

type confirmBackfillInput struct {
	BackfillPath
	OnceHeader
	Body client.ConfirmRequest
}

func (a *API) confirmBackfill(ctx context.Context, in *confirmBackfillInput) (*backfillOutput, error) {
	return a.changeBackfill(ctx, in.BackfillPath, true, &in.Body, func(ctx context.Context, tx *store.Tx, owner, by string) error {
		_, err := a.schedules.Confirm(ctx, tx, owner, in.ID, in.Body.Hash, by)
		return err
	})
}

type changeBackfillInput struct {
	BackfillPath
	OnceHeader
}

// moveBackfill makes the handler that brings a backfill to a state.
func moveBackfill(to string) func(*API, context.Context, *changeBackfillInput) (*backfillOutput, error) {
	return func(a *API, ctx context.Context, in *changeBackfillInput) (*backfillOutput, error) {
		return a.changeBackfill(ctx, in.BackfillPath, to == schedule.BackfillRunning, struct{}{}, func(ctx context.Context, tx *store.Tx, owner, by string) error {
			_, err := a.schedules.Move(ctx, tx, owner, in.ID, to, by)
			return err
		})
	}
}

// mayRunID is mayRun for a schedule that is there.
func (a *API) mayRunID(ctx context.Context, tx *store.Tx, caller *userstore.Token, id string) error {
	s, err := a.schedules.Owned(ctx, tx, access.Reach(caller, schedulesResource), id)
	if err != nil {
		return err
	}
	return mayRun(caller, s)
}

// changeBackfill changes a backfill; runs says whether slots run because of it.
func (a *API) changeBackfill(ctx context.Context, in BackfillPath, runs bool, request any, change func(ctx context.Context, tx *store.Tx, owner, by string) error) (*backfillOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	owner := access.Reach(caller, schedulesResource)
	body, was, err := once(ctx, a, http.StatusOK, request, whole, func(ctx context.Context, tx *store.Tx) (client.Backfill, error) {
		err := change(ctx, tx, owner, actor(caller))
		if err == nil && runs {
			var b schedulestore.Backfill
			if b, err = schedulestore.In(tx).GetBackfill(ctx, in.ID); err == nil {
				err = a.mayRunID(ctx, tx, caller, b.ScheduleID)
			}
		}
		if err != nil {
			return client.Backfill{}, err
		}
		return a.backfillAnswer(ctx, tx, owner, in.ID, false)
	})
	if err != nil {
		return nil, err
	}
	return &backfillOutput{was, body}, nil
}
