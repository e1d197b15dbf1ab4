package web

import (
	"context"
	"fmt"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
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
func (s *Site) countLanes(ctx context.Context, v *visit) wordCounts {
	owners, now := s.ownersOf(v), v.now
	owner := fmt.Sprint(owners)
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
		go s.recount(kept, owners) //nolint:contextcheck // it outlives the request that asked
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
func (s *Site) recount(kept *keptCounts, owners map[pawl.Kind]string) {
	ctx, cancel := context.WithTimeout(context.Background(), countsTimeout)
	defer cancel()
	stop := context.AfterFunc(s.ending, cancel)
	defer stop()
	begun := time.Now()
	counts, err := s.count(ctx, owners)
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
		s.cfg.Pulse.Changed(lane.Ref{}) // pages that did not wait look again
	}
}

// ownersOf is whose lanes somebody sees, by kind.
func (s *Site) ownersOf(v *visit) map[pawl.Kind]string {
	out := map[pawl.Kind]string{}
	for _, k := range s.cfg.Kinds {
		out[k.Kind()] = ownerOf(v, k.Kind())
	}
	return out
}

// workforce tells who there is to run things.
func (s *Site) workforce(ctx context.Context) (there run.Workforce, err error) {
	if s.cfg.Workforce == nil {
		return there, nil
	}
	err = s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		there, err = s.cfg.Workforce(ctx, tx)
		return err
	})
	return there, err
}

func (s *Site) count(ctx context.Context, owners map[pawl.Kind]string) (wordCounts, error) {
	out := wordCounts{}
	there, err := s.workforce(ctx)
	if err != nil {
		return nil, err
	}
	err = s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, k := range s.cfg.Kinds {
			kind := k.Kind()
			counted, err := k.Count(ctx, tx, owners[kind])
			if err != nil {
				return err
			}
			out[string(kind)] = map[run.State]int{}
			for word, n := range counted {
				told, _ := there.Over(run.State(word), run.IssueNone)
				out[string(kind)][told] += n
			}
		}
		return nil
	})
	return out, err
}
