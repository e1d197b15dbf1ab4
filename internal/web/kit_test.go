package web

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/api"
	"github.com/pawlrun/pawl/internal/hook"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/tool"
	"github.com/pawlrun/pawl/internal/workflow"
)

// rig is a whole server on a database of its own, and a browser.
type rig struct {
	t       *testing.T
	address string // of the database
	db      *store.DB
	asked   statements // of the database
	site    *Site
	pulse   *Pulse
	server  *httptest.Server
	hooks   *hook.Service

	outside string // what sources fetch from
	admin   string // the text of a token that may do everything
}

// both runs a test on each database.
func both(t *testing.T, test func(r *rig)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) { test(newRig(t, url)) })
}

// onSQLite runs a test that does not depend on the database.
func onSQLite(t *testing.T) *rig {
	t.Helper()
	return newRig(t, "sqlite:"+t.TempDir()+"/pawl.db")
}

// host is what the rig gives to the kinds.
func (r *rig) host() lane.Host {
	return lane.Host{Observe: func(c lane.Change) { r.pulse.Changed(c.Ref) }}
}

var scripts = sync.OnceValues(func() (*script.Pool, error) { return script.NewPool(script.Config{Workers: 2}) })

func newRig(t *testing.T, address string) *rig {
	t.Helper()
	r := &rig{t: t, address: address, pulse: NewPulse()}
	db, err := store.Open(t.Context(), address, store.Options{Trace: r.asked.note})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r.db = db
	tools, err := tool.NewSet(tool.Named{Name: "desk", Type: "test", Connection: desk{}, Policy: map[string]tool.Policy{"put": tool.Allow, "lose": tool.Allow}})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := scripts()
	if err != nil {
		t.Fatal(err)
	}
	var kinds lane.Kinds
	runs := ledger.New(ledger.Config{
		Holdings: map[pawl.Kind]ledger.Holdings{pawl.KindWorkflow: workflow.Holdings{}}, Observe: func(e ledger.Event) { r.pulse.Changed(kinds.LaneOf(&e.Run)) },
	})
	flows, err := workflow.New(workflow.Options{DB: db, Ledger: runs, Scripts: pool, Tools: tools, Host: r.host()})
	if err != nil {
		t.Fatal(err)
	}
	sources, err := r.makeSources(runs)
	if err != nil {
		t.Fatal(err)
	}
	graphs, err := r.makeGraphs(runs)
	if err != nil {
		t.Fatal(err)
	}
	kinds = lane.Kinds{flows, sources, graphs}
	tasks := map[string]queue.Task{"fail": {Run: func(context.Context, *queue.Job) error { return queue.Permanent(io.ErrUnexpectedEOF) }, Record: true}}
	for _, k := range kinds {
		maps.Copy(tasks, k.Tasks())
	}
	jobs, err := queue.New(queue.Config{
		DB: db, Node: store.Node{ID: "node-1", Share: true}, Workers: 4, Drain: time.Second, Pools: map[string]int{source.PoolName: 4, schedule.PoolName: 4},
		Tasks: tasks,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		k.Attach(jobs)
	}
	r.run(jobs)
	programs := api.New(api.Config{DB: db, Queue: jobs, Kinds: kinds, Workflows: flows, Sources: sources, Schedules: graphs, Tools: tools, Hooks: r.makeHooks(), Version: "1.2.3"})
	t.Cleanup(programs.Close)
	r.admin = r.token("admin", userstore.RoleAdmin, "*")
	r.site, err = New(Config{API: programs, DB: db, Kinds: kinds, Pulse: r.pulse, Version: "1.2.3", Admin: r.admin})
	if err != nil {
		t.Fatal(err)
	}
	r.server = httptest.NewServer(r.site)
	t.Cleanup(r.server.Close)
	t.Cleanup(r.pulse.Close)
	return r
}

func (r *rig) run(jobs *queue.Queue) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := jobs.Run(ctx); err != nil {
			r.t.Errorf("run queue: %v", err)
		}
	}()
	r.t.Cleanup(func() { cancel(); <-done })
	r.eventually("the queue is healthy", func() bool { return jobs.Health() == nil })
}

func (r *rig) eventually(what string, cond func() bool) {
	r.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(90 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			r.t.Fatalf("did not happen: %s", what)
		}
	}
}

