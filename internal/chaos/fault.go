//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest/proxy"
)

// fault is something that happens to nodes or to their database.
type fault struct {
	name string
	// bound is how soon lanes must run again at p99; zero: no promise is made.
	bound time.Duration
	// whole: it is about the database, which all lanes need.
	whole bool
	// do does it to a node and undoes it. Lanes are measured from what begun says.
	do func(ctx context.Context, r *run, n *node, begun func()) error
}

// settleWithin is how long after a fault has healed every lane must run.
const settleWithin = 30 * time.Second

func faults() []fault {
	return []fault{
		{name: "kill", bound: 6 * time.Second, do: killed},
		{name: "kill and restart", bound: time.Second, do: restarted},
		{name: "freeze", bound: 10 * time.Second, do: frozen},
		{name: "stop and restart", do: rolled},
		{name: "stall", do: cutOff((*proxy.Proxy).Stall)},
		{name: "refuse", do: cutOff(func(p *proxy.Proxy) { p.Refuse(); p.Cut() })},
		{name: "half-open", do: halfOpen},
		{name: "cut", do: func(_ context.Context, _ *run, n *node, begun func()) error {
			begun()
			n.eachProxy((*proxy.Proxy).Cut)
			return nil
		}},
		{name: "lost answers", do: lostAnswers},
		{name: "delay", do: delayed},
		{name: "backends terminated", whole: true, do: terminated},
		{name: "postgres restart", bound: 10 * time.Second, whole: true, do: crashed},
		{name: "failover", bound: 10 * time.Second, whole: true, do: failedOver},
		{name: "failover, silent", bound: 10 * time.Second, whole: true, do: vanished},
	}
}

func killed(ctx context.Context, r *run, n *node, begun func()) error {
	defer r.open("kill")()
	begun()
	n.kill()
	r.awaitRecovery(ctx)
	if err := n.start(); err != nil {
		return err
	}
	return n.awaitReady(ctx)
}

func restarted(ctx context.Context, r *run, n *node, begun func()) error {
	defer r.open("kill")()
	begun()
	n.kill()
	if err := n.start(); err != nil {
		return err
	}
	return n.awaitReady(ctx)
}

// frozen stops a node for longer than its lease, and lets it go on.
func frozen(ctx context.Context, r *run, n *node, begun func()) error {
	defer r.open("freeze")()
	begun()
	n.signal(syscall.SIGSTOP)
	pause(ctx, 12*time.Second+r.chance(8*time.Second))
	n.signal(syscall.SIGCONT)
	return n.awaitReady(ctx)
}

