package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

// situation is something that a lane can be in, set up with the means that
// people have. at waits until it is there.
type situation struct {
	name   string
	kind   string
	begin  func(r *rig, name string)
	status string // of its newest run, or of its latest slot; empty if there is none
	word   string // what people should be told
	says   string // a part of what is the matter
	do     string // the beginning of the command that ends it
}

// What people are told is so (A-143..A-147, X-28): in every situation each
// sentence, gate and command of why and of the list is compared with the rows, by
// a reading of its own.
func TestWhatPeopleAreToldIsSo(t *testing.T) {
	both(t, func(r *rig) {
		list := append(append(workflowSituations(), sourceSituations()...), scheduleSituations()...)
		told := map[string]bool{}
		for _, s := range list {
			s.begin(r, s.name)
		}
		for _, s := range list {
			r.reached(s)
			r.compare(s, false, told)
		}
		r.nobody.Store(true)
		for _, s := range list {
			r.compare(s, true, told)
		}
		r.nobody.Store(false)
		for part := range claims() {
			if !told[part] {
				r.t.Errorf("no situation was told %q: the claim holds nothing", part)
			}
		}
		close(r.desk.release)
		close(r.outside.release)
		close(r.studio.release)
	})
}

func workflowSituations() []situation {
	consumer := func(body string) func(r *rig, name string) {
		return func(r *rig, name string) {
			r.deploy(name, consuming(name, "if (prepared.reservations.length) { "+body+" }"))
			r.publish(name, "t", "1")
		}
	}
	producer := func(body string) func(r *rig, name string) {
		return func(r *rig, name string) { r.deploy(name, producing(name, body)) }
	}
	then := func(begin func(*rig, string), status, verb string) func(r *rig, name string) {
		return func(r *rig, name string) {
			begin(r, name)
			runs := 1
			if status == "committed" { // of the consumer, and of the producer; a pause would end the second
				runs = 2
			}
			id := r.waitRuns("?kind=workflow&lane="+name+"&status="+status, runs)[0].ID
			if verb == "pause" {
				r.do("POST", "/api/v1/workflows/"+name+"/pause", nil).want(http.StatusOK)
				return
			}
			r.do("POST", "/api/v1/runs/"+id+"/"+verb, nil).want(http.StatusOK)
		}
	}
	throws, asks, busy := producer(`throw new Error("no luck")`), consumer(`await ctx.tools.desk.ask({});`), producer(`await ctx.tools.desk.busy({});`)
	return []situation{
		{"w-new", "workflow", func(r *rig, name string) { r.deploy(name, consuming(name, "")) }, "committed", "Idle", "", ""},
		{"w-found-nothing", "workflow", producer(""), "committed", "Idle", "", ""},
		{"w-did-it", "workflow", consumer(`await ctx.tools.desk.put({});`), "committed", "Idle", "", ""},
		{"w-running", "workflow", producer(`await ctx.tools.desk.wait({});`), "active", "Running", "", "pawl cancel"},
		{"w-asks", "workflow", asks, "paused:approval", "Needs attention", "waiting for your approval", "pawl approve"},
		{"w-locked", "workflow", consumer(`await ctx.tools.desk.lock({});`), "paused:approval", "Needs attention", "permission", "pawl resume workflow"},
		{"w-lost", "workflow", consumer(`await ctx.tools.desk.lose({});`), "paused:reconciliation", "Needs attention", "unknown whether", "pawl resolve"},
		{"w-doubts", "workflow", consumer(`await ctx.tools.desk.doubt({});`), "paused:reconciliation", "Running", "being checked", "pawl describe run"},
		{"w-busy", "workflow", busy, "paused:transient", "Running", "tried again", "pawl resume workflow"},
		{"w-spent", "workflow", func(r *rig, name string) {
			busy(r, name)
			r.waitRuns("?kind=workflow&lane="+name+"&status=paused:transient", 1)
			r.exec(`update retries set retry_count = 99 where kind = 'workflow' and lane like $1`, name+"%")
		}, "paused:transient", "Needs attention", "not retried automatically", "pawl resume workflow"},
		{"w-throws", "workflow", throws, "failed:logic", "Needs attention", "The script failed", "pawl resume workflow"},
		{"w-paused", "workflow", then(producer(""), "committed", "pause"), "committed", "Stopped", "It is paused", "pawl resume workflow"},
		{"w-paused-asking", "workflow", then(asks, "paused:approval", "pause"), "paused:approval", "Stopped", "It is paused", "pawl resume workflow"},
		{"w-paused-requested", "workflow", func(r *rig, name string) { // asked for, and paused before anybody took it
			then(producer(""), "committed", "pause")(r, name)
			r.exec(`update producer_schedules set requested_at = $1 where workflow_id = (select id from workflows where name = $2)`, time.Now().UnixMilli(), name)
		}, "committed", "Stopped", "It is paused", "pawl resume workflow"},
		{"w-rejected", "workflow", then(asks, "paused:approval", "reject"), "cancelled", "Stopped", "It is paused", "pawl resume workflow"},
		{"w-took-nothing", "workflow", func(r *rig, name string) {
			r.deploy(name, producing(name, ""))
			r.publish(name, "found", "1")
		}, "committed", "Idle", "", ""},
	}
}

