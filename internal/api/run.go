package api

import (
	"context"
	"errors"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

func (a *API) runSummary(r *runstore.Run) client.RunSummary { return runSummary(r, a.kinds.LaneOf(r)) }

// runSummary tells a run of a lane.
func runSummary(r *runstore.Run, of lane.Ref) client.RunSummary {
	out := client.RunSummary{
		ID: r.ID, Kind: string(r.Kind), Lane: of.Name, Handler: r.Handler, HandlerType: string(r.HandlerType),
		Trigger: r.Trigger, RetryOf: client.NullString(r.RetryOf), Phase: string(r.Phase), Status: string(r.Status), Attempt: r.Attempt,
		ScheduledFor: client.At(r.ScheduledFor), Error: runError(r.ErrorCode, r.ErrorMessage, r.ErrorClass), ScriptVersion: client.NullString(r.ScriptVersion),
		CreatedAt: client.At(r.CreatedAt), UpdatedAt: client.At(r.UpdatedAt), StartedAt: client.At(r.StartedAt), EndedAt: client.At(r.EndedAt),
		Through: client.At(r.Through), Count: r.Count,
	}
	if of.Owned {
		out.LaneID = client.NullString(of.Key)
	}
	return out
}

func runError(code, message string, class pawl.Class) *client.RunError {
	if code == "" && message == "" && class == "" {
		return nil
	}
	return &client.RunError{Code: code, Message: message, Class: string(class)}
}

func (a *API) runSummaries(list []runstore.Run) []client.RunSummary {
	out := make([]client.RunSummary, len(list))
	for i := range list {
		out[i] = a.runSummary(&list[i])
	}
	return out
}

// runOf tells a run with its calls, of which the last one counts.
func (a *API) runOf(r *runstore.Run, calls []mutationstore.Mutation) client.Run {
	out := client.Run{RunSummary: a.runSummary(r), PrepareResult: r.PrepareResult}
	if n := len(calls); n > 0 {
		m := runMutation(&calls[n-1])
		out.Mutation = &m
	}
	return out
}

func runMutation(m *mutationstore.Mutation) client.RunMutation {
	return client.RunMutation{
		ID: m.ID, Tool: m.Tool, Method: m.Method, Title: client.NullString(m.Title), Arguments: m.Arguments, State: string(m.State), Result: m.Result,
		Error: runError("", m.ErrorMessage, m.ErrorClass), IdempotencyKey: m.IdempotencyKey,
		ReconcileAttempts: m.ReconcileAttempts, NextReconcileAt: client.At(m.NextReconcileAt),
		ResolvedBy: client.NullString(userOf(m.ResolvedBy)), ResolvedAt: client.At(m.ResolvedAt), CreatedAt: client.At(m.CreatedAt), UpdatedAt: client.At(m.UpdatedAt),
	}
}

// visibleRun reads a run that the caller may know of. One of a lane that is
// somebody else's looks as if it were not there.
func (a *API) visibleRun(ctx context.Context, tx *store.Tx, id string) (runstore.Run, error) {
	r, err := runstore.In(tx).GetRun(ctx, id)
	of := a.kinds.LaneOf(&r)
	if err != nil || !of.Owned {
		return r, err
	}
	reach := viewerOf(ctx, r.Kind).Owner
	k, _ := a.kinds.Get(r.Kind) // who owned a lane is one of them
	owner, err := k.OwnerOf(ctx, tx, of.Key)
	if errors.Is(err, pawl.ErrNotFound) || err == nil && reach != "" && owner != reach {
		return runstore.Run{}, &pawl.Error{Code: pawl.CodeNotFound, Op: "read run", Msg: "there is no run " + id}
	}
	return r, err
}

// RunPath is the input of requests about one run.
type RunPath struct {
	ID string `path:"id" example:"0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e" doc:"The run's id."`
}

// check refuses what no run can be called.
func (p RunPath) check() error {
	if textFault(p.ID, maxName) != "" {
		return &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("there is no run %q", p.ID)}
	}
	return nil
}

func (a *API) getRun(ctx context.Context, in *RunPath) (*output[client.RunDetail], error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	out := &output[client.RunDetail]{}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		out.Body, err = a.runDetail(ctx, tx, in.ID)
		return err
	})
	return out, err
}

// maxLogLines is how many lines of a run are shown.
const maxLogLines = 1000

// runDetail reads everything about a run as of one instant, so that what can
// be done fits how it stands.
func (a *API) runDetail(ctx context.Context, tx *store.Tx, id string) (client.RunDetail, error) {
	r, err := a.visibleRun(ctx, tx, id)
	if err != nil {
		return client.RunDetail{}, err
	}
	chain, err := runstore.In(tx).RunChain(ctx, id)
	if err != nil {
		return client.RunDetail{}, err
	}
	calls, err := mutationstore.In(tx).RunMutations(ctx, id)
	if err != nil {
		return client.RunDetail{}, err
	}
	logs, err := runstore.In(tx).RunLogs(ctx, id, maxLogLines)
	if err != nil {
		return client.RunDetail{}, err
	}
	out := client.RunDetail{Run: a.runOf(&r, calls), Chain: a.runSummaries(chain), Mutations: make([]client.RunMutation, len(calls)), Logs: make([]client.LogLine, len(logs))}
	for i := range calls {
		out.Mutations[i] = runMutation(&calls[i])
	}
	for i, l := range logs {
		out.Logs[i] = client.LogLine{Phase: string(l.Phase), At: client.At(l.At), Level: l.Level, Text: l.Text}
	}
	progress, err := progressOf(ctx, tx, r)
	if err != nil {
		return client.RunDetail{}, err
	}
	out.Progress = progress[id]
	if out.Partition, err = partitionOf(ctx, tx, &r); err != nil {
		return client.RunDetail{}, err
	}
	if out.ScheduleRunDetail, err = a.scheduleRunDetail(ctx, tx, &r); err != nil {
		return client.RunDetail{}, err
	}
	out.RunAnswers, err = a.answersOf(ctx, tx, &r)
	return out, err
}
