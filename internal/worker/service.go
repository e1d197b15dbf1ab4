package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workerstore"
)

// Config is what a service is made of. DB must be there.
type Config struct {
	DB  *store.DB
	Log *slog.Logger

	limits limits // for tests
}

// limits are for tests to change.
type limits struct {
	poll    time.Duration // how often a claim that waits looks, whatever it heard
	sweep   time.Duration // how often leases are looked at that are over
	waiting int           // claims that wait at once
	known   time.Duration // how long a declaration is believed that was read
}

func defaultLimits() limits {
	return limits{poll: 2 * time.Second, sweep: 5 * time.Second, waiting: 10_000, known: time.Second}
}

// Service is the tasks that programs of users serve.
type Service struct {
	db     *store.DB
	log    *slog.Logger
	queue  *queue.Queue
	limits limits

	mu      sync.Mutex
	lines   map[group]*line // guarded by mu, and so are the lines: claims that wait
	waiting int             // guarded by mu
	known   map[string]knownTask
	end     chan struct{} // closed by Close
	closed  bool          // guarded by mu
}

// knownTask is a declaration that was read a moment ago.
type knownTask struct {
	Definition
	at time.Time
}

// New makes a service; Attach gives it the queue, and Run takes back what workers
// left.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.limits == (limits{}) {
		cfg.limits = defaultLimits()
	}
	return &Service{db: cfg.DB, log: cfg.Log, limits: cfg.limits, lines: map[group]*line{}, known: map[string]knownTask{}, end: make(chan struct{})}
}

// Attach gives the service the queue, whose Served must be Wake.
func (s *Service) Attach(q *queue.Queue) { s.queue = q }

// Task is a task as it is declared.
type Task struct {
	workerstore.Task
	Definition Definition
}

// Declare makes a task, or gives it another definition. It reports whether the task
// is new. It fails with pawl.ErrConflict for a task of Pawl's own, and with
// forbidden for one that another user declared, unless owner is nil.
func (s *Service) Declare(ctx context.Context, tx *store.Tx, name string, d Definition, user string, reach *string, actor string) (t Task, created bool, err error) {
	if _, own := s.queue.Tasks()[name]; own {
		return t, false, &pawl.Error{Code: pawl.CodeConflict, Reason: "own_task", Op: "declare task", Msg: fmt.Sprintf("%q is a task of Pawl's own", name), Hint: "Choose another name."}
	}
	was, err := workerstore.In(tx).HoldTask(ctx, name)
	switch {
	case errors.Is(err, pawl.ErrNotFound):
		created = true
		n, err := workerstore.In(tx).CountTasks(ctx)
		if err != nil {
			return t, false, err
		}
		if n >= maxTasks {
			return t, false, &pawl.Error{Code: pawl.CodeConflict, Reason: "too_many_tasks", Op: "declare task", Msg: fmt.Sprintf("there are %d tasks already", n), Hint: "Delete some that nobody needs."}
		}
	case err != nil:
		return t, false, err
	default:
		if err := mayChange(was, reach); err != nil {
			return t, false, err
		}
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return t, false, err
	}
	if !created && string(raw) == string(was.Definition) {
		return Task{was, d}, false, nil
	}
	t.Definition = d
	t.Task, err = workerstore.In(tx).PutTask(ctx, workerstore.Task{Name: name, Definition: raw, Owner: user, UpdatedBy: actor})
	if err != nil {
		return t, false, err
	}
	action := "task.change"
	if created {
		action = "task.create"
	}
	tx.AfterCommit(func() { s.forget(name); s.queue.TellServed(name, queue.Chance{}) })
	return t, created, tx.Audit(ctx, actor, action, "task:"+name, json.RawMessage(raw))
}

