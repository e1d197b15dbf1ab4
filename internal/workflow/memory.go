package workflow

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
)

// memory is what the owner of a lane keeps in memory about it. It belongs to
// the one session that runs, and can be built anew from the store at any time
//
type memory struct {
	fence    store.Fence
	revision int64 // of the workflow's row that the rest was built for

	seen   map[string]map[string]int64 // consumer, topic: the number of the last event when its last prepare began
	marked map[string]bool             // consumers that are to run whatever they have seen
	inRow  int                         // runs of consumers since a producer ran

	// keepsKeys says that there may be a key for a call to come; see
	// mutationstore.TakeKey.
	keepsKeys, keysKnown bool

	missing string // the run that this process has no connection for

	habit habit

	settled settled

	// Of the workflow's own lane: how far events are sorted, by consumer, and the
	// revision for which partitions were told to look.
	sorting map[string]partitionstore.Sorting
	stirred int64
}

// memoryKey names the memory of a lane: that of a workflow, or of a partition of it.
func memoryKey(workflowID, part string) string {
	if part == "" {
		return workflowID
	}
	return workflowID + "/" + part
}

// memoryOf returns the memory of a lane, an empty one for a new owner.
func (s *Service) memoryOf(key string, fence store.Fence) *memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.memories[key]
	if l == nil || l.fence != fence {
		l = &memory{fence: fence, revision: -1, stirred: -1}
		s.memories[key] = l
	}
	return l
}

func (s *Service) forgetMemory(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.memories, key)
}

// forget drops the memory of a workflow that is gone.
func (s *Service) forget(workflowID string) {
	s.mu.Lock()
	maps.DeleteFunc(s.memories, func(key string, _ *memory) bool { return key == workflowID || strings.HasPrefix(key, workflowID+"/") })
	s.mu.Unlock()
	s.configs.invalidate(workflowID)
}

// isDirty reports whether there is news for a consumer. A consumer that is
// not known is not dirty.
func (l *memory) isDirty(c Consumer, seqs map[string]int64) bool {
	if l.marked[c.Name] {
		return true
	}
	seen, known := l.seen[c.Name]
	for _, topic := range c.Subscribe {
		if known && seqs[topic] > seen[topic] {
			return true
		}
	}
	return false
}

// acknowledge notes what a consumer saw when its prepare began; more says that
// it is to run again for what is left.
func (l *memory) acknowledge(c Consumer, seqs map[string]int64, more bool) {
	seen := make(map[string]int64, len(c.Subscribe))
	for _, topic := range c.Subscribe {
		seen[topic] = seqs[topic]
	}
	l.seen[c.Name] = seen
	if more {
		l.marked[c.Name] = true
	} else {
		delete(l.marked, c.Name)
	}
}

// rebuild makes the flags anew: a consumer with pending events is dirty, the
// others have seen all there is.
func (l *memory) rebuild(v *view, pending map[string]int64) {
	l.seen, l.marked = map[string]map[string]int64{}, map[string]bool{}
	for _, c := range v.config.Consumers {
		if !v.runs(c) {
			continue
		}
		waits := slices.ContainsFunc(c.Subscribe, func(topic string) bool { _, waits := pending[topic]; return waits })
		l.acknowledge(c, v.seqs, waits)
	}
	l.revision = v.workflow.Revision
}

// refreshKeys finds out whether there may be a key for a call to come. Only a run
// that did not commit leaves one.
func (l *memory) refreshKeys(ctx context.Context, tx *store.Tx, v *view) (err error) {
	if v.part != nil { // an event may have come from another partition, and its key with it
		l.keepsKeys = true
		return nil
	}
	clean := v.row.ID == "" || v.row.Status == pawl.StatusCommitted
	if l.keysKnown && clean {
		return nil
	}
	l.keysKnown = clean
	l.keepsKeys, err = mutationstore.In(tx).KeepsKeys(ctx, v.workflow.ID)
	return err
}

// refresh rebuilds the flags if the lane is new here, or the workflow was
// changed: deployed, paused and resumed.
func (s *Service) refresh(ctx context.Context, tx *store.Tx, l *memory, v *view) error {
	if l.revision == v.workflow.Revision {
		return nil
	}
	pending, err := v.oldestPending(ctx, tx, v.config.subscribed())
	if err != nil {
		return err
	}
	first := l.revision < 0
	l.rebuild(v, pending)
	if !first {
		return nil
	}
	for _, p := range v.schedules {
		if late := v.now.Sub(p.NextRunAt); late > missedAfter && !p.NextRunAt.IsZero() && !p.LastRunAt.IsZero() && v.workflow.Desired == desiredActive && v.onceLate(p.Producer) {
			s.log.Info("a producer is overdue and runs once", "workflow", v.workflow.Name, "producer", p.Producer, "due", pawl.FormatTime(p.NextRunAt), "late", late.Round(time.Second))
		}
	}
	return nil
}

// oldestPending reads the oldest events of some topics that this lane can take.
func (v *view) oldestPending(ctx context.Context, tx *store.Tx, topics []string) (map[string]int64, error) {
	if v.part != nil {
		return eventstore.In(tx).OldestOfPart(ctx, v.workflow.ID, v.part.ID, topics)
	}
	return eventstore.In(tx).OldestPending(ctx, v.workflow.ID, topics)
}

// onceLate reports whether what came due late of a producer is one run.
func (v *view) onceLate(producer string) bool {
	p, ok := v.config.Producer(producer)
	return ok && p.Schedule.Missed == nil
}

// missedAfter is when a firing counts as missed while the host was down; it
// only decides what is logged.
const missedAfter = 5 * time.Second
