package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// partsView is what is to be said of the partitions of a workflow.
type partsView struct {
	partitionstore.Troubles
	first *view // the one to tell of; nil if nothing is the matter with any

	// For people only: how many there are, and how many inputs wait for consumers
	// without partitions.
	counts partitionstore.Counts
	own    int
}

// loadPart reads the view of a partition.
func (s *Service) loadPart(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, id string) (*view, error) {
	p, err := partitionstore.In(tx).Get(ctx, w.ID, id)
	if err != nil {
		return nil, err
	}
	v := &view{now: tx.Now, workflow: w, part: &p}
	if v.config, err = s.config(ctx, tx, w.ID, w.Version); err != nil {
		return nil, err
	}
	v.partNews(p)
	if p.Fault != "" {
		waiting, err := eventstore.In(tx).OldestOfPart(ctx, w.ID, id, v.config.subscribed())
		if err != nil {
			return nil, err
		}
		if len(waiting) == 0 { // those that had none are gone
			p.Fault = ""
		}
	}
	r, err := runstore.In(tx).NewestRun(ctx, pawl.KindWorkflow, v.lane())
	if errors.Is(err, pawl.ErrNotFound) {
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	return v, s.loadRun(ctx, tx, v, r)
}

// partNews makes the numbers of the topics those of the partition: its news are news
// of each.
func (v *view) partNews(p partitionstore.Partition) {
	v.wakes, v.seqs = map[string]time.Time{}, map[string]int64{}
	if !p.WakeAt.IsZero() {
		v.wakes[p.Handler] = p.WakeAt
	}
	c, _ := v.config.Consumer(p.Handler)
	for _, topic := range c.Subscribe {
		v.seqs[topic] = p.News
	}
}

// loadParts reads what is to be said of the partitions of a workflow.
func (s *Service) loadParts(ctx context.Context, tx *store.Tx, v *view) (err error) {
	v.parts = &partsView{}
	if v.parts.Troubles, err = partitionstore.In(tx).Issues(ctx, v.workflow.ID, v.workflow.Lane); err != nil || v.parts.First == "" {
		return err
	}
	v.parts.first, err = s.loadPart(ctx, tx, v.workflow, v.parts.First)
	return pawl.IgnoreNotFound(err)
}

// countParts reads what people are told of the partitions of a workflow.
func (v *view) countParts(ctx context.Context, tx *store.Tx) (err error) {
	if v.parts == nil {
		return nil
	}
	if v.parts.counts, err = partitionstore.In(tx).Count(ctx, v.workflow.ID); err != nil {
		return err
	}
	v.parts.own, _, err = eventstore.In(tx).CountWaiting(ctx, v.workflow.ID, v.config.unparted())
	return err
}

// lane is the lane of the runs.
func (v *view) lane() string {
	if v.part != nil {
		return runstore.PartLane(v.workflow.Lane, v.part.ID)
	}
	return v.workflow.Lane
}

// runs reports whether the consumer runs in this lane.
func (v *view) runs(c Consumer) bool {
	if v.part != nil {
		return c.Name == v.part.Handler && c.Partitioned()
	}
	return !c.Partitioned()
}

// stands is how a workflow stands, all its partitions considered.
type stands struct {
	state    run.State
	issue    run.Issue
	sentence string
	cause    string
	of       *view // whose run it is about
	parted   bool  // it is about a partition
}

// standing tells of the workflow's own lane if that needs somebody; else of a
// partition that does; else of what goes on.
func (v *view) standing() stands {
	state, issue := v.status()
	own := stands{state: state, issue: issue, sentence: v.sentence(issue), cause: v.row.ID + " " + string(issue), of: v}
	if v.parts == nil || state == run.Stopped || state == run.NeedsAttention {
		return own
	}
	if p := v.parts.first; p != nil {
		state, issue := p.status()
		of := stands{state: state, issue: issue, sentence: p.partWords(issue, v.parts.Attention), of: p, parted: true}
		of.cause = fmt.Sprintf("%s%s %s %d", runstore.PartCause, p.row.ID, issue, v.parts.Attention)
		if state == run.NeedsAttention || state == run.Running && issue != run.IssueNone && own.state == run.Idle {
			return of
		}
	}
	if own.state == run.Idle && v.parts.Active {
		own.state = run.Running
	}
	return own
}

// partWords is the sentence of a partition's issue, with how many others there are.
func (v *view) partWords(issue run.Issue, attention int) string {
	text := v.partName() + ": " + v.sentence(issue)
	switch n := attention - 1; {
	case !v.part.Attention || n < 1:
	case n == 1:
		text += " Another partition needs attention, too."
	default:
		text += fmt.Sprintf(" %s other partitions need attention, too.", counted(n, partitionstore.MostTold-1))
	}
	return text
}

// partName names the partition at the beginning of a sentence.
func (v *view) partName() string {
	if v.part.Name == "" {
		return "Events of " + v.part.Handler + " without a partition"
	}
	return "Partition " + quoted(v.part.Name) + " of " + v.part.Handler
}

// counted is a number that was counted up to a bound.
func counted(n, most int) string {
	if n >= most {
		return fmt.Sprintf("%d or more", most)
	}
	return fmt.Sprint(n)
}

// gateParts is what the partitions do. Those that wait for a place do so because as
// many are at work as may be.
func (v *view) gateParts() lane.Gate {
	g := lane.Gate{Name: "partitions", Open: v.parts.counts.Waiting == 0}
	var list []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			list = append(list, "1 "+one)
		case n > 1:
			list = append(list, counted(n, partitionstore.MostCounted)+" "+many)
		}
	}
	add(v.parts.counts.Working, "is at work", "are at work")
	add(v.parts.counts.Waiting, "waits for a place", "wait for a place")
	add(v.parts.counts.Attention, "needs attention", "need attention")
	add(v.parts.counts.HeldUp, "is held up", "are held up")
	if len(list) == 0 {
		g.Text = "No partition has anything to do."
		return g
	}
	g.Text = "Of its partitions " + strings.Join(list, ", ") + "."
	return g
}

// partsPending reports whether something waits for partitions.
func (v *view) partsPending(l lane.Lane) bool { return v.parts != nil && l.Pending > v.parts.own }

// partsWork reports whether a partition is at work, or about to be.
func (v *view) partsWork(looks bool) bool {
	return looks || v.parts.counts.Working+v.parts.counts.Waiting > 0
}

// unparted are the topics of consumers without partitions.
func (c Config) unparted() (topics []string) {
	for _, k := range c.Consumers {
		if !k.Partitioned() {
			topics = append(topics, k.Subscribe...)
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// PartitionNow is how a partition stands, for people.
type PartitionNow struct {
	partitionstore.Partition
	Sentence string // what is the matter with it; empty: nothing
	RunID    string // of its newest run; empty: it never ran
}

// Partitions tells of up to limit partitions of one sort.
func (s *Service) Partitions(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, sort string, after partitionstore.Cursor, limit int) ([]PartitionNow, error) {
	list, err := partitionstore.In(tx).List(ctx, w.ID, sort, after, limit)
	if err != nil {
		return nil, err
	}
	out := make([]PartitionNow, 0, len(list))
	for _, p := range list {
		v, err := s.loadPart(ctx, tx, w, p.ID)
		if err != nil {
			return nil, err
		}
		_, issue := v.status()
		out = append(out, PartitionNow{p, v.sentence(issue), v.row.ID})
	}
	return out, nil
}
