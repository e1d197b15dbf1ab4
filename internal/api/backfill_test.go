package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// C-60, C-79, X-29: a backfill is planned, shown with its cost, and runs only
// what somebody confirmed; each slot runs once, as the schedule was then.
func TestBackfillRunsWhatWasConfirmed(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("poet", "http:poet"))
		r.waitSlot(s.ID, r.runSchedule(s.ID).ScheduledFor, "success")
		r.do("PATCH", "/api/v1/schedules/"+s.ID, `{"input":{"topic":"spring"}}`).want(200)
		now := time.Now().UTC()
		year := now.Year()
		if time.Date(year, 1, 1, 9, 0, 0, 0, time.UTC).After(now) {
			year--
		}
		r.addSlots(schedulestore.NewSlot{ScheduleID: s.ID, ScheduledFor: time.Date(year, 1, 1, 8, 0, 0, 0, time.UTC), Trigger: "schedule", Status: "skipped", Disposition: "skipped_missed", Message: "Nobody was there."})
		body := fmt.Sprintf(`{"from":"%d-06-01T00:00:00Z","to":"%d-01-01T08:30:00Z","perMinute":600}`, year-3, year)
		var b client.Backfill
		r.do("POST", "/api/v1/schedules/"+s.ID+"/backfill", body).want(201).into(&b)
		if b.State != "planned" || b.Total != 3 || len(b.Slots) != 3 || b.Slots[2].Was != "skipped_missed" || b.Hash == "" || b.EstimateUSD.String() != "0.9" || b.Begun != 0 || b.PerMinute != 600 || b.CreatedBy != "admin" || b.Slots[0].GraphID != "http:poet" {
			t.Errorf("%+v", b)
		}
		path := "/api/v1/backfills/" + b.ID
		bob := r.token("bob", userstore.RoleOperator, "*")
		r.as(bob, "GET", path, nil).problem(404, "not_found")
		r.as(bob, "POST", path+"/confirm", map[string]string{"hash": b.Hash}).problem(404, "not_found")
		r.do("POST", path+"/confirm", map[string]string{"hash": "other"}).problem(409, "plan_changed")
		r.do("POST", path+"/pause", nil).problem(409, "wrong_state")
		if got := len(r.studio.calls()); got != 1 {
			t.Errorf("%d calls before anybody agreed", got)
		}
		hash := b.Hash
		b = client.Backfill{}
		r.do("POST", path+"/confirm", map[string]string{"hash": hash}).want(200).into(&b)
		if b.State != "running" || string(b.ConfirmedBy) != "admin" || b.Slots != nil {
			t.Errorf("%+v", b)
		}
		r.eventually("the backfill is done", func() bool {
			r.do("GET", path, nil).want(200).into(&b)
			return b.State == "done"
		})
		if b.Counts != (client.BackfillCounts{Success: 3}) || b.Begun != 3 {
			t.Errorf("%+v", b)
		}
		autumn := 0
		for _, call := range r.studio.calls()[1:] {
			if strings.HasSuffix(call, `{"topic":"autumn"}`) {
				autumn++
			}
		}
		if autumn != 3 || len(r.studio.calls()) != 4 {
			t.Errorf("what was in force then did not run: %v", r.studio.calls())
		}
		var again client.Backfill
		r.do("POST", "/api/v1/schedules/"+s.ID+"/backfill", body).want(201).into(&again)
		if again.Total != 0 || again.Skipped != 3 || again.ID == b.ID {
			t.Errorf("%+v", again)
		}
	})
}

