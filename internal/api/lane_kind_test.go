package api

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane/lanetest"
	"github.com/pawlrun/pawl/internal/when"
)

// A kind that nothing here knows is listed, explained, on the timeline and in the
// stream, once it is among the kinds.
func TestAnotherKindIsOneMoreInTheList(t *testing.T) {
	both(t, func(r *rig) {
		timers := &lanetest.Timers{DB: r.db, Host: r.host(r.api.feed), Every: map[string]when.Schedule{"egg": every(t, time.Hour)}}
		r.api.kinds = append(r.api.kinds, timers)
		r.deploy("orders", orders)

		var lanes client.Page[client.Lane]
		r.do("GET", "/api/v1/lanes", nil).want(200).into(&lanes)
		if n := len(lanes.Items); n != 2 || lanes.Items[1].Kind != "timer" || lanes.Items[1].Name != "egg" || lanes.Items[1].Status != "Idle" || lanes.Items[1].Schedule != "Every hour" {
			t.Errorf("lanes %+v", lanes.Items)
		}
		var why client.LaneWhy
		r.do("GET", "/api/v1/lanes/timer/egg/why", nil).want(200).into(&why)
		if why.Next != "It counts." || len(why.Gates) != 1 || why.Gates[0].Open {
			t.Errorf("why %+v", why)
		}
		if p := r.do("GET", "/api/v1/lanes/timer/eg/why", nil).problem(404, "not_found"); !strings.HasPrefix(p.Hint, `Did you mean "egg"?`) {
			t.Errorf("hint %q", p.Hint)
		}
		if p := r.do("GET", "/api/v1/lanes/timers/egg/why", nil).problem(404, "not_found"); !strings.Contains(p.Hint, "workflow, source, schedule, timer") {
			t.Errorf("hint %q", p.Hint)
		}
		var timeline client.Timeline
		r.do("GET", "/api/v1/timeline?to="+time.Now().Add(150*time.Minute).UTC().Format(time.RFC3339), nil).want(200).into(&timeline)
		due := 0
		for _, item := range timeline.Items {
			if item.Kind == "timer" && item.Lane == "egg" && item.What == isSlot {
				due++
			}
		}
		if due != 2 {
			t.Errorf("it comes due %d times in two and a half hours: %+v", due, timeline.Items)
		}
		events := r.listen(r.admin, "?kind=timer")
		if err := timers.Touch(t.Context(), "egg"); err != nil {
			t.Fatal(err)
		}
		e := r.until(events, "timer", "touched")
		if data := e[len(e)-1].data; !strings.HasPrefix(data, `{"what":"touched","timer":"egg","at":"`) || !strings.HasSuffix(data, `,"hands":2}`) {
			t.Errorf("the stream tells %s", data)
		}
	})
}
