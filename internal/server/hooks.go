package server

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/hook"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/workflow"
)

// kindHook is what pages follow that are about a hook.
const kindHook = "hook"

// buildHooks makes what takes deliveries of others.
func (s *server) buildHooks(registry prometheus.Registerer) {
	s.hooks = hook.New(hook.Config{
		DB: s.db, Log: s.log, Getenv: os.Getenv, MaxPayload: s.cfg.MaxPayload, Metrics: registry,
		Together: s.writeTogether, Publish: s.publishDelivery, Enqueue: s.enqueueDelivery, Run: s.runOnDelivery,
		Changed: func(name string) { s.pulse.Changed(lane.Ref{Kind: kindHook, Key: name}) },
	})
}

// writeTogether is the transaction of a delivery that becomes an event.
func (s *server) writeTogether(ctx context.Context, e hook.Event, fn store.Func) error {
	return eventstore.Write(ctx, s.db, e.Workflow, e.Topic, e.MessageID, fn)
}

// publishDelivery turns a delivery into an event, in the transaction that keeps it.
func (s *server) publishDelivery(ctx context.Context, tx *store.Tx, e hook.Event, by string) error {
	return s.workflows.PublishMany(ctx, tx, e.Workflow, []workflow.ExternalEvent{{Topic: e.Topic, MessageID: e.MessageID, Payload: e.Payload}}, by)
}

// enqueueDelivery turns a delivery into a job of a user, in the transaction that
// keeps it.
func (s *server) enqueueDelivery(ctx context.Context, tx *store.Tx, job store.JobSpec) (string, error) {
	t, known := s.queue.Tasks()[job.Task]
	if !known {
		served, err := s.workers.FillTx(ctx, tx, &job)
		if err != nil {
			return "", err
		}
		known = served
	}
	if !known || t.Internal {
		return "", &pawl.Error{Code: pawl.CodeInvalid, Op: "enqueue", Msg: fmt.Sprintf("%q is not a task of this server", job.Task)}
	}
	if t.Check != nil {
		if err := t.Check(job.Payload); err != nil {
			return "", err
		}
	}
	jobs, err := s.queue.EnqueueTx(ctx, tx, job)
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(jobs[0].ID, 10), nil
}

// runOnDelivery runs a schedule once, in the transaction that keeps the delivery.
func (s *server) runOnDelivery(ctx context.Context, tx *store.Tx, owner, name, by string) (time.Time, error) {
	slot, err := s.schedules.RunNamed(ctx, tx, owner, name, by)
	return slot.ScheduledFor, err
}

// withHooks takes deliveries at the main address, unless they have their own. They
// are proved by their signatures, so that any name will do that leads here.
func (s *server) withHooks(next http.Handler) http.Handler {
	if !slices.Contains(s.cfg.Roles, RoleAPI) {
		return next
	}
	hooks := http.Handler(s.hooks)
	if s.cfg.HookAddr != "" {
		hooks = http.NotFoundHandler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, hook.Path) {
			hooks.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// listenForHooks takes the address that deliveries have to themselves, if they do.
func (s *server) listenForHooks(ctx context.Context) (err error) {
	if s.cfg.HookAddr == "" {
		return nil
	}
	if s.hookListen, err = listen(ctx, s.cfg.HookAddr); err != nil {
		return &pawl.Error{Code: pawl.CodeConflict, Op: "listen", Msg: "cannot listen on " + s.cfg.HookAddr, Hint: "Use --hook-addr HOST:PORT with another address.", Err: err}
	}
	return nil
}

// hookServer serves nothing but deliveries.
func (s *server) hookServer() *http.Server {
	server := s.httpServer(s.hooks)
	server.ReadHeaderTimeout, server.IdleTimeout, server.MaxHeaderBytes = 5*time.Second, 30*time.Second, 32<<10
	return server
}

// hookURL is where deliveries are taken; empty if nowhere.
func (s *server) hookURL(base string) string {
	switch {
	case s.hookListen != nil:
		return "http://" + s.hookListen.Addr().String()
	case slices.Contains(s.cfg.Roles, RoleAPI):
		return base
	}
	return ""
}
