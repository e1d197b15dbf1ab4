package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/expect"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/hook"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/prune"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/tool"
	"github.com/pawlrun/pawl/internal/worker"
	"github.com/pawlrun/pawl/internal/workflow"
)

// node is a place where processes live, one after the other, under one id.
type node struct {
	w     *world
	index int
	id    string
	lives int

	mu   sync.Mutex
	life *life // the process that is there; nil: none. Guarded by mu
	due  bool  // one is to be born; guarded by mu
	wall wall  // guarded by mu
}

// wall is a clock on a wall: by how much it is wrong, and how many more looks at it
// are before somebody sets it right.
type wall struct {
	off  time.Duration
	left int
}

// reads is what the clock of the place says when a transaction begins; it is done up to
// 2 ms later.
func (n *node) reads() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); n.wall.left == 0 {
		if !n.w.plan.shared {
			return now
		}
		return now.Add(-time.Duration(uint64(now.UnixNano()) * 0x9E3779B97F4A7C15 % uint64(2*time.Millisecond)))
	}
	n.wall.left--
	return time.Now().Add(n.wall.off)
}

// life is one process.
type life struct {
	n      *node
	number int
	db     *store.DB
	client *outbound.Client

	queue     *queue.Queue
	workflows *workflow.Service
	sources   *source.Service
	schedules *schedule.Service
	execution *execution.Service
	workers   *worker.Service
	hooks     *hook.Service // nil: there are none
	log       *slog.Logger
	kinds     lane.Kinds

	ctx     context.Context
	end     context.CancelCauseFunc
	ended   sync.WaitGroup
	born    time.Time
	faulted time.Time // guarded by mu: when the last fault of it ended, or will

	mu     sync.Mutex
	dead   bool
	leaves bool              // it is told to stop
	thaw   time.Time         // it stands still until then
	own    bool              // something happened to it alone, so that others may have buried it
	away   time.Time         // the database refuses it until then
	hang   time.Time         // the database does not answer it until then
	slow   time.Time         // until then every answer takes long
	mute   int               // messages to other nodes that it cannot send
	lose   int               // commits of which it does not hear
	full   int               // commits that the disk does not take
	trap   *trap             // where it dies
	loseAt mark              // of which exchanges answers are lost; zero: of any
	stall  *trap             // where it is stopped, for how long
	counts map[uint64]uint64 // of steps, by who asks for what
}

// trap is an exchange with the database at which something happens to a process:
// before or after a commit.
type trap struct {
	what  string // write, committed
	at    mark   // of whom; zero: of anybody
	left  int
	again time.Duration // until the next one is born, or it goes on
}

// meets reports whether an exchange is the one.
func (t *trap) meets(what string, who mark) bool {
	if t == nil || t.what != what || t.at != 0 && t.at&who == 0 {
		return false
	}
	t.left--
	return t.left <= 0
}

// The ways in which a database is not there.
var (
	errAway error = &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the database cannot be reached (simulated)"}
	errLost error = &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the answer was lost (simulated)"}
	errFull error = &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the disk does not take it (simulated)"}
	errDead error = &pawl.Error{Code: pawl.CodeUnavailable, Msg: "this process is dead (simulated)"}
)

// now is the process that is there.
func (n *node) now() *life {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life
}

// lease is as it is in production.
const lease = 4500 * time.Millisecond

// workersOf is how many jobs of users a process runs at once.
const workersOf = 3

// start is a process that begins. Like a server it gives up if the database
// is away, and like one that is watched over it is started again.
func (n *node) start() {
	for {
		l, err := n.build()
		if err == nil {
			if err = l.serve(); err == nil {
				return
			}
			l.kill()
		}
		if n.w.closing.Load() {
			return
		}
		n.w.note("node %d cannot start: %v", n.index, err)
		pass(time.Second)
	}
}

