package api

import (
	"net/url"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// Very many slots that did not run are one in lists, and each of them is answered
// for by it, until somebody runs it.
func TestManySlotsAreOneInAnswers(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("poet", "http:poet"))
		year := time.Now().UTC().Year() - 30
		first := time.Date(year, 1, 1, 8, 0, 0, 0, time.UTC)
		r.addSlots(schedulestore.NewSlot{
			ScheduleID: s.ID, ScheduledFor: first, Trigger: "schedule", Status: "skipped", Disposition: "skipped_missed", Message: "Nobody was there.",
			Through: first.AddDate(20, 0, 0), Count: 21,
		})
		path := "/api/v1/schedules/" + s.ID
		listed := r.slots(s.ID, "slots")
		last := listed[len(listed)-1]
		if last.Count != 21 || !last.Through.Equal(first.AddDate(20, 0, 0)) || !strings.Contains(string(r.do("GET", path+"/slots", nil).want(200).body), `"count":21`) {
			t.Errorf("%+v", last)
		}
		if strings.Count(string(r.do("GET", path+"/slots", nil).want(200).body), `"through"`) != 1 {
			t.Error("slots that are one say that they are many")
		}
		middle := first.AddDate(7, 0, 0)
		var one client.Slot
		r.do("GET", path+"/slots/"+pawl.FormatTime(middle), nil).want(200).into(&one)
		var why client.LaneWhy
		r.do("GET", "/api/v1/lanes/schedule/"+s.ID+"/why?at="+url.QueryEscape(pawl.FormatTime(middle)), nil).want(200).into(&why)
		if one.ID != last.ID || why.Slot == nil || why.Slot.ID != last.ID || why.Slot.Count != 21 || !strings.HasPrefix(why.Around.Text, "The 21 slots from ") {
			t.Errorf("%+v, %+v", one, why.Slot)
		}
		r.do("POST", path+"/slots/"+pawl.FormatTime(middle.Add(time.Hour))+"/retry", nil).problem(404, "not_found")
		r.do("POST", path+"/slots/"+pawl.FormatTime(middle)+"/retry", nil).want(200)
		r.waitSlot(s.ID, client.At(middle), "success")
		counts := int64(0)
		for _, slot := range r.slots(s.ID, "slots") {
			if slot.Disposition == "skipped_missed" {
				counts += max(1, slot.Count)
			}
		}
		if counts != 20 {
			t.Errorf("%d are left", counts)
		}
	})
}
