package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

type whyLaneInput struct {
	Kind string `path:"kind" example:"workflow" doc:"workflow, source or schedule."`
	Name string `path:"name" example:"mail-to-sheet"`
	At   string `query:"at" format:"date-time" doc:"Tell also of the runs around this instant."`
}

func (a *API) whyLane(ctx context.Context, in *whyLaneInput) (*output[client.LaneWhy], error) {
	var at time.Time
	if in.At != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, in.At); err != nil {
			return nil, invalid("Use RFC 3339 in UTC, such as 2030-01-31T09:00:00Z.", client.Fault{Pointer: "/at", Message: "must be an RFC 3339 date-time"})
		}
	}
	k, ok := a.kinds.Get(pawl.Kind(in.Kind))
	if !ok {
		var kinds []string
		for _, k := range a.kinds {
			kinds = append(kinds, string(k.Kind()))
		}
		return nil, &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("there is no kind %q", in.Kind), Hint: choicesHint(in.Kind, "kinds", kinds)}
	}
	if textFault(in.Name, maxName) != "" {
		return nil, a.noLane(ctx, k, in.Name)
	}
	why, err := k.Why(ctx, viewerOf(ctx, k.Kind()), in.Name, at)
	if errors.Is(err, pawl.ErrNotFound) {
		return nil, a.noLane(ctx, k, in.Name)
	}
	if err != nil {
		return nil, err
	}
	return &output[client.LaneWhy]{a.whyOf(&why)}, nil
}

func (a *API) whyOf(y *lane.Why) client.LaneWhy {
	out := client.LaneWhy{Lane: laneOf(&y.Lane, y.At), At: client.At(y.At), Next: y.Next, Do: client.NullString(y.Do), Gates: gatesOf(y.Gates), Recent: a.runSummaries(y.Recent), Slot: y.Slot}
	if y.Around != nil {
		out.Around = &client.Around{At: client.At(y.Around.At), Text: y.Around.Text, Before: a.maybeRun(y.Around.Before), After: a.maybeRun(y.Around.After), Run: a.maybeRun(y.Around.Stood)}
	}
	return out
}

func (a *API) maybeRun(r *runstore.Run) *client.RunSummary {
	if r == nil {
		return nil
	}
	s := a.runSummary(r)
	return &s
}

func gatesOf(list []lane.Gate) []client.Gate {
	out := make([]client.Gate, len(list))
	for i, g := range list {
		out[i] = client.Gate{Name: g.Name, Open: g.Open, Text: g.Text}
		if !g.Open {
			out[i].Until = client.At(g.Until)
		}
	}
	return out
}

// namesToCompare is among how many lanes the one that was meant is looked for.
const namesToCompare = 200

// noLane is the error of a lane that is not there, with what was probably meant.
func (a *API) noLane(ctx context.Context, k lane.Kind, name string) error {
	kind := string(k.Kind())
	e := &pawl.Error{Code: pawl.CodeNotFound, Op: "find " + kind, Msg: fmt.Sprintf("there is no %s %q", kind, name), Hint: "pawl get " + kind + "s lists them."}
	var names []string
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		names, err = k.Names(ctx, tx, callOf(ctx).token.User.ID, namesToCompare)
		return err
	})
	if near := pawl.Nearest(name, names); err == nil && near != "" { // without a hint it is still the answer
		e.Hint = fmt.Sprintf("Did you mean %q? ", near) + e.Hint
	}
	return e
}
