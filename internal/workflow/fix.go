package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/repair"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
)

const (
	// maxFixes is how many proposals are asked for along one chain: the third
	// failure in a row calls a person (context 3.9).
	maxFixes = 2
	// goodRuns is how many runs that went well a proposal must not change.
	goodRuns = 3

	fixedBy = "auto-fix"
)

// lookAtFixes reads what was tried to mend the newest run.
func (s *Service) lookAtFixes(ctx context.Context, tx *store.Tx, v *view) error {
	if s.cfg.Repair == nil || !run.MayAutoFix(v.newest) {
		return nil
	}
	chain, err := tx.RunChain(ctx, v.row.ID)
	if err != nil {
		return err
	}
	ids := make([]string, len(chain))
	for i, r := range chain {
		ids[i] = r.ID
	}
	if v.fixes, err = tx.RepairsOfRuns(ctx, ids); err != nil {
		return err
	}
	proposals, unanswered := countFixes(v.fixes, v.row.ID)
	v.fixable = proposals < maxFixes && v.row.ErrorClass == pawl.ClassLogic
	if unanswered > 0 && v.fixable {
		wait, again := run.Transient(unanswered)
		v.fixable, v.fixAt = again, v.fixes[len(v.fixes)-1].CreatedAt.Add(wait)
	}
	return nil
}

// countFixes counts the proposals of a chain, and the questions in a row to
// which no answer came for its newest run. These prove nothing about the script,
// so they use up no proposal; they back off as calls do, and end as they do.
func countFixes(fixes []store.Repair, newest string) (proposals, unanswered int) {
	for _, f := range fixes {
		switch {
		case f.State != store.RepairFailed:
			proposals, unanswered = proposals+1, 0
		case f.RunID == newest:
			unanswered++
		}
	}
	return proposals, unanswered
}

// fix asks for a corrected script, checks it as a deploy and by replays, and
// puts it in force if the script that failed still is. The retry follows by
// itself. What it is told, and what comes back, is not trusted.
func (e *session) fix(ctx context.Context, v *view) error {
	r := store.Repair{WorkflowID: e.id, RunID: v.row.ID, BaseVersion: v.workflow.Version, Repairer: e.cfg.Repair.Name(), State: store.RepairFailed}
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
			r.State = store.RepairRejected // an answer came, and counts
		}
		r.Reason = err.Error()
		return e.noteFix(ctx, v, r)
	}
	r.Script, r.Explanation, r.State = proposal.Script, proposal.Explanation, store.RepairRejected
	config, err := e.judge(ctx, v, recorded, proposal.Script)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.Reason = err.Error()
		return e.noteFix(ctx, v, r)
	}
	return e.activate(ctx, v, r, recorded.version.Filename, config)
}

func (e *session) noteFix(ctx context.Context, v *view, r store.Repair) error {
	r.Reason = e.cfg.Tools.RedactText(r.Reason)
	e.log.Info("a proposal did not come into force", "workflow", v.workflow.Name, "run", v.row.ID, "why", r.Reason)
	return e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		e.tell(tx, Change{What: "fix " + r.State, Workflow: v.workflow.Name, Run: v.row.ID})
		return tx.AddRepair(ctx, r)
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
		if f.State == store.RepairFailed {
			continue
		}
		reason := f.Reason
		if f.State == store.RepairActivated {
			reason = "it came into force and failed as well"
		}
		out.Attempts = append(out.Attempts, repair.Attempt{Script: f.Script, Error: reason})
	}
	return out
}

// judge checks a proposal: as a deploy, that it reaches no further than the
// script that failed, that the failing run does not fail with it, and that runs
// which went well stay the same.
func (e *session) judge(ctx context.Context, v *view, r recordedRun, source string) (Config, error) {
	config, _, err := Inspect(ctx, e.cfg.Scripts, r.version.Filename, source)
	if err != nil {
		return Config{}, err
	}
	if config.Name != v.workflow.Name {
		return Config{}, fmt.Errorf("it calls itself %q", config.Name)
	}
	if err := repair.Narrow(shapeOf(v.config, r.version.Source), shapeOf(config, source)); err != nil {
		return Config{}, err
	}
	replayed, err := e.replay(ctx, v.row.ID, r.version.Filename, source)
	switch {
	case err != nil:
		return Config{}, err
	case replayed.Failure != "" && !replayed.Unknown:
		return Config{}, fmt.Errorf("the run fails with it too: %s", replayed.Failure)
	}
	var good []store.Run
	err = e.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		good, err = tx.GoodRuns(ctx, pawl.KindWorkflow, v.row.Lane, v.row.Handler, goodRuns)
		return err
	})
	if err != nil {
		return Config{}, err
	}
	for _, g := range good {
		replayed, err := e.replay(ctx, g.ID, r.version.Filename, source)
		switch {
		case err != nil:
			return Config{}, err
		case replayed.Unknown:
		case replayed.Failure != "":
			return Config{}, fmt.Errorf("run %s, which went well, fails with it: %s", g.ID, replayed.Failure)
		case len(replayed.Differences) > 0:
			return Config{}, fmt.Errorf("run %s, which went well, would do something else: %s", g.ID, replayed.Differences[0])
		}
	}
	return config, nil
}

// shapeOf is how far a script reaches.
func shapeOf(c Config, source string) repair.Shape {
	s := repair.Shape{Name: c.Name, Topics: c.Topics, Tools: repair.ToolsOf(source), Publishes: map[string][]string{}, Subscribes: map[string][]string{}}
	for _, p := range c.Producers {
		s.Producers = append(s.Producers, p.Name)
		s.Publishes["producers."+p.Name] = p.Publishes
	}
	for _, k := range c.Consumers {
		s.Consumers = append(s.Consumers, k.Name)
		s.Publishes["consumers."+k.Name], s.Subscribes["consumers."+k.Name] = k.Publishes, k.Subscribe
		if k.HasMutate {
			s.Mutates = append(s.Mutates, k.Name)
		}
	}
	return s
}

// activate puts a proposal in force, unless another version came into force
// meanwhile (lesson 42).
func (e *session) activate(ctx context.Context, v *view, r store.Repair, filename string, config Config) error {
	raw, err := json.Marshal(config)
	if err != nil {
		return err
	}
	d := Deploy{Name: v.workflow.Name, Filename: filename, Script: r.Script, By: fixedBy}
	out := Deployed{Name: v.workflow.Name, Version: VersionOf(filename, r.Script), Config: config}
	err = e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		w, err := tx.HoldWorkflow(ctx, v.workflow.Name)
		if err != nil {
			return err
		}
		if w.Version != r.BaseVersion {
			return errOvertaken
		}
		r.State, r.Version = store.RepairActivated, out.Version
		if err := tx.AddRepair(ctx, r); err != nil {
			return err
		}
		e.tell(tx, Change{What: "fix activated", Workflow: w.Name, Run: v.row.ID})
		return e.deploy(ctx, tx, d, raw, &out)
	})
	if errors.Is(err, errOvertaken) {
		r.State, r.Version, r.Reason = store.RepairRejected, "", "another version was deployed meanwhile"
		return e.noteFix(ctx, v, r)
	}
	return err
}

var errOvertaken = errors.New("another version is in force")
