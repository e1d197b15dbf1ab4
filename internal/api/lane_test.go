package api

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// A-143..A-147, X-28: a lane is told in words, and in those of people.
func TestLanesAreToldToPeople(t *testing.T) {
	both(t, func(r *rig) {
		r.deployOrders()
		r.deploy("hourly", producing("hourly", `const i = ctx.registerInput({ source: "a", type: "b", id: "c", title: "A letter" }); ctx.publish("found", { messageId: "1", inputId: i, payload: 1 });`))
		r.deploy("broken", producing("broken", `throw new Error("no");`))
		r.deploy("still", producing("still", ""))
		r.do("POST", "/api/v1/workflows/still/pause", nil).want(200)
		r.publish("orders", "order", "1")
		r.waitRuns("?lane=orders&status=committed", 4)
		r.waitRuns("?lane=hourly&status=committed", 3)
		r.waitRuns("?lane=broken&status=failed:logic", 1)
		raw := r.do("GET", "/api/v1/lanes", nil).want(200)
		var page client.Page[client.Lane]
		raw.into(&page)
		var told []string
		for _, l := range page.Items {
			told = append(told, fmt.Sprintf("%s %s: %s, %d waiting, %s; %s", l.Kind, l.Name, l.Status, l.Pending, l.Schedule, l.LastActivity.Text))
			if l.ID == "" || l.LastActivity.At.IsZero() || l.Labels == nil || (l.Issue == "") != (l.IssueCode == "") {
				t.Errorf("%+v", l)
			}
		}
		want := []string{
			"workflow broken: Needs attention, 0 waiting, Every hour; ",
			"workflow hourly: Idle, 1 waiting, Every hour; Found A letter",
			"workflow orders: Idle, 0 waiting, When there are events; Done: File 1",
			"workflow still: Stopped, 0 waiting, Every hour; ",
		}
		for i := range want {
			if !strings.HasPrefix(told[i], want[i]) {
				t.Errorf("%s\nwant %s", told[i], want[i])
			}
		}
		if l := page.Items[2]; l.Labels["team"] != "shop" || l.Issue != "" || !l.NextAt.IsZero() {
			t.Errorf("%+v", l)
		}
		if words := regexp.MustCompile(`phase|handler|topic|retry|committed|preparing`).FindString(string(raw.body)); words != "" {
			t.Errorf("people read %q: %s", words, raw.body)
		}
	})
}

func TestLanesAndWorkflowsArePaged(t *testing.T) {
	both(t, func(r *rig) {
		var want []string
		for i := range 5 {
			name := fmt.Sprintf("w%d", i)
			r.deploy(name, consuming(name, ""))
			want = append(want, name)
		}
		for _, path := range []string{"/api/v1/lanes?limit=2", "/api/v1/lanes?limit=5", "/api/v1/lanes?kind=workflow&limit=1", "/api/v1/workflows?limit=2", "/api/v1/workflows?limit=5"} {
			var got []string
			for _, l := range pages[client.Lane](r, path) {
				got = append(got, l.Name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v", path, got)
			}
		}
		if got := pages[client.Lane](r, "/api/v1/lanes?kind=source"); len(got) != 0 {
			t.Errorf("sources: %v", got)
		}
		foreign := string(pageOf([]int{1}, "job", "5").NextCursor)
		for _, c := range []struct{ path, pointer string }{
			{"/api/v1/lanes?cursor=nonsense", "/cursor"}, {"/api/v1/lanes?cursor=" + foreign, "/cursor"}, {"/api/v1/lanes?limit=0", "/limit"}, {"/api/v1/lanes?kind=x", "/kind"},
			{"/api/v1/lanes?cursor=" + string(pageOf([]int{1}, laneCursor, "nothing:x").NextCursor), "/cursor"},
			{"/api/v1/lanes?cursor=" + string(pageOf([]int{1}, laneCursor, "workflow:\x00").NextCursor), "/cursor"},
			{"/api/v1/workflows?cursor=" + foreign, "/cursor"}, {"/api/v1/workflows?cursor=" + string(pageOf([]int{1}, workflowCursor, "\x00").NextCursor), "/cursor"},
			{"/api/v1/workflows/w1/versions?cursor=" + string(pageOf([]int{1}, versionCursor, "x").NextCursor), "/cursor"},
			{"/api/v1/workflows/w1/versions?source=perhaps", "/source"},
			{"/api/v1/workflows/w1/inputs?cursor=" + string(pageOf([]int{1}, inputCursor, "5").NextCursor), "/cursor"}, {"/api/v1/workflows/w1/inputs?status=x", "/status"},
			{"/api/v1/workflows/w1/inputs?cursor=" + string(pageOf([]int{1}, inputCursor, "5:\x00").NextCursor), "/cursor"},
			{"/api/v1/workflows/w1/outputs?cursor=" + string(pageOf([]int{1}, outputCursor, "x:y").NextCursor), "/cursor"}, {"/api/v1/workflows/w1/outputs?limit=501", "/limit"},
			{"/api/v1/workflows/w1/events?cursor=" + foreign, "/cursor"}, {"/api/v1/workflows/w1/events?status=x", "/status"}, {"/api/v1/workflows/w1/events?topic=%00", "/topic"}, {"/api/v1/workflows/w1/events?input=%00", "/input"},
			{"/api/v1/runs?cursor=" + foreign, "/cursor"}, {"/api/v1/runs?status=x", "/status"}, {"/api/v1/runs?kind=x", "/kind"}, {"/api/v1/runs?lane=%00", "/lane"}, {"/api/v1/runs?workflow=w1", "/workflow"},
			{"/api/v1/lanes/workflow/w1/why?at=yesterday", "/at"},
		} {
			if p := r.do("GET", c.path, nil).problem(422, "invalid"); !slices.Equal(pointers(p), []string{c.pointer}) {
				t.Errorf("%s: %+v", c.path, p.Errors)
			}
		}
	})
}

func (r *rig) why(name, query string) (y client.LaneWhy) {
	r.t.Helper()
	r.do("GET", "/api/v1/lanes/workflow/"+name+"/why"+query, nil).want(200).into(&y)
	return y
}

func closedGates(y client.LaneWhy) (closed []string) {
	for _, g := range y.Gates {
		if !g.Open {
			closed = append(closed, g.Name)
		}
		if g.Text == "" {
			closed = append(closed, g.Name+" has no words")
		}
	}
	return closed
}

func TestWhyTellsWhatIsWaitedFor(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("waiting", producing("waiting", `await ctx.tools.desk.wait({});`))
		if y := r.why("waiting", ""); y.Name != "waiting" || y.Kind != "workflow" || y.At.IsZero() || y.Around != nil {
			t.Errorf("%+v", y)
		}
		r.waitEntered()
		y := r.why("waiting", "")
		if closed := closedGates(y); !slices.Contains(closed, "idle") || y.Status != "Running" || len(y.Recent) == 0 || y.Recent[0].Status != "active" {
			t.Errorf("closed %v, %+v", closed, y)
		}
		close(r.desk.release)
		r.waitRuns("?lane=waiting&status=committed", 2)
		if y = r.why("waiting", ""); !slices.Equal(closedGates(y), []string{"due"}) || y.Next == "" || len(y.Recent) != 2 {
			t.Errorf("closed %v, next %q, %d runs", closedGates(y), y.Next, len(y.Recent))
		}
		r.do("POST", "/api/v1/workflows/waiting/pause", nil).want(200)
		if y = r.why("waiting", ""); !slices.Contains(closedGates(y), "wanted") {
			t.Errorf("closed %v", closedGates(y))
		}
	})
}

