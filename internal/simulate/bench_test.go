package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/worker"
)

// benchTask is a task that programs of users serve.
const benchTask = "sim.bench"

// bench is what is known of it.
type bench struct {
	w    *world
	def  worker.Definition
	jobs map[string]*piece // by name; guarded by w.mu, as are the others
	hand map[*grip]bool    // leases that workers believe to have
	most int               // of a lane at once, by any definition there was
	out  []handed          // what was handed out so far
}

// handed is a job as it was given to a worker.
type handed struct {
	at   time.Time
	lane string
}

// piece is a job that somebody wants done by a program.
type piece struct {
	Name string

	id        int64
	last      *grip     // who was given it last
	withdrawn bool      // or somebody tried to
	doomed    bool      // a worker said that it fails for good
	failed    bool      // and was believed
	spent     int       // attempts at least
	rests     time.Time // until then it must not be handed out: it failed
	done      string
	doneAt    time.Time
}

// grip is a job in the hand of a worker.
type grip struct {
	p     *piece
	job   store.Job
	token string
	until time.Time
	said  store.Verdict // last; none: it said nothing
}

// none is what a worker says that says nothing.
const none store.Verdict = -1

func newBench(w *world, r *rand.Rand) *bench {
	b := &bench{w: w, def: worker.Usual(), jobs: map[string]*piece{}, hand: map[*grip]bool{}}
	b.def.Lease, b.def.MaxAttempts = pick(r, []time.Duration{3 * time.Second, 8 * time.Second}), pick(r, []int{3, 8})
	if r.IntN(3) == 0 {
		b.def.Rate = &store.Rate{Limit: 1 + r.IntN(3), Period: pick(r, []time.Duration{2 * time.Second, 5 * time.Second}), PerLane: r.IntN(2) == 0}
	}
	b.declare(pick(r, []int{1, 1, 2}))
	return b
}

func (b *bench) declare(perLane int) {
	b.w.mu.Lock()
	b.most = max(b.most, perLane)
	b.w.mu.Unlock()
	b.def.PerLane = perLane
	err := b.w.try(0, func(l *life) error {
		return l.db.Write(l.ctx, func(ctx context.Context, tx *store.Tx) error {
			_, _, err := l.workers.Declare(ctx, tx, benchTask, b.def, "u", nil, "tester")
			return err
		})
	})
	b.w.note("the task with lease %v and %d for each lane: %v", b.def.Lease, perLane, err)
	b.w.refused("declare", err)
}

func (b *bench) act(r *rand.Rand, what string) {
	switch what {
	case "wish":
		b.wish(r)
	case "hand":
		b.employ(r)
	case "change task":
		b.declare(pick(r, []int{1, 2}))
	case "withdraw":
		b.withdraw(r)
	}
}

// wish is a user who wants some jobs done.
func (b *bench) wish(r *rand.Rand) {
	for i := range 1 + r.IntN(3) {
		b.w.mu.Lock()
		p := &piece{Name: fmt.Sprint("p", len(b.jobs)+1)}
		b.jobs[p.Name] = p
		b.w.mu.Unlock()
		payload, _ := json.Marshal(p)
		spec := store.JobSpec{Task: benchTask, Payload: payload, Owner: "u", Lane: pick(r, []string{"", "bench-1", "bench-1", "bench-2"}), Priority: r.IntN(2)}
		if r.IntN(4) == 0 {
			spec.RunAt = time.Now().Add(time.Duration(r.Int64N(int64(10 * time.Second))))
		}
		at := r.IntN(len(b.w.nodes))
		b.w.acts.Go(func() {
			pass(time.Duration(i) * 5077) // no two at the same instant
			l := b.w.nodes[at].now()
			if l == nil {
				return
			}
			served, err := l.workers.Fill(l.ctx, &spec)
			if err == nil && !served {
				b.w.fail("node %d does not know the task", at)
				return
			}
			if err == nil {
				var jobs []store.Job
				if jobs, err = l.queue.Enqueue(l.ctx, spec); err == nil {
					b.w.mu.Lock()
					p.id = jobs[0].ID
					b.w.mu.Unlock()
				}
			}
			b.w.note("piece %s of %q at node %d: %v", p.Name, spec.Lane, at, err)
			b.w.refused("piece", err)
		})
	}
}

func (b *bench) withdraw(r *rand.Rand) {
	rows := b.w.rows(`select id||'', payload||'' from jobs where task = $1 order by id`, benchTask)
	if len(rows) == 0 {
		return
	}
	row := pick(r, rows)
	var said piece
	_ = json.Unmarshal([]byte(row[1]), &said)
	b.w.mu.Lock()
	b.jobs[said.Name].withdrawn = true
	b.w.mu.Unlock()
	_ = b.w.do(r, "withdraw "+said.Name, func(ctx context.Context, _ *life, tx *store.Tx) error {
		_, err := tx.CancelJob(ctx, nil, atoi(row[0]))
		return err
	})
}

