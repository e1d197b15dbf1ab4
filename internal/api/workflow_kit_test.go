package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/tool"
	"github.com/pawlrun/pawl/internal/workflow"
)

// scripts is the pool of all tests: starting a worker takes longer than most
// of them. Its workers end with the process.
var scripts = sync.OnceValues(func() (*script.Pool, error) { return script.NewPool(script.Config{Workers: 4}) })

// workflows makes the service that the API speaks to.
func (r *rig) workflows(feed *Feed) *workflow.Service {
	r.t.Helper()
	pool, err := scripts()
	if err != nil {
		r.t.Fatal(err)
	}
	policy := map[string]tool.Policy{"put": tool.Allow, "lose": tool.Allow, "doubt": tool.Allow, "lock": tool.Allow}
	r.tools, err = tool.NewSet(tool.Named{Name: "desk", Type: "test", Connection: r.desk, Policy: policy})
	if err != nil {
		r.t.Fatal(err)
	}
	r.ledger = ledger.New(ledger.Config{Holdings: map[pawl.Kind]ledger.Holdings{pawl.KindWorkflow: workflow.Holdings{}}, Observe: func(e ledger.Event) { feed.ObserveRun(e, r.kinds.LaneOf(&e.Run)) }})
	flows, err := workflow.New(workflow.Options{DB: r.db, Ledger: r.ledger, Scripts: pool, Tools: r.tools, Host: r.host(feed)})
	if err != nil {
		r.t.Fatal(err)
	}
	return flows
}

// desk is what scripts touch: get answers at once, wait when the test lets it,
// busy fails for a while, put succeeds, nobody knows what lose does, the desk
// will tell later what doubt did, lock lacks a permission, and ask must be
// asked for.
type desk struct {
	entered chan string   // wait was called
	release chan struct{} // closed: waits end

	mu  sync.Mutex
	put []string // guarded by mu: arguments of what was put or asked for
}

// things are the arguments of what was put or asked for.
func (d *desk) things() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.put)
}

func newDesk() *desk { return &desk{entered: make(chan string, 100), release: make(chan struct{})} }

func (d *desk) Methods() []tool.Method {
	return []tool.Method{
		{Name: "get"}, {Name: "wait"}, {Name: "busy"}, {Name: "put", Mutation: true}, {Name: "lose", Mutation: true}, {Name: "ask", Mutation: true},
		{Name: "doubt", Mutation: true, Reconciles: true}, {Name: "lock", Mutation: true},
	}
}

func (d *desk) Call(ctx context.Context, c tool.Call) (json.RawMessage, error) {
	switch c.Method {
	case "wait":
		d.entered <- string(c.Args)
		select {
		case <-d.release:
		case <-ctx.Done():
			return nil, &tool.Error{Class: pawl.ClassTransient, Code: "gone", Msg: "the caller went away", NotApplied: true}
		}
	case "busy":
		return nil, &tool.Error{Class: pawl.ClassTransient, Code: "busy", Msg: "the desk is busy", NotApplied: true}
	case "lock":
		return nil, &tool.Error{Class: pawl.ClassPermission, Code: "locked", Msg: "the desk is locked", NotApplied: true}
	case "lose", "doubt":
		return nil, &tool.Error{Class: pawl.ClassIndeterminate, Code: "lost", Msg: "no answer came"}
	case "put", "ask":
		d.mu.Lock()
		defer d.mu.Unlock()
		d.put = append(d.put, string(c.Args))
		return json.RawMessage(`{"row":7}`), nil
	}
	return json.RawMessage(`{}`), nil
}

func (d *desk) Reconcile(context.Context, tool.Call) (tool.Answer, error) {
	return tool.Answer{State: tool.Later}, nil
}

// orders is a workflow without a producer: events from outside become calls.
const orders = `export default {
  name: "orders",
  labels: { team: "shop" },
  topics: { order: {}, done: {} },
  consumers: {
    file: {
      subscribe: ["order"], publishes: ["done"],
      prepare: async (ctx) => {
        const [e] = await ctx.peek("order");
        if (!e) return { reservations: [], data: {} };
        ctx.log("took", e.messageId);
        return { reservations: [{ topic: "order", ids: [e.messageId] }], data: e.payload, ui: { title: "File " + e.messageId } };
      },
      mutate: async (ctx, prepared) => { await ctx.tools.desk.put({ what: prepared.data }); },
      next: async (ctx, prepared, result) => {
        if (result.status !== "applied") return;
        ctx.publish("done", { messageId: prepared.reservations[0].ids[0], payload: result });
        return { filed: true };
      },
    },
    count: {
      subscribe: ["done"],
      prepare: async (ctx) => ({ reservations: [{ topic: "done", ids: (await ctx.peek("done")).map((e) => e.messageId) }], data: {} }),
    },
  },
};
`

