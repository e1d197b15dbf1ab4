package web

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func TestSchedulePageShowsSlotsAndClockChanges(t *testing.T) {
	both(t, func(r *rig) {
		id := r.schedule("poems", "poet", "30 2 * * *")
		why := r.waitLane("schedule", id, "Idle")
		b := r.signedIn(r.admin)
		p := b.get("/schedules/"+id).want(http.StatusOK).has("x:poet", "Europe/Berlin", "manual", "✓", "the next run waits", "⋯", "tone-warn", "&lt;b&gt;")
		p.hasNot("<b>")
		if n := strings.Count(p.body, "◷"); n != changesShown {
			t.Errorf("%d clock changes are marked", n)
		}
		for _, tab := range []string{"why", "runs", "backfills"} {
			b.get("/schedules/" + id + "/" + tab).want(http.StatusOK).hasNot("<b>")
		}
		b.get("/runs/"+why.Recent[0].ID).want(http.StatusOK).has(`href="/schedules/`+id, "&lt;b&gt;leaf").hasNot("<b>leaf")
		b.post("/schedules/"+id+"/disable", "back", "/schedules/"+id).want(http.StatusSeeOther)
		b.get("/schedules/"+id).want(http.StatusOK).has("none of these will run", "Enable")
		b.post("/schedules/"+id+"/run", "back", "/schedules/"+id).want(http.StatusConflict).has(`role="alert"`)
		b.post("/schedules/"+id+"/enable", "back", "/schedules/"+id).want(http.StatusSeeOther)
		b.get("/schedules/"+id).want(http.StatusOK).has("Enabled.", "Run now")
		b.post("/schedules/"+id+"/pause", "back", "/schedules/"+id, "until", "2h").want(http.StatusSeeOther)
		b.get("/schedules/"+id).want(http.StatusOK).has("The schedule is paused until <time", "none before that will run").hasNot("none of these will run")
	})
}

// The page has what the definition says about slots that fail or are missed, and says once
// what holds for all that is expected.
func TestSchedulePageHasTheRulesOfItsSlots(t *testing.T) {
	both(t, func(r *rig) {
		var made client.Schedule
		r.ask("POST", "/api/v1/schedules", map[string]any{
			"name": "rules", "run": map[string]any{"url": "http://127.0.0.1:1/"}, "cron": "0 3 * * *", "timezone": "UTC",
			"missed": map[string]any{"policy": "last", "within": "12h"}, "retry": map[string]any{"attempts": 5, "within": "2h"}, "expect": map[string]any{"freshWithin": "26h", "onTime": 99.5},
		}, &made)
		p := r.signedIn(r.admin).get("/schedules/"+made.ID).want(http.StatusOK).has("the latest slot that is at most 12h late runs later", "up to 5 within 2h")
		if n := strings.Count(p.body, "It has not been judged yet"); n != 1 {
			t.Errorf("it is said %d times that nothing is judged yet", n)
		}
	})
}

// Very many slots that did not run are one line, which no button runs again.
func TestSchedulePageShowsManySlotsAsOne(t *testing.T) {
	both(t, func(r *rig) {
		id := r.schedule("poems", "poet", "30 2 * * *")
		r.waitLane("schedule", id, "Idle")
		first := time.Date(2024, 3, 1, 1, 30, 0, 0, time.UTC)
		err := r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{
				ScheduleID: id, ScheduledFor: first, Trigger: "schedule", Status: "skipped", Disposition: "skipped_missed", Message: "No worker was running at this time.",
				Through: first.AddDate(0, 0, 19), Count: 20,
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		p := r.signedIn(r.admin).get("/schedules/"+id+"?status=skipped").want(http.StatusOK).has("20 slots", "to <time datetime=\"2024-03-20T01:30:00.000Z\"", "No worker was running")
		p.hasNot("Run again")
	})
}

// A stretch of slots that began before what a timeline shows is drawn in it, and one
// that ended before is not.
func TestTimelineDrawsSlotsThatReachIntoIt(t *testing.T) {
	both(t, func(r *rig) {
		id := r.schedule("poems", "poet", "30 2 29 2 *")
		r.waitLane("schedule", id, "Idle")
		now := time.Now()
		stretch := func(from, through time.Duration, count int64) {
			r.t.Helper()
			err := r.db.Write(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{
					ScheduleID: id, ScheduledFor: now.Add(-from), Trigger: "schedule", Status: "skipped", Disposition: "skipped_missed", Through: now.Add(-through), Count: count,
				})
				return err
			})
			if err != nil {
				r.t.Fatal(err)
			}
		}
		b := r.signedIn(r.admin)
		stretch(50*time.Hour, 30*time.Hour, 7)
		b.get("/timeline?span=6h").want(http.StatusOK).hasNot("7 slots")
		b.get("/timeline?span=6d").want(http.StatusOK).has("7 slots")
		stretch(20*time.Hour, time.Hour, 9)
		b.get("/timeline?span=6h").want(http.StatusOK).has("9 slots").hasNot("7 slots")
	})
}

