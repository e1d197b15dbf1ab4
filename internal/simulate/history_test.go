package simulate

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// live lives a history and returns its world.
func live(p *plan, sim *store.Simulation, spool string) (*world, error) {
	ctx := context.Background()
	buckets := 0
	if p.shared {
		buckets = store.SimulatedBuckets
	}
	// Ids grow with time, and with those of the histories before: each has a day
	// of its own, which only its seed decides.
	pass(time.Until(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)) + time.Duration(p.seed%2_000_000)*time.Hour)
	if err := sim.Begin(ctx, buckets); err != nil {
		return nil, err
	}
	r := dice(p.seed, "world", 0)
	pass(20*time.Second + time.Duration(r.Int64N(int64(30*time.Second)))) // most histories see the turn of a minute
	w := &world{
		plan: p, sim: sim, observer: sim.Open(store.SimulatedProcess{Number: 999}), spool: spool, slow: 400_000, began: time.Now(), fault: time.Now(),
		jobs: map[string]*job{}, working: map[string][]turn{}, counts: map[string]int{},
	}
	if p.shared {
		w.slow = 3_000_000
	}
	w.logs = logTo
	w.desk, w.upstream, w.graph = newDesk(w), newUpstream(w), newGraph(w)
	for i := range p.nodes {
		w.nodes = append(w.nodes, &node{w: w, index: i, id: []string{"a", "b", "c"}[i]})
	}
	w.unfold(r)
	w.lasted = time.Since(w.began)
	w.close()
	return w, sim.End(ctx)
}

// unfold is the history itself.
func (w *world) unfold(r *rand.Rand) {
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic: %v\n%s", p, debug.Stack())
		}
	}()
	for _, n := range w.nodes {
		n.start()
	}
	w.furnish(r)
	for _, s := range w.plan.steps {
		pass(s.after)
		w.step(s)
		w.checkAlways()
		if !w.ok() {
			return
		}
	}
	if w.isHalted() { // it is lifted soon, and has to be heard of before
		pass(6 * time.Second)
		w.checkAlways()
	}
	w.heal(r)
	if w.ok() {
		w.checkEnd()
	}
}

// furnish makes the lanes.
func (w *world) furnish(r *rand.Rand) {
	if w.plan.has("workflow") {
		w.shop = newShop(w, r)
		w.shop.open(r)
	}
	if w.plan.has("source") {
		w.feed = newFeed(w, r)
		w.feed.apply(0, 30)
	}
	if w.plan.has("schedule") {
		openCalendar(w, r)
	}
	if w.plan.has("worker") {
		w.bench = newBench(w, r)
	}
	if w.plan.has("hook") {
		w.inbox = newInbox(w)
	}
}

// close ends everything.
func (w *world) close() {
	w.closing.Store(true)
	w.acts.Wait()
	for _, n := range w.nodes {
		if l := n.now(); l != nil {
			l.kill()
		}
	}
	w.upstream.close()
	pass(3 * time.Minute)
}

// step is something that happens.
func (w *world) step(s step) {
	r := rand.New(rand.NewPCG(s.chance, 7))
	w.note("-- %s", s.what)
	switch {
	case slices.Contains(faults, s.what) || slices.Contains(sharedFaults, s.what):
		w.mishap(r, s.what)
	case s.what == "retention":
		w.retain(r)
	case slices.Contains(everywhere, s.what):
		w.switchAll(r, s.what)
	case slices.Contains(stepsOf["worker"], s.what):
		w.bench.act(r, s.what)
	case slices.Contains(stepsOf["hook"], s.what):
		w.inbox.act(r, s.what)
	case s.what == "enqueue":
		w.enqueue(r, 0)
	case s.what == "enqueue many":
		w.enqueueMany(r)
	case s.what == "enqueue later":
		w.enqueue(r, 30*time.Second)
	case s.what == "enqueue with key":
		w.enqueueKeyed(r)
	case s.what == "enqueue at the end":
		w.lurk(r)
	case s.what == "cancel job":
		w.cancelJob(r)
	case slices.Contains(stepsOf["workflow"], s.what):
		w.shop.act(r, s.what)
	case slices.Contains(stepsOf["source"], s.what):
		w.feed.act(r, s.what)
	case slices.Contains(stepsOf["schedule"], s.what):
		w.calendar.act(r, s.what)
	}
}

