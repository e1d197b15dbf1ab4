package api

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

type timelineInput struct {
	PageInput
	From string `query:"from" format:"date-time" doc:"From this instant on; absent is now."`
	To   string `query:"to" format:"date-time" doc:"Before this instant, at most 31 days later; absent is 24 hours later."`
	Kind string `query:"kind" enum:"workflow,source,schedule" doc:"Only what is of this kind."`
}

const (
	timelineCursor = "timeline"
	longestWindow  = 31 * 24 * time.Hour
	farthestYears  = 5 // from now
	isRun, isSlot  = "run", "slot"
)

// window is the time that is asked for.
func (in *timelineInput) window(now time.Time) (from, to time.Time, err error) {
	if from, err = instantParameter("/from", in.From, now); err != nil {
		return from, to, err
	}
	if to, err = instantParameter("/to", in.To, from.Add(24*time.Hour)); err != nil {
		return from, to, err
	}
	if to.After(now.AddDate(farthestYears, 0, 0)) {
		return from, to, invalid(fmt.Sprintf("Ask for a time within %d years from now.", farthestYears), client.Fault{Pointer: "/to", Message: "is too far in the future"})
	}
	if !to.After(from) || to.Sub(from) > longestWindow {
		return from, to, invalid("Ask for a shorter time.", client.Fault{Pointer: "/to", Message: "must be after from, by at most 31 days"})
	}
	return from, to, nil
}

// timelinePlace is the last item of the page before.
type timelinePlace struct {
	what string // empty: there was none
	at   time.Time
	tie  string
}

func (in *timelineInput) after() (p timelinePlace, err error) {
	place, err := in.place(timelineCursor)
	if err != nil || place == "" {
		return p, err
	}
	parts := strings.SplitN(place, ":", 3)
	if len(parts) != 3 || parts[0] != isRun && parts[0] != isSlot || textFault(parts[2], maxName) != "" {
		return p, badCursor()
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return p, badCursor()
	}
	return timelinePlace{parts[0], time.UnixMilli(n).UTC(), parts[2]}, nil
}

// getTimeline tells first the runs and then what comes due: all runs have begun
// by now, and nothing that comes due does so before.
func (a *API) getTimeline(ctx context.Context, in *timelineInput) (*output[client.Timeline], error) {
	now := time.Now().UTC()
	from, to, err := in.window(now)
	if err != nil {
		return nil, err
	}
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	out := &output[client.Timeline]{client.Timeline{Now: client.At(now)}}
	var items []tiedItem
	if after.what != isSlot && from.Before(now) {
		var next store.Place
		if items, next, err = a.pastItems(ctx, in, from, to, after); err != nil {
			return nil, err
		}
		if next.ID != "" {
			out.Body.Page = pageOf(mapAll(items, untied), timelineCursor, fmt.Sprintf("%s:%d:%s", isRun, next.CreatedAt.UnixMilli(), next.ID))
			return out, nil
		}
	}
	if to.After(now) {
		start := now
		if from.After(now) {
			start = from
		}
		var due []due
		if due, out.Body.Partial, err = a.dueLanes(ctx, in.Kind, now, to); err != nil {
			return nil, err
		}
		upcoming, err := upcomingItems(ctx, due, start, to, after, in.Limit+1-len(items))
		if err != nil {
			return nil, err
		}
		items = append(items, upcoming...)
	}
	cursor := func(i tiedItem) string { return fmt.Sprintf("%s:%d:%s", i.What, i.At.UnixMilli(), i.tie) }
	out.Body.Page = cutPage(items, in.Limit, timelineCursor, cursor, untied)
	return out, nil
}

// tiedItem is an item with what tells it apart from others of the same instant.
type tiedItem struct {
	client.TimelineItem
	tie string
}

func untied(i tiedItem) client.TimelineItem { return i.TimelineItem }

// pastItems are the runs that began in the window, and where to go on, zero at
// the end.
func (a *API) pastItems(ctx context.Context, in *timelineInput, from, to time.Time, after timelinePlace) (items []tiedItem, next store.Place, err error) {
	filter := runstore.RunFilter{Kind: pawl.Kind(in.Kind), Viewer: access.Reach(callOf(ctx).token, schedulesResource), From: from, To: to}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		var runs []runstore.Run
		if runs, next, err = runstore.In(tx).RunsInOrder(ctx, filter, store.Place{CreatedAt: after.at, ID: after.tie}, in.Limit); err != nil {
			return err
		}
		items = nil
		for i := range runs {
			s := a.runSummary(&runs[i])
			item := tiedItem{client.TimelineItem{At: s.CreatedAt, What: isRun, Kind: s.Kind, Lane: s.Lane, LaneID: s.LaneID, Run: &s}, s.ID}
			if s.Handler != s.Lane {
				item.Handler = client.NullString(s.Handler)
			}
			items = append(items, item)
		}
		return nil
	})
	return items, next, err
}
