package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// C-24, C-27, X-61: a schedule has the fields of the surface, a grant for its
// graph alone, and its next instant; the key makes it one however often it is
// sent.
func TestCreateSchedule(t *testing.T) {
	both(t, func(r *rig) {
		body := yearly("poet", "http:poet", "concurrencyPolicy", "Forbid")
		body["labels"] = map[string]string{"team": "data"}
		p := r.do("POST", "/api/v1/schedules", body, "Idempotency-Key", "k").want(http.StatusCreated)
		var s client.Schedule
		p.into(&s)
		if p.header.Get("Location") != "/api/v1/schedules/"+s.ID || s.OwnerUserID != r.user.ID || s.Name != "poet" || s.GraphID != "http:poet" || string(s.Input) != `{"topic":"autumn"}` ||
			s.Cron != "0 9 1 1 *" || s.Timezone != "Europe/Berlin" || s.ConcurrencyPolicy != pawl.PolicyForbid || !s.Enabled || s.Labels["team"] != "data" || !s.LastRunAt.IsZero() || s.NextRunAt.Hour() != 8 {
			t.Errorf("%s", p.body)
		}
		var fields map[string]json.RawMessage
		p.into(&fields)
		if got := strings.Join(sortedKeys(fields), " "); got != "concurrencyPolicy createdAt cron enabled executionGrantId graphId id idempotent input labels lastRunAt name nextRunAt ownerUserId timezone updatedAt" {
			t.Errorf("fields %s", got)
		}
		again := r.do("POST", "/api/v1/schedules", body, "Idempotency-Key", "k").want(http.StatusCreated)
		if again.header.Get("Idempotency-Replayed") != "true" || string(again.body) != string(p.body) {
			t.Errorf("%s", again.body)
		}
		r.do("POST", "/api/v1/schedules", body).problem(409, "name_taken")
		var g client.Grant
		r.do("GET", "/api/v1/grants/"+s.ExecutionGrantID, nil).want(200).into(&g)
		if !g.Automatic || fmt.Sprint(g.Scopes) != "[graph:execute:http:poet]" || g.UserID != r.user.ID {
			t.Errorf("%+v", g)
		}
		if n := r.count(`select count(*) from schedules`) + r.count(`select count(*) from schedule_runs`); n != 2 {
			t.Errorf("%d rows", n)
		}
	})
}

// C-26: everything that is wrong is told with its place, and nothing is
// written.
func TestBadSchedulesAreRefusedWithPlaces(t *testing.T) {
	both(t, func(r *rig) {
		foreign := r.grantOf("bob", `{"graphs":["http:poet"]}`)
		narrow := r.grantOf("admin", `{"graphs":["http:other"]}`)
		for _, c := range []struct{ field, value, pointer, code string }{
			{"cron", "61 * * * *", "/cron", "invalid"}, {"timezone", "Mars/Olympus", "/timezone", "invalid"}, {"graphId", "poet", "/graphId", "invalid"}, {"graphId", "http:*", "/graphId", "invalid"},
			{"name", "a b", "/name", "invalid"}, {"concurrencyPolicy", "queue", "/concurrencyPolicy", "invalid"}, {"color", "red", "/color", "invalid"},
			{"executionGrantId", "0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e", "/executionGrantId", "grant_not_found"}, {"executionGrantId", foreign, "/executionGrantId", "grant_not_found"},
			{"executionGrantId", narrow, "/executionGrantId", "grant_scope"},
		} {
			if got := pointers(r.do("POST", "/api/v1/schedules", yearly("poet", "http:poet", c.field, c.value)).problem(422, c.code)); !slices.Equal(got, []string{c.pointer}) {
				t.Errorf("%s %s: %v", c.field, c.value, got)
			}
		}
		if got := pointers(r.do("POST", "/api/v1/schedules", yearly("poet", "nothing", "cron", "x", "timezone", "y")).problem(422, "invalid")); len(got) != 3 {
			t.Errorf("all at once: %v", got)
		}
		if got := pointers(r.do("POST", "/api/v1/schedules", `{"name":"a"}`).problem(422, "invalid")); !slices.Equal(got, []string{"/graphId", "/cron"}) {
			t.Errorf("missing: %v", got)
		}
		timeless := yearly("a", "http:poet")
		delete(timeless, "cron")
		if got := pointers(r.do("POST", "/api/v1/schedules", timeless).problem(422, "invalid")); !slices.Equal(got, []string{"/cron"}) {
			t.Errorf("without times: %v", got)
		}
		if n := r.count(`select count(*) from schedules`) + r.count(`select count(*) from execution_grants where automatic = 1`); n != 0 {
			t.Errorf("refusals left %d rows", n)
		}
	})
}

