package api

import (
	"fmt"
	"slices"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/when"
)

// Surface 4: the timeline has the runs of the past and what comes due, of all
// kinds, in the order of time, and the same on every size of page.
func TestTimelineHasThePastAndTheFuture(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("hourly", producing("hourly", ""))
		r.waitRuns("?lane=hourly&status=committed", 2)
		s := r.schedule(yearly("poet", "http:poet", "cron", "30 * * * *"))
		r.schedule(yearly("off", "http:poet", "cron", "* * * * *"))
		off := pages[client.Lane](r, "/api/v1/lanes?kind=schedule&limit=5")[0]
		r.do("PATCH", "/api/v1/schedules/"+off.ID, `{"enabled":false}`).want(200)
		r.waitSlot(s.ID, r.runSchedule(s.ID).ScheduledFor, "success")
		from, to := time.Now().Add(-time.Hour), time.Now().Add(3*time.Hour)
		query := fmt.Sprintf("/api/v1/timeline?from=%s&to=%s&limit=", pawl.FormatTime(from), pawl.FormatTime(to))
		tell := func(list []client.TimelineItem) (out []string) {
			for i, item := range list {
				out = append(out, fmt.Sprintf("%s %s %s", item.What, item.Kind, item.Lane))
				if i > 0 && item.At.Before(list[i-1].At.Time) {
					t.Errorf("not in order: %v", list)
				}
				if (item.Run != nil) != (item.What == "run") || item.Kind == "schedule" && string(item.LaneID) != s.ID {
					t.Errorf("%+v", item)
				}
			}
			return out
		}
		whole := tell(pages[client.TimelineItem](r, query+"100"))
		counts := map[string]int{}
		for _, item := range whole {
			counts[item]++
		}
		if counts["run workflow hourly"] != 2 || counts["run schedule poet"] != 1 || counts["slot schedule poet"] != 3 || counts["slot workflow hourly"] < 2 || len(counts) != 4 {
			t.Errorf("%v", counts)
		}
		for _, limit := range []string{"1", "2"} {
			if got := tell(pages[client.TimelineItem](r, query+limit)); !slices.Equal(got, whole) {
				t.Errorf("limit %s: %v\nwant %v", limit, got, whole)
			}
		}
		if got := tell(pages[client.TimelineItem](r, query+"100&kind=schedule")); len(got) != 4 {
			t.Errorf("%v", got)
		}
		var page client.Page[client.TimelineItem]
		r.as(r.token("bob", userstore.RoleViewer, "*"), "GET", query+"100", nil).want(200).into(&page)
		for _, item := range page.Items {
			if item.Kind == "schedule" {
				t.Errorf("bob sees %+v", item)
			}
		}
		for path, pointer := range map[string]string{
			"?from=x": "/from", "?to=2001-01-01T00:00:00Z": "/to", "?from=2030-01-01T00:00:00Z&to=2030-02-02T00:00:00Z": "/to", "?cursor=x": "/cursor",
			"?cursor=" + string(pageOf([]int{1}, timelineCursor, "day:1:x").NextCursor): "/cursor",
		} {
			if got := pointers(r.do("GET", "/api/v1/timeline"+path, nil).problem(422, "invalid")); fmt.Sprint(got) != "["+pointer+"]" {
				t.Errorf("%s: %v", path, got)
			}
		}
	})
}

// Many lanes that come due at one instant are told once each, over the edge of
// a page too; intervals are not walked through one by one.
func TestUpcomingItemsOfOneInstant(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	lanes := func() []due {
		var list []due
		for i := range 5 {
			list = append(list, due{lane.Due{Ref: lane.Named(pawl.KindSource, fmt.Sprint("s", i)), Schedule: every(t, time.Second)}, start.AddDate(-20, 0, 0)})
		}
		return list
	}
	seen := map[string]int{}
	after := timelinePlace{}
	for range 5 {
		page := upcoming(t, lanes(), start, start.Add(3*time.Second), after, 3)
		for _, item := range page {
			seen[item.Lane+pawl.FormatTime(item.At.Time)]++
		}
		last := page[len(page)-1]
		after = timelinePlace{isSlot, last.At.Time, last.tie}
	}
	if len(seen) != 15 {
		t.Errorf("%d items of 15: %v", len(seen), seen)
	}
	if more := upcoming(t, lanes(), start, start.Add(3*time.Second), after, 3); len(more) != 0 {
		t.Errorf("%v", more)
	}
}

func upcoming(t *testing.T, list []due, start, to time.Time, after timelinePlace, limit int) []tiedItem {
	t.Helper()
	items, err := upcomingItems(t.Context(), list, start, to, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func every(t *testing.T, d time.Duration) when.Schedule {
	t.Helper()
	s, err := when.Every(d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