// rolled restarts all nodes in order, one by one.
func rolled(ctx context.Context, r *run, _ *node, begun func()) error {
	begun()
	for _, n := range r.nodes {
		if !n.stop() {
			r.find("%s does not stop", n.name)
		}
		if err := n.start(); err != nil {
			return err
		}
		if err := n.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

func cutOff(how func(*proxy.Proxy)) func(context.Context, *run, *node, func()) error {
	return func(ctx context.Context, r *run, n *node, begun func()) error {
		defer r.open("cut off")()
		begun()
		n.eachProxy(how)
		pause(ctx, time.Second+r.chance(12*time.Second))
		n.eachProxy((*proxy.Proxy).Resume)
		return n.awaitReady(ctx)
	}
}

func halfOpen(ctx context.Context, r *run, n *node, begun func()) error {
	defer r.open("cut off")()
	begun()
	n.eachProxy((*proxy.Proxy).HalfOpen)
	pause(ctx, 3*time.Second)
	return n.awaitReady(ctx)
}

func lostAnswers(ctx context.Context, r *run, n *node, begun func()) error {
	begun()
	for range 4 {
		tag := []string{"COMMIT", "COMMIT", "INSERT", "UPDATE", "DELETE", "SELECT"}[r.rng.IntN(6)]
		n.eachProxy(func(p *proxy.Proxy) { p.LoseAnswers(tag, 1+r.rng.IntN(3)) })
		pause(ctx, r.chance(time.Second))
	}
	n.eachProxy((*proxy.Proxy).KeepAnswers)
	return nil
}

func delayed(ctx context.Context, r *run, n *node, begun func()) error {
	begun()
	d := 20*time.Millisecond + r.chance(400*time.Millisecond)
	n.eachProxy(func(p *proxy.Proxy) { p.Delay(d) })
	pause(ctx, 2*time.Second+r.chance(4*time.Second))
	n.eachProxy((*proxy.Proxy).Resume)
	return nil
}

func terminated(ctx context.Context, r *run, _ *node, begun func()) error {
	begun()
	return r.db.exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pawl' and pid <> pg_backend_pid()`)
}

func crashed(ctx context.Context, r *run, _ *node, begun func()) error {
	r.db.mu.Lock()
	defer r.db.mu.Unlock()
	p := r.db.servers[r.db.primary]
	if err := p.Kill(ctx); err != nil {
		return err
	}
	pause(ctx, r.chance(1500*time.Millisecond))
	defer begun() // how long the server takes to recover is its own matter
	return p.Start(ctx)
}

func failedOver(ctx context.Context, r *run, _ *node, begun func()) error {
	return r.failOver(ctx, begun, false)
}

// vanished: the machine of the primary is gone. Nobody refuses anything there.
func vanished(ctx context.Context, r *run, _ *node, begun func()) error {
	return r.failOver(ctx, begun, true)
}

// failOver promotes the standby, and makes a standby of the old primary once all
// lanes run.
func (r *run) failOver(ctx context.Context, begun func(), silent bool) error {
	r.db.mu.Lock()
	defer r.db.mu.Unlock()
	old, next := r.db.primary, 1-r.db.primary
	silence := func(how func(*proxy.Proxy)) {
		for _, n := range r.nodes {
			if silent {
				how(n.proxies[old])
			}
		}
	}
	begun()
	silence((*proxy.Proxy).HalfOpen)
	if err := r.db.servers[old].Kill(ctx); err != nil {
		return err
	}
	silence((*proxy.Proxy).Mute) // not before: a server that stops waits for who has not introduced himself
	if err := r.db.servers[next].Promote(ctx); err != nil {
		return err
	}
	r.db.primary = next
	r.awaitRecovery(ctx)
	for _, n := range r.nodes {
		n.proxies[old].Cut()
		n.proxies[old].Resume()
	}
	return r.db.servers[old].Follow(ctx, r.db.servers[next])
}

func (r *run) chance(most time.Duration) time.Duration {
	return time.Duration(r.rng.Int64N(int64(most)))
}

// storm does one fault after the other, now and then two at once, until the time
// is up.
func (r *run) storm(ctx context.Context, kinds []fault, until time.Time) {
	for ctx.Err() == nil && time.Now().Before(until) {
		f, n := kinds[r.rng.IntN(len(kinds))], r.nodes[r.rng.IntN(len(r.nodes))]
		if r.rng.IntN(5) == 0 && len(kinds) > 1 {
			r.together(ctx, f, n, kinds)
		} else {
			r.alone(ctx, f, n)
		}
		pause(ctx, 500*time.Millisecond+r.chance(1500*time.Millisecond))
	}
}

// alone does one fault and measures how soon lanes run again.
func (r *run) alone(ctx context.Context, f fault, n *node) {
	victims := r.probes
	if !f.whole {
		var err error
		if victims, err = r.lanesOf(ctx, n); err != nil {
			r.report.trouble("look for the lanes of %s: %v", n.name, err)
			return
		}
	}
	var at time.Time
	r.report.say("%s: %s", f.name, n.name)
	r.report.count(f.name)
	err := f.do(ctx, r, n, func() { at = time.Now() })
	if err != nil && ctx.Err() == nil {
		r.find("after %s: %v", f.name, err)
	}
	if !r.settle(ctx, f.name) {
		return
	}
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	for _, p := range victims {
		r.report.measured(f, p.recovered(at))
	}
	for _, p := range r.probes {
		p.late = p.late[:0]
	}
}

// together does another fault to another node at the same time. What then is how
// late says nothing; that all is well afterwards does.
func (r *run) together(ctx context.Context, f fault, n *node, kinds []fault) {
	others := slices.DeleteFunc(slices.Clone(r.nodes), func(o *node) bool { return o == n })
	g := kinds[r.rng.IntN(len(kinds))]
	if len(others) == 0 || f.name == "stop and restart" || g.name == "stop and restart" {
		r.alone(ctx, f, n)
		return
	}
	o := others[r.rng.IntN(len(others))]
	r.report.say("%s: %s, and %s: %s", f.name, n.name, g.name, o.name)
	done := make(chan error, 1)
	go func() { done <- g.do(ctx, r, o, func() {}) }()
	pause(ctx, r.chance(2*time.Second))
	err := f.do(ctx, r, n, func() {})
	for _, err := range []error{err, <-done} {
		if err != nil && ctx.Err() == nil {
			r.find("after %s and %s: %v", f.name, g.name, err)
		}
	}
	r.report.count(f.name)
	r.report.count(g.name)
	r.settle(ctx, f.name+" and "+g.name)
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	for _, p := range r.probes {
		p.late = p.late[:0]
	}
}

// awaitRecovery waits until what was just done has made lanes late, and then
// until none is.
func (r *run) awaitRecovery(ctx context.Context) {
	pause(ctx, probeEvery+2*lateAfter)
	r.awaitLanes(ctx, 25*time.Second)
}

// lateAfter is when a job of a probing lane is late.
const lateAfter = 700 * time.Millisecond

// awaitLanes waits until no probing lane is late, and reports whether that came.
func (r *run) awaitLanes(ctx context.Context, atMost time.Duration) bool {
	for deadline := time.Now().Add(atMost); time.Now().Before(deadline); {
		if !pause(ctx, 100*time.Millisecond) {
			return true
		}
		if len(r.lateLanes(lateAfter)) == 0 {
			return true
		}
	}
	return false
}

func (r *run) lateLanes(by time.Duration) []string {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	var names []string
	for _, p := range r.probes {
		if late := p.overdue(time.Now()); late > by {
			names = append(names, fmt.Sprintf("%s by %s", p.name, late.Round(time.Millisecond)))
		}
	}
	return names
}

// settle waits until all is well again. It must be, in time.
func (r *run) settle(ctx context.Context, after string) bool {
	for _, n := range r.nodes {
		if n.ended() {
			r.find("after %s: %s ended by itself", after, n.name)
			n.kill()
			_ = n.start()
		}
	}
	pause(ctx, probeEvery+2*lateAfter) // what is late because of it is late by now
	if r.awaitLanes(ctx, settleWithin) {
		return true
	}
	r.find("after %s: lanes are stuck: %v", after, r.lateLanes(lateAfter))
	return false
}