// token makes a token of a user with that name and role.
func (r *rig) token(user string, role userstore.Role, scopes ...string) (text string) {
	r.t.Helper()
	err := r.db.Write(r.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		u, err := userstore.In(tx).EnsureUser(ctx, user, role)
		if err != nil {
			return err
		}
		_, text, err = userstore.In(tx).CreateToken(ctx, userstore.TokenSpec{User: u, Name: "of " + user, Scopes: scopes})
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

// desk is what scripts touch: put succeeds, nobody knows what lose does, and
// ask must be asked for.
type desk struct{}

func (desk) Methods() []tool.Method {
	return []tool.Method{{Name: "put", Mutation: true}, {Name: "lose", Mutation: true}, {Name: "ask", Mutation: true}}
}

func (desk) Call(_ context.Context, c tool.Call) (json.RawMessage, error) {
	if c.Method == "lose" {
		return nil, &tool.Error{Class: pawl.ClassIndeterminate, Code: "lost", Msg: "no answer came"}
	}
	return json.RawMessage(`{"row":7}`), nil
}

func (desk) Address(c tool.Call) string { return "the desk on the left, drawer " + c.Method }

func (desk) Reconcile(context.Context, tool.Call) (tool.Answer, error) {
	return tool.Answer{State: tool.Later}, nil
}

// taking is a workflow that calls a method of the desk for every event.
func taking(name, method string) string {
	return `export default { name: "` + name + `", topics: { t: {} }, consumers: { act: { subscribe: ["t"],
    prepare: async (ctx) => { const [e] = await ctx.peek("t"); return { reservations: e ? [{ topic: "t", ids: [e.messageId] }] : [], data: e ? e.payload : {}, ui: { title: e ? "Do <b>" + e.messageId + "</b>" : "" } }; },
    mutate: async (ctx, p) => { if (p.reservations.length) await ctx.tools.desk.` + method + `({ what: p.data }); } } } };`
}

// ask asks the API as the admin.
func (r *rig) ask(method, path string, body, out any) {
	r.t.Helper()
	if err := r.site.inside.call(r.t.Context(), r.admin, method, path, body, out); err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// deploy puts a workflow in force, and publishes an event to it.
func (r *rig) deploy(name, method string, events ...string) {
	r.t.Helper()
	r.ask("PUT", "/api/v1/workflows/"+name, map[string]any{"script": taking(name, method), "filename": name + ".workflow.js"}, nil)
	for _, id := range events {
		r.ask("POST", "/api/v1/workflows/"+name+"/events", map[string]any{
			"topic": "t", "messageId": id, "payload": map[string]any{"n": "<script>alert(1)</script>"},
			"input": map[string]any{"source": "shop", "type": "order", "id": id, "title": `<img src=x onerror="alert(1)"> ` + id},
		}, nil)
	}
}

// waitWord waits until a workflow has this word, and returns its newest run.
func (r *rig) waitWord(name, word string) (newest runView) {
	r.t.Helper()
	r.eventually(name+" is "+word, func() bool {
		var w client.Workflow
		r.ask("GET", "/api/v1/workflows/"+name, nil, &w)
		return w.Status == word
	})
	var list client.Page[runView]
	r.ask("GET", "/api/v1/runs?kind=workflow&limit=1&lane="+name, nil, &list)
	if len(list.Items) > 0 {
		newest = list.Items[0]
	}
	return newest
}

// waitDone waits until an input was worked off and the workflow rests.
func (r *rig) waitDone(name string) runView {
	r.t.Helper()
	r.eventually(name+" did its work", func() bool {
		var list client.Page[client.Input]
		r.ask("GET", "/api/v1/workflows/"+name+"/inputs?status=done", nil, &list)
		return len(list.Items) == 1
	})
	r.eventually(name+" rests", func() bool {
		var list client.Page[runView]
		r.ask("GET", "/api/v1/runs?kind=workflow&status=active&lane="+name, nil, &list)
		return len(list.Items) == 0
	})
	return r.waitWord(name, "Idle")
}

// browser keeps cookies and does not follow by itself.
type browser struct {
	r    *rig
	http *http.Client
}

func (r *rig) browser() *browser {
	r.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return &browser{r, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// signedIn is a browser of the holder of a token.
func (r *rig) signedIn(token string) *browser {
	r.t.Helper()
	b := r.browser()
	b.post("/signin", "token", token).want(http.StatusSeeOther)
	return b
}

// reply is what a browser was sent.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

func (b *browser) get(path string) *reply { b.r.t.Helper(); return b.do("GET", path, nil) }

// post sends a form; fields come in pairs.
func (b *browser) post(path string, fields ...string) *reply {
	b.r.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.do("POST", path, form)
}

func (b *browser) do(method, path string, form url.Values, headers ...string) *reply {
	b.r.t.Helper()
	req, err := http.NewRequestWithContext(b.r.t.Context(), method, b.r.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.r.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.http.Do(req)
	if err != nil {
		b.r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.r.t.Fatal(err)
	}
	return &reply{b.r.t, resp.StatusCode, resp.Header, string(raw)}
}

func (p *reply) want(status int) *reply {
	p.t.Helper()
	if p.status != status {
		p.t.Fatalf("status %d, want %d: %s", p.status, status, p.body)
	}
	return p
}

// has fails the test unless the page has all the texts.
func (p *reply) has(texts ...string) *reply {
	p.t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			p.t.Errorf("the page does not have %q:\n%s", text, p.body)
		}
	}
	return p
}

func (p *reply) hasNot(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if strings.Contains(p.body, text) {
			p.t.Errorf("the page has %q:\n%s", text, p.body)
		}
	}
}
