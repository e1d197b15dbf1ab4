package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/need"
	"github.com/pawlrun/pawl/internal/need/needtest"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// kit is a service on a database, driven by hand: work is one session, and
// nothing happens but in it. Handlers are Go functions, so that a test sees
// every step.
type kit struct {
	t     testing.TB
	url   string
	db    *store.DB
	s     *Service
	fence store.Fence
	desk  *desk

	scripts fakeScripts
	armed   armedJobs
	needs   *need.Book // of the process

	fault   func(place string) error
	through bool // every step of a run is written at once
	events  []ledger.Event
	changes []lane.Change
}

// both runs a test on each database.
func both(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) { test(t, newKit(t, url)) })
}

func newKit(t testing.TB, url string) *kit {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	k := &kit{t: t, url: url, db: db, desk: newDesk()}
	k.scripts.defs = map[string]definition{}
	k.start("n1")
	return k
}

// start makes a new process of the kit: its service knows nothing and its node
// takes the lanes over.
func (k *kit) start(node string) {
	k.t.Helper()
	taken, err := k.db.Take(k.t.Context(), node, store.Bucket{ID: k.fence.Bucket, Node: k.fence.Node, Epoch: k.fence.Epoch})
	if err != nil || len(taken) != 1 {
		k.t.Fatalf("take bucket: %v, %v", taken, err)
	}
	k.fence = store.Fence{Bucket: taken[0].ID, Node: node, Epoch: taken[0].Epoch}
	tools, err := tool.NewSet(tool.Named{Name: "desk", Type: "test", Connection: k.desk, Policy: map[string]tool.Policy{
		"order": tool.Allow, "mail": tool.Allow, "read": tool.Allow, "burn": tool.Deny,
	}})
	if err != nil {
		k.t.Fatal(err)
	}
	k.needs = &need.Book{}
	k.needs.Provide(needtest.Source{})
	k.s, err = New(Options{
		Needs: k.needs,
		DB:    k.db, Scripts: &k.scripts, Tools: tools,
		Ledger: ledger.New(ledger.Config{
			Holdings: map[pawl.Kind]ledger.Holdings{pawl.KindWorkflow: Holdings{}},
			Observe:  func(e ledger.Event) { k.events = append(k.events, e) },
		}),
		Host:         lane.Host{Observe: func(c lane.Change) { k.changes = append(k.changes, c) }},
		writeThrough: k.through,
		fault: func(place string) error {
			if k.fault == nil {
				return nil
			}
			return k.fault(place)
		},
	})
	if err != nil {
		k.t.Fatal(err)
	}
	k.s.Attach(&k.armed)
}

// writeThrough is for tests that look at the rows of a run between its steps,
// which would be written some milliseconds later.
func (k *kit) writeThrough() {
	k.through = true
	k.s.cfg.writeThrough = true
}

// Fence, Stopping and StillOwned make the kit a claim.
func (k *kit) Fence() store.Fence { return k.fence }
func (k *kit) Stopping() bool     { return false }
func (k *kit) StillOwned() error  { return nil }

// define makes a script of a name whose handlers are Go functions, and returns
// its source.
func (k *kit) define(name, revision string, d definition) string {
	source := name + " " + revision + d.names
	d.config.Name = name
	k.scripts.defs[source] = d
	return source
}

// deploy puts a definition in force and returns the workflow.
func (k *kit) deploy(name, revision string, d definition) workflowstore.Workflow {
	k.t.Helper()
	if _, err := k.s.Apply(k.t.Context(), Deploy{Filename: "w.ts", Script: k.define(name, revision, d), By: "tester"}); err != nil {
		k.t.Fatal(err)
	}
	return k.workflow(name)
}

func (k *kit) workflow(name string) (w workflowstore.Workflow) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) (err error) {
		w, err = workflowstore.In(tx).WorkflowByName(ctx, name)
		return err
	})
	return w
}

func (k *kit) read(fn store.Func) {
	k.t.Helper()
	if err := k.db.Read(k.t.Context(), fn); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) write(fn store.Func) {
	k.t.Helper()
	if err := k.db.Write(k.t.Context(), fn); err != nil {
		k.t.Fatal(err)
	}
}

// work is one session of a workflow; it returns when to look again.
func (k *kit) work(w workflowstore.Workflow) time.Time {
	k.t.Helper()
	until, err := k.s.work(k.t.Context(), k, w.ID)
	if err != nil {
		k.t.Fatal(err)
	}
	if until.IsZero() || until.After(time.Now()) { // it rests
		k.checkRow(w, "a session")
	}
	return until
}