func sourceSituations() []situation {
	from := func(path string, changes ...any) func(r *rig, name string) {
		return func(r *rig, name string) {
			r.apply(name, r.fetching(path, append(changes, "table", strings.ReplaceAll(name, "-", "_"))...))
		}
	}
	limited := func(r *rig) string { return strings.Replace(r.outside.URL, "127.0.0.1", "localhost", 1) + "/prices" }
	return []situation{
		{"s-fetched", "source", from("/prices"), "committed", "Idle", "", ""},
		{"s-fetching", "source", from("/slow"), "active", "Running", "", "pawl cancel"},
		{"s-busy", "source", from("/busy"), "paused:transient", "Running", "tried again", "pawl reset source"},
		{"s-locked", "source", from("/locked"), "failed:logic", "Needs attention", "rejected the credentials", "pawl reset source"},
		{"s-spent", "source", from("/busy", "execution", map[string]any{"maxRetries": 1}), "paused:transient", "Needs attention", "The one attempt of this period failed", "pawl reset source"},
		{"s-not-json", "source", from("/page"), "failed:logic", "Running", "failed", "pawl reset source"},
		{"s-inactive", "source", from("/prices", "status", "draft"), "", "Stopped", "only active sources run", "pawl apply"},
		{"s-paused", "source", func(r *rig, name string) {
			from("/prices")(r, name)
			r.waitRuns("?kind=source&lane="+name+"&status=committed", 1)
			r.do("POST", "/api/v1/sources/"+name+"/pause", nil).want(http.StatusOK)
		}, "committed", "Stopped", "It is paused", "pawl resume source"},
		{"s-limited", "source", func(r *rig, name string) { // two calls are allowed here; the host asked for less rest than that
			d := r.fetching("", "table", "s_limited")
			d["url"] = limited(r)
			r.apply(name, d)
			r.waitRuns("?kind=source&lane="+name+"&status=committed", 1)
			r.exec(`update rate_limiter_state set blocked_until = $1 where domain like 'localhost%'`, time.Now().Add(10*time.Minute).UnixMilli())
			r.do("POST", "/api/v1/sources/"+name+"/run", nil)
		}, "committed", "Idle", "", ""},
	}
}