func TestBackfillIsPausedResumedAndCancelled(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("poet", "http:poet"))
		var b client.Backfill
		r.do("POST", "/api/v1/schedules/"+s.ID+"/backfill", `{"from":"2001-06-01T00:00:00Z","to":"2020-06-01T00:00:00Z","perMinute":1}`).want(201).into(&b)
		path := "/api/v1/backfills/" + b.ID
		r.do("POST", path+"/confirm", map[string]string{"hash": b.Hash}).want(200)
		for _, step := range []struct{ verb, state string }{{"pause", "paused"}, {"pause", "paused"}, {"resume", "running"}, {"cancel", "cancelled"}, {"cancel", "cancelled"}} {
			r.do("POST", path+"/"+step.verb, nil).want(200).into(&b)
			if b.State != step.state {
				t.Errorf("%s: %s", step.verb, b.State)
			}
		}
		r.do("POST", path+"/resume", nil).problem(409, "wrong_state")
		r.do("POST", path+"/confirm", map[string]string{"hash": b.Hash}).problem(409, "not_planned")
		r.do("GET", path+"?slots=true", nil).want(200).into(&b)
		if len(b.Slots) != 19 || b.Begun > 2 {
			t.Errorf("%+v", b)
		}
		r.do("GET", "/api/v1/backfills/nothing", nil).problem(404, "not_found")
		for body, pointer := range map[string]string{
			`{"from":"2020-06-01T00:00:00Z","to":"2020-06-01T00:00:00Z"}`: "/from", `{"from":"2020-06-01T00:00:00Z","to":"2999-06-01T00:00:00Z"}`: "/to",
			`{"from":"2020-06-01T00:00:00Z","to":"2020-06-02T00:00:00Z","perMinute":601}`: "/perMinute", `{"from":"2020-06-01T00:00:00Z"}`: "/to", `{"from":"x","to":"2020-06-02T00:00:00Z"}`: "/from",
		} {
			if got := pointers(r.do("POST", "/api/v1/schedules/"+s.ID+"/backfill", body).problem(422, "invalid")); fmt.Sprint(got) != "["+pointer+"]" {
				t.Errorf("%s: %v", body, got)
			}
		}
	})
}

// A plan can be found again without its id, by those who see the schedule.
func TestBackfillsOfAScheduleAreListed(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("poet", "http:poet"))
		other := r.schedule(yearly("other", "http:poet"))
		var want []string
		for _, from := range []string{"2020", "2021", "2022"} {
			var b client.Backfill
			r.do("POST", "/api/v1/schedules/"+s.ID+"/backfill", fmt.Sprintf(`{"from":"%s-06-01T00:00:00Z","to":"2023-02-01T00:00:00Z"}`, from)).want(201).into(&b)
			want = append([]string{b.ID}, want...)
		}
		path := "/api/v1/schedules/" + s.ID + "/backfills"
		var got []string
		for _, b := range pages[client.Backfill](r, path+"?limit=2") {
			got = append(got, b.ID)
			if b.State != "planned" || b.Slots != nil || b.Total == 0 {
				t.Errorf("%+v", b)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if list := pages[client.Backfill](r, "/api/v1/schedules/"+other.ID+"/backfills?limit=2"); len(list) != 0 {
			t.Errorf("the other one has %+v", list)
		}
		r.as(r.token("bob", userstore.RoleOperator, "*"), "GET", path, nil).problem(404, "not_found")
	})
}

// C-60, C-79: a plan tells which slots the grant does not cover, and can be made
// with another grant of the owner, under which they run.
func TestBackfillNamesItsGrant(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("poet", "http:poet"))
		r.do("PATCH", "/api/v1/schedules/"+s.ID, `{"graphId":"x:fails"}`).want(200)
		place := "/api/v1/schedules/" + s.ID + "/backfill"
		ask := map[string]any{"from": "2018-06-01T00:00:00Z", "to": "2020-06-01T00:00:00Z", "perMinute": 600}
		var b client.Backfill
		r.do("POST", place, ask).want(201).into(&b)
		if len(b.Uncovered) != 1 || b.Uncovered[0] != (client.UncoveredSlots{GraphID: "http:poet", Slots: 2, Code: string(contract.GrantScope), Message: `the grant does not cover the graph "http:poet"`}) || b.GrantID != "" || b.Before != 2 {
			t.Errorf("%+v", b)
		}
		for id, code := range map[string]string{"0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e": "grant_not_found", "x": "invalid"} {
			ask["grantId"] = id
			if got := pointers(r.do("POST", place, ask).problem(422, code)); fmt.Sprint(got) != "[/grantId]" {
				t.Errorf("%s: %v", id, got)
			}
		}
		var g client.Grant
		r.do("POST", "/api/v1/grants", `{"graphs":["http:poet"]}`).want(201).into(&g)
		ask["grantId"] = g.ID
		b = client.Backfill{}
		r.do("POST", place, ask).want(201).into(&b)
		if string(b.GrantID) != g.ID || b.Uncovered == nil || len(b.Uncovered) != 0 {
			t.Errorf("%+v", b)
		}
		r.do("POST", "/api/v1/backfills/"+b.ID+"/confirm", map[string]string{"hash": b.Hash}).want(200)
		r.eventually("the backfill is done", func() bool {
			r.do("GET", "/api/v1/backfills/"+b.ID, nil).want(200).into(&b)
			return b.State == "done"
		})
		if b.Counts != (client.BackfillCounts{Success: 2}) || len(r.studio.calls()) != 2 {
			t.Errorf("%+v, %v", b.Counts, r.studio.calls())
		}
	})
}