// employ is a worker that comes, claims for a while, does what it got and goes.
func (b *bench) employ(r *rand.Rand) {
	name := fmt.Sprint("w", r.IntN(1000))
	at, limit, wait := r.IntN(len(b.w.nodes)), 1+r.IntN(3), pick(r, []time.Duration{0, 2 * time.Second, 20 * time.Second})
	own := rand.New(rand.NewPCG(r.Uint64(), 11))
	b.w.acts.Go(func() {
		list := b.claim(at, name, limit, wait)
		for _, g := range list {
			b.work(own, g)
		}
	})
}

// claim asks a node for work, once.
func (b *bench) claim(at int, name string, limit int, wait time.Duration) (list []*grip) {
	l := b.w.nodes[at].now()
	if l == nil {
		return nil
	}
	began, halted := time.Now(), b.w.haltedFor()
	got, err := l.workers.Claim(l.ctx, worker.Request{Task: benchTask, Worker: name, Limit: limit, Wait: wait})
	if l.isDead() { // it answers nobody
		return nil
	}
	if err != nil {
		b.w.note("worker %s at node %d: %v", name, at, err)
		b.w.refused("claim", err)
		return nil
	}
	if still := b.w.haltedFor(); len(got) > 0 && halted > 0 && still >= time.Since(began)+halted {
		b.w.fail("worker %s was given jobs although everything is halted", name)
	}
	for _, j := range got {
		list = append(list, b.take(name, j, began))
	}
	return list
}

// take holds what must be true of a job that a worker is given: it is not done, nobody
// else has it for longer, and no more of its lane are in hand than the task allows.
func (b *bench) take(name string, j store.Claimed, began time.Time) *grip {
	w := b.w
	var said piece
	_ = json.Unmarshal(j.Payload, &said)
	w.note("worker %s has %s, attempt %d", name, said.Name, j.Attempt+1)
	w.mu.Lock()
	p := b.jobs[said.Name]
	p.id = j.ID
	g := &grip{p: p, job: j.Job, token: j.Token, until: j.Until, said: none}
	wrong := b.wrongHand(p, g)
	p.last = g
	again := p.done != "" && p.doneAt.Before(began)
	beside, early := 0, false
	for other := range b.hand {
		early = early || other.p == p && other.until.After(time.Now()) && w.skew == 0
		if other.job.Lane == j.Lane && j.Lane != "" && other.until.After(time.Now()) {
			beside++
		}
	}
	b.hand[g] = true
	crowded := beside >= b.most && w.skew == 0
	w.mu.Unlock()
	if wrong != "" {
		w.fail("%s %s", said.Name, wrong)
	}
	if again {
		w.fail("%s is handed out, and it was done before", said.Name)
	}
	if early {
		w.fail("%s is handed out while another worker has it", said.Name)
	}
	if crowded {
		w.fail("worker %s has %s of lane %s, of which %d are in hand", name, said.Name, j.Lane, beside)
	}
	return g
}

// wrongHand is what is wrong with a job that is handed out: it is too early, it failed
// for good or has no attempt left, its attempts are not counted, or there are more than
// the rate of the task allows. w.mu is held.
func (b *bench) wrongHand(p *piece, g *grip) string {
	at := g.until.Add(-b.def.Lease)
	b.out = append(b.out, handed{at, g.job.Lane})
	if last := p.last; last != nil && last.said != store.Snooze {
		p.spent++
	}
	if b.w.skew > 0 {
		return ""
	}
	switch most := g.job.MaxAttempts; {
	case at.Before(g.job.RunAt):
		return fmt.Sprintf("is handed out %v before its time", g.job.RunAt.Sub(at))
	case at.Before(p.rests):
		return "is handed out at once after it failed"
	case p.failed:
		return "is handed out, and it failed for good"
	case most > 0 && g.job.Attempt >= most:
		return fmt.Sprintf("is handed out after %d attempts, and may have %d", g.job.Attempt, most)
	case g.job.Attempt < p.spent || !b.w.wounded && g.job.Attempt > p.spent:
		return fmt.Sprintf("is handed out after %d attempts, and %d are counted", p.spent, g.job.Attempt)
	case b.def.Rate == nil:
		return ""
	}
	n := 0
	for _, h := range b.out {
		if h.at.After(at.Add(-b.def.Rate.Period)) && !h.at.After(at) && (!b.def.Rate.PerLane || h.lane == g.job.Lane) {
			n++
		}
	}
	if n > b.def.Rate.Limit {
		return fmt.Sprintf("is the %dth that is handed out within %v, and %d may be", n, b.def.Rate.Period, b.def.Rate.Limit)
	}
	return ""
}

