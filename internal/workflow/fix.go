package workflow

import (
	"context"
	"errors"
	"slices"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/repair"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

const (
	// maxFixes is how many proposals are asked for along one chain: the third
	// failure in a row calls a person (context 3.9).
	maxFixes = 2
	// goodRuns is how many runs that went well a proposal must not change.
	goodRuns = retention.GoodRuns

	fixedBy = "auto-fix"
)

// loadFixes reads what was tried to mend the newest run.
func (s *Service) loadFixes(ctx context.Context, tx *store.Tx, v *view) error {
	if s.cfg.Repair == nil || !run.MayAutoFix(v.newest) {
		return nil
	}
	chain, err := runstore.In(tx).RunChain(ctx, v.row.ID)
	if err != nil {
		return err
	}
	ids := make([]string, len(chain))
	for i, r := range chain {
		ids[i] = r.ID
	}
	if v.fixes, err = workflowstore.In(tx).RepairsOfRuns(ctx, ids); err != nil {
		return err
	}
	proposals, unanswered := countFixes(v.fixes, v.row.ID)
	inHand := slices.ContainsFunc(v.fixes, func(r workflowstore.Repair) bool { // a person decides, or decided against it
		return r.State == workflowstore.RepairProposed || r.State == workflowstore.RepairRejected && r.DecidedBy != ""
	})
	v.fixable = proposals < maxFixes && v.row.ErrorClass == pawl.ClassLogic && !inHand
	if unanswered > 0 && v.fixable {
		wait, again := run.Transient(unanswered)
		v.fixable, v.fixAt = again, v.fixes[len(v.fixes)-1].CreatedAt.Add(wait)
	}
	return nil
}

// countFixes counts the proposals of a chain, and the questions in a row to
// which no answer came for its newest run. These prove nothing about the script,
// so they use up no proposal; they back off as calls do, and end as they do.
func countFixes(fixes []workflowstore.Repair, newest string) (proposals, unanswered int) {
	for _, f := range fixes {
		switch {
		case f.State != workflowstore.RepairFailed:
			proposals, unanswered = proposals+1, 0
		case f.RunID == newest:
			unanswered++
		}
	}
	return proposals, unanswered
}

// fix asks for a corrected script, checks it as a deploy and by replays, and
// puts it in force if the script that failed still is, confined to what people
// let the workflow call. The retry follows by itself. One of which the replays
// leave a doubt waits for a person. What it is told, and what comes back, is not
// trusted.
func (e *session) fix(ctx context.Context, v *view) error {
	r := workflowstore.Repair{WorkflowID: e.id, RunID: v.row.ID, BaseVersion: v.workflow.Version, Repairer: e.cfg.Repair.Name(), State: workflowstore.RepairFailed}
	recorded, err := e.recorded(ctx, v.row.ID)
	if err != nil {
		return err
	}
	proposal, err := e.cfg.Repair.Propose(ctx, e.evidence(v, recorded))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := e.cfg.fault("proposed"); err != nil {
		return err
	}
	if err != nil {
		if told, ok := errors.AsType[*repair.Error](err); ok && told.Rejected {
			r.State = workflowstore.RepairRejected // an answer came, and counts
		}
		r.Reason = err.Error()
		return e.noteFix(ctx, v, r)
	}
	r.Script, r.Explanation, r.State = proposal.Script, proposal.Explanation, workflowstore.RepairRejected
	doubt, err := e.judge(ctx, v, recorded, proposal.Script)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.Reason = err.Error()
		return e.noteFix(ctx, v, r)
	}
	r.Reason = e.cfg.Tools.RedactText(doubt)
	return e.settle(ctx, v, r)
}

func (e *session) noteFix(ctx context.Context, v *view, r workflowstore.Repair) error {
	r.Reason = e.cfg.Tools.RedactText(r.Reason)
	e.log.Info("a proposal did not come into force", "workflow", v.workflow.Name, "run", v.row.ID, "why", r.Reason)
	return e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		e.cfg.Emit(tx, lane.Change{Ref: refOf(v.workflow.Name), What: "fix " + r.State, Run: v.row.ID})
		return workflowstore.In(tx).AddRepair(ctx, r)
	})
}

// evidence is what a repairer gets, without secrets.
func (e *session) evidence(v *view, r recordedRun) repair.Evidence {
	group := "consumers."
	if v.row.HandlerType == pawl.HandlerProducer {
		group = "producers."
	}
	out := repair.Evidence{
		Workflow: v.workflow.Name, Filename: r.version.Filename, Script: r.version.Source, Handler: group + v.row.Handler, Phase: string(v.row.Phase),
		Error: v.row.ErrorMessage, Prepared: v.row.PrepareResult, MutationResult: v.row.MutationResult, Types: script.Types(),
	}
	for _, read := range r.reads {
		if read.Op == opState {
			out.State = read.Answer
			continue
		}
		out.Reads = append(out.Reads, repair.Read{Op: read.Op, Call: read.Call, Answer: read.Answer})
	}
	for _, f := range v.fixes {
		if f.State == workflowstore.RepairFailed {
			continue
		}
		reason := f.Reason
		if f.State == workflowstore.RepairActivated {
			reason = "it came into force and failed as well"
		}
		out.Attempts = append(out.Attempts, repair.Attempt{Script: f.Script, Error: reason})
	}
	return out
}

// settle puts a proposal in force, or lets it wait for a person if there is a
// doubt, unless another version came into force meanwhile (lesson 42).
func (e *session) settle(ctx context.Context, v *view, r workflowstore.Repair) error {
	err := e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		w, err := workflowstore.In(tx).HoldWorkflow(ctx, v.workflow.Name)
		if err != nil {
			return err
		}
		if w.Version != r.BaseVersion {
			return errOvertaken
		}
		if r.Reason != "" {
			return e.propose(ctx, tx, v, r)
		}
		r.State = workflowstore.RepairActivated
		if r.Version, err = e.activate(ctx, tx, w, r, fixedBy); err != nil {
			return err
		}
		e.cfg.Emit(tx, lane.Change{Ref: refOf(w.Name), What: "fix activated", Run: v.row.ID})
		return workflowstore.In(tx).AddRepair(ctx, r)
	})
	if errors.Is(err, errOvertaken) {
		r.State, r.Version, r.Reason = workflowstore.RepairRejected, "", "another version was deployed meanwhile"
		return e.noteFix(ctx, v, r)
	}
	return err
}

// activate deploys a proposal, confined. What it declares was compared and is
// what the version in force declares.
func (s *Service) activate(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, r workflowstore.Repair, by string) (version string, err error) {
	base, err := workflowstore.In(tx).GetWorkflowVersion(ctx, w.ID, w.Version)
	if err != nil {
		return "", err
	}
	config, err := parseConfig(base.Config)
	if err != nil {
		return "", err
	}
	d := Deploy{Name: w.Name, Filename: base.Filename, Script: r.Script, By: by, confined: true}
	out := Deployed{Name: w.Name, Version: VersionOf(base.Filename, r.Script), Config: config}
	return out.Version, s.deploy(ctx, tx, d, base.Config, &out)
}

var errOvertaken = errors.New("another version is active")