// Context 3.18, surface 4: a foreign schedule looks like not found, by every
// route; admins reach all by id, and list all if they ask.
func TestSchedulesBelongToTheirOwner(t *testing.T) {
	both(t, func(r *rig) {
		bob := r.token("bob", userstore.RoleOperator, "*")
		mine := r.schedule(yearly("poet", "http:poet"))
		var his client.Schedule
		r.as(bob, "POST", "/api/v1/schedules", yearly("poet", "http:poet")).want(201).into(&his)
		for _, route := range []string{"GET ", "PATCH ", "DELETE ", "GET /runs", "GET /slots", "GET /next", "POST /run", "POST /backfill"} {
			method, tail, _ := strings.Cut(route, " ")
			var body any
			if method == "PATCH" {
				body = `{"enabled":false}`
			} else if tail == "/backfill" {
				body = `{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}`
			}
			r.as(bob, method, "/api/v1/schedules/"+mine.ID+tail, body).problem(404, "not_found")
		}
		r.as(bob, "GET", "/api/v1/lanes/schedule/"+mine.ID+"/why", nil).problem(404, "not_found")
		r.do("GET", "/api/v1/schedules/"+his.ID, nil).want(200)
		r.as(bob, "GET", "/api/v1/schedules?all=true", nil).problem(403, "forbidden")
		for path, want := range map[string]int{"/api/v1/schedules?limit=1": 1, "/api/v1/schedules?all=true&limit=1": 2, "/api/v1/lanes?kind=schedule&limit=1": 1} {
			if got := pages[client.Schedule](r, path); len(got) != want {
				t.Errorf("%s: %d", path, len(got))
			}
		}
		var page client.SchedulePage
		r.as(bob, "GET", "/api/v1/schedules?name=poet", nil).want(200).into(&page)
		if len(page.Items) != 1 || page.Items[0].ID != his.ID {
			t.Errorf("%+v", page)
		}
		r.as(bob, "GET", "/api/v1/schedules?name=nothing", nil).want(200).into(&page)
		if len(page.Items) != 0 {
			t.Errorf("%+v", page)
		}
	})
}

// C-25: a change replaces the slot that waits; a deleted schedule is
// gone, its grant revoked and its slots kept.
func TestUpdateAndDeleteSchedule(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("poet", "http:poet"))
		var now client.Schedule
		r.do("PATCH", "/api/v1/schedules/"+s.ID, `{"cron":"30 10 2 2 *","name":"bard"}`).want(200).into(&now)
		if now.Name != "bard" || now.NextRunAt.Minute() != 30 || string(now.Input) != string(s.Input) || now.ExecutionGrantID != s.ExecutionGrantID {
			t.Errorf("%+v", now)
		}
		if got := pointers(r.do("PATCH", "/api/v1/schedules/"+s.ID, `{"cron":"x"}`).problem(422, "invalid")); fmt.Sprint(got) != "[/cron]" {
			t.Errorf("%v", got)
		}
		slots := r.slots(s.ID, "slots")
		if len(slots) != 2 || string(slots[1].Disposition) != "superseded" || slots[0].Status != "pending" || string(slots[1].Note) == "" || slots[1].Error != nil || len(r.slots(s.ID, "runs")) != 0 {
			t.Errorf("%+v", slots)
		}
		r.do("PATCH", "/api/v1/schedules/"+s.ID, `{"enabled":false}`).want(200).into(&now)
		if !now.NextRunAt.IsZero() || now.Enabled {
			t.Errorf("%+v", now)
		}
		r.do("POST", "/api/v1/schedules/"+s.ID+"/run", nil).problem(409, "paused")
		var gone client.DeletedSchedule
		r.do("DELETE", "/api/v1/schedules/"+s.ID, nil).want(200).into(&gone)
		if gone.ID != s.ID || !gone.GrantRevoked {
			t.Errorf("%+v", gone)
		}
		r.do("GET", "/api/v1/schedules/"+s.ID, nil).problem(404, "not_found")
		r.do("DELETE", "/api/v1/schedules/"+s.ID, nil).problem(404, "not_found")
		if n := r.count(`select count(*) from schedule_runs where schedule_id = $1`, s.ID); n != 2 {
			t.Errorf("%d slots are left", n)
		}
	})
}

