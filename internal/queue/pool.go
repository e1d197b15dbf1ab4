package queue

import (
	"fmt"
	"sync"
)

// pool is a number of workers and what waits for them.
type pool struct {
	workers int
	ready   [levels]fifo
	cond    *sync.Cond
	inHand  int  // jobs of its tasks, wherever they are
	most    int  // that may be in hand, so that one pool does not fill all of it
	more    bool // due jobs were left in the table
}

// addPool makes a pool of which at most so many jobs are in hand.
func (b *board) addPool(most int) *pool {
	p := &pool{cond: sync.NewCond(&b.mu), most: most}
	b.pools = append(b.pools, p)
	return p
}

func (b *board) poolFor(task string) *pool {
	if p := b.poolOf[task]; p != nil {
		return p
	}
	return b.pools[0]
}

func (p *pool) nothing() bool {
	for lvl := range p.ready {
		if p.ready[lvl].len() > 0 {
			return false
		}
	}
	return true
}

// again puts an entry back to the front of what waits.
func (p *pool) again(e *entry) {
	p.ready[levelOf(e.job.Priority)].pushFront(e)
	p.cond.Signal()
}

// left: a job of the pool is out of hand. When there is room again, what was
// left in the table is read.
func (b *board) left(p *pool) {
	p.inHand--
	if p.more && p.inHand <= p.most/4 {
		p.more = false
		b.rescan(true)
	}
}

// makePools makes the pools of the configuration. Those beside the first one
// share a half of the hand.
func (q *Queue) makePools() error {
	b := q.board
	b.pools[0].workers = q.cfg.Workers
	b.pools[0].most = q.cfg.limits.capacity(0) + q.cfg.limits.batch // bounded by the hand alone
	byName := map[string]*pool{}
	for name, workers := range q.cfg.Pools {
		p := b.addPool(max(q.cfg.limits.hand/2/len(q.cfg.Pools), 1))
		p.workers = workers
		byName[name] = p
	}
	for name, t := range q.cfg.Tasks {
		b.waits[name] = !t.Internal
		if t.Order != nil {
			b.orders[name] = t.Order
		}
		if t.Pool == "" {
			continue
		}
		p := byName[t.Pool]
		if p == nil || p.workers < 1 {
			return fmt.Errorf("queue: the pool %q of the task %q has no workers", t.Pool, name)
		}
		b.poolOf[name] = p
	}
	return nil
}
