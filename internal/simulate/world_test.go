package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// epoch is where the clock of a bubble begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// crowd is a sync.WaitGroup to which somebody may be added while others wait.
type crowd struct {
	mu   sync.Mutex
	left sync.Cond // of mu
	n    int       // guarded by mu
}

func (c *crowd) Go(f func()) {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
	go func() {
		defer func() {
			c.mu.Lock()
			c.n--
			c.mu.Unlock()
			c.left.Broadcast()
		}()
		f()
	}()
}

func (c *crowd) Wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left.L = &c.mu
	for c.n > 0 {
		c.left.Wait()
	}
}

// world is one history that is lived: the nodes, everything outside of them, and
// what is known to be true.
type world struct {
	plan     *plan
	sim      *store.Simulation
	observer *store.DB // sees rows at no cost of time
	nodes    []*node
	logs     io.Writer // what nodes log; nil: nowhere
	spool    string
	slow     int64 // how long an answer of the database takes at most, in ns

	desk     *desk
	upstream *upstream
	graph    *graph

	steps   atomic.Int64 // exchanges with the database
	closing atomic.Bool
	acts    crowd // of people and machines that go on by themselves

	mu       sync.Mutex
	failed   []string         // what is not as it must be; guarded by mu
	story    []string         // guarded by mu
	began    time.Time        // of the history
	lasted   time.Duration    // until it was over
	fault    time.Time        // when the last fault ended, or will; guarded by mu
	readers  lane.Kinds       // who answers people; nil until somebody asks
	touched  []time.Time      // when people did something; guarded by mu
	lurking  [2][]*rand.Rand  // users who wait until a job runs, or ends; guarded by mu
	beats    map[string]int64 // of nodes, when that was looked at last
	beatsAt  time.Time
	still    time.Time         // until then the database stands still for all; guarded by mu
	out      time.Time         // until then it refuses all; guarded by mu
	looks    int               // how often what must always be true was held
	halter   *life             // who halted everything last; guarded by mu
	crowds   int               // guarded by mu
	jobs     map[string]*job   // by name; guarded by mu
	working  map[string][]turn // by lane: what runs; guarded by mu
	counts   map[string]int    // faults by kind; guarded by mu
	wounded  bool              // there was a fault; guarded by mu
	healing  bool
	halted   time.Time     // since when everything is known to be halted; guarded by mu
	halts    bool          // there was a halt; guarded by mu
	pruned   bool          // something may have been removed; guarded by mu
	skew     time.Duration // by how much clocks were wrong at most; guarded by mu
	bench    *bench
	inbox    *inbox
	shop     *shop
	feed     *feed
	calendar *calendar
}

// turn is a job that runs somewhere.
type turn struct {
	l     *life
	since time.Time
}

// note is a line of the story.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, fmt.Sprintf("%9.4fs ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// fail notes that something is not as it must be.
func (w *world) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.note("WRONG: %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, text)
}

func (w *world) ok() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.failed) == 0
}

// hurt notes a fault that ends at an instant.
func (w *world) hurt(what string, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
	w.wounded = true
	if until.After(w.fault) {
		w.fault = until
	}
}

// count notes a fault that excuses nothing.
func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// reborn lets the next process of a node begin.
func (w *world) reborn(n *node, after time.Duration) {
	w.hurt("death", time.Now().Add(max(after, 0)))
	n.mu.Lock()
	due := n.due
	n.due = true
	n.mu.Unlock()
	if due {
		return
	}
	w.acts.Go(func() {
		pass(after)
		n.mu.Lock()
		n.due = false
		n.mu.Unlock()
		if !w.closing.Load() {
			n.start()
		}
	})
}

// read sees rows as they are.
func (w *world) read(fn func(ctx context.Context, tx *store.Tx) error) {
	if err := w.observer.Read(context.Background(), fn); err != nil {
		w.fail("the observer cannot read: %v", err)
	}
}

// rows reads texts.
func (w *world) rows(sql string, args ...any) (out [][]string) {
	w.read(func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		n := strings.Count(sql[:strings.Index(sql, " from ")], "||''")
		for rows.Next() {
			line, into := make([]string, n), make([]any, n)
			for i := range line {
				into[i] = &line[i]
			}
			if err := rows.Scan(into...); err != nil {
				return err
			}
			out = append(out, line)
		}
		return rows.Err()
	})
	return out
}

// begins holds that a job begins only where its lane belongs, and while no other
// of its lane runs. A process that is no longer heard of may still have one under
// way, and nobody else can know.
func (w *world) begins(l *life, j *queue.Job) {
	f := j.Fence()
	if held := w.rows(`select node||'' from buckets where id = $1 and node = $2 and epoch = $3`, f.Bucket, f.Node, f.Epoch); len(held) == 0 {
		w.fail("node %d begins job %d of lane %s, which belongs to another node", l.n.index, j.ID, j.Lane)
	}
	now := time.Now()
	w.mu.Lock()
	var beside *life
	for _, t := range w.working[j.Lane] {
		t.l.mu.Lock()
		heard := !t.l.dead && t.l.faulted.Before(t.since.Add(-2*lease))
		t.l.mu.Unlock()
		if heard {
			beside = t.l
		}
	}
	w.working[j.Lane] = append(w.working[j.Lane], turn{l, now})
	w.mu.Unlock()
	if beside != nil {
		w.fail("a job of lane %s begins at node %d while another one runs at node %d", j.Lane, l.n.index, beside.n.index)
	}
}