// Surface 2: applying tells what it did, and the same definition changes
// nothing; a dry run changes nothing at all.
func TestApplySchedule(t *testing.T) {
	both(t, func(r *rig) {
		body := yearly("poet", "http:poet")
		apply := func(query string, status int) (out client.AppliedSchedule) {
			t.Helper()
			r.do("PUT", "/api/v1/schedules/by-name/poet"+query, body).want(status).into(&out)
			return out
		}
		if out := apply("?dryRun=true", 200); out.What != "created" || !out.DryRun || out.Previous != nil || r.count(`select count(*) from schedules`) != 0 {
			t.Errorf("%+v", out)
		}
		made := apply("", 201)
		if made.What != "created" || made.Schedule.NextRunAt.IsZero() {
			t.Errorf("%+v", made)
		}
		body["input"] = json.RawMessage(`{ "topic": "autumn" }`)
		if out := apply("", 200); out.What != "unchanged" || out.Schedule.ID != made.Schedule.ID || out.Previous.UpdatedAt != made.Schedule.UpdatedAt {
			t.Errorf("%+v", out)
		}
		body["cron"] = "0 10 1 1 *"
		if out := apply("?dryRun=true", 200); out.What != "updated" || out.Schedule.Cron != "0 10 1 1 *" || r.count(`select count(*) from schedules where cron = '0 10 1 1 *'`) != 0 {
			t.Errorf("%+v", out)
		}
		if out := apply("", 200); out.What != "updated" || out.Previous.Cron != "0 9 1 1 *" || out.Schedule.Cron != "0 10 1 1 *" || out.Schedule.ExecutionGrantID != made.Schedule.ExecutionGrantID {
			t.Errorf("%+v", out)
		}
		if got := pointers(r.do("PUT", "/api/v1/schedules/by-name/other", body).problem(422, "invalid")); fmt.Sprint(got) != "[/name]" {
			t.Errorf("%v", got)
		}
	})
}

// A definition is all that there is to a schedule: what is taken out of it is as if it
// had never been there.
func TestApplyTakesBackWhatADefinitionLeavesOut(t *testing.T) {
	both(t, func(r *rig) {
		body := yearly("poet", "http:poet")
		apply := func() (out client.AppliedSchedule) {
			t.Helper()
			r.do("PUT", "/api/v1/schedules/by-name/poet", body).into(&out)
			return out
		}
		delete(body, "timezone")
		made := apply().Schedule
		if made.Timezone != "UTC" || made.ConcurrencyPolicy != pawl.PolicyQueue || made.NextRunAt.Hour() != 9 {
			t.Errorf("%+v", made)
		}
		for name, value := range map[string]any{
			"timezone": "Europe/Berlin", "concurrencyPolicy": "Allow", "idempotent": true, "labels": map[string]any{"a": "b"}, "jitter": "5m", "maxRuns": 5, "from": "2020-01-01", "until": "2999-01-01",
			"except": []any{"2999-01-01"}, "missed": map[string]any{"policy": "last"}, "retry": map[string]any{"attempts": 5}, "keep": map[string]any{"runs": "1d"}, "expect": map[string]any{"freshWithin": "2h"},
		} {
			body[name] = value
			if out := apply(); out.What != "updated" {
				t.Errorf("with %s: %s", name, out.What)
			}
			delete(body, name)
			out := apply()
			now := out.Schedule
			now.UpdatedAt = made.UpdatedAt
			if out.What != "updated" || !reflect.DeepEqual(now, made) {
				t.Errorf("without %s: %s %+v, at first %+v", name, out.What, now, made)
			}
		}
	})
}

