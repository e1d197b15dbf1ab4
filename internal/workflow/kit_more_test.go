package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// behaviour is one thing that must hold; its name says what.
type behaviour struct {
	name string
	test func(t *testing.T, k *kit)
}

// hold tests behaviours on each database. They share the one of PostgreSQL,
// because making it takes longer than most of them: so each has workflows of
// its own names, and a process and a clock of its own.
func hold(t *testing.T, list ...behaviour) {
	t.Helper()
	t.Parallel()
	pgtest.Both(t, func(t *testing.T, url string) {
		for i, b := range list {
			t.Run(b.name, func(t *testing.T) {
				if strings.HasPrefix(url, "sqlite:") {
					url = "sqlite:" + filepath.Join(t.TempDir(), "pawl.db")
				}
				synctest.Test(t, func(t *testing.T) {
					waitForDay(i)
					b.test(t, newKitOn(t, url))
				})
			})
		}
	})
}

// waitForDay lets the clock of a bubble, which begins in the year 2000, come to
// midnight of a day that only the i-th behaviour of a list sees. It must be
// called before anything runs that would wake up on the way.
func waitForDay(i int) {
	first := time.Date(2025, time.March, 1, 0, 0, 0, 0, time.UTC)
	pass(time.Until(first.AddDate(0, 2*i, 0)))
}

// newKitOn makes a kit on a database that others have used before.
func newKitOn(t *testing.T, url string) *kit {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	k := &kit{t: t, url: url, db: db, desk: newDesk()}
	k.scripts.defs = map[string]definition{}
	cluster, err := db.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range cluster.Buckets {
		if b.ID == 0 {
			k.fence = store.Fence{Node: b.Node, Epoch: b.Epoch}
		}
	}
	k.start("first")
	return k
}

// ranSince returns which phases of handlers ran since the last call.
func (k *kit) ranSince() []string {
	k.scripts.mu.Lock()
	defer k.scripts.mu.Unlock()
	list := k.scripts.ran
	k.scripts.ran = nil
	return list
}

// count is how often a phase is in a list of what ran.
func count(ran []string, phase string) int {
	n := 0
	for _, p := range ran {
		if p == phase {
			n++
		}
	}
	return n
}

// follow lets time pass and works on the lane whenever it asked for it, the
// last instant included.
func (k *kit) follow(w workflowstore.Workflow, d time.Duration) {
	k.t.Helper()
	end := time.Now().Add(d)
	for range 10_000 {
		until := k.work(w)
		if until.IsZero() || until.After(end) {
			pass(time.Until(end))
			return
		}
		pass(time.Until(until))
	}
	k.t.Fatal("the lane does not come to rest")
}

// do is an action of a person, in a transaction.
func (k *kit) do(act func(ctx context.Context, tx *store.Tx) error) error {
	return k.db.Write(k.t.Context(), act)
}

func (k *kit) pause(name string) (changed bool) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		changed, err = k.s.Pause(ctx, tx, name, "tester", lane.PauseTerms{})
		return err
	})
	return changed
}

func (k *kit) resume(name string) (changed bool) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		changed, err = k.s.Resume(ctx, tx, name, "tester")
		return err
	})
	return changed
}

func (k *kit) runNow(name string) error {
	return k.do(func(ctx context.Context, tx *store.Tx) error { return k.s.RunNow(ctx, tx, name, "tester") })
}

func (k *kit) remove(name string) error {
	return k.do(func(ctx context.Context, tx *store.Tx) error { return k.s.Delete(ctx, tx, name, "tester") })
}

func (k *kit) skipInput(w workflowstore.Workflow, id string) (changed bool) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		changed, err = k.s.SkipInput(ctx, tx, thingID(w, id), "tester")
		return err
	})
	return changed
}

// reasonOf is why something was refused, for programs.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		return e.Reason
	}
	return ""
}

// schedules are the rows of the producers, by their names.
func (k *kit) schedules(w workflowstore.Workflow) map[string]workflowstore.ProducerSchedule {
	k.t.Helper()
	out := map[string]workflowstore.ProducerSchedule{}
	k.read(func(ctx context.Context, tx *store.Tx) error {
		list, err := workflowstore.In(tx).ProducerSchedules(ctx, w.ID)
		for _, p := range list {
			out[p.Producer] = p
		}
		return err
	})
	return out
}

// kept is what a handler keeps.
func (k *kit) kept(w workflowstore.Workflow, handler string) (h workflowstore.HandlerState) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) (err error) {
		h, err = workflowstore.In(tx).GetHandlerState(ctx, w.ID, handler)
		return err
	})
	return h
}

// lastRun is the newest run of a workflow.
func (k *kit) lastRun(w workflowstore.Workflow) runstore.Run {
	k.t.Helper()
	list := k.runs(w)
	if len(list) == 0 {
		k.t.Fatal("there was no run")
	}
	return list[len(list)-1]
}

// triggers are the causes of all runs of a handler, the oldest first.
func (k *kit) triggers(w workflowstore.Workflow, handler string) (list []string) {
	k.t.Helper()
	for _, r := range k.runs(w) {
		if r.Handler == handler {
			list = append(list, r.Trigger)
		}
	}
	return list
}

