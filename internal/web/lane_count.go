package web

import (
	"context"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// wordCounts is how many lanes have each word, by kind; nil if it is not known
// yet.
type wordCounts map[string]map[run.State]int

// laneCounts keeps what was counted for a moment, because every open overview
// asks for it whenever something moves, and because counting ten thousand lanes
// takes longer than a page may.
type laneCounts struct {
	mu sync.Mutex
	of map[string]*keptCounts // by whose schedules are counted; guarded by mu, and so is what it holds
}

type keptCounts struct {
	counts wordCounts
	until  time.Time
	busy   chan struct{} // closed when the count that is under way is done; nil if none is
}

const (
	// countsKept is for how long at least; what takes long to count is kept
	// fifty times as long as that took, so that counting never costs much.
	countsKept  = 3 * time.Second
	countsShare = 50

	// countsWait is how long a page waits for numbers. After that it shows those
	// of before, or none, and is told when they are there.
	countsWait = 40 * time.Millisecond

	countsTimeout = 30 * time.Second
	maxCountsKept = 1000 // people whose counts are kept
)

// countLanes returns the counts of what somebody sees, as well as they are known.
func (s *Site) countLanes(ctx context.Context, owner string, now time.Time) wordCounts {
	c := &s.counts
	c.mu.Lock()
	if c.of == nil || len(c.of) > maxCountsKept {
		c.of = map[string]*keptCounts{}
	}
	kept := c.of[owner]
	if kept == nil {
		kept = &keptCounts{}
		c.of[owner] = kept
	}
	if now.Before(kept.until) {
		defer c.mu.Unlock()
		return kept.counts
	}
	if kept.busy == nil {
		kept.busy = make(chan struct{})
		go s.recount(kept, owner) //nolint:contextcheck // it outlives the request that asked
	}
	busy := kept.busy
	c.mu.Unlock()
	wait := time.NewTimer(countsWait)
	defer wait.Stop()
	select {
	case <-busy:
	case <-wait.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return kept.counts
}

// recount counts once more, whoever waits for it.
func (s *Site) recount(kept *keptCounts, owner string) {
	ctx, cancel := context.WithTimeout(context.Background(), countsTimeout)
	defer cancel()
	stop := context.AfterFunc(s.ending, cancel)
	defer stop()
	begun := time.Now()
	counts, err := s.count(ctx, owner)
	took := time.Since(begun)
	if err != nil && ctx.Err() == nil {
		s.log.Error("count lanes", "err", err)
	}
	s.counts.mu.Lock()
	if err == nil {
		kept.counts = counts
	}
	kept.until = time.Now().Add(max(countsKept, countsShare*took))
	close(kept.busy)
	kept.busy = nil
	s.counts.mu.Unlock()
	if took > countsWait {
		s.cfg.Pulse.Changed("", "") // pages that did not wait look again
	}
}

func (s *Site) count(ctx context.Context, owner string) (wordCounts, error) {
	out := wordCounts{}
	there, err := s.cfg.Workflows.Workforce(ctx)
	if err != nil {
		return nil, err
	}
	err = s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, k := range s.laneKinds() {
			counted, err := k.count(ctx, tx, owner)
			if err != nil {
				return err
			}
			out[string(k.kind)] = map[run.State]int{}
			for word, n := range counted {
				told, _ := there.Over(run.State(word), run.IssueNone)
				out[string(k.kind)][told] += n
			}
		}
		return nil
	})
	return out, err
}