func TestGraphsAreAnsweredAndRejectedInTheInbox(t *testing.T) {
	both(t, func(r *rig) {
		b := r.signedIn(r.admin)
		for i, action := range []string{"approve", "reject"} {
			id := r.schedule(fmt.Sprint("asks-", i), "asks", "0 9 * * *")
			asking := r.waitLane("schedule", id, "Needs attention").Recent[0].ID
			p := b.get("/approvals").want(http.StatusOK)
			p.has("May &lt;b&gt;I&lt;/b&gt;?", "asks-", "1<span class=\"quiet-text\"> waiting").hasNot("<b>I")
			b.get("/schedules/"+id).want(http.StatusOK).has("Needs attention", "May &lt;b&gt;", "Answer")
			b.get("/runs/" + asking).want(http.StatusOK).has("Answer")
			seen := regexp.MustCompile(`name="seen" value="([^"]+)"`).FindStringSubmatch(p.body)[1]
			b.post("/runs/"+asking+"/"+action, "answer", "yes", "seen", "2026-01-01T00:00:00.000Z", "back", "/approvals").want(http.StatusConflict)
			b.post("/runs/"+asking+"/"+action, "answer", "yes", "back", "/approvals").want(http.StatusUnprocessableEntity)
			b.post("/runs/"+asking+"/"+action, "answer", "yes, please", "kind", "schedule", "seen", seen, "back", "/approvals").want(http.StatusSeeOther)
			b.get("/approvals").want(http.StatusOK).has("Nothing is waiting for you.")
			r.waitLane("schedule", id, "Idle")
		}
	})
}

func TestBackfillIsPlannedConfirmedAndFollowed(t *testing.T) {
	both(t, func(r *rig) {
		id := r.schedule("poems", "poet", "0 9 * * *")
		r.waitLane("schedule", id, "Idle")
		b := r.signedIn(r.admin)
		plan := "/schedules/" + id + "/backfill"
		back := plan + "s"
		b.post(plan, "from", "yesterday", "to", "", "back", back).want(http.StatusUnprocessableEntity).has("not a date and time", "Backfill past slots")
		b.post(plan, "from", "2030-01-01T00:00", "to", "2031-01-01T00:00", "back", back).want(http.StatusUnprocessableEntity).has(`role="alert"`)
		p := b.post(plan, "from", "2026-01-01T00:00", "to", "2026-01-04T00:00", "perMinute", "600", "back", back).want(http.StatusSeeOther)
		path := p.header.Get("Location")
		page := b.get(path).want(http.StatusOK).has("3 slots will run", "Run 3 slots", "did not run")
		hash := regexp.MustCompile(`name="hash" value="([^"]+)"`).FindStringSubmatch(page.body)[1]
		b.post(path+"/confirm", "hash", "another", "back", path).want(http.StatusConflict).has("<h2>Plan</h2>", `role="alert"`)
		b.post(path+"/confirm", "hash", hash, "back", path).want(http.StatusSeeOther)
		r.eventually("it is done", func() bool {
			var told backfillView
			r.ask("GET", "/api/v1"+path, nil, &told)
			return told.State == "done"
		})
		b.get(path).want(http.StatusOK).has(`<progress value="3" max="3"`, "3 of 3 slots")
		b.post(path+"/pause", "back", path).want(http.StatusConflict)
		b.get(back).want(http.StatusOK).has(path, "3 of 3 started")
		b.get("/schedules/" + id + "?trigger=backfill").want(http.StatusOK).has(path)
		b.get("/backfills/none").want(http.StatusNotFound)
	})
}