// mishap is a fault of a node or of its connections.
func (w *world) mishap(r *rand.Rand, what string) {
	n := pick(r, w.nodes)
	l := n.now()
	if l == nil {
		return
	}
	seconds := func(list ...float64) time.Duration { return time.Duration(pick(r, list) * float64(time.Second)) }
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaves {
		return
	}
	l.own = l.own || what != "standstill" && what != "mute" && what != "clock"
	switch what {
	case "crash":
		t := &trap{what: pick(r, []string{"write", "committed", "committed"}), at: pick(r, aims), left: 1 + r.IntN(pick(r, []int{1, 3, 8})), again: seconds(0, 0.01, 0.2, 1, 4, 15)}
		if t.at != 0 {
			t.left = 1 + r.IntN(2)
		}
		l.trap = t
		l.blame(now.Add(time.Hour))
		w.hurt(what, now)
	case "stop":
		w.hurt(what, now)
		again := seconds(0, 0.1, 2, 12)
		l.leaves = true
		w.acts.Go(func() { l.stop(); w.reborn(n, again) })
	case "lose answers":
		l.lose += 1 + r.IntN(3)
		l.loseAt = pick(r, aims)
		l.blame(now.Add(time.Minute))
		w.hurt(what, now)
	case "full disk":
		l.full += 1 + r.IntN(5)
		l.blame(now.Add(time.Minute))
		w.hurt(what, now)
	case "slow disk":
		l.slow = now.Add(seconds(1, 4, 12))
		l.blame(l.slow.Add(lease))
		w.hurt(what, l.slow.Add(5*time.Second))
	case "clock":
		w.misset(r, n)
	case "refuse":
		d := seconds(0.5, 3, 8, 13)
		l.away = later(l.away, now.Add(d))
		l.blame(l.away)
		w.hurt(what, l.away)
	case "hang":
		d := seconds(1, 4, 6, 12, 20)
		l.hang = later(l.hang, now.Add(d))
		l.blame(l.hang.Add(lease))
		w.hurt(what, l.hang.Add(5*time.Second))
	case "mute":
		l.mute += 1 + r.IntN(4)
		w.count(what)
	case "standstill":
		d := seconds(1, 4, 6, 12)
		w.mu.Lock()
		w.still = later(w.still, now.Add(d))
		w.mu.Unlock()
		w.forAll(l, func(other *life) {
			other.hang = later(other.hang, now.Add(d+time.Duration(r.Int64N(int64(time.Second))))) // some hear of it sooner
			other.blame(other.hang.Add(lease))
		})
		w.hurt(what, now.Add(d+6*time.Second))
	case "outage":
		d := seconds(1, 6, 12)
		w.mu.Lock()
		w.out = later(w.out, now.Add(d))
		w.mu.Unlock()
		w.forAll(l, func(other *life) {
			other.away = later(other.away, now.Add(d))
			other.blame(other.away)
		})
		w.hurt(what, now.Add(d))
	case "freeze":
		d := seconds(0.5, 2, 3.4, 4, 5, 6, 11, 25)
		if r.IntN(2) == 0 { // about when others take it for dead
			d = lease - 200*time.Millisecond + time.Duration(r.Int64N(int64(lease/2)))
		}
		l.thaw = now.Add(d)
		l.blame(l.thaw.Add(lease))
		w.hurt(what, l.thaw)
	case "stall":
		l.stall = &trap{what: pick(r, []string{"write", "committed"}), at: pick(r, aims), left: 1 + r.IntN(2), again: seconds(1, 2, 3.6, 4.9, 5.4, 6)}
		l.blame(now.Add(time.Hour))
		w.hurt(what, now)
	case "cut link":
		w.hurt(what, now)
		w.acts.Go(l.db.Cut)
	}
}

// forAll lets something happen to every process. The mu of one is held.
func (w *world) forAll(held *life, do func(l *life)) {
	for _, l := range w.alive() {
		if l == held {
			do(l)
			continue
		}
		l.mu.Lock()
		do(l)
		l.mu.Unlock()
	}
}

// later is the later of two instants: what ends one fault does not end another.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// heal makes everything well: faults end, nodes are there, the outside works,
// and people answer truly until there is nothing left.
func (w *world) heal(r *rand.Rand) {
	w.note("-- all is made well")
	w.mu.Lock()
	over := w.fault
	w.mu.Unlock()
	for _, n := range w.nodes {
		if l := n.now(); l != nil {
			l.mu.Lock()
			l.trap, l.stall, l.lose, l.full, l.mute = nil, nil, 0, 0, 0
			l.mu.Unlock()
		}
	}
	w.setRight()
	pass(time.Until(over)) // whatever stands still or hangs goes on
	w.acts.Wait()          // whoever is to be born is
	w.liftAll()
	w.mu.Lock()
	w.fault = time.Now()
	w.healing = true
	w.mu.Unlock()
	for round := 0; ; round++ {
		quiet := true
		for _, lane := range w.lanes() {
			if !lane.heal(r, round) {
				quiet = false
			}
		}
		if !w.jobsQuiet() || w.troubled() != "" {
			quiet = false
		}
		if quiet && (!w.plan.shared || time.Since(w.fault) > 2*lease+5*time.Second || w.settled()) {
			return
		}
		pass(min(time.Duration(round+1)*500*time.Millisecond, 10*time.Second))
		w.checkAlways()
		if !w.ok() {
			return
		}
		if round > 90 {
			for _, r := range w.rows(`select kind||'', handler||'', phase||'', status||'', attempt||'', created_at||'', coalesce(error_message, '')||'' from runs where kind = 'workflow' order by id desc limit 4`) {
				w.note("a run: %v", r)
			}
			for _, j := range w.rows(`select task||'', run_at||'', coalesce(last_error, '')||'' from jobs`) {
				w.note("a job: %v", j)
			}
			for _, e := range w.rows(`select topic||'', message_id||'', status||'', coalesce(reserved_by, '')||'' from events where status <> 'consumed'`) {
				w.note("an event: %v", e)
			}
			w.fail("it does not get well: %s", w.troubled())
			return
		}
	}
}

// lanes are what there is beside the jobs of users. The first feeds those behind
// it, and is quiet before them.
func (w *world) lanes() (list []interface {
	heal(r *rand.Rand, round int) bool
	check()
}) {
	if w.feed != nil {
		list = append(list, w.feed)
	}
	if w.inbox != nil {
		list = append(list, w.inbox)
	}
	if w.shop != nil {
		list = append(list, w.shop)
	}
	if w.calendar != nil {
		list = append(list, w.calendar)
	}
	if w.bench != nil {
		list = append(list, w.bench)
	}
	return list
}

// jobsQuiet reports whether the jobs of users are done.
func (w *world) jobsQuiet() bool {
	return len(w.rows(`select id||'' from jobs where task = $1 and state <> 1 limit 1`, jobTask)) == 0
}
