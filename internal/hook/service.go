package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/budget"
	"github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/hook/verify"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/hookstore"
)

// Event is a delivery that becomes an event of a workflow.
type Event struct {
	Workflow, Topic, MessageID string
	Payload                    json.RawMessage
}

// Config is what the service is made of.
type Config struct {
	DB     *store.DB
	Log    *slog.Logger
	Getenv func(string) string

	// What deliveries become, each in the transaction of its delivery. by is who
	// the logs say did it.
	Publish func(ctx context.Context, tx *store.Tx, e Event, by string) error
	Enqueue func(ctx context.Context, tx *store.Tx, job store.JobSpec) (id string, err error)
	Run     func(ctx context.Context, tx *store.Tx, owner, schedule, by string) (slot time.Time, err error)

	// Together is DB.Write for a delivery that becomes an event: those of one topic that
	// come at once may be one transaction. nil is DB.Write.
	Together func(ctx context.Context, e Event, fn store.Func) error

	// MaxPayload is the most bytes that an event or a job may have.
	MaxPayload int64

	// Changed is told when something was delivered to a hook; nil is nobody.
	Changed func(name string)

	// Metrics counts deliveries; nil counts nothing.
	Metrics prometheus.Registerer
}

// Service takes deliveries.
type Service struct {
	cfg      Config
	db       *store.DB
	log      *slog.Logger
	jobs     lane.Jobs
	flights  chan struct{} // requests that are being answered
	large    *budget.Pool  // bytes of bodies that are not small
	counted  *prometheus.CounterVec
	refusals limiter

	bodyTimeout time.Duration

	mu      sync.RWMutex
	known   map[string]*target  // by name; guarded by mu
	inFile  map[string][]string // secrets of served folders, by name; guarded by mu
	learned int                 // changes of this process; guarded by mu

	looking    store.Turn
	looked     time.Time // when the database was last asked for a name; guarded by looking
	lookFailed error     // and what it answered; guarded by looking
}

// target is a hook as this process knows it.
type target struct {
	hookstore.Hook
	definition spec.Definition
	verifier   *verify.Verifier // nil: its secrets are not known here
	why        string           // there is no verifier
}

// New makes the service. Load must have been called before it takes deliveries.
func New(cfg Config) *Service {
	s := &Service{
		cfg: cfg, db: cfg.DB, log: cfg.Log, flights: make(chan struct{}, mostFlights), large: budget.New(mostLarge), bodyTimeout: bodyTimeout,
		known: map[string]*target{}, inFile: map[string][]string{},
		counted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_hook_deliveries_total", Help: "Deliveries to hooks, by what became of them: delivered, pending, filtered, known, refused, or unavailable if they could not be kept.",
		}, []string{"hook", "outcome"}),
	}
	if cfg.Changed == nil {
		s.cfg.Changed = func(string) {}
	}
	if cfg.Together == nil {
		s.cfg.Together = func(ctx context.Context, _ Event, fn store.Func) error { return cfg.DB.Write(ctx, fn) }
	}
	if cfg.Metrics != nil {
		cfg.Metrics.MustRegister(s.counted)
	}
	return s
}

// Attach gives the service its queue.
func (s *Service) Attach(jobs lane.Jobs) { s.jobs = jobs }

// loadAtOnce is how many hooks are read by one statement.
const loadAtOnce = 1000

// Load reads all hooks. What this process itself changes meanwhile is not undone by
// what was read before.
func (s *Service) Load(ctx context.Context) error {
	for {
		s.mu.RLock()
		learned := s.learned
		s.mu.RUnlock()
		list, err := s.readAll(ctx)
		if err != nil {
			return fmt.Errorf("load hooks: %w", err)
		}
		if s.replaceKnown(list, learned) {
			return nil
		}
	}
}

func (s *Service) readAll(ctx context.Context) (all []hookstore.Hook, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		all = nil
		for after := ""; ; after = all[len(all)-1].Name {
			list, err := hookstore.In(tx).ListHooks(ctx, after, loadAtOnce)
			if all = append(all, list...); err != nil || len(list) < loadAtOnce {
				return err
			}
		}
	})
	return all, err
}

// replaceKnown takes over what was read, unless something was learned since.
func (s *Service) replaceKnown(list []hookstore.Hook, learned int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.learned != learned {
		return false
	}
	known := make(map[string]*target, len(list))
	for _, h := range list {
		was := s.known[h.Name]
		if was != nil && was.Version == h.Version && was.Owner == h.Owner && was.verifier != nil {
			known[h.Name] = was
			continue
		}
		t := s.targetLocked(h)
		if t.why != "" && (was == nil || was.why != t.why) {
			s.log.Error("a hook takes no deliveries here", "hook", h.Name, "why", t.why)
		}
		known[h.Name] = t
	}
	s.known = known
	return true
}

