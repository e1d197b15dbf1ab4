package api

import (
	"context"
	"encoding/json"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/workflow"
)

// RunSummary is a run without what it carried.
type RunSummary struct {
	ID            string          `json:"id" format:"uuid"`
	Kind          string          `json:"kind" enum:"workflow,source,schedule"`
	Lane          string          `json:"lane" example:"mail-to-sheet" doc:"The name of what it is a run of."`
	LaneID        *string         `json:"laneId" doc:"Of a run of a schedule: the id of the schedule, because its name is its owner's; else null."`
	Handler       string          `json:"handler" example:"addRow"`
	HandlerType   string          `json:"handlerType" enum:"producer,consumer,source,schedule"`
	Trigger       string          `json:"trigger" example:"schedule" doc:"What caused it: schedule, manual, event or wake. The same along a chain."`
	RetryOf       *string         `json:"retryOf" doc:"The attempt before this one."`
	Phase         string          `json:"phase" enum:"executing,preparing,prepared,mutating,mutated,emitting,fetching,validating,committed" doc:"How far it came."`
	Status        string          `json:"status" enum:"active,paused:transient,paused:approval,paused:reconciliation,failed:logic,failed:internal,committed,crashed,cancelled" doc:"What became of it."`
	Attempt       int             `json:"attempt" example:"1" doc:"Its place in the chain of retries."`
	ScheduledFor  *Instant        `json:"scheduledFor" nullable:"true" doc:"The instant that it stands for; null if it was not due to a schedule."`
	Error         Maybe[RunError] `json:"error" doc:"Why it stopped; null if it did not."`
	ScriptVersion *string         `json:"scriptVersion"`
	CreatedAt     Instant         `json:"createdAt"`
	UpdatedAt     Instant         `json:"updatedAt"`
	StartedAt     *Instant        `json:"startedAt" nullable:"true"`
	EndedAt       *Instant        `json:"endedAt" nullable:"true"`
}

// RunError is why a run stopped.
type RunError struct {
	Code    string `json:"code" example:"timeout"`
	Message string `json:"message"`
	Class   string `json:"class" enum:"transient,logic,auth,permission,indeterminate,precondition,internal"`
}

// Run is a run as lists show it.
type Run struct {
	RunSummary
	PrepareResult json.RawMessage    `json:"prepareResult" doc:"What prepare returned; null before."`
	Mutation      Maybe[RunMutation] `json:"mutation" doc:"Its call that changes the outside; null if there is none."`
	Progress      Maybe[RunProgress] `json:"progress" doc:"Of a run of a source: what it has done so far; else null."`
}

// RunMutation is a call that changes the outside, as the ledger has it.
type RunMutation struct {
	ID                string          `json:"id" format:"uuid"`
	Tool              string          `json:"tool" example:"sheet"`
	Method            string          `json:"method" example:"append"`
	Title             *string         `json:"title" doc:"What the script calls it; not to be trusted."`
	Arguments         json.RawMessage `json:"arguments"`
	State             string          `json:"state" enum:"in_flight,applied,failed,needs_reconcile,indeterminate,skipped"`
	Result            json.RawMessage `json:"result"`
	Error             Maybe[RunError] `json:"error" doc:"Why it did not happen; null if that is not known or did not come about."`
	IdempotencyKey    string          `json:"idempotencyKey"`
	ReconcileAttempts int             `json:"reconcileAttempts" doc:"How often it was asked for in vain."`
	NextReconcileAt   *Instant        `json:"nextReconcileAt" nullable:"true"`
	ResolvedBy        *string         `json:"resolvedBy" doc:"Who knew what became of it: answer, reconcile, or a person."`
	ResolvedAt        *Instant        `json:"resolvedAt" nullable:"true"`
	CreatedAt         Instant         `json:"createdAt"`
	UpdatedAt         Instant         `json:"updatedAt"`
}

// RunDetail is everything about one run.
type RunDetail struct {
	Run
	RunAnswers
	ScheduleRunDetail
	Chain     []RunSummary  `json:"chain" nullable:"false" doc:"The whole chain of retries that it belongs to, the newest first."`
	Mutations []RunMutation `json:"mutations" nullable:"false" doc:"All its calls, in their order. All but the last one did not happen."`
	Logs      []LogLine     `json:"logs" nullable:"false" doc:"What its handler logged."`
}

// LogLine is one line that a handler logged.
type LogLine struct {
	Phase string  `json:"phase"`
	At    Instant `json:"at"`
	Level string  `json:"level" example:"info"`
	Text  string  `json:"text"`
}

