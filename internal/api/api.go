package api

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/hook"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/prune"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/tool"
	"github.com/pawlrun/pawl/internal/worker"
	"github.com/pawlrun/pawl/internal/workflow"
)

// Config is what an API is made of. DB and Queue must be there.
type Config struct {
	DB    *store.DB
	Queue *queue.Queue
	Log   *slog.Logger

	// Kinds are what the routes of lanes, runs and the timeline speak of.
	Kinds lane.Kinds

	// Workflows are what the routes of workflows, inputs and
	// events speak of; without them there are no such routes.
	Workflows *workflow.Service

	// Sources are what the routes of sources speak of; without them there are
	// no such routes.
	Sources *source.Service

	// Fetcher tries definitions of sources out; without it they cannot be.
	Fetcher *fetch.Fetcher

	// Schedules are what the routes of schedules, grants and billing speak of;
	// without them there are no such routes.
	Schedules *schedule.Service

	// FindGraph tells why this server cannot run a graph; nil if that is not its
	// matter.
	FindGraph func(graphID string) error

	// AllowCommands lets admins bring commands, and what refers to the server's
	// secrets, in schedules. Else only the folders that it serves may.
	AllowCommands bool

	// Tools are the connections that scripts may touch; without them there are
	// no routes of connections.
	Tools *tool.Set

	// Pruner removes what is older than it is kept; nil makes one that goes by
	// the usual ages.
	Pruner *prune.Service
	// Hooks are what the routes of hooks speak of; without them there are no such
	// routes.
	Hooks *hook.Service
	// Workers are the tasks that programs of users serve; without them there are no
	// routes of such tasks.
	Workers *worker.Service

	// Keeper knows the tokens; nil makes one.
	Keeper *access.Keeper

	// Gatherer is asked by /metrics; nil has nothing to tell.
	Gatherer prometheus.Gatherer

	Version string

	// MaxPayload is the size of the largest payload of a job or an event, in
	// bytes (default 1 MiB).
	MaxPayload int64

	// Feed is what /api/v1/stream sends; nil makes one that stays silent but
	// for what the API itself does.
	Feed *Feed

	// Ready is asked by /readyz beside database and queue; nil is ready. The
	// message of a *pawl.Error is shown to whoever asks.
	Ready func(context.Context) error
}

const (
	defaultMaxPayload = 1 << 20

	// bodyRoom is what a body may have beside the payload, in bytes.
	bodyRoom = 64 << 10

	// handlerTimeout bounds a handler, streams apart.
	handlerTimeout = 30 * time.Second
	// bodyTimeout bounds the reading of a body.
	bodyTimeout = 30 * time.Second
)

var errPanic = errors.New("a handler panicked")

// API answers HTTP requests. It is an http.Handler.
type API struct {
	cfg       Config
	db        *store.DB
	queue     *queue.Queue
	kinds     lane.Kinds
	workflows *workflow.Service // nil if there are none
	sources   *source.Service   // nil if there are none
	schedules *schedule.Service // nil if there are none
	tools     *tool.Set         // nil if there are none
	hooks     *hook.Service     // nil if there are none
	workers   *worker.Service   // nil if there are none
	log       *slog.Logger
	feed      *Feed

	surface *surface
	keeper  *access.Keeper
	touches touches
	unready unready
}

// unready is what the log was told of the checks of readiness.
type unready struct {
	mu     sync.Mutex
	checks map[string]string // what is wrong, by name; guarded by mu
}

// New makes an API.
func New(cfg Config) *API {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxPayload == 0 {
		cfg.MaxPayload = defaultMaxPayload
	}
	if cfg.Feed == nil {
		cfg.Feed = NewFeed()
	}
	if cfg.Version == "" {
		cfg.Version = "dev"
	}
	if cfg.Keeper == nil {
		cfg.Keeper = access.NewKeeper(cfg.DB)
	}
	if cfg.Pruner == nil {
		cfg.Pruner = prune.New(prune.Config{DB: cfg.DB, Log: cfg.Log})
	}
	a := &API{
		cfg: cfg, keeper: cfg.Keeper, db: cfg.DB, queue: cfg.Queue, kinds: cfg.Kinds, workflows: cfg.Workflows, sources: cfg.Sources, schedules: cfg.Schedules, tools: cfg.Tools, hooks: cfg.Hooks, workers: cfg.Workers, log: cfg.Log, feed: cfg.Feed,
		surface: surfaceOf(shape{
			version: cfg.Version, maxBody: cfg.MaxPayload + bodyRoom,
			workflows: cfg.Workflows != nil, sources: cfg.Sources != nil, fetcher: cfg.Fetcher != nil, schedules: cfg.Schedules != nil, tools: cfg.Tools != nil, hooks: cfg.Hooks != nil, workers: cfg.Workers != nil,
		}),
	}
	a.touches = touches{api: a, last: map[string]time.Time{}}
	return a
}

// Close waits for what requests left to be done behind their back. It is
// called when no more requests come.
func (a *API) Close() { a.touches.close() }
