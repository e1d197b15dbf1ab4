package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store"
)

// LaneWhy is why a lane runs, does not run, or waits.
type LaneWhy struct {
	Lane
	At     Instant       `json:"at" doc:"As of when this is told."`
	Next   string        `json:"next" example:"It looks again at 2030-01-31T09:00:00.000Z." doc:"What it does next."`
	Do     *string       `json:"do" example:"pawl approve 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e" doc:"The command that ends what its status tells; null while it is idle."`
	Gates  []Gate        `json:"gates" nullable:"false" doc:"The conditions of running; it runs when all are open."`
	Recent []RunSummary  `json:"recent" nullable:"false" doc:"Its last runs, the newest first."`
	Around Maybe[Around] `json:"around" doc:"What was at the instant that was asked for; null if none was."`

	Slot Maybe[contract.ScheduleRunV1] `json:"slot" doc:"Of a schedule: the slot of that instant, or the one before it; else null."`
}

// Gate is one condition of running.
type Gate struct {
	Name  string   `json:"name" example:"wanted"`
	Open  bool     `json:"open"`
	Text  string   `json:"text" example:"It is meant to run."`
	Until *Instant `json:"until" nullable:"true" doc:"When it opens by itself; null if it is not known, or open."`
}

// Around are the runs around an instant.
type Around struct {
	At     Instant           `json:"at"`
	Text   string            `json:"text" doc:"What was then, in a sentence."`
	Before Maybe[RunSummary] `json:"before" doc:"The newest run that began then or before."`
	After  Maybe[RunSummary] `json:"after" doc:"The first run that began after."`
}

type whyLaneInput struct {
	Kind string `path:"kind" example:"workflow" doc:"workflow, source or schedule."`
	Name string `path:"name" example:"mail-to-sheet"`
	At   string `query:"at" format:"date-time" doc:"Tell also of the runs around this instant."`
}

type whyLaneOutput struct{ Body LaneWhy }

func (a *API) whyLane(ctx context.Context, in *whyLaneInput) (*whyLaneOutput, error) {
	var at time.Time
	if in.At != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, in.At); err != nil {
			return nil, invalid("Use RFC 3339 in UTC, such as 2030-01-31T09:00:00Z.", Fault{Pointer: "/at", Message: "must be an RFC 3339 date-time"})
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

func (a *API) whyWorkflow(ctx context.Context, name string, at time.Time) (out LaneWhy, err error) {
	if textFault(name, maxName) != "" {
		return out, a.noWorkflow(ctx, name)
	}
	why, err := a.workflows.Why(ctx, name)
	if err != nil {
		return out, a.aboutWorkflow(ctx, name, err)
	}
	out = LaneWhy{
		Lane: workflowLane(&why.Lane, why.At), At: Instant{why.At}, Next: why.Next, Do: orNull(why.Do),
		Gates: make([]Gate, len(why.Gates)), Recent: runSummaries(why.Recent),
	}
	for i, g := range why.Gates {
		out.Gates[i] = Gate{g.Name, g.Open, g.Text, nil}
	}
	if at.IsZero() {
		return out, nil
	}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		lane, err := a.workflows.LaneOf(ctx, tx, name)
		if err != nil {
			return err
		}
		out.Around.Value, err = around(ctx, tx, pawl.KindWorkflow, lane, at)
		return err
	})
	return out, err
}

// around reads the runs on both sides of an instant.
func around(ctx context.Context, tx *store.Tx, kind pawl.Kind, lane string, at time.Time) (*Around, error) {
	out := &Around{At: Instant{at}}
	before, err := tx.RunAtOrBefore(ctx, kind, lane, at)
	if err == nil {
		s := runSummary(&before)
		out.Before.Value = &s
	} else if !errors.Is(err, pawl.ErrNotFound) {
		return nil, err
	}
	after, err := tx.RunAfter(ctx, kind, lane, at)
	if err == nil {
		s := runSummary(&after)
		out.After.Value = &s
	} else if !errors.Is(err, pawl.ErrNotFound) {
		return nil, err
	}
	out.Text = aroundWords(out, tx.Now)
	return out, nil
}

// aroundWords says what was at the instant.
func aroundWords(a *Around, now time.Time) string {
	before, after := a.Before.Value, a.After.Value
	switch {
	case a.At.After(now):
		return "That is still to come."
	case before != nil && (before.EndedAt == nil || before.EndedAt.After(a.At.Time)):
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
