package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

// jobTask is a job of a user: it takes its time, and fails as often as it says.
const jobTask = "sim.job"

// job is what is known of a job that somebody asked for.
type job struct {
	Name  string
	Takes time.Duration
	Fails int

	accepted bool // else nobody knows
	id       int64
	runs     int
	done     *life // where it was done last
	doneAt   time.Time
	began    time.Time
}

var errUpset = errors.New("the job fails, as it says")

// runJob is the handler.
func (l *life) runJob(ctx context.Context, q *queue.Job) error {
	var said job
	if err := json.Unmarshal(q.Payload, &said); err != nil {
		return queue.Permanent(err)
	}
	if l.isDead() {
		return errDead
	}
	l.stands()
	w := l.n.w
	w.begins(l, q)
	defer w.ends(l, q)
	w.mu.Lock()
	j := w.jobs[said.Name]
	j.runs++
	j.began = time.Now()
	fails := j.runs <= j.Fails
	twice := j.id != 0 && j.id != q.ID
	j.id = q.ID
	again := false
	if was := j.done; was != nil {
		was.mu.Lock()
		again = !was.dead && was.faulted.Before(j.doneAt.Add(-2*lease))
		was.mu.Unlock()
	}
	w.mu.Unlock()
	w.note("node %d runs job %s", l.n.index, said.Name)
	w.starts("job " + said.Name)
	if twice {
		w.fail("job %s was asked for once, and is there twice", said.Name)
	}
	if again {
		w.fail("job %s runs again, and nothing had happened to the node that did it", said.Name)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(said.Takes):
	}
	l.stands()
	switch {
	case l.isDead():
		return errDead
	case fails:
		return errUpset
	}
	w.mu.Lock()
	j.done, j.doneAt = l, time.Now()
	w.mu.Unlock()
	return nil
}

// enqueue is a user who wants some jobs done.
func (w *world) enqueue(r *rand.Rand, later time.Duration) {
	for i := range 1 + r.IntN(3) {
		w.mu.Lock()
		j := &job{Name: fmt.Sprint("j", len(w.jobs)+1), Takes: time.Duration(r.IntN(4)) * 400 * time.Millisecond, Fails: max(0, r.IntN(5)-3)}
		w.jobs[j.Name] = j
		w.mu.Unlock()
		payload, _ := json.Marshal(j)
		spec := store.JobSpec{Task: jobTask, Payload: payload, Owner: "u", Lane: fmt.Sprint("lane-", r.IntN(3)), Priority: r.IntN(2)}
		if later > 0 {
			spec.RunAt = time.Now().Add(time.Duration(r.Int64N(int64(later))))
		}
		if r.IntN(3) == 0 {
			spec.Key = j.Name
		}
		at := r.IntN(len(w.nodes))
		w.acts.Go(func() {
			pass(time.Duration(i) * 5077) // no two at the same instant
			l := w.nodes[at].now()
			if l == nil {
				return
			}
			_, err := l.queue.Enqueue(l.ctx, spec)
			w.mu.Lock()
			j.accepted = err == nil
			w.mu.Unlock()
			w.note("job %s of %s at node %d: %v", j.Name, spec.Lane, at, err)
			if err != nil && !gone(err) {
				w.fail("job %s is refused: %v", j.Name, err)
			}
		})
	}
}

// checkJobs holds that what was accepted is done.
func (w *world) checkJobs() {
	left := map[string]bool{}
	for _, row := range w.rows(`select payload||'' from jobs where task = $1`, jobTask) {
		var j job
		_ = json.Unmarshal([]byte(row[0]), &j)
		left[j.Name] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, j := range w.jobs {
		if j.accepted && j.done == nil {
			w.failed = append(w.failed, fmt.Sprintf("job %s was accepted and is not done; it is still there: %v, runs: %d", name, left[name], j.runs))
		}
		if left[name] {
			w.failed = append(w.failed, fmt.Sprintf("job %s is left over; done: %v", name, j.done != nil))
		}
	}
}
