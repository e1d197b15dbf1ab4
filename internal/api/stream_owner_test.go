package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// about lists what events told of a schedule, as kinds and what happened.
func about(events []event, id string) (out []string) {
	for _, e := range events {
		what, _, _ := strings.Cut(strings.TrimPrefix(e.data, `{"what":"`), `"`)
		if strings.Contains(e.data, id) && !slices.Contains(out, e.kind+" "+what) {
			out = append(out, e.kind+" "+what)
		}
	}
	return out
}

// What a schedule does is told to its owner and to admins. To others it is not
// there, whether they listen or come back later.
func TestStreamTellsOfSchedulesToTheirOwners(t *testing.T) {
	both(t, func(r *rig) {
		alice, bob := r.token("alice", userstore.RoleOperator, "*"), r.token("bob", userstore.RoleOperator, "*")
		streams := map[string]<-chan event{"admin": r.listen(r.admin, ""), "alice": r.listen(alice, ""), "bob": r.listen(bob, "")}
		r.api.feed.mu.Lock()
		begin := r.api.feed.next - 1
		r.api.feed.mu.Unlock()
		var hers, his client.Schedule
		r.as(alice, "POST", "/api/v1/schedules", yearly("poet", "http:poet")).want(http.StatusCreated).into(&hers)
		var slot client.Slot
		r.as(alice, "POST", "/api/v1/schedules/"+hers.ID+"/run", nil).want(http.StatusAccepted).into(&slot)
		r.waitSlot(hers.ID, slot.ScheduledFor, "success")
		r.as(alice, "DELETE", "/api/v1/schedules/"+hers.ID, nil).want(http.StatusOK)
		r.as(bob, "POST", "/api/v1/schedules", yearly("poet", "http:poet")).want(http.StatusCreated).into(&his)
		r.as(bob, "DELETE", "/api/v1/schedules/"+his.ID, nil).want(http.StatusOK)
		for _, who := range []string{alice, bob} { // the last that each is told
			r.as(who, "POST", "/api/v1/jobs", map[string]any{"task": "fail"}).want(http.StatusCreated)
		}

		streams["bob who came back"] = r.listen(bob, "", "Last-Event-ID", strconv.FormatInt(begin, 10))
		all := []string{"schedule created", "schedule requested", "run begun", "schedule slot", "run committed", "schedule deleted"}
		for name, events := range streams {
			told := r.until(events, "job", "failed")
			ofHers, ofHis := about(told, hers.ID), about(told, his.ID)
			for _, what := range all {
				if mine := name == "admin" || name == "alice"; slices.Contains(ofHers, what) != mine {
					t.Errorf("%s was told of alice's schedule %q, where %q should be there: %v", name, ofHers, what, mine)
				}
			}
			for _, what := range []string{"job enqueued", "job started"} { // Pawl's own, and their keys name a schedule
				if all := name == "admin"; slices.Contains(ofHers, what) != all {
					t.Errorf("%s was told of alice's schedule %q, where %q should be there: %v", name, ofHers, what, all)
				}
			}
			if mine := name != "alice"; slices.Contains(ofHis, "schedule created") != mine || slices.Contains(ofHis, "schedule deleted") != mine {
				t.Errorf("%s was told of bob's schedule %q, should be: %v", name, ofHis, mine)
			}
		}
	})
}

// An event of a schedule of which nobody can tell whose it is waits, and so does
// what came after it; nothing is sent on a guess.
func TestStreamHoldsBackWhatItCannotJudge(t *testing.T) {
	f := NewFeed()
	defer f.Close()
	all := follow(t, f, nil, "", 0)
	hers, ok := f.follow(view{map[pawl.Kind]string{pawl.KindSchedule: "alice"}, new("alice")}, nil, "", 0)
	if !ok {
		t.Fatal("no room")
	}
	f.publish("job", "1", subject{}, 1)
	f.ObserveLane(lane.Change{Ref: lane.OwnedBy(pawl.KindSchedule, "s1", ""), What: "created"})
	f.ObserveRun(ledger.Event{What: ledger.Begun, Run: runstore.Run{ID: "r1", Kind: pawl.KindSchedule, Lane: "s2:x"}}, lane.OwnedBy(pawl.KindSchedule, "s2", ""))
	f.Observe(queue.Event{What: "started", Job: store.Job{ID: 7, Task: schedule.TaskName, Key: "s1:x"}})
	f.Observe(queue.Event{What: "started", Job: store.Job{ID: 8, Task: "t", Owner: "bob"}})
	f.Observe(queue.Event{What: "enqueued", Job: store.Job{ID: 9, Task: "t", Owner: "alice"}})
	f.publish("job", "2", subject{}, 2)
	if got := drain(f, all); len(got) != 7 {
		t.Errorf("who may see everything got %v", got)
	}
	if got := drain(f, hers); len(got) != 1 || got[0] != "1" {
		t.Errorf("before it is known whose they are, alice got %v", got)
	}
	if ids := f.unclear(hers); !slices.Equal(ids, []laneKey{{pawl.KindSchedule, "s1"}, {pawl.KindSchedule, "s2"}}) {
		t.Errorf("%v are to be looked up", ids)
	}
	f.learn(map[laneKey]string{{pawl.KindSchedule, "s1"}: "alice", {pawl.KindSchedule, "s2"}: "bob"})
	if got := drain(f, hers); len(got) != 3 || !strings.Contains(got[0], `"created"`) || !strings.Contains(got[1], `"enqueued"`) || got[2] != "2" {
		t.Errorf("alice got %v", got)
	}
	f.ObserveLane(lane.Change{Ref: lane.OwnedBy(pawl.KindSchedule, "s2", ""), What: "slot"})
	if len(hers.waiting) != 0 {
		t.Error("what is known to be bob's takes alice's room")
	}
}
