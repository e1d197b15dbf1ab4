//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest/proxy"
)

// run is one installation under fire.
type run struct {
	name   string // begins the names of what belongs to it
	seed   uint64
	rng    *dice // of the faults
	dir    string
	binary string
	db     *pair
	world  *world
	ledger *ledger
	client *http.Client
	report *report

	nodes     []*node
	token     string
	schedules []string
	workflows []string
	probes    []*probeLane
	begun     time.Time
	whys      atomic.Int64

	mu      sync.Mutex
	windows []window // guarded by mu
}

// window is a time in which a node may have done something of which nobody knows:
// it was dead, frozen or cut off.
type window struct {
	kind     string
	from, to time.Time // to is zero while it lasts
}

// find notes something that must not be.
func (r *run) find(format string, args ...any) { r.report.find(r.name+": "+format, args...) }

// open notes the begin of a window, and gives what ends it.
func (r *run) open(kind string) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := len(r.windows)
	r.windows = append(r.windows, window{kind: kind, from: time.Now()})
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.windows[i].to = time.Now()
	}
}

// explained reports whether what began at an instant may have been done again
// until another one: a node was dead, frozen or cut off then.
func (r *run) explained(from, to time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Ends are written in batches, which are late when the machine is busy.
	const unwritten = 3 * time.Second
	// Who was cut off or woke up notices within a heartbeat.
	const unnoticed = 5 * time.Second
	return slices.ContainsFunc(r.windows, func(w window) bool {
		return to.After(w.from) && (w.to.IsZero() || from.Before(w.to.Add(unnoticed))) && from.After(w.from.Add(-unwritten).Add(-longestCall))
	})
}

// longestCall bounds a call of a job.
const longestCall = 8 * time.Second

const clerkScript = `import { workflow } from "pawl";
export default workflow({
  name: "NAME",
  topics: { order: {}, entered: {} },
  consumers: {
    enter: {
      subscribe: ["order"],
      publishes: ["entered"],
      async prepare(ctx, state: { count: number } | undefined) {
        const [order] = await ctx.peek("order");
        if (!order) return { reservations: [], data: {} };
        return { reservations: [{ topic: "order", ids: [order.messageId] }], data: { id: order.messageId, count: (state?.count ?? 0) + 1 } };
      },
      async mutate(ctx, prepared) {
        await ctx.tools.shop.post({ path: "/do/order/NAME", query: { n: prepared.data.id }, body: { n: prepared.data.id } });
      },
      next(ctx, prepared, result) {
        if (result.status !== "applied") return;
        ctx.publish("entered", { messageId: "entered-" + prepared.data.id, payload: prepared.data });
        return { count: prepared.data.count };
      },
    },
    count: {
      subscribe: ["entered"],
      async prepare(ctx, state) {
        const list = await ctx.peek("entered", { limit: 1000 });
        return { reservations: [{ topic: "entered", ids: list.map((e) => e.messageId) }], data: list.length };
      },
      next(ctx, prepared, result) {},
    },
  },
});
`

// connections are those of every node.
func (r *run) connections() string {
	return `kind: connection
name: shop
type: http
baseUrl: ` + r.world.url + `
timeout: 5s
idempotencyHeader: Idempotency-Key
reconcile:
  post: {get: "/done?key={idempotencyKey}", found: items.0, absentAfter: 12s}
policy: {post: allow}
---
kind: executor
name: agents
type: http
graphs: {poet: {url: "` + r.world.url + `/graph", timeout: 20s}}
`
}

// addNode makes a node on a database.
func (r *run) addNode(name, database string, proxies ...*proxy.Proxy) (*node, error) {
	conns := filepath.Join(r.dir, "connections")
	if err := os.MkdirAll(conns, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(conns, "all.yaml"), []byte(r.connections()), 0o600); err != nil {
		return nil, err
	}
	n, err := newNode(name, r.binary, filepath.Join(r.dir, name), "--database", database, "--connection-dir", conns)
	if err != nil {
		return nil, err
	}
	n.proxies = proxies
	r.nodes = append(r.nodes, n)
	return n, nil
}

// cluster makes three nodes, each with proxies of its own before both servers.
func (r *run) cluster(ctx context.Context) error {
	for i := range 3 {
		var hosts []string
		var proxies []*proxy.Proxy
		for _, s := range r.db.servers {
			p, err := proxy.Start(ctx, s.URL())
			if err != nil {
				return err
			}
			proxies, hosts = append(proxies, p), append(hosts, p.Host())
		}
		if _, err := r.addNode(fmt.Sprintf("node-%d", i), r.db.url(r.db.name, strings.Join(hosts, ",")), proxies...); err != nil {
			return err
		}
	}
	return r.startAll(ctx)
}

func (r *run) startAll(ctx context.Context) error {
	for _, n := range r.nodes {
		if err := n.start(); err != nil {
			return err
		}
		if err := n.awaitReady(ctx); err != nil {
			return err
		}
	}
	r.token = r.nodes[0].file("admin.token")
	return nil
}

