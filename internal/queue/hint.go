package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	said // guarded by mu: what is to be said
	wake chan struct{}
}

// said is what there is to say.
type said struct {
	when map[[2]int]time.Time // bucket and priority
	stop []int64              // jobs to be told to stop
	look []int                // buckets to be looked at by their owners
	task map[string]bool      // tasks whose workers, which wait at some node, may have something to do
	news bool                 // the owners of buckets change
}

func newSaid() said { return said{when: map[[2]int]time.Time{}, task: map[string]bool{}} }

func newHints(q *Queue) *hints {
	return &hints{q: q, said: newSaid(), wake: make(chan struct{}, 1)}
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

// lost makes the new owner of a bucket look at all of it.
func (h *hints) lost(bucket int) {
	if !h.q.db.Shared() {
		return
	}
	h.mu.Lock()
	h.look = append(h.look, bucket)
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

func (h *hints) served(task string) {
	if !h.q.db.Shared() {
		return
	}
	h.mu.Lock()
	h.task[task] = true
	h.mu.Unlock()
	h.nudge()
}

// everywhere makes the owners of all buckets look at all of them.
func (h *hints) everywhere() {
	h.mu.Lock()
	for bucket := range h.q.db.Buckets() {
		h.look = append(h.look, bucket)
	}
	h.mu.Unlock()
	h.nudge()
}

// changed tells the others to look at the cluster now.
func (h *hints) changed() {
	if !h.q.db.Shared() {
		return
	}
	h.mu.Lock()
	h.news = true
	h.mu.Unlock()
	h.nudge()
}

func (h *hints) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// run sends what is to be said; what could not be sent is kept until it is.
func (h *hints) run(ctx context.Context) {
	p := &patience{q: h.q}
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		}
		said := h.drain()
		for _, m := range said.messages(h.q.Node().ID) {
			err := p.run(ctx, func(ctx context.Context) error { return h.q.db.Notify(ctx, channel, m) })
			if err == nil {
				continue
			}
			if ctx.Err() == nil {
				h.q.log.Warn("send hint; it is sent again", "err", err)
			}
			h.keep(said) // all of it: hearing twice does no harm
			sleep(ctx, h.q.cfg.limits.answer/5)
			break
		}
	}
}

// maxStops bounds what is kept for others to stop: they find out when they have
// run it.
const maxStops = 10_000

func (h *hints) drain() said {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.said
	h.said = newSaid()
	return out
}

func (h *hints) keep(s said) {
	h.mu.Lock()
	for k, t := range s.when {
		if now, ok := h.when[k]; !ok || t.Before(now) {
			h.when[k] = t
		}
	}
	if h.stop = append(s.stop, h.stop...); len(h.stop) > maxStops {
		h.stop = h.stop[len(h.stop)-maxStops:]
	}
	h.look = append(s.look, h.look...)
	maps.Copy(h.task, s.task)
	h.news = h.news || s.news
	h.mu.Unlock()
	h.nudge()
}

// maxMessage is below what NOTIFY carries (8000 bytes).
const maxMessage = 7000

const (
	// msgChanged tells that the owners of buckets change.
	msgChanged = "v\n"
	// msgDoor is the last line of what the functions for applications say; see
	// store/door.
	msgDoor = "q\n"
)

// messages puts what is to be said into words. Those about tasks say who tells: the
// workers of that node know.
func (s said) messages(from string) []string {
	var out []string
	var m strings.Builder
	for name := range s.task {
		if line := "t " + name + "\n"; m.Len() == 0 || m.Len()+len(line) > maxMessage {
			if m.Len() > 0 {
				out = append(out, m.String())
			}
			m.Reset()
			m.WriteString("f " + from + "\n" + line)
		} else {
			m.WriteString(line)
		}
	}
	add := func(line string) {
		if m.Len()+len(line) > maxMessage {
			out = append(out, m.String())
			m.Reset()
		}
		m.WriteString(line)
	}
	for k, t := range s.when {
		add(fmt.Sprintf("d %d %d %d\n", k[0], k[1], t.UnixMilli()))
	}
	for _, id := range s.stop {
		add(fmt.Sprintf("c %d\n", id))
	}
	for _, bucket := range slices.Compact(slices.Sorted(slices.Values(s.look))) {
		add(fmt.Sprintf("l %d\n", bucket))
	}
	if s.news {
		add(msgChanged)
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
		err := q.listenOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		q.log.Warn("listen for hints", "err", err)
		sleep(ctx, time.Second)
	}
}

func (q *Queue) listenOnce(ctx context.Context) error {
	s := q.link.Swap(nil)
	if s == nil { // the one of claim is gone
		var err error
		if s, err = q.db.OpenLink(ctx); err != nil {
			return err
		}
		// The server may not have seen yet that the other one is gone; then
		// Listen claims it later.
		if err := q.bounded(ctx, func(ctx context.Context) error { _, err := s.Claim(ctx, q.Node().ID); return err }); err != nil {
			s.Close()
			return err
		}
	}
	defer s.Close()
	ready := func() {
		q.sweep()
		q.lookAround() // who joined or left before it could hear said so in vain
	}
	return s.Listen(ctx, channel, q.cfg.limits.answer, ready, q.hear)
}

func (q *Queue) hear(message string) {
	now := time.Now()
	if strings.HasSuffix(message, msgChanged) {
		q.lookAround()
		// The one that joins may be the successor of one that committed something
		// and died before it could say so.
		q.sweep()
	}
	if strings.HasSuffix(message, msgDoor) {
		q.keeper.woken(now)
	}
	own := strings.HasPrefix(message, "f "+q.Node().ID+"\n")
	for line := range strings.Lines(message) {
		if task, ok := strings.CutPrefix(line, "t "); ok && !own {
			q.cfg.Served(strings.TrimSuffix(task, "\n"), Chance{})
		}
	}
	var cancelled []int64
	defer func() { q.rumours.add(cancelled...) }()
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
			if _, err := fmt.Sscanf(line, "c %d", &n); err == nil && q.board.entries[n] != nil {
				cancelled = append(cancelled, n)
			}
		case strings.HasPrefix(line, "l "):
			if _, err := fmt.Sscanf(line, "l %d", &bucket); err == nil {
				q.board.reread(bucket)
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
	q.rescan()
	signal(q.keeper.check)
}

func (q *Queue) rescan() {
	q.board.mu.Lock()
	q.board.rescan(true)
	q.board.mu.Unlock()
}

// lookEverywhere makes this node and all others look at everything.
func (q *Queue) lookEverywhere() {
	q.rescan()
	q.hints.everywhere()
}

// lookAround makes the lessee look who there is, now instead of at its next beat.
func (q *Queue) lookAround() {
	select {
	case q.nudges <- struct{}{}:
	default: // it is going to
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
