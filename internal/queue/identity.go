package queue

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// claimWait is how long a process waits for the id that it was given: the
// database needs a moment to see that the process before it is gone.
const claimWait = 2 * time.Second

// setNode makes this process the node of that id.
func (q *Queue) setNode(id string) {
	n := q.cfg.Node
	n.ID, n.Incarnation = id, store.NewID()
	q.node.Store(&n)
}

// rename gives this process an id that nobody else has.
func (q *Queue) rename(why string) {
	old, id := q.Node().ID, store.NewID()
	q.log.Error("this node takes a new id; was its data folder copied? Each node needs a folder of its own, without the node.id of another",
		"why", why, "old", old, "new", id)
	q.setNode(id)
	q.cfg.Renamed(id)
}

// claim opens the link that holds the id of this node. Whoever gets it knows
// that no other living process has the id, and takes over at once what a dead
// one left; else the process gets another id.
func (q *Queue) claim(ctx context.Context) {
	var s *store.Link
	for since := time.Now(); ctx.Err() == nil; {
		var err error
		var claimed bool
		if s == nil {
			s, err = q.db.OpenLink(ctx)
		}
		if err == nil {
			err = q.bounded(ctx, func(ctx context.Context) error {
				claimed, err = s.Claim(ctx, q.Node().ID)
				return err
			})
		}
		switch {
		case err != nil:
			s.Close()
			s, since = nil, time.Now()
			q.health.ended(dutyBeat, err)
			q.log.Warn("claim the id of this node", "err", err)
			sleep(ctx, time.Second)
		case claimed:
			q.link.Store(s)
			return
		case time.Since(since) > claimWait:
			q.rename("a living process has it already")
		default:
			sleep(ctx, claimWait/20)
		}
	}
	s.Close()
}
