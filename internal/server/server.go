package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/executor"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/notify"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/task"
	"github.com/pawlrun/pawl/internal/tool"
	"github.com/pawlrun/pawl/internal/web"
	"github.com/pawlrun/pawl/internal/workflow"
)

// Started tells where a server that is up can be found.
type Started struct {
	URL            string
	SignInURL      string // signs one browser in as the administrator, once; empty without the role api
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
	serviceToken string // the service token
	schedules    *schedule.Service
	notices      *notify.Notifier
	heartbeat    *notify.Heartbeat
	queue        *queue.Queue
	feed         *api.Feed
	api          *api.API
	pulse        *web.Pulse
	site         *web.Site // nil without the role api
	http         *http.Server
	listen       net.Listener
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
	s := &server{cfg: cfg, log: newLogger(cfg.Logs, cfg.LogFormat, cfg.LogLevel)}
	defer s.close()
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
	if s.client, err = outbound.New(outbound.Config{AllowPrivate: allow, UserAgent: "pawl/" + s.cfg.Version}); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.feed, s.pulse = api.NewFeed(), web.NewPulse()
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
	if s.queue, err = queue.New(s.queueConfig(registry)); err != nil {
		return err
	}
	s.workflows.Attach(s.queue)
	s.sources.Attach(s.queue)
	s.schedules.Attach(s.queue)
	s.notices.Attach(s.queue)
	s.api = api.New(api.Config{ //nolint:contextcheck // its requests bring their own
		DB: s.db, Keeper: s.keeper, Queue: s.queue, Workflows: s.workflows, Sources: s.sources, Fetcher: s.fetcher, Schedules: s.schedules, Tools: s.tools, Log: s.log, Gatherer: registry, Version: s.cfg.Version,
		MaxPayload: s.cfg.MaxPayload, Feed: s.feed,
	})
	var handler http.Handler = s.api
	if !slices.Contains(s.cfg.Roles, RoleAPI) {
		handler = onlyProbes(handler)
	} else if err := s.buildWeb(); err != nil {
		return err
	} else {
		handler = s.internalHandler(s.site)
	}
	s.http = &http.Server{
		Handler: patient(s.guardHost(handler), writePatience), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return nil
}

// buildWorkflows makes the kind whose lanes are scripts.
func (s *server) buildWorkflows() (err error) {
	s.tools, err = tool.Load(s.cfg.ConnectionDir, tool.Env{Getenv: os.Getenv, HTTP: s.client, Publish: s.publish, Rows: s.readRows, Graph: s.callGraph, Quota: s.book, Log: s.log})
	if err != nil {
		return err
	}
	if s.pool, err = script.NewPool(script.Config{Workers: s.cfg.Workers, Heap: s.cfg.ScriptMemory, Log: s.log}); err != nil {
		return err
	}
	// Replays have workers of their own, so that no real run waits for one.
	if s.trials, err = script.NewPool(script.Config{Workers: workflow.MaxReplays, Heap: s.cfg.ScriptMemory, Background: true, Log: s.log}); err != nil {
		return err
	}
	s.ledger = ledger.New(ledger.Config{
		Holdings: map[pawl.Kind]ledger.Holdings{pawl.KindWorkflow: workflow.Holdings{}}, Observe: s.observeRun,
	})
	mechanic, err := s.buildRepair()
	if err != nil {
		return err
	}
	s.workflows, err = workflow.New(workflow.Options{
		DB: s.db, Ledger: s.ledger, Scripts: s.pool, Trials: s.trials, Tools: s.tools, Log: s.log, Observe: s.tellWorkflow, Notify: s.tell, Workforce: s.workforce, Repair: mechanic,
		Limits: script.Limits{Wall: s.cfg.ScriptTimeout, Heap: s.cfg.ScriptMemory},
	})
	return err
}

// publish is what connections of the type workflow do. Publishing the same
// event again changes nothing, so it can be repeated at will.
func (s *server) publish(ctx context.Context, name, topic, messageID string, payload json.RawMessage, key string) (json.RawMessage, error) {
	var published store.Published
	err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		_, published, err = s.workflows.PublishExternal(ctx, tx, name, workflow.ExternalEvent{Topic: topic, MessageID: messageID, Payload: payload}, "call "+key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"topic": topic, "messageId": messageID, "duplicate": !published.News()})
}

// observeRun tells who follows, and the log what the rules cannot lead to.
func (s *server) observeRun(e ledger.Event) {
	if e.Alarm != "" {
		s.log.Error("a run contradicts the rules", "run", e.Run.ID, "kind", e.Run.Kind, "lane", e.Run.Lane, "what", e.Alarm)
	}
	s.tellRun(e)
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
		DB: s.db, Log: s.log, Workers: workers, Pools: s.pools(), Drain: s.cfg.Drain, Observe: s.feed.Observe, Metrics: queue.NewMetrics(registry),
		Renamed: renamed,
		Node: store.Node{
			ID: s.identity.id, Name: fmt.Sprintf("%s (process %d)", host, os.Getpid()), Addr: s.listen.Addr().String(),
			Roles: strings.Join(s.cfg.Roles, ","), Version: s.cfg.Version, Share: workers > 0,
		},
		Tasks: map[string]queue.Task{
			"http":         in(userPool, task.HTTP(s.client)),
			"log":          in(userPool, task.Log(s.log)),
			task.PruneName: task.Prune(s.db, s.log),

			workflow.TaskName:  s.workflows.Task(),
			workflow.SweepName: s.workflows.SweepTask(),
			workflow.WakeName:  s.workflows.WakeTask(),

			source.TaskName:  s.sources.Task(),
			source.SweepName: s.sources.SweepTask(),

			schedule.TaskName:      s.schedules.Task(),
			schedule.ReconcileName: s.schedules.ReconcileTask(),
			schedule.BackfillName:  s.schedules.BackfillTask(),
			executionSweep:         s.executionSweepTask(),

			notify.Name:          in(noticePool, s.notices.Task()),
			notify.HeartbeatName: in(noticePool, s.heartbeat.Task()),
		},
	}
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
	for _, job := range append(append(s.heartbeat.Jobs(), workflow.StartJobs()...), task.PruneJob(), source.SweepJob(), schedule.ReconcileJob(), store.JobSpec{Task: executionSweep, Key: executionSweep, KeyMode: store.Earliest}) {
		if _, err := s.queue.Enqueue(ctx, job); err != nil && ctx.Err() == nil {
			s.log.Warn("arm a job of the house", "task", job.Task, "err", err) // the next start does
		}
	}
	defined, err := s.applyDefinitions(ctx)
	if err != nil {
		stopWork()
		wg.Wait()
		return err
	}
	wg.Go(func() { defined.watch(work) })
	failed := make(chan error, 1)
	wg.Go(func() {
		if err := s.http.Serve(s.listen); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve HTTP: %w", err)
		}
	})
	base := "http://" + s.listen.Addr().String()
	ready(Started{URL: base, SignInURL: s.signInURL(base), AdminTokenPath: s.token, Database: s.db.String()})
	select {
	case <-ctx.Done():
		s.log.Info("stopping")
	case err = <-failed:
	}
	s.feed.Close() // streams end, so that the HTTP server can
	s.pulse.Close()
	stop, cancel := context.WithTimeout(work, 5*time.Second)
	defer cancel()
	if stopErr := s.http.Shutdown(stop); stopErr != nil {
		_ = s.http.Close()
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
	if s.listen != nil {
		_ = s.listen.Close()
	}
}