func scheduleSituations() []situation {
	make := func(graphID string) func(r *rig, name string) {
		return func(r *rig, name string) { r.runSchedule(r.schedule(yearly(name, graphID)).ID) }
	}
	id := func(r *rig, name string) string { return r.whyOf("schedule", name).ID }
	return []situation{
		{"p-new", "schedule", func(r *rig, name string) { r.schedule(yearly(name, "x:poet")) }, "", "Idle", "", ""},
		{"p-ran", "schedule", make("x:poet"), "success", "Idle", "", ""},
		{"p-running", "schedule", make("x:waits"), "running", "Running", "", "pawl cancel"},
		{"p-asks", "schedule", make("x:asks"), "running", "Needs attention", "asks a question", "pawl approve"},
		{"p-failed", "schedule", make("x:fails"), "error", "Needs attention", "no such poem", "pawl run schedule"},
		{"p-busy", "schedule", make("x:busy"), "running", "Running", "failed and is tried again at ", "pawl cancel"},
		{"p-off", "schedule", func(r *rig, name string) {
			r.schedule(yearly(name, "x:poet"))
			r.do("PATCH", "/api/v1/schedules/"+id(r, name), map[string]any{"enabled": false}).want(http.StatusOK)
		}, "skipped", "Stopped", "It is paused", "pawl resume schedule"},
		{"p-revoked", "schedule", func(r *rig, name string) {
			s := r.schedule(yearly(name, "x:poet"))
			r.do("POST", "/api/v1/grants/"+s.ExecutionGrantID+"/revoke", nil).want(http.StatusOK)
		}, "", "Idle", "", ""},
		{"p-refused", "schedule", func(r *rig, name string) {
			s := r.schedule(yearly(name, "x:poet"))
			r.do("POST", "/api/v1/grants/"+s.ExecutionGrantID+"/revoke", nil).want(http.StatusOK)
			r.runSchedule(s.ID)
		}, "skipped", "Needs attention", "The grant does not allow it", "pawl grant create"},
	}
}

func (r *rig) whyOf(kind, name string) (y client.LaneWhy) {
	r.t.Helper()
	r.do("GET", "/api/v1/lanes/"+kind+"/"+url.PathEscape(name)+"/why", nil).want(http.StatusOK).into(&y)
	return y
}

// reached waits until the rows say that a situation is there.
func (r *rig) reached(s situation) {
	r.t.Helper()
	r.eventually(s.name+" is "+s.status, func() bool {
		f := r.facts(s)
		return f.status == s.status && (s.name != "w-took-nothing" || f.pending == 1 && f.jobs == 0)
	})
}

// facts are what the rows of a lane say: the second reading.
type facts struct {
	id, lane string
	wanted   bool
	runs     int
	newest   string // id of the newest run
	status   string // of it, or of the newest slot
	active   bool   // something of it runs
	class    string
	failures int
	backsOff bool
	pending  int // events, or slots that are due
	requests int
	due      bool   // by its schedule
	jobs     int    // of its task that are due
	asked    int    // questions to people
	call     string // of the newest run
	lastCall string // of any run
	refused  bool   // its grant is revoked or over
	blocked  time.Time
}

// text reads one text; nothing is empty.
func (r *rig) text(sql string, args ...any) string {
	r.t.Helper()
	var found string
	err := r.db.Read(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		if rows.Next() {
			err = rows.Scan(&found)
		}
		return errors.Join(err, rows.Err())
	})
	if err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return found
}

