package workflow

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// The owner of a workflow's own lane sorts the events of consumers with partitions,
// some at a time, between its own steps.
const (
	sortBatch = 200             // events
	sortBytes = 4 << 20         // of their payloads
	sortTime  = 2 * time.Second // for functions of scripts
)

// sort sorts some events and lets partitions work that may have something to do. It
// reports whether there are more.
func (e *session) sort(ctx context.Context, v *view) (more bool, err error) {
	if v.workflow.Desired != desiredActive {
		return false, nil
	}
	if e.memory.stirred != v.workflow.Revision {
		if err := e.stirOnce(ctx, v); err != nil {
			return false, err
		}
	}
	for _, c := range v.config.partitioned() {
		left, err := e.sortFor(ctx, v, c)
		if err != nil {
			return false, err
		}
		more = more || left
	}
	return more, nil
}

// expression names by what events of a consumer are sorted. What a function does may
// change with every version.
func (c Consumer) expression(version string) string {
	topics := " of " + strings.Join(slices.Sorted(slices.Values(c.Subscribe)), " ")
	if c.PartitionBy {
		return "function " + version + topics
	}
	return c.Partition + topics
}

// sortFor sorts some events of a consumer.
func (e *session) sortFor(ctx context.Context, v *view, c Consumer) (more bool, err error) {
	var from partitionstore.Sorting
	var batch sortedBatch
	err = e.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if from, err = e.sortingOf(ctx, tx, c); err != nil {
			return err
		}
		anew := from.Expression != c.expression(v.workflow.Version)
		if anew {
			from.Cursors = map[string]int64{}
		}
		due := anew || slices.ContainsFunc(c.Subscribe, func(topic string) bool { return v.seqs[topic] > from.Cursors[topic] })
		if !due {
			if due, err = eventstore.In(tx).HasUnsorted(ctx, e.id, c.Subscribe); err != nil || !due {
				return err
			}
		}
		batch, err = readBatch(ctx, tx, v, c, from)
		batch.due = true
		return err
	})
	if err != nil || !batch.due {
		return false, err
	}
	if e.cfg.Halt().Active() { // it may run a script, and what is sorted begins
		return true, nil
	}
	if err := e.findPartitions(ctx, v, c, &batch); err != nil {
		return false, err
	}
	if err := e.cfg.fault("before sort"); err != nil {
		return false, err
	}
	if err := e.writeBatch(ctx, v, c, batch); err != nil {
		return false, err
	}
	return batch.more, e.cfg.fault("sorted")
}

// sortingOf is how far the events of a consumer are sorted. Nobody but the owner of
// the lane changes that.
func (e *session) sortingOf(ctx context.Context, tx *store.Tx, c Consumer) (partitionstore.Sorting, error) {
	if known, ok := e.memory.sorting[c.Name]; ok {
		return known, nil
	}
	return partitionstore.In(tx).GetSorting(ctx, e.id, c.Name)
}

// sortedBatch is some events of a consumer with their partitions.
type sortedBatch struct {
	due    bool
	events map[string][]eventstore.SortedEvent // by topic
	next   map[string]int64                    // by topic: up to where there is nothing left
	more   bool

	order  []string // of partitions
	groups map[string]*sortedGroup
}

type sortedGroup struct {
	name, fault string
	events      []eventstore.SortedEvent
}

func readBatch(ctx context.Context, tx *store.Tx, v *view, c Consumer, from partitionstore.Sorting) (b sortedBatch, err error) {
	b = sortedBatch{events: map[string][]eventstore.SortedEvent{}, next: map[string]int64{}, groups: map[string]*sortedGroup{}}
	for _, topic := range c.Subscribe {
		b.events[topic], b.next[topic], err = eventstore.In(tx).EventsToSort(ctx, v.workflow.ID, topic, from.Cursors[topic], v.seqs[topic], sortBatch, sortBytes)
		if err != nil {
			return b, err
		}
		b.more = b.more || b.next[topic] < v.seqs[topic] || len(b.events[topic]) >= sortBatch
	}
	return b, nil
}

// findPartitions finds the partition of each event, as long as there is time.
func (e *session) findPartitions(ctx context.Context, v *view, c Consumer, b *sortedBatch) error {
	var program *script.Program
	if c.PartitionBy {
		var err error
		if program, err = e.program(ctx, e.id, v.workflow.Version); err != nil {
			return err
		}
	}
	begun := time.Now()
	for _, topic := range c.Subscribe {
		for _, event := range b.events[topic] {
			if time.Since(begun) > sortTime { // the rest is for the next time
				b.next[topic], b.more = min(b.next[topic], event.Seq-1), true
				continue
			}
			if err := e.claim.StillOwned(); err != nil {
				return err
			}
			name, fault, err := e.partitionOf(ctx, c, program, e.id, event.Event)
			if err != nil {
				return err
			}
			b.add(c, name, fault, event)
		}
	}
	return nil
}

func (b *sortedBatch) add(c Consumer, name, fault string, event eventstore.SortedEvent) {
	id := partitionID(c.Name, name)
	g := b.groups[id]
	if g == nil {
		g = &sortedGroup{name: name}
		b.groups[id], b.order = g, append(b.order, id)
	}
	if g.fault == "" {
		g.fault = fault
	}
	g.events = append(g.events, event)
}

// writeBatch marks the events, moves the cursors and lets the partitions work, in one
// transaction.
func (e *session) writeBatch(ctx context.Context, v *view, c Consumer, b sortedBatch) error {
	var now partitionstore.Sorting
	err := e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		if err := workflowstore.In(tx).ExpectRevision(ctx, e.id, v.workflow.Revision); err != nil {
			return err
		}
		if now, err = partitionstore.In(tx).HoldSorting(ctx, e.id, c.Name); err != nil {
			return err
		}
		if expression := c.expression(v.workflow.Version); now.Expression != expression {
			now.Expression, now.Cursors = expression, map[string]int64{}
			if err := eventstore.In(tx).SortHeldAnew(ctx, e.id, c.Subscribe); err != nil {
				return err
			}
		}
		now.News++
		list := make([]partitionstore.Partition, 0, len(b.order))
		for _, id := range b.order {
			g := b.groups[id]
			if err := eventstore.In(tx).SortInto(ctx, id, g.events); err != nil {
				return err
			}
			list = append(list, partitionstore.Partition{WorkflowID: e.id, ID: id, Handler: c.Name, Name: g.name, Fault: g.fault, News: now.News})
		}
		if err := partitionstore.In(tx).Tell(ctx, list); err != nil {
			return err
		}
		for topic, next := range b.next {
			now.Cursors[topic] = max(next, now.Cursors[topic])
		}
		if err := partitionstore.In(tx).SetSorting(ctx, now); err != nil {
			return err
		}
		return e.handOut(ctx, tx, v.workflow, v.config, c.Name, "")
	})
	if err != nil {
		delete(e.memory.sorting, c.Name)
		return err
	}
	if e.memory.sorting == nil {
		e.memory.sorting = map[string]partitionstore.Sorting{}
	}
	e.memory.sorting[c.Name] = now
	return nil
}
