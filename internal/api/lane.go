package api

import (
	"context"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/when"
	"github.com/pawlrun/pawl/internal/workflow"
)

// workflowLane tells a workflow as a lane.
func workflowLane(l *workflow.Lane, now time.Time) client.Lane {
	out := client.Lane{
		Kind: string(pawl.KindWorkflow), Name: l.Name, ID: l.ID, Status: string(l.State), Issue: client.NullString(l.Sentence), IssueCode: client.NullString(string(l.Issue)),
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

// laneKind is one kind of lane: how its lanes are listed and explained.
type laneKind struct {
	kind pawl.Kind
	// list reads up to limit lanes by name, those after the given one, and the
	// name with which to go on, empty at the end.
	list func(ctx context.Context, after string, limit int) (page []client.Lane, next string, err error)
	why  func(ctx context.Context, name string, at time.Time) (client.LaneWhy, error)
}

// laneKinds are the kinds in the order in which lanes are listed.
func (a *API) laneKinds() []laneKind {
	kinds := []laneKind{{pawl.KindWorkflow, a.workflowLanes, a.whyWorkflow}}
	if a.sources != nil {
		kinds = append(kinds, laneKind{pawl.KindSource, a.sourceLanes, a.whySource})
	}
	if a.schedules != nil {
		kinds = append(kinds, laneKind{pawl.KindSchedule, a.scheduleLanes, a.whySchedule})
	}
	return kinds
}

func (a *API) workflowLanes(ctx context.Context, after string, limit int) ([]client.Lane, string, error) {
	list, next, err := a.workflows.Lanes(ctx, after, limit)
	if err != nil {
		return nil, "", err
	}
	now := time.Now()
	lanes := make([]client.Lane, len(list))
	for i := range list {
		lanes[i] = workflowLane(&list[i], now)
	}
	return lanes, next, nil
}

type listLanesInput struct {
	PageInput
	Kind string `query:"kind" enum:"workflow,source,schedule" doc:"Only lanes of this kind."`
}

type listLanesOutput struct{ Body client.Page[client.Lane] }

const laneCursor = "lane"

// listLanes goes through the kinds, and in each by name. A cursor is the kind
// and the name of the last lane of a page.
func (a *API) listLanes(ctx context.Context, in *listLanesInput) (*listLanesOutput, error) {
	place, err := in.place(laneCursor)
	if err != nil {
		return nil, err
	}
	from, after, _ := strings.Cut(place, ":")
	if place != "" && textFault(after, maxName) != "" {
		return nil, badCursor()
	}
	lanes := []client.Lane{}
	begun := place == ""
	for _, k := range a.laneKinds() {
		if !begun && string(k.kind) != from {
			continue
		}
		if in.Kind == "" || in.Kind == string(k.kind) {
			// One more than there is room for tells whether there is another page.
			page, _, err := k.list(ctx, after, in.Limit+1-len(lanes))
			if err != nil {
				return nil, err
			}
			lanes = append(lanes, page...)
		}
		begun, after = true, ""
		if len(lanes) > in.Limit {
			break
		}
	}
	if !begun {
		return nil, badCursor()
	}
	cursor := func(l client.Lane) string { return l.Kind + ":" + l.Name }
	return &listLanesOutput{cutPage(lanes, in.Limit, laneCursor, cursor, func(l client.Lane) client.Lane { return l })}, nil
}
