package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// A pause stops all partitions, those that wait for a place and those at work, and what
// came meanwhile is done afterwards.
func TestAPauseStopsAllPartitions(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		d := shopDefinition()
		d.config.Consumers[0].PartitionLimit = 2
		paused := false
		prepare := d.handlers["consumers.order.prepare"]
		w := k.deploy("shop", "1", d.with(map[string]goHandler{"consumers.order.prepare": func(c *goCtx, args []json.RawMessage) any {
			if !paused {
				paused = true
				k.pause("shop") // while one prepares
			}
			return prepare(c, args)
		}}))
		b := newBoard(k)
		for _, id := range []string{"a1", "b1", "c1", "d1"} {
			k.send(w, id[:1], id)
		}
		b.finish()
		k.send(w, "e", "e1")
		b.finish()
		if got := k.desk.things(); len(got) != 0 {
			t.Errorf("orders of a paused workflow: %v", got)
		}
		k.checkParts(w, 0)
		if y := k.why(); y.State != run.Stopped {
			t.Errorf("%s: %s", y.State, y.Sentence)
		}
		k.resume("shop")
		b.finish()
		k.checkParts(w, 0)
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "b1", "c1", "d1", "e1"}) {
			t.Errorf("orders: %v\n%v", got, k.story(w))
		}
	})
}

// A pause finds a run at work in another process, and one that has sent something ends.
func TestAPauseLetsAPartitionFinishItsCall(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", shopDefinition())
		b := newBoard(k)
		k.desk.effect = func(tool.Call) { k.pause("shop") }
		k.send(w, "a", "a1")
		k.send(w, "b", "b1")
		b.finish()
		k.desk.effect = nil
		if got := k.desk.things(); len(got) != 1 {
			t.Errorf("orders: %v", got)
		}
		for _, r := range k.runs(w) {
			if r.Status == pawl.StatusActive {
				t.Errorf("run %s is active", r.ID)
			}
		}
		k.resume("shop")
		b.finish()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "b1"}) {
			t.Errorf("orders: %v", got)
		}
	})
}

// While everything is halted nothing is sorted and no partition begins; afterwards all
// do.
func TestAHaltStopsAllPartitions(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", shopDefinition())
		b := newBoard(k)
		b.run()
		halted := false
		k.s.cfg.Halt = func() (m store.HaltMark) {
			if halted {
				m = store.HaltMark{ID: 1}
			}
			return m
		}
		k.send(w, "a", "a1")
		for _, key := range b.now() { // it is sorted
			if err := b.one(key); err != nil {
				t.Fatal(err)
			}
		}
		halted = true
		k.send(w, "b", "b1")
		for _, key := range b.now() {
			if err := b.one(key); !errors.Is(err, queue.ErrHalted) {
				t.Errorf("%s while halted: %v", key, err)
			}
		}
		if got := k.desk.things(); len(got) != 0 {
			t.Errorf("orders: %v", got)
		}
		halted = false
		b.finish()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "b1"}) {
			t.Errorf("orders: %v", got)
		}
		k.checkParts(w, 0)
	})
}

// An input is given up: its event is skipped, and a run of a partition that took it and
// waits is cancelled; its partition goes on.
func TestASkippedInputFreesItsPartition(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", signDefinition())
		b := newBoard(k)
		k.send(w, "a", "a1")
		k.send(w, "a", "a2")
		b.run()
		k.skipInput(w, "a1")
		b.run()
		k.checkParts(w, 0)
		runs := k.runsOf(w, "a")
		if got := k.statuses(w, "in"); got["a1"] != eventstore.EventSkipped || len(runs) != 2 || runs[1].Status != pawl.StatusPausedApproval {
			t.Fatalf("events %v, runs %v", got, k.story(w))
		}
		k.write(func(ctx context.Context, tx *store.Tx) error { // and so it does when its run is cancelled
			_, err := k.s.CancelRun(ctx, tx, runs[1], "ann")
			return err
		})
		b.run()
		if runs := k.runsOf(w, "a"); len(runs) != 3 || runs[2].Status != pawl.StatusPausedApproval {
			t.Errorf("runs: %v", k.story(w))
		}
		k.checkParts(w, 0)
	})
}