// define deploys what works: workflows, sources, schedules, probing lanes.
func (r *run) define(ctx context.Context, workflows, schedules, probes int) error {
	r.begun = time.Now()
	for i := range workflows {
		name := fmt.Sprintf("%s-clerk-%d", r.name, i)
		script := strings.ReplaceAll(clerkScript, "NAME", name)
		if _, err := r.call(ctx, r.nodes[0], "PUT", "/api/v1/workflows/"+name, map[string]any{"script": script, "filename": name + ".workflow.ts"}, nil, ""); err != nil {
			return err
		}
		r.workflows = append(r.workflows, name)
	}
	for i := range schedules {
		var made struct {
			ID string `json:"id"`
		}
		body := map[string]any{"name": fmt.Sprintf("%s-poet-%d", r.name, i), "graphId": "agents:poet", "input": map[string]any{}, "cron": "* * * * *", "timezone": "UTC"}
		if _, err := r.call(ctx, r.nodes[0], "POST", "/api/v1/schedules", body, &made, ""); err != nil {
			return err
		}
		r.schedules = append(r.schedules, made.ID)
	}
	if err := r.defineSources(ctx); err != nil {
		return err
	}
	for i := range probes {
		p := &probeLane{name: fmt.Sprintf("%s-probe-%d", r.name, i), due: map[string]time.Time{}, bucket: -1}
		r.world.mu.Lock()
		r.world.probes[p.name] = p
		r.world.mu.Unlock()
		r.probes = append(r.probes, p)
	}
	return nil
}

func (r *run) defineSources(ctx context.Context) error {
	fields := func(value string) []any {
		return []any{map[string]any{"source": "id", "target": "id", "type": "integer"}, map[string]any{"source": value, "target": value, "type": "integer"}}
	}
	paged := map[string]any{"cursorParam": "after", "nextCursorPath": "next"}
	for name, body := range map[string]map[string]any{
		r.feedName(): {
			"url": r.world.url + "/feed/" + r.feedName(), "table": r.table("feed"), "schedule": "interval:2s", "execution": map[string]any{"maxRetries": 100},
			"response": map[string]any{"dataPath": "items", "fields": fields("at")}, "write": map[string]any{"mode": "append", "key": []string{"id"}}, "cursorPagination": paged,
		},
		r.tableName(): {
			"url": r.world.url + "/table", "table": r.table("table"), "schedule": "interval:3s", "execution": map[string]any{"maxRetries": 100},
			"response": map[string]any{"dataPath": "items", "fields": fields("v")}, "write": map[string]any{"mode": "upsert", "key": []string{"id"}}, "cursorPagination": paged,
		},
	} {
		if _, err := r.call(ctx, r.nodes[0], "PUT", "/api/v1/sources/"+name, body, nil, ""); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) table(kind string) string { return strings.ReplaceAll(r.name, "-", "_") + "_" + kind }

// load works the installation until the context ends.
func (r *run) load(ctx context.Context, pace time.Duration) *sync.WaitGroup {
	var wg sync.WaitGroup
	for _, p := range r.probes {
		wg.Go(func() { r.probe(ctx, p) })
	}
	for i := range 4 {
		wg.Go(func() { r.jobs(ctx, i, 4*pace) })
	}
	for _, name := range r.workflows {
		wg.Go(func() { r.events(ctx, name, 10*pace) })
	}
	wg.Go(func() { r.slots(ctx) })
	wg.Go(func() { r.feeds(ctx) })
	wg.Go(func() { r.person(ctx) })
	wg.Go(func() { r.curious(ctx, &r.whys) })
	return &wg
}

// place finds the bucket of every probing lane.
func (r *run) place(ctx context.Context) error {
	type row struct {
		Lane   string
		Bucket int64
	}
	rows, err := query[row](ctx, r.db, `select distinct lane, bucket from jobs where lane like $1`, r.name+"-probe-%")
	if err != nil {
		return err
	}
	for _, p := range r.probes {
		for _, row := range rows {
			if row.Lane == p.name {
				p.bucket = row.Bucket
			}
		}
		if p.bucket < 0 {
			return fmt.Errorf("no job of %s is there", p.name)
		}
	}
	return nil
}

// lanesOf are the probing lanes of a node now.
func (r *run) lanesOf(ctx context.Context, n *node) ([]*probeLane, error) {
	type row struct{ ID int64 }
	rows, err := query[row](ctx, r.db, `select id from buckets where node = $1`, n.file("node.id"))
	if err != nil {
		return nil, err
	}
	var out []*probeLane
	for _, p := range r.probes {
		if slices.Contains(rows, row{p.bucket}) {
			out = append(out, p)
		}
	}
	return out, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// dice are chance that several may use.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand // guarded by mu
}

func newDice(seed uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, 1))} } //nolint:gosec // to be repeated

func (d *dice) IntN(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

func (d *dice) Int64N(n int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.Int64N(n)
}