func (n *node) build() (*life, error) {
	n.lives++
	w := n.w
	w.mu.Lock()
	l := &life{n: n, number: n.lives, born: time.Now(), counts: map[uint64]uint64{}, hang: w.still, away: w.out}
	w.mu.Unlock()
	l.ctx, l.end = context.WithCancelCause(context.Background())
	l.db = w.sim.Open(store.SimulatedProcess{Number: int64(n.index*100 + n.lives), Step: l.step, Stale: func(f store.Fence) {
		w.fail("node %d writes in the name of bucket %d at epoch %d, which it does not have", n.index, f.Bucket, f.Epoch)
	}, Commit: l.commit, Now: n.reads})
	var err error
	if l.client, err = outbound.New(outbound.Config{Dial: w.upstream.dial(l)}); err != nil {
		return nil, err
	}
	tools, err := tool.NewSet(tool.Named{Name: "desk", Type: "test", Connection: deskOf{w.desk, l}, Policy: map[string]tool.Policy{
		"order": tool.Allow, "mail": tool.Allow, "read": tool.Allow,
	}})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	if w.logs != nil {
		log = slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", n.index, "life", n.lives)
	}
	l.log = log
	book := ledger.New(ledger.Config{
		Holdings: map[pawl.Kind]ledger.Holdings{pawl.KindWorkflow: workflow.Holdings{}},
		Observe: func(e ledger.Event) {
			if e.Alarm != "" {
				w.fail("a run contradicts the rules: %s", e.Alarm)
			}
		},
	})
	host := lane.Host{Halt: func() store.HaltMark { return l.queue.Halt() }, Notify: tellPeople}
	if l.workflows, err = workflow.New(workflow.Options{DB: l.db, Ledger: book, Scripts: goScripts{}, Tools: tools, Log: log, Host: host}); err != nil {
		return nil, err
	}
	calls := quota.NewBook(l.db, nil, l.client, log)
	if l.sources, err = source.New(source.Options{
		DB: l.db, Ledger: book, Fetcher: fetch.New(fetch.Options{Client: l.client, Book: calls, Log: log}), Book: calls, Log: log, Workers: 2, Spool: w.spool,
		Publish: l.publishRows, Host: host,
	}); err != nil {
		return nil, err
	}
	if l.execution, err = execution.New(execution.Config{DB: l.db, Graphs: graphsOf{w.graph, l}, Node: n.id, Log: log}); err != nil {
		return nil, err
	}
	if l.schedules, err = schedule.New(schedule.Options{DB: l.db, Ledger: book, Executions: l.execution, Grants: grant.Service{}, Log: log, Host: host}); err != nil {
		return nil, err
	}
	l.kinds = lane.Kinds{l.workflows, l.sources, l.schedules}
	l.workers = worker.New(worker.Config{DB: l.db, Log: log})
	tasks := map[string]queue.Task{jobTask: {Run: l.runJob, Record: true}, prune.Name: prune.New(prune.Config{DB: l.db, Log: log}).Task()}
	if w.plan.judged {
		tasks[expect.Name] = expect.New(expect.Config{DB: l.db, Kinds: []expect.Kind{l.sources}, Log: log, Host: host}).Task()
	}
	if w.plan.has("hook") {
		l.hooks = l.newHooks()
		maps.Copy(tasks, l.hooks.Tasks())
	}
	for _, k := range l.kinds {
		for name, t := range k.Tasks() {
			tasks[name] = l.watched(t)
		}
	}
	l.queue, err = queue.New(queue.Config{
		DB: l.db, Log: log, Workers: workersOf, Pools: map[string]int{source.PoolName: 2, schedule.PoolName: 16}, Clock: l.clock, Lease: lease,
		Node:  store.Node{ID: n.id, Name: fmt.Sprint("node ", n.index), Roles: "api,worker", Version: "test", Share: true},
		Tasks: tasks, Observe: func(queue.Event) {}, Served: l.workers.Wake, Drain: w.plan.drain,
		Renamed: func(id string) { n.id = id },
	})
	if err != nil {
		return nil, err
	}
	for _, k := range l.kinds {
		k.Attach(l.queue)
	}
	l.workers.Attach(l.queue)
	if l.hooks != nil {
		l.hooks.Attach(l.queue)
	}
	return l, nil
}

// serve is the order in which a server starts.
func (l *life) serve() error {
	w := l.n.w
	if _, err := l.execution.Recover(l.ctx); err != nil {
		return err
	}
	if w.plan.has("schedule") {
		if err := l.schedules.Start(l.ctx); err != nil {
			return err
		}
		l.ended.Go(func() { l.schedules.Beat(l.ctx) })
	}
	if l.hooks != nil {
		if err := l.hooks.Load(l.ctx); err != nil {
			return err
		}
	}
	l.n.mu.Lock()
	l.n.life = l
	l.n.mu.Unlock()
	l.ended.Go(func() { _ = l.queue.Run(l.ctx) })
	if w.plan.has("worker") {
		l.ended.Go(func() { l.workers.Run(l.ctx) })
	}
	var standing []store.JobSpec
	for _, k := range l.kinds {
		if w.plan.has(string(k.Kind())) {
			standing = append(standing, k.Standing()...)
		}
	}
	if w.plan.judged {
		standing = append(standing, lane.StandingJob(expect.Name))
	}
	for _, job := range standing {
		_, _ = l.queue.Enqueue(l.ctx, job) // the next start does
	}
	return nil
}

// kill is the end without a word: nothing leaves it from now on, and nothing
// reaches it.
func (l *life) kill() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.n.mu.Lock()
	if l.n.life == l {
		l.n.life = nil
	}
	l.n.mu.Unlock()
	l.db.Cut()
	l.end(queue.ErrShutdown)
	l.client.Close()
	l.workers.Close()
	go func() { _ = l.execution.Close(context.Background()) }()
}

// stop is the graceful end; it lasts.
func (l *life) stop() {
	l.mu.Lock()
	l.leaves = true
	l.away, l.hang, l.slow, l.lose, l.full, l.trap, l.stall = time.Time{}, time.Time{}, time.Time{}, 0, 0, nil, nil
	l.mu.Unlock()
	pass(20 * time.Millisecond) // until nothing is on its way
	l.n.mu.Lock()
	if l.n.life == l {
		l.n.life = nil
	}
	l.n.mu.Unlock()
	l.workers.Close()
	l.end(queue.ErrShutdown)
	l.ended.Wait()
	_ = l.execution.Close(context.Background())
	l.kill()
}