// look reads what people see of a workflow.
func (k *kit) look(name string) Details {
	k.t.Helper()
	d, err := k.s.Describe(k.t.Context(), name)
	if err != nil {
		k.t.Fatal(err)
	}
	return d
}

// thingID is the input of an event that publish and thing make.
func thingID(w workflowstore.Workflow, id string) string {
	return script.InputID(w.ID, "test", "thing", id)
}

// thing registers an input and publishes an event of it to "in", as producers
// do.
func (c *goCtx) thing(k *kit, workflow, id string) {
	c.call("registerInput", map[string]string{"source": "test", "type": "thing", "id": id, "title": "Thing " + id})
	c.publish("in", id, id, thingID(k.workflow(workflow), id))
}

// take is what prepare returns for events of one topic; none takes nothing.
func take(topic string, ids ...string) map[string]any {
	if len(ids) == 0 {
		return map[string]any{"reservations": []any{}, "data": nil}
	}
	return map[string]any{"reservations": []any{map[string]any{"topic": topic, "ids": ids}}, "data": ids}
}

// wakeAt adds a wish to be woken to what prepare returns.
func wakeAt(result map[string]any, at time.Time) map[string]any {
	result["wakeAt"] = pawl.FormatTime(at)
	return result
}

// idle is a handler that does nothing.
func idle(*goCtx, []json.RawMessage) any { return nothing{} }

// consuming is a workflow of one topic, "in", and one consumer, "take".
func consuming(prepare goHandler) definition {
	return definition{
		config:   Config{Topics: []string{"in"}, Consumers: []Consumer{{Name: "take", Subscribe: []string{"in"}}}},
		handlers: map[string]goHandler{"consumers.take.prepare": prepare},
	}
}

// producing is consuming with producers that publish nothing, by their
// intervals.
func producing(every map[string]string) definition {
	d := consuming(takeOne("in"))
	for _, name := range slices.Sorted(maps.Keys(every)) {
		d = d.producer(name, Schedule{Interval: every[name]}, idle)
	}
	return d
}

// producer adds a producer for the topic "in".
func (d definition) producer(name string, s Schedule, handler goHandler) definition {
	d.config.Producers = append(slices.Clone(d.config.Producers), Producer{Name: name, Publishes: []string{"in"}, Schedule: s})
	return d.handler("producers."+name+".handler", handler)
}

// consumer adds a consumer of some topics.
func (d definition) consumer(name string, prepare goHandler, topics ...string) definition {
	d.config.Consumers = append(slices.Clone(d.config.Consumers), Consumer{Name: name, Subscribe: topics})
	for _, topic := range topics {
		if !slices.Contains(d.config.Topics, topic) {
			d.config.Topics = append(slices.Clone(d.config.Topics), topic)
		}
	}
	return d.handler("consumers."+name+".prepare", prepare)
}

// handler adds one phase.
func (d definition) handler(path string, h goHandler) definition {
	d.handlers = maps.Clone(d.handlers)
	d.handlers[path] = h
	return d
}

// sameInstant compares an instant with one that was stored in milliseconds.
func sameInstant(stored, want time.Time) bool {
	return stored.Equal(want.Truncate(time.Millisecond))
}

// allCommitted fails unless every run of a workflow is committed.
func (k *kit) allCommitted(w workflowstore.Workflow) {
	k.t.Helper()
	for _, r := range k.runs(w) {
		if r.Status != pawl.StatusCommitted {
			k.t.Errorf("run %s of %s is %s at %s (%s)", r.ID, r.Handler, r.Status, r.Phase, r.ErrorMessage)
		}
	}
}

// expect compares two values by how they print.
func expect(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}

// fail makes the desk refuse every call with a class of failure; empty lets it
// work again.
func (d *desk) fail(class pawl.Class) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = nil
	if class != "" {
		d.refuse = func(tool.Call) *tool.Error {
			return &tool.Error{Class: class, Code: "refused", Msg: "the desk says no", NotApplied: true}
		}
	}
}

// find reads one event.
func (k *kit) find(w workflowstore.Workflow, topic, id string) eventstore.Event {
	k.t.Helper()
	var list []eventstore.Event
	k.read(func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = eventstore.In(tx).EventsByMessage(ctx, w.ID, topic, []string{id})
		return err
	})
	if len(list) != 1 {
		k.t.Fatalf("there is no event %s in %s", id, topic)
	}
	return list[0]
}

// runDetails are a run with all that belongs to it.
type runDetails struct {
	Run   runstore.Run
	Calls []mutationstore.Mutation
	Logs  []runstore.LogLine
	Chain []runstore.Run // the whole retry chain, the newest first
}

// maxLogLines is how many lines of a run are shown.
const maxLogLines = 1000

// details reads a run.
func (k *kit) details(ctx context.Context, id string) (d runDetails, err error) {
	err = k.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		if d.Run, err = runstore.In(tx).GetRun(ctx, id); err != nil {
			return err
		}
		if d.Chain, err = runstore.In(tx).RunChain(ctx, id); err != nil {
			return err
		}
		if d.Calls, err = mutationstore.In(tx).RunMutations(ctx, id); err != nil {
			return err
		}
		d.Logs, err = runstore.In(tx).RunLogs(ctx, id, maxLogLines)
		return err
	})
	return d, err
}
