package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/api"
	"github.com/pawlrun/pawl/internal/calendar"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/executor"
	"github.com/pawlrun/pawl/internal/expect"
	"github.com/pawlrun/pawl/internal/hook"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/need"
	"github.com/pawlrun/pawl/internal/notify"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/prune"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/relay"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/task"
	"github.com/pawlrun/pawl/internal/tool"
	"github.com/pawlrun/pawl/internal/web"
	"github.com/pawlrun/pawl/internal/worker"
	"github.com/pawlrun/pawl/internal/workflow"
)

// Started tells where a server that is up can be found.
type Started struct {
	URL            string
	SignInURL      string // signs one browser in as the administrator, once; empty without the role api
	HookURL        string // where deliveries of hooks are taken; empty without the role api
	AdminTokenPath string
	Database       string
}

// server is the parts of a running process.
type server struct {
	cfg          Config
	log          *slog.Logger
	db           *store.DB
	keeper       *access.Keeper
	identity     identity
	tracing      *tracing
	token        string // path
	client       *outbound.Client
	tools        *tool.Set
	pool         *script.Pool
	trials       *script.Pool // for replays
	workflows    *workflow.Service
	ledger       *ledger.Ledger
	book         *quota.Book
	fetcher      *fetch.Fetcher
	sources      *source.Service
	executors    *executor.Set
	execution    *execution.Service
	serviceToken string        // the service token
	calendars    calendar.Book // whose days all kinds leave out
	needs        need.Book     // which sources lanes wait for
	schedules    *schedule.Service
	kinds        lane.Kinds
	hooks        *hook.Service
	workers      *worker.Service
	notices      *notify.Notifier
	heartbeat    *notify.Heartbeat
	pruner       *prune.Service
	judge        *expect.Service
	queue        *queue.Queue
	feed         *api.Feed
	relay        *relay.Relay
	meter        *meter
	api          *api.API
	pulse        *web.Pulse
	site         *web.Site // nil without the role api
	http         *http.Server
	listen       net.Listener
	hookHTTP     *http.Server // nil if deliveries come in by http
	hookListen   net.Listener
}

// Run serves until the context ends, then stops in order. ready is called once
// everything works.
func Run(ctx context.Context, cfg Config, ready func(Started)) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if cfg.Logs == nil {
		cfg.Logs = os.Stderr
	}
	tuneCollector()
	s := &server{cfg: cfg, tracing: newTracing()}
	s.log = slog.New(s.tracing.logs(newLogger(cfg.Logs, cfg.LogFormat, cfg.LogLevel).Handler()))
	defer s.close() //nolint:contextcheck // what was traced last is sent when the context has ended
	if err := s.build(ctx); err != nil {
		return err
	}
	return s.serve(ctx, ready)
}

// tuneCollector lets the heap grow threefold between collections. What lives in
// it is small and turns over fast: this costs some MB and gives a quarter more
// jobs per second. GOGC overrules it.
func tuneCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
}

// dying is how long the one before may take to let its address go after it was
// killed.
const dying = 2 * time.Second

// listen takes the address. One that is in use is asked for again for a moment:
// whoever was killed just now still has it.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	for begin := time.Now(); ; {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Since(begin) > dying {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// deaf tells why the server cannot listen. Most often it runs already.
func (s *server) deaf(err error) error {
	told := &pawl.Error{Code: pawl.CodeConflict, Op: "listen", Msg: "cannot listen on " + s.cfg.Addr, Hint: "Use --addr HOST:PORT with another address.", Err: err}
	path, isFile := store.SQLitePath(s.cfg.Database)
	switch here := store.ServerOf(path); {
	case errors.Is(err, syscall.EADDRINUSE) && isFile && here.Alive():
		told.Op, told.Err = "", nil
		told.Msg = fmt.Sprintf("Pawl runs here already: process %d at %s, with the data in %s", here.PID, here.Addr, s.cfg.Data)
		told.Hint = "Use that one, or stop it first; a second one needs --addr and --data of its own."
	case errors.Is(err, syscall.EADDRINUSE):
		told.Hint = "Another process has it; use --addr HOST:PORT with another port."
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		told.Hint = "This machine does not have that address; use --addr HOST:PORT with one that it has."
	case errors.Is(err, syscall.EACCES):
		told.Hint = "Ports below 1024 need special rights; use --addr HOST:PORT with a higher one."
	}
	return told
}

