package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/bulk"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// statements are what the database was asked while somebody listened.
type statements struct {
	mu     sync.Mutex
	listen bool        // guarded by mu
	list   []statement // guarded by mu
	nth    int         // guarded by mu, and so is what happens before the nth
	then   func()
}

// at lets something happen before the nth statement; zero lets nothing happen.
func (s *statements) at(n int, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nth, s.then = n, do
}

type statement struct {
	sql  string
	args []any
}

func (s *statements) note(sql string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listen {
		s.list = append(s.list, statement{sql, slices.Clone(args)})
		if s.nth > 0 && len(s.list) == s.nth {
			s.then()
		}
	}
}

// during returns what was asked while a function ran.
func (s *statements) during(do func()) []statement {
	s.mu.Lock()
	s.listen, s.list = true, nil
	s.mu.Unlock()
	do()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listen = false
	return s.list
}

// mostSteps is how much one statement of a page or a list may do: some ten
// steps of SQLite for each row of a page and for each row that a filter looks
// at, and as many rows of PostgreSQL. Reading a growing table whole is more, on
// the sizes below.
func mostSteps(database string) int64 {
	if database == "sqlite" {
		return 220_000
	}
	return 25_000
}

// mostPages is how many pages of the database one statement may look at: those of
// a window. It finds what is no step, such as a count of a whole table by SQLite, and
// what takes few steps for each of too many rows.
func mostPages(database string) int64 {
	if database == "sqlite" {
		return 13_000
	}
	return 40_000
}

func planSize(database string) bulk.Size {
	if database == "sqlite" { // plans do not depend on the number of rows, and with -race it is slow
		return bulk.Size{Lanes: 300, Runs: 40_000}
	}
	return bulk.Size{Lanes: 1000, Runs: 200_000}
}

// Every statement of every page, of every list and of whatever else can be read
// is bounded, however much has run (U3).
func TestNothingThatIsReadScansWhatGrows(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, address string) {
		r := newRig(t, address)
		known := r.schema()
		f := r.filled(planSize(r.db.Name()))
		r.backlog("w100007", 40_000)
		meter, err := bulk.NewMeter(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer meter.Close()
		c := planCheck{t: t, meter: meter, tables: known, most: mostSteps(r.db.Name()), mostPages: mostPages(r.db.Name()), done: map[string]bool{}}
		for _, token := range []string{r.admin, f.viewer} {
			for _, path := range r.readable(token, token == r.admin) {
				c.check(path, r.asked.during(func() { r.readAs(token, path) }))
			}
			browser := r.signedIn(token)
			for _, path := range planPages() {
				c.check(path, r.asked.during(func() { r.pageAs(browser, path) }))
			}
		}
		t.Logf("the widest looked at %d pages: %s", c.widest, c.wide)
		t.Logf("%d statements; the dearest took %d steps: %s", len(c.done), c.worst.Steps, c.dearest)
	})
}

type planCheck struct {
	t         *testing.T
	meter     bulk.Meter
	tables    map[string]bool // that the schema has
	most      int64
	mostPages int64
	done      map[string]bool
	worst     bulk.Cost
	dearest   string
	widest    int64
	wide      string
}

func (c *planCheck) check(path string, asked []statement) {
	seen := map[string]int{}
	for _, s := range asked {
		key := fmt.Sprint(s.sql, s.args)
		if seen[s.sql]++; seen[s.sql] > 2 || c.done[key] { // the third lane of a list is asked about like the first
			continue
		}
		c.done[key] = true
		cost, err := c.meter.Cost(c.t.Context(), s.sql, s.args)
		if err != nil {
			c.t.Errorf("%s: %v\n%s\n%v", path, err, s.sql, s.args)
			continue
		}
		if cost.Steps > c.worst.Steps {
			c.worst, c.dearest = cost, path+": "+s.sql
		}
		if cost.Pages > c.widest {
			c.widest, c.wide = cost.Pages, path+": "+s.sql
		}
		if cost.Pages > c.mostPages {
			c.t.Errorf("%s looks at %d pages, at most %d are allowed:\n%s\n%v\n%s", path, cost.Pages, c.mostPages, s.sql, s.args, cost.Plan)
		}
		for _, table := range cost.Scans {
			if strings.HasSuffix(path, "/storage") { // counts what is small, and takes samples of the rest
				continue
			}
			if grows, _ := bulk.Grows(table); grows && cost.Steps > smallTable {
				c.t.Errorf("%s reads all of %s:\n%s\n%v\n%s", path, table, s.sql, s.args, cost.Plan)
			}
		}
		if cost.Steps > c.most {
			c.t.Errorf("%s takes %d steps, at most %d are allowed:\n%s\n%v\n%s", path, cost.Steps, c.most, s.sql, s.args, cost.Plan)
		}
	}
}

