package web

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// the word, the sentence and what came in.
func TestOverviewShowsLanesAndFiltersThem(t *testing.T) {
	both(t, func(r *rig) {
		b := r.signedIn(r.admin)
		b.get("/").want(http.StatusOK).has("Nothing is deployed yet")
		r.deploy("asks", "ask", "o-1")
		r.deploy("does", "put", "o-1")
		r.deploy("rests", "put")
		r.ask("POST", "/api/v1/workflows/rests/pause", nil, nil)
		r.waitWord("asks", "Needs attention")
		r.waitDone("does")
		b.get("/").want(http.StatusOK).has("asks", "does", "rests", "It is waiting for your approval", "; resume it to continue.", "Done: Do")
		for query, want := range map[string]string{"?q=OE": "does", "?status=Stopped": "rests", "?status=Needs+attention": "asks", "?status=Idle": "does", "?kind=workflow&q=est": "rests"} {
			p := b.get("/" + query).want(http.StatusOK)
			for _, name := range []string{"asks", "does", "rests"} {
				shown := strings.Contains(p.body, `id="lane-workflow-`+name+`"`)
				if shown != (name == want) {
					r.t.Errorf("%s: %s is shown: %v", query, name, shown)
				}
			}
		}
		b.get("/?q=%25").want(http.StatusOK).has("No matches")
		b.get("/?kind=source").want(http.StatusOK).has("No matches")
		b.get("/?cursor=nowhere").want(http.StatusOK).has("No matches").hasNot("pawl apply")
	})
}

// What SQL takes for the word of a workflow is what its rules say.
func TestFilterAgreesWithTheWords(t *testing.T) {
	both(t, func(r *rig) {
		for name, method := range map[string]string{"asks": "ask", "loses": "lose", "does": "put", "rests": "ask"} {
			r.deploy(name, method, "o-1")
		}
		r.waitWord("asks", "Needs attention")
		r.waitWord("loses", "Needs attention")
		r.waitDone("does")
		r.waitWord("does", "Idle") // its session has ended, too
		r.ask("POST", "/api/v1/workflows/rests/pause", nil, nil)
		r.waitWord("rests", "Stopped")
		err := r.db.Read(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
			counts, err := runstore.In(tx).CountLanes(ctx, pawl.KindWorkflow, "")
			if want := "map[Idle:1 Needs attention:2 Stopped:1]"; err == nil && fmt.Sprint(counts) != want {
				r.t.Errorf("counted %v, want %v", counts, want)
			}
			if err != nil {
				return err
			}
			found, err := workflowstore.In(tx).FindWorkflows(ctx, runstore.LaneFilter{State: string(run.NeedsAttention)}, "", 10)
			if len(found) != 2 || found[0].Name != "asks" || found[1].Name != "loses" {
				r.t.Errorf("found %v", found)
			}
			return err
		})
		if err != nil {
			r.t.Fatal(err)
		}
	})
}

// how it works inside is not in the view for people; hostile names are
// text wherever they are shown.
func TestWorkflowPageSpeaksOfInputsAndEffects(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("does", "put", "o-1")
		newest := r.waitDone("does")
		b := r.signedIn(r.admin)
		p := b.get("/workflows/does").want(http.StatusOK)
		p.has("&lt;img src=x onerror", "o-1", "Do &lt;b&gt;o-1&lt;/b&gt;", "desk.put", "&lt;script&gt;alert", "&#34;row&#34;: 7", "happened")
		p.hasNot("<img src=x", "<script>alert", "<b>")
		for _, word := range []string{"consumer", "producer", "preparing", "mutating", "emitting", "committed", "topic", "attempt", "retry"} {
			if regexp.MustCompile(`(?i)\b` + word).MatchString(p.body) {
				r.t.Errorf("the view for people has %q", word)
			}
		}
		for _, tab := range []string{"outputs", "runs", "versions", "why"} {
			b.get("/workflows/does/"+tab).want(http.StatusOK).hasNot("<img src=x", "<script>alert", "<b>o-1")
		}
		b.get("/runs/"+newest.ID).want(http.StatusOK).has("act", "committed")
	})
}