// work is what a worker does with a job, also when it does not have it any more.
func (b *bench) work(r *rand.Rand, g *grip) {
	lease := b.def.Lease
	switch pick(r, []string{"", "", "", "fail", "give up", "snooze", "vanish", "zombie", "zombie", "extend", "twice"}) {
	case "vanish":
		return
	case "zombie":
		pass(lease + time.Duration(r.Int64N(int64(2*lease))))
		b.end(r, g, store.Done)
	case "fail":
		pass(time.Duration(r.Int64N(int64(lease))))
		b.end(r, g, store.Retry)
	case "give up":
		b.end(r, g, store.Fail)
	case "snooze":
		b.end(r, g, store.Snooze)
	case "extend":
		pass(lease / 2)
		b.extend(r, g)
		pass(lease * 3 / 4)
		b.end(r, g, store.Done)
	case "twice": // it did not hear, or does not know better
		b.end(r, g, store.Done)
		b.end(r, g, store.Done)
	default:
		pass(time.Duration(r.Int64N(int64(lease))))
		b.end(r, g, store.Done)
	}
}

func (b *bench) extend(r *rand.Rand, g *grip) {
	_ = b.w.do(r, "extend "+g.p.Name, func(ctx context.Context, l *life, tx *store.Tx) error {
		out, until, err := l.workers.Extend(ctx, tx, benchTask, nil, []store.Signed{{ID: g.job.ID, Token: g.token}})
		if err == nil && out[0].Code == "" {
			tx.AfterCommit(func() {
				b.w.mu.Lock()
				g.until = until
				b.w.mu.Unlock()
			})
		}
		return err
	})
}

// end says how a job ended, and holds that one worker alone can say that it is done.
func (b *bench) end(r *rand.Rand, g *grip, v store.Verdict) {
	w := b.w
	w.mu.Lock()
	delete(b.hand, g)
	lost := g.p.last != g && g.p.done != g.token
	known := g.p.done == g.token
	g.said = v
	if v == store.Fail {
		g.p.doomed = true
	}
	w.mu.Unlock()
	code := ""
	err := w.do(r, fmt.Sprintf("%v of %s", v, g.p.Name), func(ctx context.Context, l *life, tx *store.Tx) error {
		out, err := l.workers.End(ctx, tx, benchTask, nil, []store.Ending{{ID: g.job.ID, Token: g.token, Verdict: v}})
		if err == nil {
			code = out[0].Code
		}
		return err
	})
	if err == nil && code == "" && lost {
		w.fail("%s is ended by a worker that had lost it to another one", g.p.Name)
	}
	if err == nil && code != "" { // it counts as if it had said nothing
		w.mu.Lock()
		g.said = none
		w.mu.Unlock()
	}
	if err == nil && known && v == store.Done && code != "" && !w.pruned {
		w.fail("%s is ended once more by who did it, and the answer is %s", g.p.Name, code)
	}
	if err == nil && code == "" {
		w.mu.Lock()
		g.p.failed = g.p.failed || v == store.Fail
		if v == store.Retry {
			g.p.rests = time.Now().Add(700 * time.Millisecond) // the first wait is a second, less a quarter
		}
		w.mu.Unlock()
	}
	if err != nil || v != store.Done || code != "" {
		return
	}
	w.mu.Lock()
	twice := g.p.done != "" && g.p.done != g.token
	g.p.done, g.p.doneAt = g.token, time.Now()
	w.mu.Unlock()
	if twice {
		w.fail("%s was done by two workers, and both were believed", g.p.Name)
	}
}

// heal is an honest worker; it reports whether there is nothing left to do.
func (b *bench) heal(r *rand.Rand, round int) bool {
	for _, g := range b.claim(round%len(b.w.nodes), "honest", 10, 0) {
		b.end(r, g, store.Done)
	}
	return len(b.w.rows(`select id||'' from jobs where task = $1 and state <> 1 limit 1`, benchTask)) == 0 && len(b.w.rows(`select job_id||'' from job_leases limit 1`)) == 0
}

// check holds that everything that was accepted came to an end, and that the books
// say which.
func (b *bench) check() {
	books, results, left := map[string]string{}, map[string]string{}, map[string]int64{}
	for _, row := range b.w.rows(`select id||'', state||'' from job_history where task = $1`, benchTask) {
		books[row[0]] = row[1]
	}
	for _, row := range b.w.rows(`select job_id||'', token||'' from job_results`) {
		results[row[0]] = row[1]
	}
	for _, row := range b.w.rows(`select id||'', attempt||'' from jobs where task = $1`, benchTask) {
		left[row[0]] = atoi(row[1])
	}
	for _, p := range b.jobs {
		id := fmt.Sprint(p.id)
		attempts, there := left[id]
		switch {
		case p.id == 0: // nobody knows whether it was there
		case b.w.pruned && !there && books[id] == "":
		case p.done != "" && (books[id] != "succeeded" || results[id] != p.done):
			b.w.fail("%s is done, and the books say %q, by the token of its worker: %v", p.Name, books[id], results[id] == p.done)
		case p.done != "" && there:
			b.w.fail("%s is done, and left over", p.Name)
		case there && !p.doomed && attempts < int64(b.def.MaxAttempts):
			b.w.fail("%s failed after %d attempts, and nobody gave it up", p.Name, attempts)
		case !there && books[id] != "succeeded" && !(p.withdrawn && books[id] == "cancelled"):
			b.w.fail("%s was accepted and is gone; the books say %q", p.Name, books[id])
		}
	}
}