// build makes the parts; nothing runs yet.
func (s *server) build(ctx context.Context) (err error) {
	// The address first: a port that is taken should not cost a migration.
	if s.listen, err = listen(ctx, s.cfg.Addr); err != nil {
		return s.deaf(err)
	}
	if err := s.listenForHooks(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(s.cfg.Data, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	holder := "pawl at " + s.listen.Addr().String()
	if s.db, err = s.openDatabase(ctx, holder); err != nil {
		return err
	}
	s.keeper = access.NewKeeper(s.db)
	if s.identity, err = identify(s.cfg.Data); err != nil {
		return err
	}
	if s.token, err = ensureAdminToken(ctx, s.db, s.cfg.Data, s.log); err != nil {
		return err
	}
	allow, err := outbound.ParsePrefixes(s.cfg.AllowPrivate)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := s.buildTracing(ctx, registry); err != nil {
		return err
	}
	if s.client, err = outbound.New(outbound.Config{AllowPrivate: allow, UserAgent: "pawl/" + s.cfg.Version, Around: s.tracing.call}); err != nil {
		return err
	}
	s.buildRelay()
	s.meter = newMeter(registry)
	if err := s.buildPruner(registry); err != nil {
		return err
	}
	if err := s.buildNotices(); err != nil {
		return err
	}
	if err := s.buildQuota(); err != nil {
		return err
	}
	if err := s.buildWorkflows(); err != nil {
		return err
	}
	if err := s.buildSources(); err != nil {
		return err
	}
	if err := s.buildGraphs(ctx); err != nil {
		return err
	}
	s.buildHooks(registry)
	s.workers = worker.New(worker.Config{DB: s.db, Log: s.log})
	s.kinds = lane.Kinds{s.workflows, s.sources, s.schedules}
	s.judge = expect.New(expect.Config{DB: s.db, Kinds: []expect.Kind{s.workflows, s.sources, s.schedules}, Log: s.log, Host: s.host()})
	if err := s.buildQueue(ctx, registry); err != nil {
		return err
	}
	s.api = api.New(api.Config{ //nolint:contextcheck // its requests bring their own
		DB: s.db, Keeper: s.keeper, Queue: s.queue, Kinds: s.kinds, Workflows: s.workflows, Sources: s.sources, Fetcher: s.fetcher, Schedules: s.schedules, Tools: s.tools, Hooks: s.hooks, Workers: s.workers, Log: s.log, Gatherer: registry, Version: s.cfg.Version,
		MaxPayload: s.cfg.MaxPayload, Feed: s.feed, FindGraph: s.findGraph(), Pruner: s.pruner, AllowCommands: s.cfg.AllowCommands,
	})
	var handler http.Handler = s.api
	if !slices.Contains(s.cfg.Roles, RoleAPI) {
		handler = onlyProbes(handler)
	} else if err := s.buildWeb(); err != nil {
		return err
	} else {
		handler = s.internalHandler(s.site)
	}
	s.http = s.httpServer(s.withHooks(s.guardHost(handler)))
	if s.hookListen != nil {
		s.hookHTTP = s.hookServer()
	}
	return nil
}

func (s *server) httpServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: patient(handler, writePatience), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// observeRun tells who follows, and the log what the rules cannot lead to.
func (s *server) observeRun(e ledger.Event) {
	if e.Alarm != "" {
		s.log.Error("a run contradicts the rules", "run", e.Run.ID, "kind", e.Run.Kind, "lane", e.Run.Lane, "what", e.Alarm)
	}
	of := s.kinds.LaneOf(&e.Run)
	begins := e.What == ledger.Begun || e.What == ledger.Started
	if !begins { // while its span is open
		s.logRun(e, of)
	}
	s.tracing.run(e)
	if begins {
		s.logRun(e, of)
	}
	s.meter.run(e, of)
	s.feed.ObserveRun(e, of)
	s.pulse.Changed(of)
}

// host is what a kind is given by this process.
func (s *server) host() lane.Host {
	halt := func() store.HaltMark { return s.queue.Halt() } // which is made last
	return lane.Host{Observe: s.observeLane, Workforce: s.workforce, Halt: halt, Notify: s.notices.Notify}
}

// observeLane tells who follows, programs and pages.
func (s *server) observeLane(c lane.Change) {
	s.meter.lane(c)
	s.feed.ObserveLane(c)
	s.pulse.Changed(c.Ref)
}

// onlyProbes is what a process without the role api serves: whoever runs it
// must still see how it does.
func onlyProbes(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		mux.Handle(path, h)
	}
	return mux
}

func (s *server) queueConfig(registry prometheus.Registerer) queue.Config {
	workers := 0
	if slices.Contains(s.cfg.Roles, RoleWorker) {
		workers = s.cfg.Workers
	}
	host, _ := os.Hostname()
	renamed := func(id string) {
		if err := s.identity.rename(id); err != nil {
			s.log.Error("keep the new id of this node", "err", err)
		}
	}
	return queue.Config{
		DB: s.db, Log: s.log, Workers: workers, Pools: s.pools(), Drain: s.cfg.Drain, Observe: s.feed.Observe, Served: s.workers.Wake, Metrics: queue.NewMetrics(registry),
		Renamed: renamed, Canary: !s.cfg.NoCanary,
		Node: store.Node{
			ID: s.identity.id, Name: fmt.Sprintf("%s (process %d)", host, os.Getpid()), Addr: s.listen.Addr().String(),
			Roles: strings.Join(s.cfg.Roles, ","), Version: s.cfg.Version, Share: workers > 0,
		},
		Tasks: s.tasks(),
	}
}

// tasks are what jobs can be of: the kinds', and those of the house.
func (s *server) tasks() map[string]queue.Task {
	out := map[string]queue.Task{
		"http":     in(userPool, task.HTTP(s.client)),
		"log":      in(userPool, task.Log(s.log)),
		prune.Name: s.pruner.Task(),

		expect.Name:   s.judge.Task(),
		need.TaskName: s.needs.Task(),

		executionSweep: s.executionSweepTask(),

		notify.Name:          in(noticePool, s.notices.Task()),
		notify.HeartbeatName: in(noticePool, s.heartbeat.Task()),
	}
	for name, t := range out {
		out[name] = s.tracing.task(name, "", t)
	}
	for _, k := range s.kinds {
		for name, t := range k.Tasks() {
			out[name] = s.tracing.task(name, k.Kind(), t)
		}
	}
	maps.Copy(out, s.hooks.Tasks())
	return out
}

// buildQueue makes the queue, and gives it to those who use it.
func (s *server) buildQueue(ctx context.Context, registry prometheus.Registerer) (err error) {
	if s.queue, err = queue.New(s.queueConfig(registry)); err != nil {
		return err
	}
	for _, k := range s.kinds {
		k.Attach(s.queue)
	}
	s.notices.Attach(s.queue)
	s.hooks.Attach(s.queue)
	s.workers.Attach(s.queue)
	s.needs.Attach(s.db, s.queue)
	return s.noteTasks(ctx)
}

// noteTasks tells the database what users may enqueue, for those who do it there.
func (s *server) noteTasks(ctx context.Context) error {
	if !s.db.Shared() {
		return nil
	}
	var names []string
	for name, t := range s.queue.Tasks() {
		if !t.Internal {
			names = append(names, name)
		}
	}
	return s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return tx.ServeTasks(ctx, names, s.cfg.MaxPayload) })
}