// checkRow holds that the row of a lane says how it stands, and that it is found
// by it.
func (k *kit) checkRow(w workflowstore.Workflow, after string) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) error {
		v, err := k.s.load(ctx, tx, w.ID)
		if err != nil || !v.workflow.DeletedAt.IsZero() {
			return pawl.IgnoreNotFound(err)
		}
		row, err := runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, w.Lane)
		if err != nil {
			return err
		}
		if r := v.rest(); !r.SaidBy(row) {
			k.t.Errorf("after %s: the row says %s (%s), and the lane is %s (%+v)", after, row.State, row.Cause, r.State, r.Attention)
		}
		state := v.standing().state
		found, err := workflowstore.In(tx).FindWorkflows(ctx, runstore.LaneFilter{State: string(state), Text: w.Name}, "", 10)
		if err == nil && !slices.ContainsFunc(found, func(f workflowstore.Workflow) bool { return f.ID == w.ID }) {
			k.t.Errorf("after %s: the lane is %s and not found by it", after, state)
		}
		return err
	})
}

// errCrash is the end of a process.
var errCrash = errors.New("crash")

// crashAt runs a session that crashes at the n-th time it comes by a place, and
// reports whether it did; the process is a new one afterwards.
func (k *kit) crashAt(w workflowstore.Workflow, place string, n int) bool {
	k.t.Helper()
	crashed := false
	k.fault = func(at string) error {
		if at == place {
			n--
		}
		if n <= 0 || crashed {
			crashed = true
			return errCrash
		}
		return nil
	}
	_, err := k.s.work(k.t.Context(), k, w.ID)
	k.fault = nil
	if crashed != errors.Is(err, errCrash) || err != nil && !crashed {
		k.t.Fatalf("crash at %s: %v, the session says %v", place, crashed, err)
	}
	k.start("n-" + place)
	return crashed
}

// publish adds events from outside.
func (k *kit) publish(w workflowstore.Workflow, topic string, ids ...string) {
	k.t.Helper()
	for _, id := range ids {
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := k.s.PublishExternal(ctx, tx, w.Name, ExternalEvent{
				Topic: topic, MessageID: id, Payload: json.RawMessage(fmt.Sprintf("%q", id)),
				Input: &OutsideInput{Source: "test", Type: "thing", ID: id, Title: "Thing " + id},
			}, "tester")
			return err
		})
	}
}

// runs are all runs of a workflow, the oldest first.
func (k *kit) runs(w workflowstore.Workflow) (list []runstore.Run) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) (err error) {
		list, _, err = runstore.In(tx).ListRuns(ctx, runstore.RunFilter{Kind: pawl.KindWorkflow, Lane: w.Lane}, store.Place{}, 500)
		return err
	})
	slices.Reverse(list)
	return list
}

// story is the runs in short: handler, phase, status.
func (k *kit) story(w workflowstore.Workflow) []string {
	k.t.Helper()
	var out []string
	for _, r := range k.runs(w) {
		out = append(out, fmt.Sprintf("%s %s %s", r.Handler, r.Phase, r.Status))
	}
	return out
}

// statuses are the events of a topic by their message id.
func (k *kit) statuses(w workflowstore.Workflow, topic string) map[string]eventstore.EventStatus {
	k.t.Helper()
	out := map[string]eventstore.EventStatus{}
	k.read(func(ctx context.Context, tx *store.Tx) error {
		list, err := eventstore.In(tx).ListEvents(ctx, w.ID, eventstore.EventFilter{Topic: topic}, 0, 1000)
		for _, e := range list {
			out[e.MessageID] = e.Status
		}
		return err
	})
	return out
}

// armedJobs notes which lanes are armed.
type armedJobs struct {
	specs []store.JobSpec
}

func (a *armedJobs) EnqueueTx(_ context.Context, tx *store.Tx, specs ...store.JobSpec) ([]store.Job, error) {
	tx.AfterCommit(func() { a.specs = append(a.specs, specs...) })
	return make([]store.Job, len(specs)), nil
}

// definition is a script of Go functions.
type definition struct {
	config   Config
	handlers map[string]goHandler // by path
	names    string               // the calls that its text names
}

// goHandler is one phase. A call of c that the host ends does not return.
type goHandler func(c *goCtx, args []json.RawMessage) any

// nothing is what a handler returns that returns nothing.
type nothing struct{}

type goCtx struct {
	ctx  context.Context
	host script.Host
	now  time.Time

	scheduledFor time.Time
}

type goAbort struct{ err error }

func (c *goCtx) call(op string, args any) json.RawMessage {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	out, err := c.host.Call(c.ctx, op, raw)
	if err != nil {
		panic(goAbort{err})
	}
	return out
}

func (c *goCtx) peek(topic string) (ids []string) { return c.peekSome(topic, 100) }

func (c *goCtx) peekSome(topic string, limit int) (ids []string) {
	var events []scriptEvent
	if err := json.Unmarshal(c.call("peek", map[string]any{"topic": topic, "limit": limit}), &events); err != nil {
		panic(err)
	}
	for _, e := range events {
		ids = append(ids, e.MessageID)
	}
	return ids
}

func (c *goCtx) tool(connection, method string, args any) {
	c.call("tool", map[string]any{"connection": connection, "method": method, "args": args})
}

func (c *goCtx) publish(topic, id string, payload any, inputID string) {
	event := map[string]any{"messageId": id, "payload": payload}
	if inputID != "" {
		event["inputId"] = inputID
	}
	c.call("publish", map[string]any{"topics": []string{topic}, "event": event})
}

