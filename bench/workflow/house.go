package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
	"github.com/pawlrun/pawl/internal/workflow"
)

// house is a server without its HTTP.
type house struct {
	db    *store.DB
	pool  *script.Pool
	flows *workflow.Service
	queue *queue.Queue

	committed atomic.Int64           // runs
	onPrepare atomic.Pointer[func()] // called when a prepare is about to run
	claimed   atomic.Int64           // when a worker last got a job, in nanoseconds

	stop  func()
	clean func()
}

var databases atomic.Int64 //nolint:gochecknoglobals // names of scratch databases

// open makes a house on a new database.
func open(ctx context.Context, pg, dir string) (*house, error) {
	h := &house{}
	at, clean, err := scratch(ctx, pg, dir)
	if err != nil {
		return nil, err
	}
	h.clean = clean
	if h.db, err = store.Open(ctx, at, store.Options{}); err != nil {
		return nil, err
	}
	if h.pool, err = script.NewPool(script.Config{Workers: 8}); err != nil {
		return nil, err
	}
	tools, err := tool.NewSet(tool.Named{Name: "noop", Type: "bench", Connection: noop{}, Policy: map[string]tool.Policy{"call": tool.Allow}})
	if err != nil {
		return nil, err
	}
	runs := ledger.New(ledger.Config{
		Holdings: map[pawl.Kind]ledger.Holdings{pawl.KindWorkflow: workflow.Holdings{}},
		Observe: func(e ledger.Event) {
			if e.What == ledger.Committed {
				h.committed.Add(1)
			}
		},
	})
	h.flows, err = workflow.New(workflow.Options{DB: h.db, Ledger: runs, Scripts: watched{h.pool, h}, Tools: tools, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	h.queue, err = queue.New(queue.Config{
		DB: h.db, Node: store.Node{ID: store.NewID(), Name: "bench", Share: true}, Workers: 8,
		Tasks: h.flows.Tasks(),
		Observe: func(e queue.Event) {
			if e.What == "started" {
				h.claimed.Store(time.Now().UnixNano())
			}
		},
	})
	if err != nil {
		return nil, err
	}
	h.flows.Attach(h.queue)
	return h, nil
}

// run starts the queue.
func (h *house) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.queue.Run(ctx) })
	h.stop = func() { cancel(); wg.Wait() }
}

func (h *house) close() {
	if h.stop != nil {
		h.stop()
	}
	h.pool.Close()
	_ = h.db.Close()
	h.clean()
}

// scratch makes an empty database.
func scratch(ctx context.Context, pg, dir string) (at string, clean func(), err error) {
	if pg == "" {
		folder, err := os.MkdirTemp(dir, "pawl-bench-")
		if err != nil {
			return "", nil, err
		}
		return "sqlite:" + filepath.Join(folder, "pawl.db"), func() { _ = os.RemoveAll(folder) }, nil
	}
	name := fmt.Sprintf("pawl_bench_w%d_%d", os.Getpid(), databases.Add(1))
	exec := func(sql string) error {
		c, err := pgx.Connect(context.WithoutCancel(ctx), pg)
		if err != nil {
			return err
		}
		defer c.Close(context.WithoutCancel(ctx)) //nolint:errcheck // a scratch database
		_, err = c.Exec(context.WithoutCancel(ctx), sql)
		return err
	}
	if err := exec("create database " + name); err != nil {
		return "", nil, err
	}
	u, err := url.Parse(pg)
	if err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func() { _ = exec("drop database " + name + " with (force)") }, nil
}

// noop is a tool whose call does nothing.
type noop struct{}

func (noop) Methods() []tool.Method {
	return []tool.Method{{Name: "call", Mutation: true, Reconciles: true}}
}
func (noop) Call(context.Context, tool.Call) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}
func (noop) Reconcile(context.Context, tool.Call) (tool.Answer, error) {
	return tool.Answer{State: tool.Applied}, nil
}

// watched is a pool that says when prepare runs.
type watched struct {
	*script.Pool
	h *house
}

func (w watched) Run(ctx context.Context, req script.Request, host script.Host, limits script.Limits) (script.Result, error) {
	if fn := w.h.onPrepare.Load(); fn != nil && strings.HasSuffix(req.Handler, ".prepare") {
		(*fn)()
	}
	return w.Pool.Run(ctx, req, host, limits)
}

// source is a workflow with one consumer of prepare, mutate and next.
func source(name string) string {
	return fmt.Sprintf(`import { workflow } from "pawl";
export default workflow({
  name: %q,
  topics: { "in": {} },
  consumers: {
    take: {
      subscribe: ["in"],
      async prepare(ctx) {
        const [e] = await ctx.peek("in", { limit: 1 });
        if (!e) return { reservations: [], data: {} };
        return { reservations: [{ topic: "in", ids: [e.messageId] }], data: e.payload };
      },
      async mutate(ctx, p) { await ctx.tools.noop.call({ n: p.data }); },
      next(ctx, p) { return { last: p.data }; },
    },
  },
});`, name)
}

// idleSource is a workflow that waits for an hour.
func idleSource(name string) string {
	return fmt.Sprintf(`export default {
  name: %q,
  topics: { "in": {} },
  producers: { look: { publishes: ["in"], schedule: { interval: "1h" }, handler() {} } },
  consumers: { take: { subscribe: ["in"], prepare() { return { reservations: [], data: {} }; } } },
};`, name)
}

func (h *house) deploy(ctx context.Context, source string) error {
	_, err := h.flows.Apply(ctx, workflow.Deploy{Filename: "bench.workflow.ts", Script: source, By: "bench"})
	return err
}

// publish adds events from n on, in one transaction for each thousand.
func (h *house) publish(ctx context.Context, name string, from, n int) error {
	for n > 0 {
		batch := min(n, 1000)
		err := h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			w, err := workflowstore.In(tx).WorkflowByName(ctx, name)
			if err != nil {
				return err
			}
			events := make([]eventstore.NewEvent, batch)
			for i := range events {
				events[i] = eventstore.NewEvent{Topic: "in", MessageID: fmt.Sprint(from + i), Payload: json.RawMessage(fmt.Sprint(from + i))}
			}
			if batch == 1 { // as the API does
				_, _, err := h.flows.PublishExternal(ctx, tx, name, workflow.ExternalEvent{Topic: "in", MessageID: events[0].MessageID, Payload: events[0].Payload}, "bench")
				return err
			}
			_, err = eventstore.In(tx).Publish(ctx, w.ID, "bench", events)
			return err
		})
		if err != nil {
			return err
		}
		from, n = from+batch, n-batch
	}
	return nil
}

// await waits until that many runs have committed.
func (h *house) await(ctx context.Context, runs int64) error {
	limit := time.Now().Add(5 * time.Minute)
	for h.committed.Load() < runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(limit) {
			return fmt.Errorf("only %d of %d runs committed in five minutes", h.committed.Load(), runs)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// stored counts the runs of which the database says that they have committed.
func (h *house) stored(ctx context.Context) (n int, err error) {
	err = h.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.QueryRow(ctx, `select count(*) from runs where status = 'committed'`).Scan(&n)
	})
	return n, err
}