// targetLocked makes a hook ready to take deliveries.
func (s *Service) targetLocked(h hookstore.Hook) *target {
	t := &target{Hook: h}
	if err := json.Unmarshal(h.Definition, &t.definition); err != nil {
		t.why = "its definition cannot be read"
		return t
	}
	secrets := s.inFile[h.Name]
	if len(t.definition.Verify.Secret) > 0 {
		found, faults := t.definition.Resolve(s.cfg.Getenv)
		if len(faults) > 0 {
			t.why = faults[0].Message
			return t
		}
		secrets = found
	}
	verifier, err := verify.New(t.definition.Settings(), secrets)
	if err != nil {
		t.why = "its secret is in a file that this process does not serve"
		return t
	}
	t.verifier = verifier
	return t
}

// lookAgain is how long a name that nobody knows stays unknown on a database that
// others write to.
const lookAgain = time.Second

// find finds a hook in memory. On a database that other processes write to, a name
// that is not there makes it look, at most once in a while, whoever asks.
func (s *Service) find(ctx context.Context, name string) (*target, error) {
	if t := s.inMemory(name); t != nil || !s.db.Shared() {
		return t, nil
	}
	s.looking.Lock()
	defer s.looking.Unlock()
	if time.Since(s.looked) >= lookAgain {
		s.lookFailed = s.Load(ctx)
		s.looked = time.Now()
	}
	if t := s.inMemory(name); t != nil || s.lookFailed == nil {
		return t, nil
	}
	return nil, s.lookFailed
}

func (s *Service) inMemory(name string) *target {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known[name]
}

// Issue tells why a hook takes no deliveries here; empty if it does.
func (s *Service) Issue(h hookstore.Hook) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.known[h.Name]
	if t == nil || t.Version != h.Version {
		t = s.targetLocked(h) // reads what is guarded
	}
	return t.why
}

// Applied is what applying a definition did.
type Applied struct {
	Hook     hookstore.Hook
	What     string
	Previous json.RawMessage // nil of a new hook
}

// What applying a definition did.
const (
	Created   = "created"
	Updated   = "updated"
	Unchanged = "unchanged"
)

// Apply makes a hook or changes the one of that name, in the caller's transaction.
// The same definition changes nothing. secrets are those that were resolved.
func (s *Service) Apply(ctx context.Context, tx *store.Tx, d spec.Definition, secrets []string, owner, by string) (Applied, error) {
	now := hookstore.Hook{Name: d.Name, Definition: d.JSON(), Version: d.Version(), Owner: owner, UpdatedBy: by}
	was, err := hookstore.In(tx).HoldHook(ctx, d.Name)
	out := Applied{Hook: was, What: Created, Previous: was.Definition}
	action := "hook.create"
	switch {
	case errors.Is(err, pawl.ErrNotFound):
	case err != nil:
		return Applied{}, err
	case was.Version == now.Version:
		out.What = Unchanged
	default:
		out.What, action = Updated, "hook.update"
	}
	if out.What != Unchanged {
		if out.Hook, err = hookstore.In(tx).PutHook(ctx, now); err != nil {
			return Applied{}, err
		}
		if err := tx.Audit(ctx, by, action, "hook:"+d.Name, map[string]string{"version": now.Version}); err != nil {
			return Applied{}, err
		}
	}
	tx.AfterCommit(func() { s.learn(out.Hook, d, secrets) })
	return out, nil
}

// learn puts a definition in force in this process.
func (s *Service) learn(h hookstore.Hook, d spec.Definition, secrets []string) {
	s.mu.Lock()
	if d.Stored() {
		delete(s.inFile, h.Name)
	} else {
		s.inFile[h.Name] = secrets
	}
	s.known[h.Name] = s.targetLocked(h)
	s.learned++
	s.mu.Unlock()
	s.cfg.Changed(h.Name)
}

// Delete removes a hook, in the caller's transaction.
func (s *Service) Delete(ctx context.Context, tx *store.Tx, name, by string) error {
	if err := hookstore.In(tx).DeleteHook(ctx, name); err != nil {
		return err
	}
	tx.AfterCommit(func() {
		s.mu.Lock()
		delete(s.known, name)
		delete(s.inFile, name)
		s.learned++
		s.mu.Unlock()
		s.cfg.Changed(name)
	})
	return tx.Audit(ctx, by, "hook.delete", "hook:"+name, nil)
}