func TestApprovingShowsAndSendsTheRealArguments(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("asks", "ask", "o-1")
		asking := r.waitWord("asks", "Needs attention")
		b := r.signedIn(r.admin)
		p := b.get("/workflows/asks").want(http.StatusOK).has("desk.ask", "&lt;script&gt;alert(1)", "Approve this call", "Reject and pause")
		hash := regexp.MustCompile(`name="hash" value="([^"]+)"`).FindStringSubmatch(p.body)
		if hash == nil {
			r.t.Fatal("the form does not name what is approved")
		}
		seen := regexp.MustCompile(`name="seen" value="([^"]+)"`).FindStringSubmatch(p.body)
		if seen == nil {
			r.t.Fatal("the form does not name the question")
		}
		p.has("the desk on the left, drawer ask")
		b.get("/approvals").want(http.StatusOK).has("desk.ask", hash[1], seen[1], "the desk on the left, drawer ask", "<title>(1) Approvals", "pawl delete rule asks desk.ask")
		approve, reject := "/runs/"+asking.ID+"/approve", "/runs/"+asking.ID+"/reject"
		for _, stale := range [][]string{
			{"hash", "another", "seen", seen[1]}, {"hash", hash[1], "seen", asking.ID}, {"hash", hash[1]}, {"seen", "none"}, {}, {"always", "yes"},
		} {
			b.post(approve, append(stale, "back", "/workflows/asks")...).want(http.StatusConflict).has("Needs attention", `role="alert"`)
		}
		b.post(reject, "seen", asking.ID, "back", "/workflows/asks").want(http.StatusConflict)
		b.post(reject, "back", "/workflows/asks").want(http.StatusConflict)
		b.post(approve, "hash", hash[1], "seen", seen[1], "back", "/workflows/asks").want(http.StatusSeeOther)
		b.get("/workflows/asks").want(http.StatusOK).has("Approved.")
		b.get("/workflows/asks").want(http.StatusOK).hasNot("Approved.")
		r.waitWord("asks", "Idle")
		b.post(approve, "hash", hash[1], "seen", seen[1], "back", "/runs/"+asking.ID).want(http.StatusConflict).has(`role="alert"`, "attempt")
		b.get("/audit").want(http.StatusOK).has("approve", "admin (token ", ">admin<")
	})
}

func TestResolvingSaysWhatHappened(t *testing.T) {
	r := onSQLite(t)
	r.deploy("loses", "lose", "o-1")
	lost := r.waitWord("loses", "Needs attention")
	b := r.signedIn(r.admin)
	b.get("/workflows/loses").want(http.StatusOK).has("Did this happen?", "It happened", "It did not happen")
	resolve := "/runs/" + lost.ID + "/resolve"
	b.post(resolve, "outcome", "happened", "result", "{no", "back", "/workflows/loses").want(http.StatusUnprocessableEntity).has("not JSON")
	b.post(resolve, "outcome", "happened", "result", `{"row":1}`, "back", "/workflows/loses").want(http.StatusSeeOther)
	r.waitWord("loses", "Idle")
}

// The refusals are the API's, with its words, on the page where it was asked.
func TestRefusalsAreShownInPlace(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("rests", "put")
		b := r.signedIn(r.admin)
		b.post("/workflows/rests/pause", "back", "/workflows/rests").want(http.StatusSeeOther)
		b.get("/workflows/rests").want(http.StatusOK).has("Paused. Nothing more will start.", "Resume")
		b.post("/workflows/rests/run", "back", "/workflows/rests").want(http.StatusConflict).has("is paused", "Inputs → outputs", `name="back" value="/workflows/rests"`)
		b.post("/workflows/rests/resume", "back", "/workflows/rests").want(http.StatusSeeOther)
	})
}

func TestViewersAreOfferedAndAllowedNothing(t *testing.T) {
	r := onSQLite(t)
	r.deploy("asks", "ask", "o-1")
	asking := r.waitWord("asks", "Needs attention")
	b := r.signedIn(r.token("vera", userstore.RoleViewer, "read"))
	b.get("/workflows/asks").want(http.StatusOK).has("To decide, sign in with a token").hasNot("Run now", "Approve this call", "Skip it")
	b.get("/approvals").want(http.StatusOK).hasNot("Approve this call")
	b.get("/tokens").want(http.StatusOK).hasNot("New token", "of admin")
	b.get("/audit").want(http.StatusForbidden)
	b.post("/workflows/asks/pause", "back", "/").want(http.StatusForbidden)
	b.post("/runs/"+asking.ID+"/approve", "back", "/approvals").want(http.StatusForbidden)
	b.post("/tokens", "name", "x", "allow", "*", "back", "/tokens").want(http.StatusForbidden)
	narrow := r.signedIn(r.token("nora", userstore.RoleOperator, "jobs:write"))
	narrow.get("/").want(http.StatusForbidden)
	narrow.get("/jobs").want(http.StatusOK)
}