func TestGrantsAreMadeExactlyAndRevoked(t *testing.T) {
	both(t, func(r *rig) {
		b := r.signedIn(r.admin)
		b.get("/grants").want(http.StatusOK).has("No grants yet", "New grant")
		b.post("/grants", "graphs", "x:poet, x:asks", "usdPerDay", "1.5", "runsPerDay", "10", "days", "30", "back", "/grants").want(http.StatusSeeOther)
		p := b.get("/grants").want(http.StatusOK).has("Grant created.", "x:poet", "x:asks", "$1.50 per day", "10 runs per day", "in 29 d")
		id := regexp.MustCompile(`/grants/([^/]+)/revoke`).FindStringSubmatch(p.body)[1]
		for _, form := range [][]string{{"graphs", "no graph"}, {"graphs", "*"}, {"graphs", ""}, {"graphs", "x:poet", "usdPerRun", "much"}, {"graphs", "x:poet", "days", "-1"}, {"graphs", "x:poet", "runsPerDay", "many"}} {
			b.post("/grants", append(form, "back", "/grants")...).want(http.StatusUnprocessableEntity).has(`role="alert"`)
		}
		b.post("/grants/"+id+"/revoke", "back", "/grants").want(http.StatusSeeOther)
		b.get("/grants?all=1").want(http.StatusOK).has("revoked").hasNot("/revoke\"")
		b.post("/grants/none/revoke", "back", "/grants").want(http.StatusNotFound)
		viewer := r.signedIn(r.token("vera", userstore.RoleViewer, "read"))
		viewer.get("/grants").want(http.StatusOK).hasNot("New grant", "x:poet")
	})
}

// What SQL takes for the word of a source or a schedule is what its rules say
//
func TestFiltersAgreeWithTheWordsOfEveryKind(t *testing.T) {
	both(t, func(r *rig) {
		r.fetching("prices", "/prices")
		r.waitLane("source", "prices", "Idle")
		r.fetching("rests", "/prices")
		r.ask("POST", "/api/v1/sources/rests/pause", nil, nil)
		words := map[string]string{}
		for name, word := range map[string]string{"poet": "Idle", "asks": "Needs attention", "fails": "Needs attention"} {
			words[r.schedule(name, name, "0 9 * * *")] = word
		}
		off := r.schedule("off", "poet", "0 9 * * *")
		words[off] = "Idle"
		for id, word := range words {
			r.waitLane("schedule", id, word)
		}
		r.ask("PATCH", "/api/v1/schedules/"+off, map[string]any{"enabled": false}, nil)
		err := r.db.Read(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
			sources, err := runstore.In(tx).CountLanes(ctx, pawl.KindSource, "")
			if want := "map[Idle:1 Stopped:1]"; err == nil && fmt.Sprint(sources) != want {
				t.Errorf("counted %v, want %v", sources, want)
			}
			if err != nil {
				return err
			}
			schedules, err := runstore.In(tx).CountLanes(ctx, pawl.KindSchedule, "")
			if want := "map[Idle:1 Needs attention:2 Stopped:1]"; err == nil && fmt.Sprint(schedules) != want {
				t.Errorf("counted %v, want %v", schedules, want)
			}
			if err != nil {
				return err
			}
			found, err := schedulestore.In(tx).FindSchedules(ctx, runstore.LaneFilter{State: "Needs attention"}, "", "", 10)
			if len(found) != 2 || found[0].Name != "asks" || found[1].Name != "fails" {
				t.Errorf("found %v", found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		b := r.signedIn(r.admin)
		for query, want := range map[string]string{"?status=Needs+attention&kind=schedule": "asks fails", "?status=Stopped": "off rests", "?kind=source&status=Idle": "prices", "?q=ET&kind=schedule": "poet"} {
			p := b.get("/" + query).want(http.StatusOK)
			for _, name := range []string{"asks", "fails", "off", "poet", "prices", "rests"} {
				shown := regexp.MustCompile(`<th scope="row"[^>]*><a [^>]*>` + name + `<`).MatchString(p.body)
				if shown != strings.Contains(want, name) {
					t.Errorf("%s: %s is shown: %v", query, name, shown)
				}
			}
		}
	})
}