// A workflow is not deleted while a call of a partition may have happened; what waits
// for a person ends with it, and nothing of it runs again.
func TestDeleteEndsAllPartitions(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", shopDefinition())
		b := newBoard(k)
		k.desk.answer = func(tool.Call) error {
			return &tool.Error{Class: pawl.ClassIndeterminate, Code: "timeout", Msg: "no answer"}
		}
		k.desk.inquiry = func(tool.Call) (bool, bool) { return false, false }
		k.send(w, "a", "a1")
		b.run()
		remove := func() error {
			return k.do(func(ctx context.Context, tx *store.Tx) error { return k.s.Delete(ctx, tx, "shop", "ann") })
		}
		if err := remove(); reasonOf(err) != "outcome_unknown" {
			t.Errorf("delete: %v", err)
		}
		k.desk.answer, k.desk.inquiry = nil, nil
		b.finish()
		k.send(w, "a", "a2")
		k.send(w, "b", "b1")
		if err := remove(); err != nil {
			t.Errorf("delete: %v", err)
		}
		b.finish()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1"}) {
			t.Errorf("orders of a deleted workflow: %v", got)
		}
		k.read(func(ctx context.Context, tx *store.Tx) error {
			if c, err := partitionstore.In(tx).Count(ctx, w.ID); err != nil || c != (partitionstore.Counts{}) {
				t.Errorf("partitions of a deleted workflow: %+v (%v)", c, err)
			}
			return nil
		})
		again := k.deploy("shop", "1", shopDefinition())
		b = newBoard(k)
		k.send(again, "a", "a3")
		b.finish()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "a3"}) || len(k.runsOf(again, "a")) != 1 {
			t.Errorf("orders of the next one: %v", got)
		}
	})
}

// What a partition keeps is its own, and so is when it wakes.
func TestAPartitionKeepsItsOwnStateAndWakes(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		d := shopDefinition()
		seen := map[string]string{}
		d = d.with(map[string]goHandler{
			"consumers.order.prepare": func(c *goCtx, args []json.RawMessage) any {
				ids := c.peek("in")
				if len(ids) == 0 {
					return take("in")
				}
				if len(args) > 0 {
					seen[ids[0]] = string(args[0])
				}
				p := take("in", ids[0])
				p["data"] = ids[0]
				if ids[0] == "a2" {
					p["wakeAt"] = pawl.FormatTime(c.now.Add(time.Hour))
				}
				return p
			},
		})
		w := k.deploy("shop", "1", d)
		b := newBoard(k)
		for _, id := range []string{"a1", "b1", "a2", "b2"} {
			k.send(w, id[:1], id)
		}
		begun := time.Now()
		b.run()
		if seen["a2"] != `{"last":"a1"}` || seen["b2"] != `{"last":"b1"}` || seen["a1"] != "" || seen["b1"] != "" {
			t.Errorf("states: %v", seen)
		}
		k.send(w, "c", "c1")
		b.run()
		if len(k.runsOf(w, "a")) != 2 {
			t.Errorf("runs of a: %v", k.story(w))
		}
		b.finish()
		runs := k.runsOf(w, "a")
		if last := runs[len(runs)-1]; len(runs) != 3 || last.Trigger != triggerWake || last.CreatedAt.Sub(begun) < time.Hour {
			t.Errorf("a did not wake: %v", k.story(w))
		}
	})
}

// A partition that ought to have a job and has none gets one; one that is done and keeps
// nothing is forgotten, and known again with its next event.
func TestPartitionsAreSwept(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		d := shopDefinition()
		delete(d.handlers, "consumers.order.next")
		delete(d.handlers, "consumers.tell.prepare")
		d.config.Consumers = slices.Clone(d.config.Consumers[:1])
		d.config.Consumers[0].Publishes = nil
		w := k.deploy("shop", "1", d)
		b := newBoard(k)
		k.send(w, "a", "a1")
		if err := b.one("workflow:shop"); err != nil {
			b.take()
			if err := b.one("workflow:shop"); err != nil {
				t.Fatal(err)
			}
		}
		clear(b.due) // the job is lost
		if err := k.s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.finish()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1"}) {
			t.Errorf("orders: %v", got)
		}
		pass(8 * 24 * time.Hour)
		if err := k.s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := k.db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := partitionstore.In(tx).Get(ctx, w.ID, partitionID("order", "a"))
			return err
		})
		if !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("a partition that is done: %v", err)
		}
		k.send(w, "a", "a2")
		b.finish()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "a2"}) {
			t.Errorf("orders: %v", got)
		}
	})
}

// A run of before the partitions leaves their events alone, and what it held is sorted
// when it lets go.
func TestARunOfBeforeThePartitionsDoesNotTakeTheirEvents(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sign := signDefinition()
		sign.config.Consumers = slices.Clone(orderDefinition().config.Consumers)
		w := k.deploy("shop", "1", sign)
		b := newBoard(k)
		k.send(w, "a", "a1")
		k.send(w, "b", "b1")
		b.run() // the run of the workflow itself holds a1
		k.deploy("shop", "2", shopDefinition())
		b.run()
		if got := k.desk.things(); !slices.Equal(got, []string{"b1"}) {
			t.Errorf("orders beside a question: %v\n%v", got, k.story(w))
		}
		var asks runstore.Run
		for _, r := range k.runs(w) {
			if r.Status == pawl.StatusPausedApproval {
				asks = r
			}
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.CancelRun(ctx, tx, asks, "ann")
			return err
		})
		b.finish()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "b1"}) || len(k.runsOf(w, "a")) != 1 {
			t.Errorf("orders: %v\n%v", got, k.story(w))
		}
		k.checkParts(w, 0)
	})
}
