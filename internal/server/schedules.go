package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/price"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// graphWorkers is how many slots may be under way in one process. They wait for
// executors and cost next to nothing.
const graphWorkers = 256

// buildGraphs makes the kind whose lanes run graphs.
func (s *server) buildGraphs(ctx context.Context) (err error) {
	s.executors, err = executor.Load(s.cfg.ConnectionDir, executor.Env{Getenv: os.Getenv, HTTP: s.client, Workflow: s.runWorkflow, Jobs: slotJobs{s}, Log: s.log})
	if err != nil {
		return err
	}
	prices, err := price.Load(s.cfg.ConnectionDir)
	if err != nil {
		return err
	}
	if s.execution, err = execution.New(execution.Config{DB: s.db, Graphs: s.executors, Prices: prices, Node: s.identity.id, Redact: s.executors.Redact, Keys: keyOf, Admit: s.mayExecute, Shown: s.outputShown, Alive: func() error { return s.queue.StillAlive() }, Log: s.log}); err != nil {
		return err
	}
	if _, err := s.execution.Recover(ctx); err != nil {
		return err
	}
	if s.serviceToken, err = s.loadServiceToken(); err != nil {
		return err
	}
	var ask execution.API = s.execution
	if s.cfg.ExecutionURL != "" {
		if ask, err = execution.NewRemote(s.cfg.ExecutionURL, s.serviceToken, nil); err != nil {
			return err
		}
	}
	caps, err := s.cfg.automaticCaps()
	if err != nil {
		return err
	}
	s.schedules, err = schedule.New(schedule.Options{
		DB: s.db, Ledger: s.ledger, Executions: ask, Grants: grant.Service{Automatic: caps}, Log: s.log, Host: s.host(), Calendars: &s.calendars, Needs: &s.needs,
	})
	return err
}

// outputShown tells pages that there is more to see of a run.
func (s *server) outputShown(scheduleID, schedule string) {
	s.pulse.Changed(lane.OwnedBy(pawl.KindSchedule, scheduleID, schedule))
}

// findGraph tells why this server cannot run a graph; nil where another one runs
// them.
func (s *server) findGraph() func(graphID string) error {
	if s.cfg.ExecutionURL != "" {
		return nil
	}
	return func(graphID string) error {
		_, _, err := s.executors.Lookup(graphID)
		return err
	}
}

// keyOf is what the key reference of a billing account stands for now, resolved
// like those of connections.
func keyOf(ref string) (string, error) { return definition.FromEnvironment(ref, os.Getenv) }

// loadServiceToken reads what a worker shows to the execution service of another
// process. It is in the data folder, or in PAWL_SERVICE_TOKEN where the two have
// no folder in common.
func (s *server) loadServiceToken() (string, error) {
	if text := strings.TrimSpace(os.Getenv("PAWL_SERVICE_TOKEN")); text != "" {
		return text, nil
	}
	path := filepath.Join(s.cfg.Data, "service.token")
	text, err := readToken(path)
	if err != nil || text != "" {
		return text, err
	}
	text = userstore.NewTokenText()
	return text, writeToken(path, text)
}

// internalHandler serves the execution service beside the API.
func (s *server) internalHandler(api http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.Handle("/api/internal/", s.tracing.served("execution service", s.execution.Handler(s.serviceToken)))
	return mux
}

// mayExecute lets the holder of a token of this server run graphs in the name
// of grants, as the service does, if the token has the scope for it.
func (s *server) mayExecute(ctx context.Context, text string) (execution.Guest, error) {
	t, err := s.keeper.Find(ctx, text, time.Now())
	if err == nil {
		err = access.Require(&t, access.Execute)
	}
	if err != nil {
		return execution.Guest{}, err
	}
	return execution.Guest{UserID: t.User.ID, Actor: access.Actor(&t)}, nil
}

// watchWorkflow is how often a workflow that runs as a graph is looked at.
const watchWorkflow = 250 * time.Millisecond