// standing are the jobs that every start makes sure of.
func (s *server) standing() []store.JobSpec {
	out := append(s.heartbeat.Jobs(), prune.Job(), lane.StandingJob(expect.Name), lane.StandingJob(executionSweep))
	for _, k := range s.kinds {
		out = append(out, k.Standing()...)
	}
	return out
}

const (
	userPool      = "user"   // what users enqueue
	noticePool    = "notice" // what is told to people and watchers
	noticeWorkers = 4
)

// in gives a task workers of their own.
func in(pool string, t queue.Task) queue.Task {
	t.Pool = pool
	return t
}

// pools are the workers of tasks that wait long for others. What users enqueue
// has as many as all kinds together, so that neither waits for the other.
func (s *server) pools() map[string]int {
	return map[string]int{
		source.PoolName: s.cfg.SourceQueue, schedule.PoolName: graphWorkers, userPool: s.cfg.Workers, noticePool: noticeWorkers,
	}
}

// serve runs the parts and stops them in order.
func (s *server) serve(ctx context.Context, ready func(Started)) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	var wg sync.WaitGroup
	if slices.Contains(s.cfg.Roles, RoleWorker) {
		if err := s.schedules.Start(ctx); err != nil { // before anything is claimed
			return err
		}
		wg.Go(func() { s.schedules.Beat(work) })
	}
	wg.Go(func() {
		if err := s.queue.Run(work); err != nil {
			s.log.Error("queue", "err", err)
		}
	})
	wg.Go(func() { s.workers.Run(work) })
	for _, job := range s.standing() {
		if _, err := s.queue.Enqueue(ctx, job); err != nil && ctx.Err() == nil {
			s.log.Warn("arm a job of the house", "task", job.Task, "err", err) // the next start does
		}
	}
	err := s.hooks.Load(ctx)
	var defined *folders
	if err == nil {
		defined, err = s.applyDefinitions(ctx)
	}
	if err != nil {
		stopWork()
		wg.Wait()
		return err
	}
	wg.Go(func() { defined.watch(work) })
	wg.Go(func() { s.relay.Run(work) })
	failed := make(chan error, 2)
	serve := func(h *http.Server, l net.Listener) {
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve HTTP: %w", err)
		}
	}
	wg.Go(func() { serve(s.http, s.listen) })
	if s.hookHTTP != nil {
		wg.Go(func() { serve(s.hookHTTP, s.hookListen) })
	}
	base := "http://" + s.listen.Addr().String()
	ready(Started{URL: base, SignInURL: s.signInURL(base), HookURL: s.hookURL(base), AdminTokenPath: s.token, Database: s.db.String()})
	select {
	case <-ctx.Done():
		s.log.Info("stopping")
	case err = <-failed:
	}
	s.feed.Close() // streams end, so that the HTTP server can
	s.workers.Close()
	s.pulse.Close()
	stop, cancel := context.WithTimeout(work, 5*time.Second)
	defer cancel()
	for _, h := range []*http.Server{s.hookHTTP, s.http} {
		if h == nil {
			continue
		}
		if stopErr := h.Shutdown(stop); stopErr != nil {
			_ = h.Close()
		}
	}
	s.api.Close()
	stopWork()
	wg.Wait()
	s.closeExecution(ctx)
	s.log.Info("stopped")
	return err
}

// close releases what build made, in reverse order.
func (s *server) close() {
	s.closeTracing()
	for _, pool := range []*script.Pool{s.trials, s.pool} {
		if pool != nil {
			pool.Close()
		}
	}
	if s.executors != nil {
		s.executors.Close()
	}
	if s.tools != nil {
		if err := s.tools.Close(); err != nil {
			s.log.Warn("close connections", "err", err)
		}
	}
	if s.client != nil {
		s.client.Close()
	}
	s.identity.close()
	if s.db != nil {
		if err := s.db.Close(); err != nil {
			s.log.Warn("close database", "err", err)
		}
	}
	for _, l := range []net.Listener{s.hookListen, s.listen} {
		if l != nil {
			_ = l.Close()
		}
	}
}
