package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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
	Tries int // that it may have; zero: any number
	Place int // among many that came at once, from one on

	accepted  bool // else nobody knows
	id        int64
	runs      int
	done      *life // where it was done last
	doneAt    time.Time
	began     time.Time // when it ran last
	failed    *life     // where it failed last
	failedAt  time.Time
	attempt   int       // the one that ran last
	ended     end       // how that did
	withdrawn bool      // or somebody tried to
	cancelled time.Time // since when it is known to be cancelled
	keyed     *keyed    // nil: its name is its own
	crowd     int       // which many it came with
	letter    *letter   // that it came from; nil: somebody asked for it
	ids       []int64   // if it did
}

// end is how a run of a job ended, as far as its node knows.
type end int

const (
	cutOff  end = iota // nobody heard of it
	upset              // it failed
	halfway            // its process stopped in good order
)

// keyed is one of several wishes under one key.
type keyed struct {
	key       string
	mode      store.KeyMode
	sent      time.Time
	told      time.Time // zero: nobody knows what became of it
	doneBegan time.Time // when the run began that did it
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
	counted := w.miscounts(j, q)
	behind := w.outOfTurn(j, q.Attempt)
	j.runs++
	j.began = time.Now()
	j.attempt, j.ended = q.Attempt, cutOff
	early := q.RunAt.Sub(j.began)-w.skew > 0
	hasty := j.failed != nil && !j.failed.hurtSince(j.failedAt) && j.began.Sub(j.failedAt)+w.skew < 700*time.Millisecond // the first wait is a second, less a quarter
	known := time.Duration(0)                                                                                            // until whoever has it in hand must know that it was cancelled
	if w.plan.shared {
		known = 1500 * time.Millisecond
	}
	replaced := w.replaced(j, l)
	withdrawn := !j.cancelled.IsZero() && j.began.Sub(j.cancelled) > known && !l.hurtSince(j.began)
	fails := j.runs <= j.Fails
	twice := j.letter == nil && j.id != 0 && j.id != q.ID || j.moreThanAsked(q.ID)
	j.id = q.ID
	again := false
	if was := j.done; was != nil && (j.letter == nil || j.letter.asked == 0) {
		again = !was.hurtSince(j.doneAt)
	}
	w.mu.Unlock()
	w.note("node %d runs job %s", l.n.index, said.Name)
	w.starts(l, "job "+said.Name)
	switch {
	case early:
		w.fail("job %s begins %v before its time", said.Name, time.Until(q.RunAt))
	case hasty:
		w.fail("job %s begins again at once after it failed", said.Name)
	case replaced != "":
		w.fail("job %s begins, and %s took its place before", said.Name, replaced)
	case withdrawn:
		w.fail("job %s begins, and it was cancelled before", said.Name)
	}
	if counted != "" {
		w.fail("job %s %s", said.Name, counted)
	}
	if behind != "" {
		w.fail("job %s runs before %s, which is before it in its lane", said.Name, behind)
	}
	if twice {
		w.fail("job %s was asked for once, and is there twice", said.Name)
	}
	if again {
		w.fail("job %s runs again, and nothing had happened to the node that did it", said.Name)
	}
	if j.keyed != nil {
		w.pounce(false, j.keyed.key)
	}
	select {
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), queue.ErrShutdown) && !l.isDead() {
			w.mu.Lock()
			j.ended = halfway
			w.mu.Unlock()
		}
		return context.Cause(ctx)
	case <-time.After(said.Takes):
	}
	l.stands()
	if j.keyed != nil {
		w.pounce(true, j.keyed.key)
	}
	switch {
	case l.isDead():
		return errDead
	case fails:
		w.mu.Lock()
		j.failed, j.failedAt, j.ended = l, time.Now(), upset
		w.mu.Unlock()
		return errUpset
	}
	w.mu.Lock()
	j.done, j.doneAt = l, time.Now()
	if j.keyed != nil {
		j.keyed.doneBegan = j.began
	}
	w.mu.Unlock()
	return nil
}