func TestWhyTellsOfAnInstant(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("two", twoProducers)
		runs := r.waitRuns("?lane=two&status=committed", 3)
		first, last := runs[2], runs[0]
		at := func(when time.Time) client.Around {
			t.Helper()
			y := r.why("two", "?at="+pawl.FormatTime(when))
			if y.Around == nil || !y.Around.At.Equal(when) {
				t.Fatalf("%+v", y.Around)
			}
			return *y.Around
		}
		if a := at(first.CreatedAt.Add(-time.Millisecond)); a.Before != nil || a.After.ID != first.ID || !strings.Contains(a.Text, "had not run yet") {
			t.Errorf("before the first: %+v", a)
		}
		if a := at(first.CreatedAt.Time); a.Before.ID != first.ID || a.After.ID != runs[1].ID {
			t.Errorf("at the first: %+v", a)
		}
		if a := at(last.EndedAt.Time); a.Before.ID != last.ID || a.After != nil || !strings.Contains(a.Text, "Nothing ran") {
			t.Errorf("after the last: %+v", a)
		}
		if a := at(time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)); a.Before.ID != last.ID || a.Text != "That time is in the future." {
			t.Errorf("later: %+v", a)
		}
	})
}

// Runs that are folded are told with how many they are, and an instant between them
// with the row that stands for them, whatever another handler did meanwhile.
func TestFoldedRunsAreToldAsMany(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("two", twoProducers)
		runs := r.waitRuns("?lane=two&status=committed", 3)
		first, between := runs[2], runs[1]
		through := first.CreatedAt.Add(2 * time.Hour)
		r.exec(`update runs set folded_at = 1, through_at = $2, run_count = 60 where id = $1`, first.ID, through.UnixMilli())
		r.exec(`update runs set folded_at = 1, through_at = created_at, run_count = 1 where id = $1`, between.ID) // others may be folded into it
		list := r.waitRuns("?lane=two&status=committed", 3)
		if one := list[2]; one.Count != 60 || !one.Through.Equal(through) || list[1].Count != 0 || !list[1].Through.IsZero() {
			t.Errorf("%+v, %+v", one.RunSummary, list[1].RunSummary)
		}
		if d := r.detail(first.ID); d.Count != 60 || !d.Through.Equal(through) {
			t.Errorf("%+v", d.RunSummary)
		}
		at := first.CreatedAt.Add(time.Hour)
		r.exec(`update runs set created_at = $2, ended_at = $2 where id = $1`, between.ID, at.Add(-time.Minute).UnixMilli())
		r.exec(`update runs set created_at = $2 where id = $1`, runs[0].ID, through.Add(time.Hour).UnixMilli())
		r.exec(`update runs set created_at = created_at - 36000000, ended_at = ended_at - 36000000, through_at = through_at - 36000000`)
		r.exec(`update workflows set created_at = created_at - 72000000`)
		y := r.why("two", "?at="+pawl.FormatTime(at.Add(-10*time.Hour)))
		if y.Around.Before.ID != first.ID || y.Around.Before.Count != 60 || y.Around.After.ID != runs[0].ID || !strings.Contains(y.Around.Text, "run "+first.ID+" stands for the 60 runs of ") {
			t.Errorf("%+v", y.Around)
		}
	})
}
