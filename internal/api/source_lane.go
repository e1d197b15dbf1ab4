package api

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// sourceLane tells a source as a lane. Nothing ever waits in it: what is
// fetched is written at once.
func sourceLane(l *source.Lane, now time.Time) client.Lane {
	out := client.Lane{
		Kind: string(pawl.KindSource), Name: l.Name, ID: l.ID, Status: string(l.State), Issue: client.NullString(l.Sentence), IssueCode: client.NullString(string(l.Issue)),
		Schedule: l.Schedule, NextAt: client.At(l.NextAt), LastActivity: client.Activity{At: client.At(l.LastAt), Text: l.LastText},
		Paused: l.Paused, Labels: l.Labels,
	}
	if !l.NextAt.IsZero() {
		out.NextText = client.NullString(when.Until(now, l.NextAt))
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	return out
}

func (a *API) sourceLanes(ctx context.Context, after string, limit int) ([]client.Lane, string, error) {
	list, next, err := a.sources.Lanes(ctx, after, limit)
	if err != nil {
		return nil, "", err
	}
	now := time.Now()
	lanes := make([]client.Lane, len(list))
	for i := range list {
		lanes[i] = sourceLane(&list[i], now)
	}
	return lanes, next, nil
}

func (a *API) whySource(ctx context.Context, name string, at time.Time) (out client.LaneWhy, err error) {
	if textFault(name, maxName) != "" {
		return out, a.noSource(ctx, name)
	}
	why, err := a.sources.Why(ctx, name)
	if err != nil {
		return out, a.aboutSource(ctx, name, err)
	}
	out = client.LaneWhy{
		Lane: sourceLane(&why.Lane, why.At), At: client.At(why.At), Next: why.Next, Do: client.NullString(why.Do),
		Gates: sourceGates(why.Gates), Recent: runSummaries(why.Recent),
	}
	if at.IsZero() {
		return out, nil
	}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out.Around, err = around(ctx, tx, pawl.KindSource, name, at)
		return err
	})
	return out, err
}

func sourceGates(list []source.Gate) []client.Gate {
	out := make([]client.Gate, len(list))
	for i, g := range list {
		out[i] = client.Gate{Name: g.Name, Open: g.Open, Text: g.Text}
		if !g.Open {
			out[i].Until = client.At(g.Until)
		}
	}
	return out
}