func (r *rig) facts(s situation) (f facts) {
	r.t.Helper()
	now := time.Now().UnixMilli()
	switch s.kind {
	case "workflow":
		f.id, f.lane = r.text(`select id from workflows where name = $1`, s.name), r.text(`select lane from workflows where name = $1`, s.name)
		f.wanted = r.count(`select count(*) from workflows where id = $1 and desired = 'active'`, f.id) == 1
		f.pending = r.count(`select count(*) from events where workflow_id = $1 and status = 'pending'`, f.id)
		f.requests = r.count(`select count(*) from producer_schedules where workflow_id = $1 and requested_at is not null`, f.id)
		f.due = r.count(`select count(*) from producer_schedules where workflow_id = $1 and next_run_at <= $2`, f.id, now)+
			r.count(`select count(*) from handler_state where workflow_id = $1 and wake_at <= $2`, f.id, now) > 0
	case "source":
		f.id, f.lane = r.text(`select id from source_definitions where name = $1`, s.name), s.name
		f.wanted = r.count(`select count(*) from source_definitions where id = $1 and status = 'active' and paused_at is null`, f.id) == 1
		f.blocked = time.UnixMilli(int64(r.count(`select coalesce(max(blocked_until), 0) from rate_limiter_state where domain like 'localhost%'`))).UTC()
	case "schedule":
		f.id = r.text(`select id from schedules where name = $1`, s.name)
		f.lane = f.id
		f.wanted = r.count(`select count(*) from schedules where id = $1 and enabled = 1`, f.id) == 1
		f.pending = r.count(`select count(*) from schedule_runs where schedule_id = $1 and status = 'pending' and scheduled_for <= $2`, f.id, now)
		f.refused = r.count(`select count(*) from execution_grants g join schedules s on s.execution_grant_id = g.id where s.id = $1 and g.revoked_at is not null`, f.id) == 1
	}
	f.runs = r.count(`select count(*) from runs where kind = $1 and (lane = $2 or lane like $3)`, s.kind, f.lane, f.lane+":%")
	f.newest = r.text(`select id from runs where kind = $1 and (lane = $2 or lane like $3) order by created_at desc, id desc limit 1`, s.kind, f.lane, f.lane+":%")
	f.status = r.text(`select status from runs where id = $1`, f.newest)
	f.active = f.status == "active"
	f.class = r.text(`select coalesce(error_class, '') from runs where id = $1`, f.newest)
	if s.kind == "schedule" {
		f.status = r.text(`select status from schedule_runs where schedule_id = $1 and (status <> 'pending') order by scheduled_for desc limit 1`, f.id)
		f.active = f.status == "running"
	}
	f.failures = r.count(`select coalesce(sum(retry_count), 0) from retries where kind = $1 and lane = $2`, s.kind, f.lane)
	f.backsOff = r.count(`select count(*) from retries where kind = $1 and lane = $2 and next_retry_at > $3`, s.kind, f.lane, now) > 0
	f.jobs = r.count(`select count(*) from jobs where state = 0 and run_at <= $1 and key = $2`, now, s.kind+":"+f.lane)
	f.asked = r.count(`select count(*) from approvals where run_id = $1 and state = 'pending'`, f.newest) + r.count(`select count(*) from graph_questions where run_id = $1 and answer is null`, f.newest)
	f.call = r.text(`select state from mutations where run_id = $1 order by created_at desc limit 1`, f.newest)
	f.lastCall = r.text(`select state from mutations where workflow_id = $1 order by created_at desc, id desc limit 1`, f.id)
	return f
}

