package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/when"
)

// A list of large things ends its page early, and its cursors reach all of them.
func TestAPageIsBoundedInBytes(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("large", producing("large", ""))
		const things = 12 // more than a page holds
		large := `{"text":"` + strings.Repeat("x", 1<<20) + `"}`
		r.write(func(ctx context.Context, tx *store.Tx) error {
			w, err := workflowstore.In(tx).WorkflowByName(ctx, "large")
			if err != nil {
				return err
			}
			for i := range things {
				if _, err := tx.Exec(ctx, `insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, created_by, caused_by, created_at, updated_at)
					values ($1, $2, 'found', $1, $1, $3, $4, 'consumed', 'x', '[]', 0, 0)`, i+1, w.ID, fmt.Sprint("m", i), large); err != nil {
					return err
				}
			}
			return nil
		})
		seen := map[string]bool{}
		for cursor := ""; ; {
			reply := r.do("GET", "/api/v1/workflows/large/events?limit=500&cursor="+cursor, nil).want(200)
			if len(reply.body) > 2*pageBytes {
				t.Fatalf("a page has %d bytes", len(reply.body))
			}
			var page client.Page[client.Event]
			reply.into(&page)
			if len(page.Items) == 0 {
				t.Fatal("a page is empty")
			}
			for _, e := range page.Items {
				seen[e.MessageID] = true
			}
			if page.NextCursor == "" {
				break
			}
			cursor = string(page.NextCursor)
		}
		if len(seen) != things {
			t.Errorf("%d of %d events were told", len(seen), things)
		}
	})
}

// What is too large even by itself is told so, instead of being read.
func TestAThingThatIsTooLargeForAPage(t *testing.T) {
	in := &listEventsInput{PageInput: PageInput{Limit: 500}}
	var limits []int
	_, err := bounded(t.Context(), in, func(_ context.Context, in *listEventsInput) (*pageOutput[client.Event], error) {
		limits = append(limits, in.Limit)
		return nil, fmt.Errorf("list: %w", store.ErrBudget)
	})
	if p, ok := errors.AsType[*problem](err); !ok || p.Status != 422 || fmt.Sprint(limits) != "[500 125 31 7 1]" {
		t.Errorf("%v after %v", err, limits)
	}
}

// P1 10: times that nobody means are refused, with a hint.
func TestTimelineOfAbsurdTimes(t *testing.T) {
	r := newRig(t, "sqlite:"+t.TempDir()+"/pawl.db")
	r.schedule(yearly("minutely", "http:poet", "cron", "* * * * *"))
	for _, query := range []string{
		"?from=2180-01-01T00:00:00Z", "?from=9999-12-30T00:00:00Z&to=9999-12-31T00:00:00Z", "?to=9999-12-31T00:00:00Z", "?from=2180-01-01T00:00:00Z&to=2180-01-01T00:00:01Z&limit=500",
	} {
		p := r.do("GET", "/api/v1/timeline"+query, nil).problem(422, "invalid")
		if got := fmt.Sprint(pointers(p)); got != "[/to]" || p.Hint == "" {
			t.Errorf("%s: %s, hint %q", query, got, p.Hint)
		}
	}
	for _, query := range []string{"?from=0001-01-01T00:00:00Z", "?from=1969-01-01T00:00:00Z&limit=500"} {
		r.do("GET", "/api/v1/timeline"+query, nil).want(200)
	}
	far := pawl.FormatTime(time.Now().AddDate(4, 0, 0))
	var page client.Page[client.TimelineItem]
	r.do("GET", "/api/v1/timeline?limit=3&from="+far, nil).want(200).into(&page)
	if len(page.Items) != 3 || page.Items[0].At.Before(time.Now().AddDate(3, 11, 0)) {
		t.Errorf("%+v", page.Items)
	}
	for _, at := range []int64{1 << 62, -1 << 62} { // cursors that nobody was given
		cursor := string(pageOf([]int{1}, timelineCursor, fmt.Sprintf("slot:%d:x", at)).NextCursor)
		r.do("GET", "/api/v1/timeline?cursor="+cursor, nil).want(200)
	}
}

// A time in the far future costs one search for each lane, not one for each
// instant before it, and nothing when whoever asked is gone.
func TestUpcomingItemsFarAhead(t *testing.T) {
	start := time.Now().AddDate(4, 0, 0)
	var list []due
	for i := range 2000 {
		s, err := when.Parse(when.KindCron, "* * * * *", "")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, due{lane.Due{Ref: lane.Named(pawl.KindSchedule, fmt.Sprint(i)), Schedule: s}, time.Now()})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // 4 billion instants would take longer
	defer cancel()
	items, err := upcomingItems(ctx, list, start, start.Add(time.Hour), timelinePlace{}, 500)
	if err != nil || len(items) != 500 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	cancel()
	if _, err := upcomingItems(ctx, list, start, start.Add(time.Hour), timelinePlace{}, 500); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits for it any more, and it answers %v", err)
	}
}
