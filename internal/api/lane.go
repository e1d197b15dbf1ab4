package api

import (
	"context"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/when"
)

// laneOf tells a lane.
func laneOf(l *lane.Lane, now time.Time) client.Lane {
	out := client.Lane{
		Kind: string(l.Kind), Name: l.Name, ID: l.ID, Status: string(l.State), Issue: client.NullString(l.Sentence), IssueCode: client.NullString(string(l.Issue)),
		Schedule: l.Schedule, NextAt: client.At(l.NextAt), LastActivity: client.Activity{At: client.At(l.LastAt), Text: l.LastText},
		Pending: l.Pending, PendingMore: l.PendingMore, Paused: l.Paused, Pause: pauseOf(l.Pause), Labels: l.Labels, Expectations: expectationsOf(l.Expectations),
	}
	if !l.NextAt.IsZero() {
		out.NextText = client.NullString(when.Until(now, l.NextAt))
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	return out
}

// expectationsOf tells what is expected of a lane, and whether it is met.
func expectationsOf(list []terms.Verdict) (out []client.Expectation) {
	for _, v := range list {
		out = append(out, client.Expectation{Name: v.Name, Met: v.Met, Since: client.At(v.Since), Sentence: v.Sentence})
	}
	return out
}

// viewerOf is who asks, towards lanes of a kind.
func viewerOf(ctx context.Context, kind pawl.Kind) lane.Viewer {
	caller := callOf(ctx).token
	return lane.Viewer{UserID: caller.User.ID, Owner: access.Reach(caller, resourceOf(kind))}
}

// resourceOf is what scopes call the lanes of a kind.
func resourceOf(kind pawl.Kind) string { return string(kind) + "s" }

type listLanesInput struct {
	PageInput
	Kind string `query:"kind" enum:"workflow,source,schedule" doc:"Only lanes of this kind."`
}

const laneCursor = "lane"

// listLanes goes through the kinds, and in each by name. A cursor is the kind
// and the name of the last lane of a page.
func (a *API) listLanes(ctx context.Context, in *listLanesInput) (*pageOutput[client.Lane], error) {
	place, err := in.place(laneCursor)
	if err != nil {
		return nil, err
	}
	from, after, _ := strings.Cut(place, ":")
	if place != "" && textFault(after, 2*maxName) != "" {
		return nil, badCursor()
	}
	var lanes []lane.Lane
	begun := place == ""
	for _, k := range a.kinds {
		if !begun && string(k.Kind()) != from {
			continue
		}
		if in.Kind == "" || in.Kind == string(k.Kind()) {
			// One more than there is room for tells whether there is another page.
			// Where lanes are owned they are the caller's own.
			page, _, err := k.List(ctx, lane.Query{Owner: callOf(ctx).token.User.ID, After: lane.ParsePlace(after), Limit: in.Limit + 1 - len(lanes)})
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
	now := time.Now()
	cursor := func(l lane.Lane) string { return string(l.Kind) + ":" + l.Place().String() }
	return &pageOutput[client.Lane]{cutPage(lanes, in.Limit, laneCursor, cursor, func(l lane.Lane) client.Lane { return laneOf(&l, now) })}, nil
}