// C-09: the next instants are told with the days on which clocks change.
func TestNextOfScheduleMarksClockChanges(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("poet", "http:poet", "cron", "0 9 * * *"))
		var next client.NextInstants
		r.do("GET", "/api/v1/schedules/"+s.ID+"/next?count=3&after=2030-03-29T12:00:00Z", nil).want(200).into(&next)
		var told []string
		for _, n := range next.Items {
			told = append(told, fmt.Sprintf("%s %s %v", pawl.FormatTime(n.At.Time), n.Local, n.ClockChange != ""))
		}
		want := []string{"2030-03-30T08:00:00.000Z 2030-03-30T09:00:00+01:00 false", "2030-03-31T07:00:00.000Z 2030-03-31T09:00:00+02:00 true", "2030-04-01T07:00:00.000Z 2030-04-01T09:00:00+02:00 false"}
		if !slices.Equal(told, want) || next.Schedule == "" || !next.Enabled {
			t.Errorf("%v %+v", told, next)
		}
		r.do("GET", "/api/v1/schedules/"+s.ID+"/next?count=501", nil).problem(422, "invalid")
		r.do("GET", "/api/v1/schedules/nothing/next", nil).problem(404, "not_found")
	})
}

// X-48, C-81, surface 4: a run now is a slot that ends with one disposition,
// shown with its cost and trace; the graph was called once, with the slot's key.
func TestRunScheduleNow(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("poet", "http:poet"))
		slot := r.runSchedule(s.ID)
		if slot.Status != "pending" || slot.Trigger != "manual" || slot.ScheduleID != s.ID || slot.RunID != "" {
			t.Errorf("%+v", slot)
		}
		slot = r.waitSlot(s.ID, slot.ScheduledFor, "success")
		if string(slot.Disposition) != "fired" || slot.AttemptCount != 1 || slot.RunID == "" || string(slot.TraceID) != "trace-1" || slot.CostUSD.String() != "0.3" || slot.Error != nil || slot.StartedAt.IsZero() || slot.CompletedAt.IsZero() {
			t.Errorf("%+v", slot)
		}
		if calls := r.studio.calls(); len(calls) != 1 || calls[0] != pawl.SlotKey(s.ID, slot.ScheduledFor.Time)+` {"topic":"autumn"}` {
			t.Errorf("%v", calls)
		}
		if runs := r.slots(s.ID, "runs"); len(runs) != 1 || runs[0].ID != slot.ID {
			t.Errorf("%+v", runs)
		}
		var d client.RunDetail
		r.do("GET", "/api/v1/runs/"+string(slot.RunID), nil).want(200).into(&d)
		if d.Kind != "schedule" || d.Lane != "poet" || string(d.LaneID) != s.ID || d.Trigger != "manual" || d.Status != "committed" || string(d.Output) != `{"poem":"leaf"}` || d.Slot.ID != slot.ID || len(d.Actions) != 0 {
			t.Errorf("%+v", d)
		}
		bob := r.token("bob", userstore.RoleOperator, "*")
		r.as(bob, "GET", "/api/v1/runs/"+string(slot.RunID), nil).problem(404, "not_found")
		r.as(bob, "POST", "/api/v1/runs/"+string(slot.RunID)+"/cancel", nil).problem(404, "not_found")
		var page client.Page[client.Run]
		r.as(bob, "GET", "/api/v1/runs", nil).want(200).into(&page)
		if len(page.Items) != 0 {
			t.Errorf("bob sees %+v", page.Items)
		}
		for query, want := range map[string]int{"?kind=schedule": 1, "?lane=poet": 1, "?kind=schedule&lane=poet": 1, "?lane=" + s.ID: 1, "?kind=schedule&lane=other": 0, "?kind=workflow&lane=poet": 0} {
			if got := r.runs(query); len(got) != want {
				t.Errorf("%s: %d", query, len(got))
			}
		}
	})
}