func runSummary(r *store.Run) RunSummary {
	out := RunSummary{
		ID: r.ID, Kind: string(r.Kind), Lane: laneName(r), Handler: r.Handler, HandlerType: string(r.HandlerType),
		Trigger: r.Trigger, RetryOf: orNull(r.RetryOf), Phase: string(r.Phase), Status: string(r.Status), Attempt: r.Attempt,
		ScheduledFor: instantOf(r.ScheduledFor), Error: runError(r.ErrorCode, r.ErrorMessage, r.ErrorClass), ScriptVersion: orNull(r.ScriptVersion),
		CreatedAt: Instant{r.CreatedAt}, UpdatedAt: Instant{r.UpdatedAt}, StartedAt: instantOf(r.StartedAt), EndedAt: instantOf(r.EndedAt),
	}
	if r.Kind == pawl.KindSchedule {
		out.LaneID = orNull(schedule.ScheduleOfRun(r))
	}
	return out
}

// laneName is the lane of a run as people call it.
func laneName(r *store.Run) string {
	switch r.Kind {
	case pawl.KindWorkflow:
		return workflow.NameOfLane(r.Lane)
	case pawl.KindSchedule:
		return r.Handler // the schedule's name when it ran
	case pawl.KindSource:
	}
	return r.Lane
}

func runError(code, message string, class pawl.Class) Maybe[RunError] {
	if code == "" && message == "" && class == "" {
		return Maybe[RunError]{}
	}
	return Maybe[RunError]{&RunError{code, message, string(class)}}
}

func runSummaries(list []store.Run) []RunSummary {
	out := make([]RunSummary, len(list))
	for i := range list {
		out[i] = runSummary(&list[i])
	}
	return out
}

// runOf tells a run with its calls, of which the last one counts.
func runOf(r *store.Run, calls []store.Mutation) Run {
	out := Run{RunSummary: runSummary(r), PrepareResult: r.PrepareResult}
	if n := len(calls); n > 0 {
		m := runMutation(&calls[n-1])
		out.Mutation.Value = &m
	}
	return out
}

func runMutation(m *store.Mutation) RunMutation {
	return RunMutation{
		ID: m.ID, Tool: m.Tool, Method: m.Method, Title: orNull(m.Title), Arguments: m.Arguments, State: string(m.State), Result: m.Result,
		Error: runError("", m.ErrorMessage, m.ErrorClass), IdempotencyKey: m.IdempotencyKey,
		ReconcileAttempts: m.ReconcileAttempts, NextReconcileAt: instantOf(m.NextReconcileAt),
		ResolvedBy: orNull(userOf(m.ResolvedBy)), ResolvedAt: instantOf(m.ResolvedAt), CreatedAt: Instant{m.CreatedAt}, UpdatedAt: Instant{m.UpdatedAt},
	}
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

type runOutput struct{ Body RunDetail }

func (a *API) getRun(ctx context.Context, in *RunPath) (*runOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	out := &runOutput{}
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
func (a *API) runDetail(ctx context.Context, tx *store.Tx, id string) (RunDetail, error) {
	r, err := a.visibleRun(ctx, tx, id)
	if err != nil {
		return RunDetail{}, err
	}
	chain, err := tx.RunChain(ctx, id)
	if err != nil {
		return RunDetail{}, err
	}
	calls, err := tx.RunMutations(ctx, id)
	if err != nil {
		return RunDetail{}, err
	}
	logs, err := tx.RunLogs(ctx, id, maxLogLines)
	if err != nil {
		return RunDetail{}, err
	}
	out := RunDetail{Run: runOf(&r, calls), Chain: runSummaries(chain), Mutations: make([]RunMutation, len(calls)), Logs: make([]LogLine, len(logs))}
	for i := range calls {
		out.Mutations[i] = runMutation(&calls[i])
	}
	for i, l := range logs {
		out.Logs[i] = LogLine{string(l.Phase), Instant{l.At}, l.Level, l.Text}
	}
	progress, err := progressOf(ctx, tx, r)
	if err != nil {
		return RunDetail{}, err
	}
	out.Progress.Value = progress[id]
	if out.ScheduleRunDetail, err = scheduleRunDetail(ctx, tx, &r); err != nil {
		return RunDetail{}, err
	}
	out.RunAnswers, err = a.answersOf(ctx, tx, &r, calls)
	return out, err
}