// smallTable is how much it may take to read a table without an index:
// PostgreSQL rightly does so while there is little in it, such as the versions
// and backfills here.
const smallTable = 2000

// schema is the tables that there are. Each is known to grow or not to.
func (r *rig) schema() map[string]bool {
	r.t.Helper()
	query := `select name from sqlite_master where type = 'table' and name not like 'sqlite_%'`
	if r.db.Name() != "sqlite" {
		query = `select table_name from information_schema.tables where table_schema = current_schema()`
	}
	out := map[string]bool{}
	err := r.db.Read(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.Query(ctx, query)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			if _, known := bulk.Grows(name); !known {
				r.t.Errorf("table %s is not known to package bulk: say there whether it grows with use", name)
			}
			out[name] = true
		}
		return rows.Err()
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// filling is what a rig was filled with.
type filling struct {
	viewer string // the text of a token of somebody who owns a third of the schedules
}

const seedScript = `export default { name: "seed", topics: { t: {} }, producers: { look: { publishes: ["t"], schedule: { interval: "12h" }, handler: async () => ({}) } },
	consumers: { act: { subscribe: ["t"], prepare: async () => ({ reservations: [] }), mutate: async () => {} } } };`

// filled multiplies a workflow, a source and a schedule.
func (r *rig) filled(size bulk.Size) (f filling) {
	r.t.Helper()
	r.ask("PUT", "/api/v1/workflows/seed", map[string]any{"script": seedScript, "filename": "seed.workflow.js"}, nil)
	r.fetching("seed", "/prices")
	var made client.Schedule
	schedule := map[string]any{"name": "seed", "graphId": "x:poet", "input": map[string]any{}, "cron": "0 9 * * *", "timezone": "Europe/Berlin"}
	r.ask("POST", "/api/v1/schedules", schedule, &made)
	f.viewer = r.token("other", userstore.RoleOperator, "*")
	if err := r.site.inside.call(r.t.Context(), f.viewer, "POST", "/api/v1/schedules", schedule, nil); err != nil { // makes the billing account
		r.t.Fatal(err)
	}
	owner, other := r.userOf(r.admin), r.userOf(f.viewer)
	err := bulk.Fill(r.t.Context(), r.db, bulk.Seed{Workflow: "seed", Source: "seed", Schedule: made.ID, Owner: owner, Other: other}, size)
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

// backlog lets so many events wait for a workflow, as after a week in which it was
// paused.
func (r *rig) backlog(workflow string, events int) {
	r.t.Helper()
	err := r.db.Write(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, created_by, caused_by, created_at, updated_at)
			with recursive n (i) as (select cast(1 as bigint) union all select i + 1 from n where i < $2)
			select i, (select w.id from workflows w where w.name = $1), 't', 100000000 + i, 100000000 + i, 'b-' || i, '{}', 'pending', 'api', '[]', i, i from n`, workflow, events)
		if err == nil && r.db.Name() != "sqlite" {
			_, err = tx.Exec(ctx, `analyze events`) // autovacuum would
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) userOf(token string) string {
	r.t.Helper()
	found, err := userstore.On(r.db).TokenByText(r.t.Context(), token)
	if err != nil {
		r.t.Fatal(err)
	}
	return found.User.ID
}

// readAs asks the API, and takes every answer that is not a fault of Pawl.
func (r *rig) readAs(token, path string) {
	r.t.Helper()
	req := httptest.NewRequestWithContext(r.t.Context(), http.MethodGet, path, nil)
	req.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	r.site.ServeHTTP(w, req)
	if w.Code >= http.StatusInternalServerError {
		r.t.Errorf("%s: %d %s", path, w.Code, w.Body)
	}
}

// pageAs opens a page.
func (r *rig) pageAs(b *browser, path string) {
	r.t.Helper()
	p := b.get(path)
	if p.status >= http.StatusInternalServerError {
		r.t.Errorf("%s: %d %s", path, p.status, p.body)
	}
}

// readable are the addresses of everything that can be read, with each filter
// and, if wanted, with each pair of filters.
func (r *rig) readable(token string, pairs bool) (out []string) {
	r.t.Helper()
	var doc struct {
		Paths map[string]struct {
			Get *struct {
				Parameters []struct {
					Name   string
					In     string
					Schema struct{ Enum []string }
				}
			}
		}
	}
	if err := r.site.inside.get(r.t.Context(), token, "/openapi.json", nil, &doc); err != nil {
		r.t.Fatal(err)
	}
	for path, item := range doc.Paths {
		if item.Get == nil || strings.HasSuffix(path, "/stream") {
			continue
		}
		var filters [][]string // of each parameter, with each value
		for _, p := range item.Get.Parameters {
			if p.In != "query" || p.Name == "cursor" {
				continue
			}
			var filter []string
			for _, v := range slices.Concat(p.Schema.Enum, r.sampleValues(p.Name)) {
				filter = append(filter, url.Values{p.Name: {v}}.Encode())
			}
			if len(filter) == 0 {
				r.t.Errorf("%s takes %s: say in sampleValues what to ask for", path, p.Name)
				continue
			}
			filters = append(filters, filter)
		}
		queries := slices.Concat(filters...)
		if pairs {
			queries = append(queries, inPairs(filters)...)
		}
		for _, place := range samplePaths(path) {
			if strings.Contains(place, "{") {
				r.t.Errorf("%s: say in samplePaths what to ask for", path)
			}
			out = append(out, place)
			for _, query := range queries {
				out = append(out, place+"?"+query)
			}
		}
	}
	slices.Sort(out)
	return out
}

// inPairs combines each filter with each other one, so that every value of both
// is among the pairs.
func inPairs(filters [][]string) (out []string) {
	for i, one := range filters {
		for _, two := range filters[i+1:] {
			for n := range max(len(one), len(two)) {
				out = append(out, one[n%len(one)]+"&"+two[n%len(two)])
			}
		}
	}
	return out
}

// sampleValues are what a filter is asked for: something that is there, and
// something that is rare or not there.
func (r *rig) sampleValues(name string) []string {
	switch name {
	case "limit":
		return []string{"500"}
	case "lane":
		return []string{bulk.HotWorkflow, bulk.HotSource, "g100001", bulk.ScheduleID(2), "nowhere"}
	case "task":
		return []string{"http", "log", "nothing"}
	case "all", "slots", "definition", "source":
		return []string{"true"}
	case "name", "workflow":
		return []string{bulk.HotWorkflow, "g100001", "nowhere"}
	case "key", "topic", "messageId":
		return []string{"k-100", "t", "nothing"}
	case "input":
		return []string{bulk.InputID(1), "nothing"}
	case "at", "from", "to", "after":
		return []string{"2026-11-01T00:00:00.000Z", "2001-01-01T00:00:00.000Z"}
	case "wait":
		return []string{"10ms"}
	case "count", "days":
		return []string{"10"}
	case "account", "accountId", "grant", "grantId":
		return []string{"00000005-0000-7000-8000-100000000001", "nothing"}
	case "schedule", "scheduleId":
		return []string{bulk.ScheduleID(1), bulk.ScheduleID(2), "nothing"}
	case "run", "runId":
		return []string{bulk.RunID(17), "nothing"}
	case "backfill", "backfillId":
		return []string{bulk.BackfillID(1), "nothing"}
	}
	return nil
}

// samplePaths fills in what a path names.
func samplePaths(path string) []string {
	var values []string
	switch {
	case strings.Contains(path, "/{kind}/"):
		return []string{
			strings.NewReplacer("{kind}", "workflow", "{name}", bulk.HotWorkflow).Replace(path),
			strings.NewReplacer("{kind}", "source", "{name}", bulk.HotSource).Replace(path),
			strings.NewReplacer("{kind}", "schedule", "{name}", bulk.ScheduleID(1)).Replace(path),
		}
	case strings.Contains(path, "{kind}"):
		values = []string{"workflow"}
	case strings.Contains(path, "/workflows/"):
		values = []string{bulk.HotWorkflow, "w100007"}
	case strings.Contains(path, "/sources/"):
		values = []string{bulk.HotSource}
	case strings.Contains(path, "/schedules/"):
		values = []string{bulk.ScheduleID(1), bulk.ScheduleID(2)}
	case strings.Contains(path, "/calendars/"):
		values = []string{"c100001"}
	case strings.Contains(path, "/hooks/"):
		return []string{strings.NewReplacer("{name}", "h1", "{id}", "d-1").Replace(path), strings.NewReplacer("{name}", "h2", "{id}", "1").Replace(path)}
	case strings.Contains(path, "/tasks/"):
		values = []string{"t1"}
	case strings.Contains(path, "/connections/"):
		values = []string{"desk"}
	case strings.Contains(path, "/tokens/"):
		values = []string{"01900000-0000-7000-8000-000000000000"}
	case strings.Contains(path, "/jobs/"):
		values = []string{"1"}
	case strings.Contains(path, "/runs/"):
		values = []string{bulk.RunID(10), bulk.RunID(15), bulk.RunID(17), bulk.RunID(18)}
	case strings.Contains(path, "/inputs/"):
		values = []string{bulk.InputID(1)}
	case strings.Contains(path, "/grants/"):
		values = []string{"00000005-0000-7000-8000-100000000001"}
	case strings.Contains(path, "/backfills/"):
		values = []string{bulk.BackfillID(1)}
	default:
		return []string{path}
	}
	var out []string
	for _, v := range values {
		out = append(out, regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, v))
	}
	return out
}

// planPages are pages with their filters.
func planPages() []string {
	schedule, asIf := "/schedules/"+bulk.ScheduleID(1), "/schedules/"+bulk.ScheduleID(2)
	out := []string{
		"/", "/?q=w1000", "/?q=nowhere", "/?kind=source", "/?kind=schedule", "/timeline", "/timeline?span=6d", "/timeline?span=6d&kind=schedule",
		"/approvals", "/workflows/" + bulk.HotWorkflow, "/workflows/" + bulk.HotWorkflow + "/outputs", "/workflows/" + bulk.HotWorkflow + "/partitions", "/workflows/" + bulk.HotWorkflow + "/partitions?state=waiting", "/workflows/" + bulk.HotWorkflow + "/runs",
		"/workflows/" + bulk.HotWorkflow + "/versions", "/workflows/" + bulk.HotWorkflow + "/why",
		"/sources/" + bulk.HotSource, "/sources/" + bulk.HotSource + "/rows", "/sources/" + bulk.HotSource + "/rejects", "/sources/" + bulk.HotSource + "/runs",
		"/sources/" + bulk.HotSource + "/versions", schedule, asIf, schedule + "/runs", asIf + "/runs", schedule + "/why", asIf + "/why", schedule + "/backfills",
		"/backfills/" + bulk.BackfillID(1), "/grants", "/runs", "/runs?lane=" + bulk.HotWorkflow, "/runs?lane=nowhere", "/jobs", "/jobs/1", "/audit", "/storage", "/tokens", "/signin",
		"/webhooks", "/webhooks/h1", "/webhooks/h1/d-1", "/webhooks/h1?outcome=failed", "/webhooks/h1?outcome=delivered", "/webhooks/h1?outcome=refused",
	}
	for _, n := range []int{10, 15, 17, 18} {
		out = append(out, "/runs/"+bulk.RunID(n))
	}
	for _, word := range []string{"Running", "Idle", "Needs attention", "Stopped"} {
		out = append(out, "/?status="+url.QueryEscape(word))
	}
	for _, kind := range []string{"workflow", "source", "schedule"} {
		out = append(out, "/runs?kind="+kind, "/runs?kind="+kind+"&status=crashed")
	}
	for _, status := range []string{"active", "cancelled", "crashed", "committed"} {
		out = append(out, "/runs?status="+status)
	}
	for _, status := range []string{"pending", "done", "skipped", "orphaned"} {
		out = append(out, "/workflows/"+bulk.HotWorkflow+"?status="+status)
	}
	for _, state := range store.JobStates() {
		out = append(out, "/jobs?state="+string(state))
	}
	return out
}

// A page that is added is looked at.
func TestEveryPageIsAmongThoseWhosePlansAreRead(t *testing.T) {
	source, err := os.ReadFile("routes.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`s\.page\("GET (/[^"]*)"`).FindAllStringSubmatch(string(source), -1) {
		pattern := "^" + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(strings.TrimSuffix(found[1], "{$}"), `[^/?]+`) + `(\?|$)`
		if !slices.ContainsFunc(planPages(), regexp.MustCompile(pattern).MatchString) {
			t.Errorf("the page %s is not in planPages", found[1])
		}
	}
}
