package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// SlotPath is the input of requests about one slot.
type SlotPath struct {
	SchedulePath
	Instant string `path:"instant" example:"2026-12-24T02:00:00Z" doc:"The instant of the slot."`
}

func (p SlotPath) at() (time.Time, error) {
	if err := p.check(); err != nil {
		return time.Time{}, err
	}
	return instantParameter("/instant", p.Instant, time.Time{})
}

// getSlot tells everything about one slot, with all that is kept of its output.
func (a *API) getSlot(ctx context.Context, in *SlotPath) (*output[client.Slot], error) {
	at, err := in.at()
	if err != nil {
		return nil, err
	}
	out := &output[client.Slot]{}
	err = a.readScheduleBy(ctx, in.SchedulePath, a.schedules.Kept, func(ctx context.Context, tx *store.Tx, s schedulestore.Schedule) error {
		slot, err := schedulestore.In(tx).CoveringSlot(ctx, s.ID, at)
		if err != nil {
			return err
		}
		list := []client.Slot{schedule.SlotOf(slot)}
		err = addOutputs(ctx, tx, list, 0)
		out.Body = list[0]
		return err
	})
	return out, err
}

// shortOutput is how much of each output lists show, in bytes.
const shortOutput = 1 << 10

// addOutputs adds to slots what their commands, URLs and jobs left behind; most
// bounds each text, 0 does not.
func addOutputs(ctx context.Context, tx *store.Tx, list []client.Slot, most int) error {
	var keys []string
	for _, slot := range list {
		if !slot.StartedAt.IsZero() || slot.AttemptCount > 0 {
			keys = append(keys, pawl.SlotKey(slot.ScheduleID, slot.ScheduledFor.Time))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	outputs, err := executionstore.In(tx).PlainOutputs(ctx, keys)
	if err != nil {
		return err
	}
	for i, slot := range list {
		raw := outputs[pawl.SlotKey(slot.ScheduleID, slot.ScheduledFor.Time)]
		if raw == nil {
			continue
		}
		var o client.PlainOutput
		if err := json.Unmarshal(raw, &o); err != nil {
			return err
		}
		list[i].Output = shortened(o, most)
	}
	return nil
}

func shortened(o client.PlainOutput, most int) *client.PlainOutput {
	if most == 0 {
		return &o
	}
	tail := func(text *string) {
		if len(*text) > most {
			*text, o.Truncated = strings.ToValidUTF8((*text)[len(*text)-most:], ""), true
		}
	}
	tail(&o.Stdout)
	tail(&o.Stderr)
	if len(o.Body) > most {
		o.Body, o.Truncated = strings.ToValidUTF8(o.Body[:most], ""), true
	}
	size := 0
	for name, value := range o.Headers {
		size += len(name) + len(value)
	}
	if size > most {
		o.Headers, o.Truncated = nil, true
	}
	return &o
}

type changeSlotInput struct {
	SlotPath
	OnceHeader
}

// changeSlot makes what a person decides about a slot.
func (a *API) changeSlot(ctx context.Context, in *changeSlotInput, runs bool,
	change func(ctx context.Context, tx *store.Tx, owner, id string, at time.Time, by string) (schedulestore.Slot, error),
) (*runScheduleOutput, error) {
	at, err := in.at()
	if err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	body, was, err := once(ctx, a, http.StatusOK, struct{}{}, whole, func(ctx context.Context, tx *store.Tx) (client.Slot, error) {
		slot, err := a.decideSlot(ctx, tx, caller, in.ID, at, runs, change)
		return schedule.SlotOf(slot), err
	})
	if err != nil {
		return nil, err
	}
	return &runScheduleOutput{was, body}, nil
}

func (a *API) decideSlot(ctx context.Context, tx *store.Tx, caller *userstore.Token, id string, at time.Time, runs bool,
	change func(ctx context.Context, tx *store.Tx, owner, id string, at time.Time, by string) (schedulestore.Slot, error),
) (schedulestore.Slot, error) {
	s, err := a.schedules.Owned(ctx, tx, access.Reach(caller, schedulesResource), id)
	if err == nil && runs {
		err = mayRun(caller, s)
	}
	if err != nil {
		return schedulestore.Slot{}, err
	}
	return change(ctx, tx, s.OwnerUserID, id, at, actor(caller))
}

// resolveSlot says what became of a slot of which nobody knows whether it ran.
func (a *API) resolveSlot(ctx context.Context, tx *store.Tx, r *runstore.Run, outcome, by string) error {
	sch, err := schedulestore.In(tx).GetSchedule(ctx, a.kinds.LaneOf(r).Key)
	if err == nil {
		err = mayRun(callOf(ctx).token, sch)
	}
	if err != nil {
		return err
	}
	return a.schedules.Resolve(ctx, tx, *r, outcome, by)
}

// retrySlot runs a slot again that failed or was passed over.
func (a *API) retrySlot(ctx context.Context, in *changeSlotInput) (*runScheduleOutput, error) {
	return a.changeSlot(ctx, in, true, a.schedules.RetrySlot)
}

// skipSlot keeps a slot from running, or leaves one that failed as it is.
func (a *API) skipSlot(ctx context.Context, in *changeSlotInput) (*runScheduleOutput, error) {
	return a.changeSlot(ctx, in, false, a.schedules.SkipSlot)
}