func TestTokensAreMadeShownOnceAndRevoked(t *testing.T) {
	both(t, func(r *rig) {
		b := r.signedIn(r.admin)
		p := b.post("/tokens", "name", "<b>ci</b>", "user", "ada", "allow", "read", "expiresIn", "90d").want(http.StatusOK).has("&lt;b&gt;ci&lt;/b&gt;", "ada", "viewer")
		text := regexp.MustCompile(`pawl_[A-Za-z0-9_-]{40,}`).FindString(p.body)
		if text == "" {
			r.t.Fatal("the token is not shown")
		}
		b.get("/tokens").want(http.StatusOK).hasNot(text)
		ada := r.signedIn(text)
		found, err := userstore.On(r.db).TokenByText(r.t.Context(), text)
		if err != nil {
			r.t.Fatal(err)
		}
		b.post("/tokens/"+found.ID+"/revoke", "back", "/tokens").want(http.StatusSeeOther)
		ada.get("/").want(http.StatusSeeOther)
	})
}

func TestJobsAreShownAndRunAgain(t *testing.T) {
	both(t, func(r *rig) {
		var job client.Job
		r.ask("POST", "/api/v1/jobs", map[string]any{"task": "fail", "payload": map[string]any{"a": "<i>"}}, &job)
		b := r.signedIn(r.admin)
		r.eventually("it failed", func() bool { return strings.Contains(b.get("/jobs?state=failed").body, "/jobs/"+job.ID) })
		b.get("/jobs/"+job.ID).want(http.StatusOK).has("Run again", "unexpected EOF").hasNot("<i>")
		b.post("/jobs/"+job.ID+"/retry", "back", "/jobs/"+job.ID).want(http.StatusSeeOther)
	})
}

// The partitions of a workflow are shown with what is the matter, and the card for a person
// is about the run that needs one, though another partition ran later.
func TestPartitionsAreShown(t *testing.T) {
	both(t, func(r *rig) {
		r.ask("PUT", "/api/v1/workflows/parted", map[string]any{"filename": "parted.workflow.js", "script": `export default { name: "parted", topics: { t: {} }, consumers: { ship: { subscribe: ["t"], partition: "payload.customer",
			prepare: async (ctx) => { const [e] = await ctx.peek("t"); if (e && e.payload.customer.startsWith("<b>")) throw new Error("a bad customer"); return { reservations: e ? [{ topic: "t", ids: [e.messageId] }] : [], data: {} }; } } } };`}, nil)
		b := r.signedIn(r.admin)
		b.get("/workflows/parted/partitions").want(http.StatusOK).has("No partition is in this state", "0 at work")
		send := func(id, customer string) {
			r.ask("POST", "/api/v1/workflows/parted/events", map[string]any{"topic": "t", "messageId": id, "payload": map[string]any{"customer": customer}}, nil)
		}
		send("e-1", "<b>17")
		r.waitWord("parted", "Needs attention")
		send("e-2", "good")
		r.eventually("the other one is done", func() bool {
			var w client.Workflow
			r.ask("GET", "/api/v1/workflows/parted", nil, &w)
			return w.Pending == 1 && *w.Partitions == client.PartitionCounts{Attention: 1}
		})
		var failed client.Page[runView]
		r.ask("GET", "/api/v1/runs?lane=parted&status=failed:logic", nil, &failed)
		if len(failed.Items) != 1 {
			r.t.Fatalf("%d runs failed", len(failed.Items))
		}
		b.get("/workflows/parted/partitions").want(http.StatusOK).has("&lt;b&gt;17", "ship", "a bad customer", "Need attention (1)", `href="/runs/`+failed.Items[0].ID+`"`, "1 in need of attention").hasNot("<b>17", "good")
		b.get("/workflows/parted").want(http.StatusOK).has(`<a href="/runs/` + failed.Items[0].ID + `">View run</a>`)
		b.get("/workflows/parted/partitions?state=waiting").want(http.StatusOK).has("No partition is in this state")
	})
}