// miscounts is what is wrong with the number of an attempt: every run that failed, and
// every one that was cut off and had said that it runs, is one, and no other. w.mu is held.
func (w *world) miscounts(j *job, q *queue.Job) string {
	switch {
	case j.keyed != nil && j.runs == 0 && q.Attempt > 0 && !w.wounded:
		return fmt.Sprintf("runs for the first time, in attempt %d", q.Attempt)
	case j.keyed != nil, j.letter != nil && j.letter.asked > 0:
		return ""
	case j.Tries > 0 && q.Attempt >= j.Tries:
		return fmt.Sprintf("runs after %d attempts, and may have %d", q.Attempt, j.Tries)
	case j.runs == 0:
		return ""
	case q.Recovered && q.Attempt <= j.attempt:
		return "was cut off, and that attempt does not count"
	case q.Recovered || j.failed != nil && j.failed.hurtSince(j.failedAt):
		return ""
	case j.ended == upset && q.Attempt != j.attempt+1:
		return fmt.Sprintf("failed in attempt %d, and now runs in attempt %d", j.attempt, q.Attempt)
	case j.ended == halfway && q.Attempt != j.attempt:
		return fmt.Sprintf("was interrupted by a stop in attempt %d, and now runs in attempt %d", j.attempt, q.Attempt)
	}
	return ""
}

// moreThanAsked reports whether a letter became more jobs than it may. w.mu of the world
// is held.
func (j *job) moreThanAsked(id int64) bool {
	if j.letter == nil {
		return false
	}
	if !slices.Contains(j.ids, id) {
		j.ids = append(j.ids, id)
	}
	return len(j.ids) > 1+j.letter.asked
}

// outOfTurn is one that should have run before this one, of many of a lane that came at
// once. w.mu is held.
func (w *world) outOfTurn(j *job, attempt int) string {
	if j.Place < 2 || attempt > 0 || w.wounded {
		return ""
	}
	for name, other := range w.jobs {
		if other.crowd == j.crowd && other.Place == j.Place-1 && other.runs == 0 && !other.withdrawn {
			return name
		}
	}
	return ""
}

// hurtSince reports whether something happened to a process at an instant, or not
// long before it, so that what it did then may not be known.
func (l *life) hurtSince(at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead || l.leaves || !l.faulted.Before(at.Add(-2*lease))
}

