package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

type whyLaneInput struct {
	Kind string `path:"kind" example:"workflow" doc:"workflow, source or schedule."`
	Name string `path:"name" example:"mail-to-sheet"`
	At   string `query:"at" format:"date-time" doc:"Tell also of the runs around this instant."`
}

type whyLaneOutput struct{ Body client.LaneWhy }

func (a *API) whyLane(ctx context.Context, in *whyLaneInput) (*whyLaneOutput, error) {
	var at time.Time
	if in.At != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, in.At); err != nil {
			return nil, invalid("Use RFC 3339 in UTC, such as 2030-01-31T09:00:00Z.", client.Fault{Pointer: "/at", Message: "must be an RFC 3339 date-time"})
		}
	}
	var kinds []string
	for _, k := range a.laneKinds() {
		if in.Kind == string(k.kind) {
			why, err := k.why(ctx, in.Name, at)
			if err != nil {
				return nil, err
			}
			return &whyLaneOutput{why}, nil
		}
		kinds = append(kinds, string(k.kind))
	}
	return nil, &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("there is no kind %q", in.Kind), Hint: choicesHint(in.Kind, "kinds", kinds)}
}

func (a *API) whyWorkflow(ctx context.Context, name string, at time.Time) (out client.LaneWhy, err error) {
	if textFault(name, maxName) != "" {
		return out, a.noWorkflow(ctx, name)
	}
	why, err := a.workflows.Why(ctx, name)
	if err != nil {
		return out, a.aboutWorkflow(ctx, name, err)
	}
	out = client.LaneWhy{
		Lane: workflowLane(&why.Lane, why.At), At: client.At(why.At), Next: why.Next, Do: client.NullString(why.Do),
		Gates: make([]client.Gate, len(why.Gates)), Recent: runSummaries(why.Recent),
	}
	for i, g := range why.Gates {
		out.Gates[i] = client.Gate{Name: g.Name, Open: g.Open, Text: g.Text}
	}
	if at.IsZero() {
		return out, nil
	}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		lane, err := a.workflows.LaneOf(ctx, tx, name)
		if err != nil {
			return err
		}
		out.Around, err = around(ctx, tx, pawl.KindWorkflow, lane, at)
		return err
	})
	return out, err
}

// around reads the runs on both sides of an instant.
func around(ctx context.Context, tx *store.Tx, kind pawl.Kind, lane string, at time.Time) (*client.Around, error) {
	out := &client.Around{At: client.At(at)}
	before, err := tx.RunAtOrBefore(ctx, kind, lane, at)
	if err == nil {
		s := runSummary(&before)
		out.Before = &s
	} else if !errors.Is(err, pawl.ErrNotFound) {
		return nil, err
	}
	after, err := tx.RunAfter(ctx, kind, lane, at)
	if err == nil {
		s := runSummary(&after)
		out.After = &s
	} else if !errors.Is(err, pawl.ErrNotFound) {
		return nil, err
	}
	out.Text = aroundWords(out, tx.Now)
	return out, nil
}

// aroundWords says what was at the instant.
func aroundWords(a *client.Around, now time.Time) string {
	before, after := a.Before, a.After
	switch {
	case a.At.After(now):
		return "That is still to come."
	case before != nil && (before.EndedAt.IsZero() || before.EndedAt.After(a.At.Time)):
		return fmt.Sprintf("A run of %s had begun at %s and was not over.", before.Handler, pawl.FormatTime(before.CreatedAt.Time))
	case before == nil && after == nil:
		return "It has never run."
	case before == nil:
		return fmt.Sprintf("It had not run yet; its first run began at %s.", pawl.FormatTime(after.CreatedAt.Time))
	case after == nil:
		return fmt.Sprintf("Nothing ran; the run before was over at %s, and there was none after.", pawl.FormatTime(before.EndedAt.Time))
	}
	return fmt.Sprintf("Nothing ran; the run before was over at %s, and the next began at %s.", pawl.FormatTime(before.EndedAt.Time), pawl.FormatTime(after.CreatedAt.Time))
}