// compare holds everything that is told against the rows, and notes which claims
// were told.
func (r *rig) compare(s situation, nobody bool, told map[string]bool) {
	r.t.Helper()
	f, y := r.facts(s), r.whyOf(s.kind, s.name)
	wrong := func(format string, args ...any) {
		r.t.Helper()
		r.t.Errorf("%s (nobody works: %v): %s\n%s, %s\nnext %q, activity %q, do %q\n%+v", s.name, nobody, fmt.Sprintf(format, args...), y.Status, string(y.Issue), y.Next, y.LastActivity.Text, string(y.Do), y.Gates)
	}
	word, do := s.word, s.do
	if nobody && word != "Stopped" && word != "Needs attention" {
		word, do = "Needs attention", "pawl serve"
	}
	if y.Status != word {
		wrong("the word is %s, want %s", y.Status, word)
	}
	if !strings.HasPrefix(string(y.Do), do) || (y.Do == "") != (word == "Idle") {
		wrong("it is ended by %q, want %q", string(y.Do), do)
	}
	if word == s.word && !strings.Contains(string(y.Issue), s.says) || (y.Issue == "") != (word == "Idle" || word == "Running" && s.says == "") {
		wrong("the matter is not %q", s.says)
	}
	if found := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{22}`).FindAllString(string(y.Do)+" "+string(y.Issue), -1); slices.ContainsFunc(found, func(id string) bool { return id != f.newest }) {
		wrong("it names %v, and its newest run is %s", found, f.newest)
	}
	r.compareGates(s, f, y, nobody, wrong)
	r.compareSentences(s, f, y, told, wrong)
	for _, l := range pages[client.Lane](r, "/api/v1/lanes?limit=500&kind="+s.kind) {
		if l.Name == s.name && (l.Status != y.Status || string(l.Issue) != string(y.Issue) && !strings.Contains(string(y.Issue), " in ") || l.LastActivity.Text != y.LastActivity.Text) {
			wrong("the list says %s, %s, %s", l.Status, string(l.Issue), l.LastActivity.Text)
		}
	}
}

func (r *rig) compareGates(s situation, f facts, y client.LaneWhy, nobody bool, wrong func(string, ...any)) {
	r.t.Helper()
	open := map[string]bool{
		"worker": !nobody, "wanted": f.wanted, "enabled": f.wanted, "idle": !f.active, "in_flight": !f.active,
		"healthy": slices.Contains([]string{"", "committed", "cancelled", "active"}, f.status), "grant": !f.refused,
	}
	switch s.kind {
	case "workflow":
		open["due"] = f.requests > 0 || f.pending > 0 && f.jobs > 0 || f.pending > 0 && !f.wanted || f.due && !f.active
	case "schedule":
		open["due"] = f.pending > 0
	case "source":
		open["retry"] = !f.backsOff
		open["quota"] = s.name != "s-limited"
	}
	all := true
	for _, g := range y.Gates {
		want, known := open[g.Name]
		if g.Text == "" || known && g.Open != want {
			wrong("the gate %s is %v, and the rows say %v", g.Name, g.Open, want)
		}
		all = all && g.Open
	}
	if all {
		wrong("all gates are open, and it does not run")
	}
}

// claims are parts of sentences, and what the rows must say for them to be true.
func claims() map[string]func(f facts) bool {
	not := func(is func(facts) bool) func(facts) bool { return func(f facts) bool { return !is(f) } }
	active := func(f facts) bool { return f.active }
	failed := func(f facts) bool {
		return strings.HasPrefix(f.status, "failed") || f.status == "paused:transient" || f.status == "error" || f.class != "" || f.failures > 0
	}
	return map[string]func(f facts) bool{
		"; nothing to do":           func(f facts) bool { return f.status == "committed" },
		"Its last run has finished": func(f facts) bool { return f.status == "committed" },
		"did not succeed":           not(active),
		"No run is active":          not(active),
		"No slot runs":              not(active),
		"been active since":         active,
		"It is fetching":            active,
		"has never run":             func(f facts) bool { return f.runs == 0 },
		"Failed: ":                  failed,
		"ailed and is tried again":  failed,
		"is backing off":            func(f facts) bool { return f.backsOff },
		"The grant allows":          func(f facts) bool { return !f.refused },
		"grant was revoked":         func(f facts) bool { return f.refused },
		"will be skipped: ":         func(f facts) bool { return f.refused },
		"waiting for your approval": func(f facts) bool { return f.asked == 1 },
		"Asked for approval":        func(f facts) bool { return f.asked == 1 },
		"asks a question":           func(f facts) bool { return f.asked == 1 },
		"unknown whether":           func(f facts) bool { return f.call == "indeterminate" },
		"being checked":             func(f facts) bool { return f.call == "needs_reconcile" || f.call == "in_flight" },
		"Done: ":                    func(f facts) bool { return f.lastCall == "applied" },
		"It is paused":              func(f facts) bool { return !f.wanted },
		"It is enabled":             func(f facts) bool { return f.wanted },
		"1 input is waiting":        func(f facts) bool { return f.pending == 1 },
		"nothing is waiting":        func(f facts) bool { return f.pending == 0 },
		"it has seen what is":       func(f facts) bool { return f.pending > 0 && f.jobs == 0 },
		"A run was requested.":      func(f facts) bool { return f.requests > 0 },
		"No worker":                 func(facts) bool { return true }, // told only with nobody there; see the gate
	}
}

func (r *rig) compareSentences(s situation, f facts, y client.LaneWhy, told map[string]bool, wrong func(string, ...any)) {
	r.t.Helper()
	sentences := []string{string(y.Issue), y.Next, y.LastActivity.Text}
	for _, g := range y.Gates {
		sentences = append(sentences, g.Text)
	}
	for _, sentence := range sentences {
		for part, so := range claims() {
			if !strings.Contains(sentence, part) {
				continue
			}
			if told[part] = true; !so(f) {
				wrong("%q is not so: %+v", sentence, f)
			}
		}
		for _, bad := range []string{" 1 events", "All 1 ", "The 1 calls", "..", "producer", "consumer", "handler", "%!"} {
			if strings.Contains(sentence, bad) {
				wrong("%q has %q", sentence, bad)
			}
		}
	}
	if s.name == "s-limited" { // the host is blamed for what it asked, and for no more
		text := fmt.Sprint(y.Gates)
		if !strings.Contains(text, "asked not to be called before "+pawl.FormatTime(f.blocked)) || !strings.Contains(text, "the limit set here, 2 calls") {
			wrong("the gate does not tell the two limits apart")
		}
	}
}
