package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// jobBoard is the queue of a kit whose workflows have partitions: every lane has one job,
// which stays until a session of it ends well.
type jobBoard struct {
	k    *kit
	read int // of what was armed
	due  map[string]time.Time
	of   map[string]jobPayload
}

func newBoard(k *kit) *jobBoard {
	return &jobBoard{k: k, due: map[string]time.Time{}, of: map[string]jobPayload{}}
}

// take takes over what was armed since.
func (b *jobBoard) take() {
	b.k.t.Helper()
	for ; b.read < len(b.k.armed.specs); b.read++ {
		spec := b.k.armed.specs[b.read]
		if spec.Task != TaskName && spec.Task != PartName {
			continue
		}
		var p jobPayload
		if err := json.Unmarshal(spec.Payload, &p); err != nil {
			b.k.t.Fatal(err)
		}
		if at, ok := b.due[spec.Key]; !ok || spec.RunAt.Before(at) {
			b.due[spec.Key] = spec.RunAt
		}
		b.of[spec.Key] = p
	}
}

// one runs the session of a job and reports how it ended.
func (b *jobBoard) one(key string) error {
	delete(b.due, key)
	p := b.of[key]
	until, err := b.k.s.workOn(b.k.t.Context(), b.k, p.Workflow, p.Partition)
	b.take()
	if err != nil {
		b.due[key] = time.Now()
		return err
	}
	if at, ok := b.due[key]; !until.IsZero() && (!ok || until.Before(at)) {
		b.due[key] = until
	}
	return nil
}

// now are the jobs that are due, in order.
func (b *jobBoard) now() []string {
	b.take()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b.due)), func(key string) bool { return b.due[key].After(time.Now()) })
}

// run works on all lanes until nothing is due now.
func (b *jobBoard) run() {
	b.k.t.Helper()
	for range 2000 {
		list := b.now()
		if len(list) == 0 {
			return
		}
		for _, key := range list {
			if err := b.one(key); err != nil {
				b.k.t.Fatalf("%s: %v", key, err)
			}
		}
	}
	b.k.t.Fatal("the lanes do not come to rest")
}

// finish works on all lanes through the instants they ask for.
func (b *jobBoard) finish() {
	b.k.t.Helper()
	for range 200 {
		b.run()
		if len(b.due) == 0 {
			return
		}
		pass(time.Until(slices.MinFunc(slices.Collect(maps.Values(b.due)), time.Time.Compare)))
	}
	b.k.t.Fatal("the lanes do not come to rest")
}

// until crashes at the n-th time that somebody comes by a place, and reports whether that was.
func (b *jobBoard) crashAt(place string, n int) bool {
	b.k.t.Helper()
	crashed := false
	b.k.fault = func(at string) error {
		if at == place {
			n--
		}
		if n <= 0 || crashed {
			crashed = true
			return errCrash
		}
		return nil
	}
	for range 500 {
		list := b.now()
		if len(list) == 0 || crashed {
			break
		}
		for _, key := range list {
			if err := b.one(key); err != nil && !errors.Is(err, errCrash) {
				b.k.t.Fatalf("crash at %s: %v", place, err)
			}
			if crashed {
				break
			}
		}
	}
	b.k.fault = nil
	b.k.start("n-" + place)
	return crashed
}

// send publishes an event of a customer.
func (k *kit) send(w workflowstore.Workflow, customer, id string) {
	k.t.Helper()
	k.sendRaw(w, id, fmt.Sprintf(`{"customer":%q}`, customer))
}

func (k *kit) sendRaw(w workflowstore.Workflow, id, payload string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := k.s.PublishExternal(ctx, tx, w.Name, ExternalEvent{
			Topic: "in", MessageID: id, Payload: json.RawMessage(payload),
			Input: &OutsideInput{Source: "test", Type: "thing", ID: id, Title: "Thing " + id},
		}, "tester")
		return err
	})
}

// shopDefinition is orderDefinition, apart by customer.
func shopDefinition() definition {
	d := orderDefinition()
	d.config.Consumers = slices.Clone(d.config.Consumers)
	d.config.Consumers[0].Partition = "payload.customer"
	return d
}

// partition reads the row of a partition of "order".
func (k *kit) partition(w workflowstore.Workflow, name string) (p partitionstore.Partition) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = partitionstore.In(tx).Get(ctx, w.ID, partitionID("order", name))
		return err
	})
	return p
}

// runsOf are the runs of a partition of "order", the oldest first.
func (k *kit) runsOf(w workflowstore.Workflow, name string) []runstore.Run {
	k.t.Helper()
	lane := runstore.PartLane(w.Lane, partitionID("order", name))
	return slices.DeleteFunc(k.runs(w), func(r runstore.Run) bool { return r.Lane != lane })
}

// checkParts holds what must be true of partitions whenever nobody works: at most one
// active run a lane, no more places than there may be, and a row of the workflow that
// says how they stand.
func (k *kit) checkParts(w workflowstore.Workflow, places int) {
	k.t.Helper()
	k.checkInvariants(w)
	k.checkRow(w, "partitions")
	k.read(func(ctx context.Context, tx *store.Tx) error {
		c, err := partitionstore.In(tx).Count(ctx, w.ID)
		if err == nil && c.Working > places {
			k.t.Errorf("%d partitions have a place", c.Working)
		}
		return err
	})
	active := map[string]int{}
	for _, r := range k.runs(w) {
		if r.Status == pawl.StatusActive {
			if active[r.Lane]++; active[r.Lane] > 1 {
				k.t.Errorf("lane %s has two active runs", r.Lane)
			}
		}
	}
}
