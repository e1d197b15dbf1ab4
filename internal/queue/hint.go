package queue

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// channel is where nodes tell each other about due jobs.
const channel = "pawl_jobs"

// hints tells the owners of other buckets what was committed here. Hints are
// sent after the commit on a connection of their own, because a NOTIFY inside
// the transaction makes commits wait for each other. Those of one bucket and
// priority are joined while another is being sent.
type hints struct {
	q    *Queue
	mu   sync.Mutex
	when map[[2]int]time.Time // bucket and priority; guarded by mu
	stop []int64              // jobs to be told to stop; guarded by mu
	wake chan struct{}
}

func newHints(q *Queue) *hints {
	return &hints{q: q, when: map[[2]int]time.Time{}, wake: make(chan struct{}, 1)}
}

func (h *hints) due(jobs []store.Job) {
	if len(jobs) == 0 || !h.q.db.Shared() {
		return
	}
	h.mu.Lock()
	for _, j := range jobs {
		k := [2]int{j.Bucket, j.Priority}
		if t, ok := h.when[k]; !ok || j.RunAt.Before(t) {
			h.when[k] = j.RunAt
		}
	}
	h.mu.Unlock()
	h.nudge()
}

func (h *hints) cancelled(id int64) {
	if !h.q.db.Shared() {
		return
	}
	h.mu.Lock()
	h.stop = append(h.stop, id)
	h.mu.Unlock()
	h.nudge()
}

func (h *hints) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *hints) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		}
		for _, m := range h.messages() {
			// A lost hint is repaired by the owner's sweep.
			if err := h.q.db.Notify(ctx, channel, m); err != nil && ctx.Err() == nil {
				h.q.log.Warn("send hint", "err", err)
			}
		}
	}
}

// maxMessage is below what NOTIFY carries (8000 bytes).
const maxMessage = 7000

// messages drains what is to be said.
func (h *hints) messages() []string {
	h.mu.Lock()
	when, stop := h.when, h.stop
	h.when, h.stop = map[[2]int]time.Time{}, nil
	h.mu.Unlock()
	var out []string
	var m strings.Builder
	add := func(s string) {
		if m.Len()+len(s) > maxMessage {
			out = append(out, m.String())
			m.Reset()
		}
		m.WriteString(s)
	}
	for k, t := range when {
		add(fmt.Sprintf("d %d %d %d\n", k[0], k[1], t.UnixMilli()))
	}
	for _, id := range stop {
		add(fmt.Sprintf("c %d\n", id))
	}
	if m.Len() > 0 {
		out = append(out, m.String())
	}
	return out
}

// listen hears what other nodes committed. Whatever was said while it could
// not hear is found by looking at everything again.
func (q *Queue) listen(ctx context.Context) {
	if !q.db.Shared() {
		return
	}
	for ctx.Err() == nil {
		err := q.db.Listen(ctx, channel, func() { q.sweep() }, q.hear)
		if ctx.Err() != nil {
			return
		}
		q.log.Warn("listen for hints", "err", err)
		sleep(ctx, time.Second)
	}
}

func (q *Queue) hear(message string) {
	now := time.Now()
	q.board.mu.Lock()
	defer q.board.mu.Unlock()
	for line := range strings.Lines(message) {
		var bucket, priority int
		var n int64
		switch {
		case strings.HasPrefix(line, "d "):
			if _, err := fmt.Sscanf(line, "d %d %d %d", &bucket, &priority, &n); err == nil && validPriority(priority) {
				q.board.announce(bucket, priority, time.UnixMilli(n), now)
			}
		case strings.HasPrefix(line, "c "):
			if _, err := fmt.Sscanf(line, "c %d", &n); err == nil {
				q.board.revoke(n)
			}
		}
	}
}

// revoke drops a job whose row was deleted, and tells it to stop if it runs.
func (b *board) revoke(id int64) {
	e := b.entries[id]
	if e == nil {
		return
	}
	if e.place == inRun && e.cancel != nil {
		e.cancel(ErrCancelled)
		return
	}
	if e.place == inTimers || e.place == inLane || e.place == inReady {
		b.drop(e)
	}
}

// Revoke tells whoever holds a deleted job to drop or stop it.
func (q *Queue) Revoke(id int64) {
	q.board.mu.Lock()
	here := q.board.entries[id] != nil
	q.board.revoke(id)
	q.board.mu.Unlock()
	if !here {
		q.hints.cancelled(id)
	}
}

// sweep looks at everything again, in case a hint was missed.
func (q *Queue) sweep() {
	q.board.mu.Lock()
	q.board.rescan(true)
	q.board.mu.Unlock()
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