// a run now is refused while one runs, and the run can be cancelled.
func TestCancelScheduleRun(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("slow", "x:waits"))
		slot := r.runSchedule(s.ID)
		r.eventually("the graph runs", func() bool { return len(r.studio.entered) == 1 })
		r.do("POST", "/api/v1/schedules/"+s.ID+"/run", nil).problem(409, "run_active")
		run := r.waitRuns("?lane=slow&status=active", 1)[0]
		var d client.RunDetail
		r.do("GET", "/api/v1/runs/"+run.ID, nil).want(200).into(&d)
		if len(d.Actions) != 1 || d.Actions[0].Name != "cancel" {
			t.Errorf("%+v", d.Actions)
		}
		r.do("POST", "/api/v1/runs/"+run.ID+"/resume", nil).problem(409, "conflict")
		r.do("POST", "/api/v1/runs/"+run.ID+"/approve", nil).problem(409, "not_waiting")
		r.do("POST", "/api/v1/runs/"+run.ID+"/cancel", nil).want(200)
		if slot = r.waitSlot(s.ID, slot.ScheduledFor, "error"); slot.Error == nil || slot.Error.Code != string(contract.Aborted) {
			t.Errorf("%+v", slot)
		}
		r.do("POST", "/api/v1/runs/"+run.ID+"/cancel", nil).problem(409, "not_running")
	})
}

// Surface 4: a graph that asks is answered with any JSON, once, by its owner.
func TestAnswerScheduleRun(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("asking", "x:asks"))
		slot := r.runSchedule(s.ID)
		run := r.waitRuns("?lane=asking&status=paused:approval", 1)[0]
		path := "/api/v1/runs/" + run.ID
		var d client.RunDetail
		r.do("GET", path, nil).want(200).into(&d)
		if q := d.Question; q == nil || string(q.Question) != `{"may":"I?"}` || !q.AnsweredAt.IsZero() || len(d.Actions) != 3 {
			t.Errorf("%+v %+v", d.Question, d.Actions)
		}
		bob := r.token("bob", userstore.RoleOperator, "*")
		r.as(bob, "POST", path+"/approve", nil).problem(404, "not_found")
		asked := pages[client.Question](r, "/api/v1/questions?limit=1")
		if len(asked) != 1 || asked[0].RunID != run.ID || asked[0].Schedule != "asking" || asked[0].ScheduleID != s.ID || string(asked[0].Question) != `{"may":"I?"}` {
			t.Errorf("%+v", asked)
		}
		var none client.Page[client.Question]
		r.as(bob, "GET", "/api/v1/questions", nil).want(200).into(&none)
		if len(none.Items) != 0 {
			t.Errorf("bob sees %+v", none.Items)
		}
		if got := pointers(r.do("POST", path+"/approve", `{"always":true}`).problem(422, "invalid")); fmt.Sprint(got) != "[/always]" {
			t.Errorf("%v", got)
		}
		seen := d.Question.AskedAt
		for _, verb := range []string{"/approve", "/reject"} {
			r.do("POST", path+verb, map[string]any{"seen": pawl.FormatTime(seen.Add(-time.Millisecond))}).problem(409, "changed")
			r.do("POST", path+verb, map[string]any{"seen": "none"}).problem(422, "invalid")
		}
		r.do("POST", path+"/approve", map[string]any{"answer": map[string]any{"yes": []int{1}}, "seen": pawl.FormatTime(seen.Time)}, "Idempotency-Key", "k").want(200)
		r.waitSlot(s.ID, slot.ScheduledFor, "success")
		r.do("GET", path, nil).want(200).into(&d)
		if string(d.Output) != `{"yes":[1]}` || string(d.Question.Answer) != `{"yes":[1]}` || string(d.Question.AnsweredBy) != "admin" {
			t.Errorf("%s %+v", d.Output, d.Question)
		}
		r.do("POST", path+"/approve", `{"answer":1}`).problem(409, "not_waiting")

		slot = r.runSchedule(s.ID)
		run = r.waitRuns("?lane=asking&status=paused:approval", 1)[0]
		r.do("POST", "/api/v1/runs/"+run.ID+"/reject", nil).want(200)
		if slot = r.waitSlot(s.ID, slot.ScheduledFor, "error"); slot.Error.Code != string(contract.Aborted) {
			t.Errorf("%+v", slot)
		}
		if left := pages[client.Question](r, "/api/v1/questions?limit=1"); len(left) != 0 { // one answered, one rejected
			t.Errorf("%+v", left)
		}
	})
}

