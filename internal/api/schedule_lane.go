package api

import (
	"context"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// scheduleLane tells a schedule as a lane.
func scheduleLane(l *schedule.Lane, now time.Time) client.Lane {
	out := client.Lane{
		Kind: string(pawl.KindSchedule), Name: l.Name, ID: l.ID, Status: string(l.State), Issue: client.NullString(l.Sentence), IssueCode: client.NullString(string(l.Issue)),
		Schedule: l.Schedule, NextAt: client.At(l.NextAt), LastActivity: client.Activity{At: client.At(l.LastAt), Text: l.LastText},
		Pending: l.Pending, Paused: l.Paused, Labels: l.Labels,
	}
	if !l.NextAt.IsZero() {
		out.NextText = client.NullString(when.Until(now, l.NextAt))
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	return out
}

// scheduleLanes are the caller's own: names belong to their owners.
func (a *API) scheduleLanes(ctx context.Context, after string, limit int) ([]client.Lane, string, error) {
	list, next, err := a.schedules.Lanes(ctx, callOf(ctx).token.User.ID, after, limit)
	if err != nil {
		return nil, "", err
	}
	now := time.Now()
	lanes := make([]client.Lane, len(list))
	for i := range list {
		lanes[i] = scheduleLane(&list[i].Lane, now)
	}
	return lanes, next, nil
}

// whySchedule takes the id of a schedule, or the name of one of the caller's.
func (a *API) whySchedule(ctx context.Context, name string, at time.Time) (out client.LaneWhy, err error) {
	var sch store.Schedule
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		sch, err = a.findSchedule(ctx, tx, name)
		return err
	})
	if errors.Is(err, pawl.ErrNotFound) {
		return out, noSchedule(name)
	}
	if err != nil {
		return out, err
	}
	why, err := a.schedules.Why(ctx, access.Reach(callOf(ctx).token, schedulesResource), sch.ID, at)
	if err != nil {
		return out, err
	}
	out = client.LaneWhy{Lane: scheduleLane(&why.Lane, why.At), At: client.At(why.At), Next: why.Next, Do: client.NullString(why.Do), Gates: make([]client.Gate, len(why.Gates)), Recent: runSummaries(why.Runs)}
	for i, g := range why.Gates {
		out.Gates[i] = client.Gate{Name: g.Name, Open: g.Open, Text: g.Text}
	}
	if !at.IsZero() {
		err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
			out.Around, err = around(ctx, tx, pawl.KindSchedule, sch.ID, at)
			return err
		})
	}
	if err == nil && why.Slot != nil {
		slot := slotOf(*why.Slot)
		out.Slot = &slot
		if !at.After(time.Now()) {
			out.Around.Text = slotWords(why.Slot)
		}
	}
	return out, err
}