// Failed jobs are run again, and jobs cancelled, by what the list was filtered by.
func TestJobsAreChangedTogether(t *testing.T) {
	both(t, func(r *rig) {
		b := r.signedIn(r.admin)
		failed := func() int { return strings.Count(b.get("/jobs?state=failed&task=fail").body, `<td data-label="Job">`) }
		for i := range 4 {
			r.ask("POST", "/api/v1/jobs", map[string]any{"task": "fail", "lane": fmt.Sprint("l-", i%2), "payload": map[string]any{}}, nil)
		}
		r.eventually("they failed", func() bool { return failed() == 4 })
		b.get("/jobs").want(http.StatusOK).hasNot("/jobs/retry", "/jobs/cancel")
		b.get("/jobs?task=fail&lane=l-1").want(http.StatusOK).has(`action="/jobs/retry"`, `action="/jobs/cancel"`, `name="lane" value="l-1"`)
		b.get("/jobs?task=fail&state=succeeded").want(http.StatusOK).hasNot("/jobs/retry", "/jobs/cancel")
		b.post("/jobs/retry", "back", "/jobs?task=fail", "task", "fail", "lane", "l-1", "error", "another").want(http.StatusSeeOther)
		b.get("/jobs?task=fail").want(http.StatusOK).has("0 jobs retried.")
		b.post("/jobs/retry", "back", "/jobs?task=fail", "task", "fail", "lane", "l-1", "error", "unexpected EOF").want(http.StatusSeeOther)
		b.get("/jobs?task=fail").want(http.StatusOK).has("2 jobs retried.")
		r.eventually("they failed again", func() bool { return failed() == 4 })
		b.post("/jobs/cancel", "back", "/jobs?task=fail", "task", "fail", "lane", "l-0", "state", "failed").want(http.StatusSeeOther)
		b.get("/jobs?task=fail").want(http.StatusOK).has("2 jobs cancelled.")
		if n := failed(); n != 2 {
			r.t.Errorf("%d are left", n)
		}
		b.post("/jobs/cancel", "back", "/jobs").want(http.StatusUnprocessableEntity).has("must name at least one thing")
		if n := failed(); n != 2 {
			r.t.Errorf("%d are left after nothing was named", n)
		}
		reader := r.signedIn(r.token("reader", userstore.RoleViewer))
		reader.post("/jobs/cancel", "back", "/jobs", "task", "fail").want(http.StatusForbidden)
		if n := failed(); n != 2 {
			r.t.Errorf("%d are left after a reader pressed a button", n)
		}
	})
}

// A page is told of what happens while it is open, and of what happened since it
// was begun.
func TestOpenPagesAreToldOfChanges(t *testing.T) {
	r := onSQLite(t)
	r.deploy("rests", "put")
	r.waitWord("rests", "Idle")
	b := r.signedIn(r.admin)
	told := func(query string, meanwhile func()) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.server.URL+"/live?lane=workflow:rests"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := b.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // nothing more is read
		if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
			t.Fatalf("content type %q", ct)
		}
		lines := bufio.NewScanner(resp.Body)
		lines.Scan() // connected: the page follows now
		meanwhile()
		for lines.Scan() {
			if lines.Text() == "event: change" {
				return
			}
		}
		t.Fatal("the stream ended without a word")
	}
	told("", func() { r.ask("POST", "/api/v1/workflows/rests/pause", nil, nil) })
	since := regexp.MustCompile(`since=(\d+)"`).FindStringSubmatch(b.get("/workflows/rests").body)
	if since == nil {
		t.Fatal("the page does not say when it was begun")
	}
	r.ask("POST", "/api/v1/workflows/rests/resume", nil, nil)
	begun := time.Now()
	told("&since="+since[1], func() {})
	if took := time.Since(begun); took > liveTick/2 {
		t.Errorf("it was told after %v", took)
	}
}

func TestPulseTellsWhoFollows(t *testing.T) {
	p := NewPulse()
	all, _ := p.follow(everyLane)
	one, _ := p.follow("workflow:a")
	p.Changed(lane.Named("workflow", "b"))
	p.Changed(lane.Named("workflow", "b")) // does not wait
	if len(all.wake) != 1 || len(one.wake) != 0 {
		t.Errorf("all %d, one %d", len(all.wake), len(one.wake))
	}
	p.Changed(lane.Named("workflow", "a"))
	p.leave(all)
	if len(one.wake) != 1 || p.count.Load() != 1 {
		t.Errorf("one %d, followers %d", len(one.wake), p.count.Load())
	}
	p.Close()
	if _, ok := p.follow(everyLane); ok {
		t.Error("somebody follows after the end")
	}
}