// The word, and the runs that are told with it, are of one moment.
func TestWhyTellsOfOneMoment(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("short", "x:poet"))
		for n := 1; n <= 10; n++ {
			r.runSchedule(s.ID)
			r.eventually("it has run", func() bool {
				var why client.LaneWhy
				r.do("GET", "/api/v1/lanes/schedule/"+s.ID+"/why", nil).want(200).into(&why)
				ended := len(why.Recent) == n && why.Status == "Idle"
				if ended && why.Recent[0].Status != string(pawl.StatusCommitted) {
					t.Errorf("idle, and its newest run is %s", why.Recent[0].Status)
				}
				return ended
			})
		}
	})
}

// a schedule is a lane like the others, and tells why.
func TestScheduleIsALane(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("failing", "x:fails"))
		slot := r.runSchedule(s.ID)
		r.waitSlot(s.ID, slot.ScheduledFor, "error")
		lanes := pages[client.Lane](r, "/api/v1/lanes?kind=schedule&limit=5")
		if len(lanes) != 1 || lanes[0].Kind != "schedule" || lanes[0].ID != s.ID || lanes[0].Status != "Needs attention" || !strings.Contains(string(lanes[0].Issue), "no such poem") || lanes[0].NextAt.IsZero() {
			t.Errorf("%+v", lanes)
		}
		for _, name := range []string{s.ID, "failing"} {
			var why client.LaneWhy
			r.do("GET", "/api/v1/lanes/schedule/"+name+"/why?at="+pawl.FormatTime(slot.ScheduledFor.Time), nil).want(200).into(&why)
			if why.ID != s.ID || len(why.Gates) == 0 || len(why.Recent) != 1 || why.Slot.ID != slot.ID || !strings.Contains(why.Around.Text, "invalid_request") {
				t.Errorf("%+v", why)
			}
		}
		r.do("GET", "/api/v1/lanes/schedule/nothing/why", nil).problem(404, "not_found")
		var why client.LaneWhy
		r.do("GET", "/api/v1/lanes/schedule/failing/why?at="+pawl.FormatTime(time.Now().Add(-240*time.Hour)), nil).want(200).into(&why)
		if why.Slot != nil || why.Around == nil {
			t.Errorf("%+v", why)
		}
	})
}

// X-60, C-81, C-69: what a deleted schedule did can still be read by its owner,
// and a status that is asked for is found, also that of slots that never ran.
func TestSlotsOfADeletedScheduleStay(t *testing.T) {
	both(t, func(r *rig) {
		s := r.schedule(yearly("gone", "x:poet"))
		slot := r.runSchedule(s.ID)
		r.waitSlot(s.ID, slot.ScheduledFor, "success")
		path := "/api/v1/schedules/" + s.ID
		r.do("DELETE", path, nil).want(200)
		r.do("GET", path, nil).problem(404, "not_found")
		r.do("GET", path+"/next", nil).problem(404, "not_found")
		bob := r.token("bob", userstore.RoleOperator, "*")
		for query, want := range map[string]string{
			"/slots": "skipped success", "/runs": "success", "/slots?status=skipped": "skipped", "/runs?status=skipped": "skipped",
			"/runs?status=success": "success", "/runs?status=pending": "", "/runs?status=error": "",
		} {
			var page client.Page[client.Slot]
			r.do("GET", path+query, nil).want(200).into(&page)
			var got []string
			for _, slot := range page.Items {
				got = append(got, string(slot.Status))
			}
			if strings.Join(got, " ") != want {
				r.t.Errorf("%s: %v, want %s", query, got, want)
			}
			r.as(bob, "GET", path+query, nil).problem(404, "not_found")
		}
	})
}