// runWorkflow runs a workflow as a graph: its producers now, and then until it
// has nothing left to do. What was asked for is remembered with the asking, so
// that a crash neither asks twice nor takes what was never asked for as done.
func (s *server) runWorkflow(ctx context.Context, name string, r executor.Run, emit func(executor.Event) error) (executor.Result, error) {
	if asked := fmt.Sprintf(`{"asked":%d}`, r.Attempt); string(r.Remote) != asked {
		if refusal, err := s.askWorkflow(ctx, name, r); err != nil || refusal.Code != "" {
			return refusal, err
		}
		if err := emit(executor.Event{Kind: executor.KindRemote, Remote: json.RawMessage(asked)}); err != nil {
			return executor.Result{}, err
		}
	}
	tick := time.NewTicker(watchWorkflow)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return executor.Result{}, context.Cause(ctx)
		case <-tick.C:
		}
		d, err := s.workflows.Describe(ctx, name)
		if errors.Is(err, pawl.ErrNotFound) {
			return executor.Result{Code: string(contract.Aborted), Message: "the workflow was deleted while it ran"}, nil
		}
		if err != nil {
			return executor.Result{}, err
		}
		requested := false
		for _, p := range d.Schedules {
			requested = requested || !p.RequestedAt.IsZero()
		}
		switch {
		case d.State == run.NeedsAttention:
			return executor.Result{Code: string(contract.Internal), Message: d.Sentence}, nil
		case d.State == run.Stopped && d.Issue != run.IssueHalted: // a halt passes
			return executor.Result{Code: string(contract.Aborted), Message: "the workflow was paused before it was done"}, nil
		case (d.State == run.Idle || d.Issue == run.IssueHalted) && !requested && d.Pending == 0:
			output, err := json.Marshal(map[string]any{"workflow": name, "lastActivity": d.LastText})
			return executor.Result{OK: true, Output: output}, err
		}
	}
}

// askWorkflow asks for the producers of a workflow, once for an attempt. A
// refusal leaves no trace; another attempt may be let through.
func (s *server) askWorkflow(ctx context.Context, name string, r executor.Run) (executor.Result, error) {
	const owner = "workflow executor"
	key := fmt.Sprintf("%s/%d", r.RunID, r.Attempt)
	err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, first, err := userstore.In(tx).ClaimIdempotencyKey(ctx, owner, key, name); err != nil || !first {
			return err
		}
		return s.workflows.RunNow(ctx, tx, name, "graph "+r.RunID)
	})
	switch e, ok := errors.AsType[*pawl.Error](err); {
	case ok && e.Code == pawl.CodeNotFound:
		return executor.Result{Code: string(contract.NotFound), Message: e.Msg}, nil
	case ok && e.Code == pawl.CodeConflict:
		return executor.Result{Code: string(contract.RateLimit), Message: e.Msg, Retry: true}, nil
	}
	return executor.Result{}, err
}

// closeExecution gives up the runs of graphs that outlived the drain; whoever
// comes next goes on with them.
func (s *server) closeExecution(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.execution.Close(ctx); err != nil {
		s.log.Warn("close the execution service", "err", err)
	}
}

// callGraph is what connections of the type graph do.
func (s *server) callGraph(ctx context.Context, c connector.GraphCall) (json.RawMessage, error) {
	key := "call:" + c.Key
	var answer contract.RunAnswerV1
	var err error
	if c.OnlyLook {
		answer, err = s.execution.Outcome(ctx, key)
	} else {
		answer, err = s.execution.Run(ctx, key, c.GraphID, contract.RunRequestV1{ExecutionGrantID: c.GrantID, Input: c.Input})
	}
	switch {
	case err != nil:
		return nil, err
	case answer.OK:
		return json.Marshal(map[string]any{"runId": answer.RunID, "output": answer.Output})
	case len(answer.Interrupt) > 0:
		return nil, &connector.Error{Class: pawl.ClassPrecondition, Code: "asks", Msg: "the graph asks a person, which only schedules can do", NotApplied: true}
	case answer.Unknown:
		return nil, &connector.Error{Class: pawl.ClassIndeterminate, Code: string(answer.ErrorCode), Msg: answer.ErrorMessage}
	}
	// It ran and failed: what it did until then is its own affair, and another
	// run is another call.
	return nil, &connector.Error{Class: pawl.ClassLogic, Code: string(answer.ErrorCode), Msg: answer.ErrorMessage, NotApplied: true}
}

// executionSweep is the task that gives up runs of graphs that nobody goes on
// with, so that what is set aside for them is free again.
const executionSweep = "pawl.execution.sweep"

const executionSweepEvery = time.Hour

func (s *server) executionSweepTask() queue.Task {
	return queue.Task{Internal: true, Run: func(ctx context.Context, _ *queue.Job) error {
		closed, err := s.execution.Sweep(ctx)
		if err != nil {
			return err
		}
		if closed > 0 {
			s.log.Warn("runs of graphs were given up", "runs", closed)
		}
		return queue.Snooze(time.Now().Add(executionSweepEvery))
	}}
}

// stopsUntold reports whether a kind leaves it to the server to tell the log what stopped
// its runs. Workflows and sources say it themselves.
func stopsUntold(kind pawl.Kind) bool { return kind == pawl.KindSchedule }