func (w *world) ends(l *life, j *queue.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.working[j.Lane]
	for i, t := range list {
		if t.l == l {
			w.working[j.Lane] = append(list[:i:i], list[i+1:]...)
			return
		}
	}
}

// leaves holds that no call leaves a process that must not act any more.
func (w *world) leaves(l *life, what string) {
	l.mu.Lock()
	thaw := l.thaw
	l.mu.Unlock()
	if thaw.After(time.Now()) {
		// It looked at the clock before it was stopped, and goes on when it is woken.
		l.stands()
	}
	_ = what
}

// alive are the processes that are there.
func (w *world) alive() (list []*life) {
	for _, n := range w.nodes {
		if l := n.now(); l != nil {
			list = append(list, l)
		}
	}
	return list
}

// try lets somebody do something at a node until it works: at each that is
// there, one after the other. It ends if it is refused.
func (w *world) try(first int, do func(l *life) error) error {
	for i := first; ; i++ {
		if w.closing.Load() {
			return errAway
		}
		l := w.nodes[i%len(w.nodes)].now()
		if l == nil {
			pass(500 * time.Millisecond)
			continue
		}
		err := do(l)
		if err == nil || !gone(err) {
			return err
		}
		pass(300 * time.Millisecond)
	}
}

// gone reports whether an error tells nothing about what became of it.
func gone(err error) bool {
	return errors.Is(err, pawl.ErrUnavailable) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, queue.ErrShutdown)
}

// refused holds that what people do is done or refused for a reason.
func (w *world) refused(what string, err error) {
	if err != nil && !gone(err) && !errors.Is(err, pawl.ErrConflict) && !errors.Is(err, pawl.ErrNotFound) {
		w.fail("%s: %v", what, err)
	}
}

// touch notes that people do something, which may let a lane go on at once.
func (w *world) touch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touched = append(w.touched, time.Now())
}

// untouched reports whether nobody did anything between two instants, in ms.
func (w *world) untouched(from, to int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !slices.ContainsFunc(w.touched, func(at time.Time) bool { return at.UnixMilli() >= from && at.UnixMilli() <= to })
}

// firstAttempts are the runs of a kind that began anew.
func firstAttempts(ctx context.Context, tx *store.Tx, kind pawl.Kind) (map[string]bool, error) {
	rows, err := tx.Query(ctx, `select id from runs where kind = $1 and attempt = 1`, string(kind))
	list, err := store.ScanAll(rows, err, "read runs", store.ScanText)
	out := map[string]bool{}
	for _, id := range list {
		out[id] = true
	}
	return out, err
}

// rested holds that nothing of a kind began since people paused its lane; nil: they did
// not, or let it go on.
func (w *world) rested(kind pawl.Kind, since map[string]bool) {
	if since == nil {
		return
	}
	for _, row := range w.rows(`select id||'', handler||'' from runs where kind = $1 and attempt = 1`, string(kind)) {
		if !since[row[0]] {
			w.fail("run %s (%s) of a %s began after it was paused", row[0], row[1], kind)
		}
	}
}

// hasty holds that another attempt after a failure waits for as long as it must, unless
// somebody did something meanwhile.
func (w *world) hasty(kind pawl.Kind, code string, least time.Duration) {
	for _, row := range w.rows(`select r.id||'', p.updated_at||'', r.created_at||'' from runs r join runs p on p.id = r.retry_of where r.kind = $1 and p.error_class = 'transient' and p.error_code = $2`, string(kind), code) {
		failed, again := atoi(row[1]), atoi(row[2])
		if w.skew == 0 && again-failed < least.Milliseconds() && w.untouched(failed-1000, again) {
			w.fail("run %s of a %s began %d ms after the attempt before it had failed", row[0], kind, again-failed)
		}
	}
}

// do is a person who does something once, at one node, and does not know what
// became of it if that node does not say.
func (w *world) do(r *rand.Rand, what string, fn func(ctx context.Context, l *life, tx *store.Tx) error) error {
	l := w.nodes[r.IntN(len(w.nodes))].now()
	if l == nil {
		return errAway
	}
	w.touch()
	defer w.touch()
	err := l.db.Write(l.ctx, func(ctx context.Context, tx *store.Tx) error { return fn(ctx, l, tx) })
	w.note("%s at node %d: %v", what, l.n.index, err)
	w.refused(what, err)
	return err
}

// runOf reads a run.
func runOf(ctx context.Context, tx *store.Tx, id string) (runstore.Run, error) {
	return runstore.In(tx).GetRun(ctx, id)
}
