package web

import (
	"net/http"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/lane/lanetest"
	"github.com/pawlrun/pawl/internal/when"
)

// A kind that nothing here knows is in the overview and on the timeline, once it
// is among the kinds, and pages that show it are told of its changes.
func TestAnotherKindIsOneMoreRow(t *testing.T) {
	r := onSQLite(t)
	hourly, err := when.Every(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	timers := &lanetest.Timers{DB: r.db, Host: r.host(), Every: map[string]when.Schedule{"egg": hourly}}
	r.site.cfg.Kinds = append(r.site.cfg.Kinds, timers)
	b := r.signedIn(r.admin)
	b.get("/").want(http.StatusOK).has("lane-timer-egg", `href="/timers/egg"`, "Every hour", "<option>timer</option>")
	b.get("/?kind=timer&status=Idle").want(http.StatusOK).has("lane-timer-egg")
	b.get("/timeline?span=6h&kind=timer").want(http.StatusOK).has("line-timer-egg", "Due at")
	page, _ := r.pulse.follow("timer:egg")
	defer r.pulse.leave(page)
	if err := timers.Touch(t.Context(), "egg"); err != nil || len(page.wake) != 1 {
		t.Errorf("the page was told %d times: %v", len(page.wake), err)
	}
	if !r.site.maySee(&http.Request{}, &visit{}, "timer:egg") || lane.ParsePlace("a b c") != (lane.Place{Name: "a b", Key: "c"}) {
		t.Error("everybody may see a timer")
	}
}