// enqueue is a user who wants some jobs done.
func (w *world) enqueue(r *rand.Rand, later time.Duration) {
	for i := range 1 + r.IntN(3) {
		w.mu.Lock()
		j := &job{Name: fmt.Sprint("j", len(w.jobs)+1), Takes: pick(r, []time.Duration{0, 400, 800, 1200, 1200, 3000, 6000}) * time.Millisecond, Fails: max(0, r.IntN(5)-3)}
		if r.IntN(4) == 0 {
			j.Tries = 1 + r.IntN(3)
			j.Fails = r.IntN(4)
		}
		w.jobs[j.Name] = j
		w.mu.Unlock()
		payload, _ := json.Marshal(j)
		spec := store.JobSpec{Task: jobTask, Payload: payload, Owner: "u", Lane: fmt.Sprint("lane-", r.IntN(3)), Priority: r.IntN(2), MaxAttempts: j.Tries}
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

// crowdOf is so many that a lane does not have all of them in hand.
const crowdOf = 70

// enqueueMany is a user who wants many jobs done, one after the other.
func (w *world) enqueueMany(r *rand.Rand) {
	w.mu.Lock()
	w.crowds++
	n, takes := crowdOf, time.Duration(0)
	if r.IntN(8) > 0 { // or a lane that is busy for a while
		n, takes = 12, 700*time.Millisecond
	}
	jobs, specs := make([]*job, n), make([]store.JobSpec, n)
	for i := range jobs {
		j := &job{Name: fmt.Sprint("j", len(w.jobs)+1), Takes: takes, Place: i + 1, crowd: w.crowds}
		w.jobs[j.Name], jobs[i] = j, j
		payload, _ := json.Marshal(j)
		specs[i] = store.JobSpec{Task: jobTask, Payload: payload, Owner: "u", Lane: fmt.Sprint("crowd-", w.crowds)}
	}
	w.mu.Unlock()
	at := r.IntN(len(w.nodes))
	w.acts.Go(func() {
		l := w.nodes[at].now()
		if l == nil {
			return
		}
		_, err := l.queue.Enqueue(l.ctx, specs...)
		w.mu.Lock()
		for _, j := range jobs {
			j.accepted = err == nil
		}
		w.mu.Unlock()
		w.note("%d jobs of a lane at node %d: %v", n, at, err)
		w.refused("enqueue many", err)
	})
}

// enqueueKeyed is a user who wants a job in the place of another one.
func (w *world) enqueueKeyed(r *rand.Rand) {
	w.enqueueAs(r, pick(r, []string{"k1", "k1", "k2"}), pick(r, []store.KeyMode{store.Replace, store.Replace, store.Earliest, store.PreserveRunAt, store.Keep}))
}

func (w *world) enqueueAs(r *rand.Rand, key string, mode store.KeyMode) {
	at := r.IntN(len(w.nodes))
	l := w.nodes[at].now()
	if l == nil {
		return
	}
	w.mu.Lock()
	j := &job{Name: fmt.Sprint("j", len(w.jobs)+1), Takes: time.Duration(r.IntN(6)) * 400 * time.Millisecond, Fails: max(0, r.IntN(3)-1), keyed: &keyed{key: key, mode: mode, sent: time.Now()}}
	w.jobs[j.Name] = j
	w.mu.Unlock()
	payload, _ := json.Marshal(j)
	spec := store.JobSpec{Task: jobTask, Payload: payload, Owner: "u", Lane: "lane-0", Key: key, KeyMode: mode}
	if r.IntN(3) == 0 {
		spec.RunAt = time.Now().Add(time.Duration(r.Int64N(int64(4 * time.Second))))
	}
	w.acts.Go(func() {
		_, err := l.queue.Enqueue(l.ctx, spec)
		w.mu.Lock()
		if err == nil {
			j.keyed.told = time.Now()
		}
		w.mu.Unlock()
		w.note("job %s with key %s (%s) at node %d: %v", j.Name, key, mode, at, err)
		w.refused("enqueue", err)
	})
}

// lurk is a user who wants a job in the place of another one while that runs, or just when
// it ends.
func (w *world) lurk(r *rand.Rand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	which := r.IntN(2)
	w.lurking[which] = append(w.lurking[which], rand.New(rand.NewPCG(r.Uint64(), 13)))
}

// pounce lets those who lurk do what they want.
func (w *world) pounce(ends bool, key string) {
	which := 0
	if ends {
		which = 1
	}
	w.mu.Lock()
	list := w.lurking[which]
	w.lurking[which] = nil
	w.mu.Unlock()
	for _, r := range list {
		w.acts.Go(func() {
			pass(time.Duration(r.Int64N(int64(6 * time.Millisecond))))
			w.enqueueAs(r, key, pick(r, []store.KeyMode{store.Replace, store.Earliest, store.Keep, store.Keep}))
		})
	}
}

// replaced is the job that took the place of another one, when whoever begins that one
// must know: rows are looked at no longer than a second before their jobs begin. w.mu is
// held.
func (w *world) replaced(j *job, l *life) string {
	if j.keyed == nil || j.keyed.told.IsZero() || w.skew > 0 || l.hurtSince(j.began) {
		return ""
	}
	for name, other := range w.jobs {
		o := other.keyed
		if o != nil && other != j && o.key == j.keyed.key && o.mode == store.Replace && o.sent.After(j.keyed.told) && !o.told.IsZero() && j.began.Sub(o.told) > 1500*time.Millisecond {
			return name
		}
	}
	return ""
}

// cancelJob is a user who does not want a job any more.
func (w *world) cancelJob(r *rand.Rand) {
	rows := w.rows(`select id||'', payload||'' from jobs where task = $1 order by id`, jobTask)
	if len(rows) == 0 {
		return
	}
	row := pick(r, rows)
	var said job
	_ = json.Unmarshal([]byte(row[1]), &said)
	name := said.Name
	w.mu.Lock()
	for _, j := range w.jobs { // another one may have its row by then
		if j.Name == said.Name || j.keyed != nil {
			j.withdrawn = true
		}
	}
	keyed := w.jobs[name].keyed != nil
	w.mu.Unlock()
	err := w.do(r, "cancel "+name, func(ctx context.Context, l *life, tx *store.Tx) error {
		_, err := tx.CancelJob(ctx, nil, atoi(row[0]))
		tx.AfterCommit(func() { l.queue.Revoke(atoi(row[0])) })
		return err
	})
	if err == nil && !keyed {
		w.mu.Lock()
		w.jobs[name].cancelled = time.Now()
		w.mu.Unlock()
	}
}

// checkJobs holds that what was accepted is done.
func (w *world) checkJobs() {
	left := map[string]bool{}
	gaveUp := map[string]bool{}
	for _, row := range w.rows(`select payload||'', state||'' from jobs where task = $1`, jobTask) {
		var j job
		_ = json.Unmarshal([]byte(row[0]), &j)
		left[j.Name], gaveUp[j.Name] = true, row[1] == "1"
	}
	attempts := map[int64]int64{}
	for _, row := range w.rows(`select id||'', attempt||'' from job_history where task = $1 and state = 'succeeded'`, jobTask) {
		attempts[atoi(row[0])] = atoi(row[1])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, j := range w.jobs {
		if n := attempts[j.id]; !w.wounded && j.keyed == nil && (j.letter == nil || j.letter.asked == 0) && n != 0 && n != int64(j.runs) {
			w.failed = append(w.failed, fmt.Sprintf("job %s ran %d times, and the books say %d attempts", name, j.runs, n))
		}
		if j.keyed != nil && !j.withdrawn {
			if text := w.unheard(j); text != "" {
				w.failed = append(w.failed, text)
			}
		}
		if gaveUp[name] {
			if j.Tries == 0 || j.runs < j.Tries || j.done != nil && !j.done.hurtSince(j.doneAt) {
				w.failed = append(w.failed, fmt.Sprintf("job %s was given up after %d runs of %d, done: %v", name, j.runs, j.Tries, j.done != nil))
			}
			continue
		}
		if (j.accepted || j.letter != nil && j.letter.known) && j.done == nil && !j.withdrawn {
			w.failed = append(w.failed, fmt.Sprintf("job %s was accepted and is not done; it is still there: %v, runs: %d", name, left[name], j.runs))
		}
		if left[name] {
			w.failed = append(w.failed, fmt.Sprintf("job %s is left over; done: %v", name, j.done != nil))
		}
	}
}

// unheard is what is wrong if nothing came of a wish under a key: after it, it must
// have run itself, or one that may have come later. Which of two was the first is
// not known when they were asked for at the same time. w.mu is held.
func (w *world) unheard(j *job) string {
	k := j.keyed
	if k.told.IsZero() || j.done != nil {
		return ""
	}
	for _, other := range w.jobs {
		o := other.keyed
		if o == nil || o.key != k.key || other.done == nil {
			continue
		}
		switch {
		case k.mode == store.Keep && (w.skew > 0 || !o.doneBegan.Before(k.sent)):
			return "" // one was there that had not begun, which is all that it wants
		case k.mode != store.Keep && !o.doneBegan.Before(k.sent) && (o.told.IsZero() || !o.told.Before(k.sent)):
			return ""
		}
	}
	return fmt.Sprintf("job %s (%s of %s) was accepted, and neither it nor a later one ran", j.Name, k.mode, k.key)
}