// clock is what the process measures leases by. To whoever asks while it stands
// still it is the instant at which it goes on: that is when it would ask.
func (l *life) clock() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.thaw.After(now) {
		now = l.thaw
	}
	return now.Sub(epoch)
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// blame notes that what happens to the process until then is not its fault.
func (l *life) blame(until time.Time) {
	if until.After(l.faulted) {
		l.faulted = until
	}
}

// stands waits for as long as the process stands still.
func (l *life) stands() {
	for {
		l.mu.Lock()
		thaw := l.thaw
		l.mu.Unlock()
		if !thaw.After(time.Now()) {
			return
		}
		pass(time.Until(thaw))
	}
}

// restless is how many exchanges with the database no history needs.
const restless = 20_000

// step is one exchange with the database.
func (l *life) step(ctx context.Context, what string, by *store.SimulatedAsker) error {
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		return errDead
	}
	asked, who := whoAsks(what, by)
	n := l.counts[asked]
	l.counts[asked]++
	l.mu.Unlock()
	w := l.n.w
	if what == "answered" {
		if !w.plan.shared { // a file is read in no time
			return nil
		}
	} else if n := w.steps.Add(1); n >= restless {
		if n == restless {
			w.fail("the database was asked %d times, now to %s at node %d: somebody does not come to rest", n, what, l.n.index)
		}
		return errDead
	}
	if *trace {
		w.note("node %d: %s %d", l.n.index, what, n)
	}
	r := dice(w.plan.seed^asked, what, uint64(l.n.index)<<40|uint64(l.number)<<32|n)
	pass(time.Duration(20_000 + r.Int64N(w.slow)))
	if who&buries != 0 && what == "write" {
		w.meet(l, r)
	}
	l.stalls(what, who)
	l.stands()
	l.mu.Lock()
	hang, away, slow := l.hang, l.away, l.slow
	l.mu.Unlock()
	if slow.After(time.Now()) {
		pass(time.Duration(r.Int64N(int64(900 * time.Millisecond))))
	}
	if wait := time.Until(hang); wait > 0 && w.plan.shared {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.ctx.Done():
			return errDead
		}
		l.stands()
	}
	if away.After(time.Now()) {
		return errAway
	}
	l.mu.Lock()
	t := l.trap
	dies := false
	switch {
	case l.dead:
		l.mu.Unlock()
		return errDead
	case t.meets(what, who):
		l.trap, dies = nil, true
	case what == "notify" && l.mute > 0:
		l.mute--
		l.mu.Unlock()
		return errAway
	case what == "committed" && l.lose > 0 && (l.loseAt == 0 || l.loseAt&who != 0):
		l.lose--
		l.blame(time.Now().Add(time.Second))
		l.mu.Unlock()
		w.hurt("lost answer", time.Now().Add(time.Second))
		w.note("node %d does not hear of a commit", l.n.index)
		return errLost
	}
	l.mu.Unlock()
	if dies {
		w.note("node %d dies at %s", l.n.index, what)
		l.kill()
		w.reborn(l.n, t.again)
		return errDead
	}
	return nil
}

// stalls stops the process here, if it is to be stopped here.
func (l *life) stalls(what string, who mark) {
	l.mu.Lock()
	t := l.stall
	met := t.meets(what, who)
	now := time.Now()
	if met {
		l.stall, l.thaw = nil, now.Add(t.again)
		l.blame(l.thaw.Add(lease))
	}
	l.mu.Unlock()
	if met {
		l.n.w.note("node %d stands still for %v at %s", l.n.index, t.again, what)
		l.n.w.hurt("stall", now.Add(t.again))
	}
}

// commit is whether the disk takes a transaction.
func (l *life) commit() error {
	l.mu.Lock()
	if l.full == 0 {
		l.mu.Unlock()
		return nil
	}
	l.full--
	over := time.Now().Add(time.Second)
	l.blame(over)
	l.mu.Unlock()
	l.n.w.hurt("commit that was not taken", over)
	return errFull
}

// watched is a task of a kind, which begins only where its lane belongs.
func (l *life) watched(t queue.Task) queue.Task {
	run := t.Run
	t.Run = func(ctx context.Context, j *queue.Job) error {
		if l.isDead() {
			return errDead
		}
		if j.Lane != "" {
			l.n.w.begins(l, j)
			defer l.n.w.ends(l, j)
		}
		return run(ctx, j)
	}
	return t
}

// publishRows is what internal/server does with the rows of a page.
func (l *life) publishRows(ctx context.Context, tx *store.Tx, from, name, topic string, rows []source.Row) error {
	events := make([]workflow.ExternalEvent, len(rows))
	for i, r := range rows {
		events[i] = workflow.ExternalEvent{
			Topic: topic, MessageID: r.MessageID, Payload: r.Payload,
			Input: &workflow.OutsideInput{Source: "source", Type: from, ID: r.Key, Title: "Row " + r.Key + " of " + from},
		}
	}
	return l.workflows.PublishMany(ctx, tx, name, events, "source "+from)
}
