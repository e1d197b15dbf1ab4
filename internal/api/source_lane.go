package api

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// sourceLane tells a source as a lane. Nothing ever waits in it: what is
// fetched is written at once.
func sourceLane(l *source.Lane, now time.Time) Lane {
	out := Lane{
		Kind: string(pawl.KindSource), Name: l.Name, ID: l.ID, Status: string(l.State), Issue: orNull(l.Sentence), IssueCode: orNull(string(l.Issue)),
		Schedule: l.Schedule, NextAt: instantOf(l.NextAt), LastActivity: Activity{Instant{l.LastAt}, l.LastText},
		Paused: l.Paused, Labels: l.Labels,
	}
	if !l.NextAt.IsZero() {
		out.NextText = orNull(when.Until(now, l.NextAt))
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	return out
}

func (a *API) sourceLanes(ctx context.Context, after string, limit int) ([]Lane, string, error) {
	list, next, err := a.sources.Lanes(ctx, after, limit)
	if err != nil {
		return nil, "", err
	}
	now := time.Now()
	lanes := make([]Lane, len(list))
	for i := range list {
		lanes[i] = sourceLane(&list[i], now)
	}
	return lanes, next, nil
}

func (a *API) whySource(ctx context.Context, name string, at time.Time) (out LaneWhy, err error) {
	if textFault(name, maxName) != "" {
		return out, a.noSource(ctx, name)
	}
	why, err := a.sources.Why(ctx, name)
	if err != nil {
		return out, a.aboutSource(ctx, name, err)
	}
	out = LaneWhy{
		Lane: sourceLane(&why.Lane, why.At), At: Instant{why.At}, Next: why.Next, Do: orNull(why.Do),
		Gates: sourceGates(why.Gates), Recent: runSummaries(why.Recent),
	}
	if at.IsZero() {
		return out, nil
	}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out.Around.Value, err = around(ctx, tx, pawl.KindSource, name, at)
		return err
	})
	return out, err
}

func sourceGates(list []source.Gate) []Gate {
	out := make([]Gate, len(list))
	for i, g := range list {
		out[i] = Gate{Name: g.Name, Open: g.Open, Text: g.Text}
		if !g.Open {
			out[i].Until = instantOf(g.Until)
		}
	}
	return out
}