// fakeScripts runs Go functions instead of scripts.
type fakeScripts struct {
	defs map[string]definition // by source
	mu   sync.Mutex
	ran  []string // paths, in order
	says string   // the path that logs a line
}

func (f *fakeScripts) Compile(_ context.Context, file, source string) (*script.Program, error) {
	if _, ok := f.defs[source]; !ok {
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Msg: "no such script"}
	}
	return script.NewProgram(file, source, nil), nil
}

func (f *fakeScripts) Describe(_ context.Context, p *script.Program) (script.Description, error) {
	c := f.defs[p.JavaScript()].config
	d := script.Description{Kind: "object"}
	topics, producers, consumers := map[string]any{}, map[string]any{}, map[string]any{}
	for _, t := range c.Topics {
		topics[t] = map[string]any{}
	}
	for _, p := range c.Producers {
		producers[p.Name] = map[string]any{"publishes": p.Publishes, "schedule": p.Schedule}
	}
	for _, k := range c.Consumers {
		entry := map[string]any{"subscribe": k.Subscribe}
		if len(k.Publishes) > 0 {
			entry["publishes"] = k.Publishes
		}
		if k.Partition != "" {
			entry["partition"] = k.Partition
		}
		if k.PartitionLimit > 0 {
			entry["partitionLimit"] = k.PartitionLimit
		}
		consumers[k.Name] = entry
	}
	for path := range f.defs[p.JavaScript()].handlers {
		d.Functions = append(d.Functions, path)
	}
	slices.Sort(d.Functions)
	var err error
	config := map[string]any{"name": c.Name, "topics": topics, "producers": producers, "consumers": consumers}
	if c.Keep != nil {
		config["keep"] = c.Keep
	}
	if c.Expect != nil {
		config["expect"] = c.Expect
	}
	if c.Needs != nil {
		config["needs"] = c.Needs
	}
	d.Config, err = json.Marshal(config)
	return d, err
}

func (f *fakeScripts) Run(ctx context.Context, req script.Request, host script.Host, _ script.Limits) (out script.Result, err error) {
	f.mu.Lock()
	f.ran = append(f.ran, req.Handler)
	handler := f.defs[req.Program.JavaScript()].handlers[req.Handler]
	f.mu.Unlock()
	if handler == nil {
		return out, &script.Thrown{Name: "TypeError", Message: req.Handler + " is not a function"}
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case goAbort:
			err = &script.Aborted{Op: "call", Cause: p.err}
		case *script.Thrown:
			err = p
		default:
			panic(p)
		}
	}()
	if f.says != "" && strings.HasPrefix(req.Handler, f.says) {
		out.Logs = []script.LogLine{{At: req.Now, Level: "info", Text: "said"}}
	}
	value := handler(&goCtx{ctx, host, req.Now, req.ScheduledFor}, req.Args)
	if _, none := value.(nothing); none {
		return out, nil
	}
	out.HasValue = true
	out.Value, err = json.Marshal(value)
	return out, err
}

// throw ends a handler as an exception does.
func throw(message string) {
	panic(&script.Thrown{Name: "Error", Message: message})
}

// orderDefinition takes one event of "in" at a time, orders it at the desk and
// publishes "out".
func orderDefinition() definition {
	return definition{
		config: Config{
			Topics: []string{"in", "out"},
			Consumers: []Consumer{
				{Name: "order", Subscribe: []string{"in"}, Publishes: []string{"out"}},
				{Name: "tell", Subscribe: []string{"out"}},
			},
		},
		handlers: map[string]goHandler{
			"consumers.order.prepare": takeOne("in"),
			"consumers.order.mutate": func(c *goCtx, args []json.RawMessage) any {
				c.tool("desk", "order", dataOf(args[0]))
				return nothing{}
			},
			"consumers.order.next": func(c *goCtx, args []json.RawMessage) any {
				if id := dataOf(args[0]); id != nil {
					c.publish("out", "out-"+fmt.Sprint(id), json.RawMessage(args[1]), "")
				}
				return map[string]any{"last": dataOf(args[0])}
			},
			"consumers.tell.prepare": takeOne("out"),
		},
	}
}

// takeOne reserves the oldest event of a topic; its id is the data.
func takeOne(topic string) goHandler {
	return func(c *goCtx, _ []json.RawMessage) any {
		ids := c.peek(topic)
		if len(ids) == 0 {
			return map[string]any{"reservations": []any{}, "data": nil}
		}
		return map[string]any{"reservations": []any{map[string]any{"topic": topic, "ids": ids[:1]}}, "data": ids[0], "ui": map[string]any{"title": "Order " + ids[0]}}
	}
}

// dataOf is the data of what prepare returned.
func dataOf(prepared json.RawMessage) any {
	var p struct{ Data any }
	if err := json.Unmarshal(prepared, &p); err != nil {
		panic(err)
	}
	return p.Data
}