// producing is a workflow of one producer that does this. Its consumer runs
// once, because it is new, and takes nothing.
func producing(name, body string) string {
	return `export default {
  name: "` + name + `",
  topics: { found: {} },
  producers: { look: { publishes: ["found"], schedule: { interval: "1h" }, handler: async (ctx, state) => { ` + body + ` } } },
  consumers: { take: { subscribe: ["found"], prepare: async (ctx) => ({ reservations: [], data: {} }) } },
};
`
}

// consuming is a workflow of one consumer of the topic t that does this in
// mutate.
func consuming(name, body string) string {
	return `export default {
  name: "` + name + `",
  topics: { t: {} },
  consumers: { act: {
    subscribe: ["t"],
    prepare: async (ctx) => { const ids = (await ctx.peek("t")).map((e) => e.messageId); return { reservations: ids.length ? [{ topic: "t", ids }] : [], data: {} }; },
    mutate: async (ctx, prepared) => { ` + body + ` },
  } },
};
`
}

// deploy puts a script in force and tells what that did.
func (r *rig) deploy(name, script string) (d client.Deployment) {
	r.t.Helper()
	p := r.do("PUT", "/api/v1/workflows/"+name, map[string]any{"script": script, "filename": name + ".workflow.js"})
	if p.status != http.StatusOK && p.status != http.StatusCreated {
		r.t.Fatalf("deploy %s: %d %s", name, p.status, p.body)
	}
	p.into(&d)
	return d
}

// deployOrders deploys orders and waits until its consumers have run for the
// first time, which they do because they are new.
func (r *rig) deployOrders() {
	r.t.Helper()
	r.deploy("orders", orders)
	r.waitRuns("?lane=orders&status=committed", 2)
	r.waitRuns("?lane=orders&status=active", 0)
}

// publish sends an event with an input.
func (r *rig) publish(name, topic, id string) client.PublishedEvent {
	r.t.Helper()
	var e client.PublishedEvent
	r.do("POST", "/api/v1/workflows/"+name+"/events", map[string]any{
		"topic": topic, "messageId": id, "payload": map[string]any{"n": id},
		"input": map[string]any{"source": "shop", "type": "order", "id": id, "title": "Order " + id},
	}).want(http.StatusCreated).into(&e)
	return e
}

func (r *rig) workflow(name string) (w client.Workflow) {
	r.t.Helper()
	r.do("GET", "/api/v1/workflows/"+name, nil).want(http.StatusOK).into(&w)
	return w
}

// runs lists runs with this query.
func (r *rig) runs(query string) []client.Run {
	r.t.Helper()
	var page client.Page[client.Run]
	r.do("GET", "/api/v1/runs"+query, nil).want(http.StatusOK).into(&page)
	return page.Items
}

// waitRuns waits until there are so many runs with this query.
func (r *rig) waitRuns(query string, n int) (runs []client.Run) {
	r.t.Helper()
	r.eventually("there are runs "+query, func() bool { runs = r.runs(query); return len(runs) == n })
	return runs
}

// waitEntered waits until a script called desk.wait.
func (r *rig) waitEntered() {
	r.t.Helper()
	r.eventually("a script waits", func() bool {
		select {
		case <-r.desk.entered:
			return true
		default:
			return false
		}
	})
}

// pages walks through a list and returns all its items.
func pages[T any](r *rig, path string) (all []T) {
	r.t.Helper()
	cursor := ""
	for range 100 {
		var page client.Page[T]
		r.do("GET", path+cursor, nil).want(http.StatusOK).into(&page)
		all = append(all, page.Items...)
		if page.NextCursor == "" {
			return all
		}
		cursor = "&cursor=" + string(page.NextCursor)
	}
	r.t.Fatalf("%s does not end", path)
	return nil
}

// pointers are the places of a problem.
func pointers(p client.Problem) (out []string) {
	for _, f := range p.Errors {
		out = append(out, f.Pointer)
	}
	return out
}
