package queue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// CanaryName is the task of the job by which a node proves that jobs run. It is one
// row in a bucket that the node owns, due every minute: its end, which is written
// behind the fence of the bucket, makes it due again. So a round goes through the
// commit, the timer, the claim, the run and the fenced end, as every job does, and
// costs one small commit.
const CanaryName = "pawl.canary"

// The node looks at what it remembers of its canary sixty times as often as that is
// due, arms it again when it is late by a quarter, and is not ready from a half on.
const (
	canaryEvery = time.Minute
	canarySoon  = 100 * time.Millisecond
)

// Round is a round trip of the canary.
type Round struct {
	Ended time.Time     // zero: none has ended yet
	Took  time.Duration // from when it was due until its end was written
}

// canary is what a node remembers of its canary.
type canary struct {
	on    bool
	every time.Duration // canaryEvery, or what tests take for it

	mu     sync.Mutex
	key    string    // of its job, and its lane; empty: there is none
	bucket int       // of the job
	due    time.Time // of the round that is waited for; zero: none is
	armed  time.Time // when its job was last written by the node itself
	last   Round
}

// canaryRoom is how many canaries a node has in hand: its own, and what nodes that are
// gone left in its buckets. With room for one, its own would leave none for those.
const canaryRoom = 64

// addCanary makes the task of the canary, which has a worker of its own: that others
// are busy is no fault.
func (q *Queue) addCanary() {
	p := q.board.addPool(canaryRoom)
	p.workers = 1
	q.board.poolOf[CanaryName] = p
	q.cfg.Tasks[CanaryName] = Task{Internal: true, Run: q.runCanary}
	q.canary.on, q.canary.every = true, canaryEvery
	if q.cfg.limits.canary > 0 {
		q.canary.every = q.cfg.limits.canary
	}
}

// runCanary ends a round. The job of a node that is gone, or that another bucket took
// the place of, goes away.
func (q *Queue) runCanary(_ context.Context, j *Job) error {
	q.canary.mu.Lock()
	own := j.Key == q.canary.key
	q.canary.mu.Unlock()
	if !own {
		return nil
	}
	return Snooze(time.Now().Add(q.canary.every))
}

// ended notes a round whose end is written.
func (c *canary) ended(f store.Finished, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.Verdict != store.Snooze || f.Job.Key != c.key || f.RunAt.Before(now) { // a job that is given back has not ended
		return
	}
	c.last = Round{Ended: now, Took: max(0, now.Sub(f.Job.RunAt))}
	c.due = f.RunAt
}

// keepCanary sees to it that the canary has its job, in a bucket that the node owns.
func (q *Queue) keepCanary(ctx context.Context) {
	tick := time.NewTicker(q.canary.every / 60)
	defer tick.Stop()
	for {
		if spec := q.tendCanary(time.Now()); spec.Task != "" {
			if _, err := q.Enqueue(ctx, spec); err != nil && ctx.Err() == nil {
				q.log.Warn("arm the canary", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tendCanary says what is to be enqueued; the zero one is nothing. It reads and
// writes nothing but memory.
func (q *Queue) tendCanary(now time.Time) store.JobSpec {
	troubled := q.Health() != nil // which is told by itself, and says nothing about the canary
	held, bucket := q.canaryBucket()
	c := &q.canary
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case bucket < 0:
		c.key, c.due = "", time.Time{} // there is nothing of which it could be a proof
		return store.JobSpec{}
	case troubled && !c.due.IsZero() && c.due.Before(now):
		c.due = now
	}
	if held && now.Sub(c.armed) < c.every || held && now.Sub(c.due) < c.every/4 {
		return store.JobSpec{}
	}
	if !held {
		c.bucket, c.due = bucket, now.Add(canarySoon)
		c.key = q.canaryKey(bucket)
	}
	c.armed = now
	// At another instant than before: one that is over would need no timer.
	return store.JobSpec{Task: CanaryName, Key: c.key, Lane: c.key, KeyMode: store.Replace, RunAt: now.Add(canarySoon)}
}

// canaryBucket reports whether the node works on the bucket of its canary, and
// otherwise one that it does work on; -1 if there is none.
func (q *Queue) canaryBucket() (held bool, other int) {
	c := &q.canary
	c.mu.Lock()
	key, at := c.key, c.bucket
	c.mu.Unlock()
	b := q.board
	b.mu.Lock()
	defer b.mu.Unlock()
	works := func(k *bucket) bool { return k != nil && !k.draining && !k.leaving }
	if key != "" && works(b.owned[at]) {
		return true, at
	}
	other = -1
	for id, k := range b.owned {
		if works(k) && (other < 0 || id < other) {
			other = id
		}
	}
	return false, other
}

// canaryKey is a key of this node whose bucket is the given one.
func (q *Queue) canaryKey(bucket int) string {
	for n := 0; ; n++ {
		key := fmt.Sprintf("%s:%s:%d", CanaryName, q.Node().ID, n)
		if q.db.BucketOf(key, key) == bucket {
			return key
		}
	}
}

// Canary is the last round trip of the canary, and why it is not well: a round is late
// although the database answers and the queue knows of no fault. It is off without
// workers, and where the configuration says so.
func (q *Queue) Canary() (last Round, on bool, err error) {
	return q.canary.state(time.Now())
}

func (c *canary) state(now time.Time) (last Round, on bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	late := now.Sub(c.due)
	if !c.on || c.due.IsZero() || late <= c.every/2 {
		return c.last, c.on, nil
	}
	since := "none has yet"
	if !c.last.Ended.IsZero() {
		since = "the last one did at " + pawl.FormatTime(c.last.Ended)
	}
	return c.last, true, &pawl.Error{
		Code: pawl.CodeUnavailable, Op: "canary", Msg: fmt.Sprintf("no job has come round for %s although the database answers; %s", (late + c.every).Truncate(time.Second), since),
		Hint: "Jobs do not run on this node. If this lasts, restart it.",
	}
}

// observe tells whoever watches. What the canary does is nobody's news.
func (q *Queue) observe(e Event) {
	if e.Job.Task != CanaryName {
		q.cfg.Observe(e)
	}
}

// attachCanary adds the gauges of the canary.
func (m *Metrics) attachCanary(q *Queue) {
	m.reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pawl_canary_round_trip_seconds", Help: "How long the last round trip of the canary took, from when it was due until its end was written."},
			func() float64 { last, _, _ := q.Canary(); return last.Took.Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pawl_canary_last_round_timestamp_seconds", Help: "When the last round trip of the canary ended; 0 if none has."},
			func() float64 {
				last, _, _ := q.Canary()
				if last.Ended.IsZero() {
					return 0
				}
				return float64(last.Ended.UnixMilli()) / 1000
			}),
	)
}