// mayChange keeps others from changing what somebody declared.
func mayChange(t workerstore.Task, reach *string) error {
	if reach == nil || *reach == t.Owner {
		return nil
	}
	return &pawl.Error{Code: pawl.CodeForbidden, Reason: "foreign_task", Op: "change task", Msg: fmt.Sprintf("the task %q was declared by another user", t.Name), Hint: "Choose another name, or ask for the scope jobs:admin."}
}

// Delete removes a task of which no jobs wait.
func (s *Service) Delete(ctx context.Context, tx *store.Tx, name string, reach *string, actor string) error {
	t, err := workerstore.In(tx).HoldTask(ctx, name)
	if err != nil {
		return err
	}
	if err := mayChange(t, reach); err != nil {
		return err
	}
	busy, err := tx.HasServed(ctx, name)
	if err != nil {
		return err
	}
	if busy {
		return &pawl.Error{Code: pawl.CodeConflict, Reason: "jobs_wait", Op: "delete task", Msg: fmt.Sprintf("jobs of the task %q wait or run", name), Hint: "Let workers do them, or cancel them."}
	}
	if err := tx.DropLeases(ctx, name); err != nil {
		return err
	}
	if err := workerstore.In(tx).DeleteTask(ctx, name); err != nil {
		return err
	}
	tx.AfterCommit(func() { s.forget(name) })
	return tx.Audit(ctx, actor, "task.delete", "task:"+name, nil)
}

// Find reads a task, or fails with pawl.ErrNotFound.
func (s *Service) Find(ctx context.Context, tx *store.Tx, name string) (Task, error) {
	t, err := workerstore.In(tx).FindTask(ctx, name)
	if err != nil {
		return Task{}, err
	}
	d, err := definitionOf(t)
	return Task{t, d}, err
}

// List reads up to limit tasks by name, those after the given one.
func (s *Service) List(ctx context.Context, tx *store.Tx, after string, limit int) ([]Task, error) {
	list, err := workerstore.In(tx).ListTasks(ctx, after, limit)
	out := make([]Task, len(list))
	for i, t := range list {
		d, bad := definitionOf(t)
		out[i], err = Task{t, d}, errors.Join(err, bad)
	}
	return out, err
}

// Fill completes a wish for a job of a task that programs of users serve. It
// reports whether the task is one.
func (s *Service) Fill(ctx context.Context, spec *store.JobSpec) (served bool, err error) {
	return s.fill(spec, func(read store.Func) error { return s.db.Read(ctx, read) })
}

// FillTx is Fill for who is in a transaction.
func (s *Service) FillTx(ctx context.Context, tx *store.Tx, spec *store.JobSpec) (served bool, err error) {
	return s.fill(spec, func(read store.Func) error { return read(ctx, tx) })
}

func (s *Service) fill(spec *store.JobSpec, read func(store.Func) error) (bool, error) {
	d, err := s.definition(spec.Task, read)
	if errors.Is(err, pawl.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	spec.Served = true
	if spec.MaxAttempts == 0 {
		spec.MaxAttempts = d.MaxAttempts
	}
	return true, nil
}

// Names are the tasks of which this process has heard lately, for hints.
func (s *Service) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.known))
}

// definition reads what a task says; a moment ago is soon enough.
func (s *Service) definition(name string, read func(store.Func) error) (Definition, error) {
	s.mu.Lock()
	k, known := s.known[name]
	s.mu.Unlock()
	if known && time.Since(k.at) < s.limits.known {
		return k.Definition, nil
	}
	if NameFault(name) != "" { // it cannot be one
		return Definition{}, pawl.ErrNotFound
	}
	k.at = time.Now()
	err := read(func(ctx context.Context, tx *store.Tx) error {
		t, err := s.Find(ctx, tx, name)
		k.Definition = t.Definition
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		delete(s.known, name)
		return Definition{}, err
	}
	s.known[name] = k
	return k.Definition, nil
}

func (s *Service) forget(name string) {
	s.mu.Lock()
	delete(s.known, name)
	s.mu.Unlock()
}
