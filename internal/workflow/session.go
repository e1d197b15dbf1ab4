package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// How long a session may keep its worker while other lanes wait.
const (
	sessionSteps = 200
	sessionTime  = 10 * time.Second
)

// maxConflicts is how often in a row a step may find that somebody changed
// what it was based on.
const maxConflicts = 5

// session is one claim of a lane's job.
type session struct {
	*Service
	claim  lane.Claim
	memory *memory
	id     string // of the workflow
	partID string // of the partition whose lane it is; empty: the workflow's own

	// What the owner of the lane knows without asking, because the run before
	// it committed.
	ahead  *view                      // what the next step depends on; nil is to be loaded
	states map[string]json.RawMessage // what handlers keep, by name; nil is a handler that keeps nothing
	tells  string                     // the handler that published, or asked to be woken, when it ran last; guarded by memory.habit.mu
	held   held
}

// errGone is a workflow that was deleted.
var errGone = errors.New("the workflow is deleted")

// run is the task: see the package comment.
func (s *Service) run(ctx context.Context, j *queue.Job) error {
	var p jobPayload
	if err := json.Unmarshal(j.Payload, &p); err != nil || p.Workflow == "" {
		return queue.Permanent(&pawl.Error{Code: pawl.CodeInternal, Op: "run workflow", Msg: "the job names no workflow", Err: err})
	}
	until, err := s.workOn(ctx, j, p.Workflow, p.Partition)
	if err != nil || until.IsZero() {
		return err
	}
	return queue.Snooze(until)
}

// work is one session. It returns when to look again, zero if nothing can
// become due by itself.
func (s *Service) work(ctx context.Context, c lane.Claim, workflowID string) (until time.Time, err error) {
	return s.workOn(ctx, c, workflowID, "")
}

// workOn is work on the lane of a partition.
func (s *Service) workOn(ctx context.Context, c lane.Claim, workflowID, part string) (until time.Time, err error) {
	e := &session{Service: s, claim: c, memory: s.memoryOf(memoryKey(workflowID, part), c.Fence()), id: workflowID, partID: part}
	if part != "" {
		if ok, err := e.takePlace(ctx); err != nil || !ok {
			return time.Time{}, err
		}
	}
	until, err = e.loop(ctx)
	if errors.Is(err, errGone) {
		s.forget(workflowID)
		return time.Time{}, nil
	}
	return until, err
}

// loop takes steps until there is nothing to do, and leaves nothing unwritten.
func (e *session) loop(ctx context.Context) (until time.Time, err error) {
	until, err = e.steps(ctx)
	held := e.writeCommit(ctx)
	switch {
	case held == nil || err != nil && !errors.Is(err, queue.ErrHalted):
		return until, err
	case errors.Is(held, pawl.ErrConflict): // somebody was faster
		return time.Now(), nil
	}
	return time.Time{}, held
}

func (e *session) steps(ctx context.Context) (until time.Time, err error) {
	begun, conflicts := time.Now(), 0
	for n := 0; ; n++ {
		spent := n >= sessionSteps || time.Since(begun) > sessionTime
		if e.claim.Stopping() || spent && e.partID == "" {
			return time.Now(), nil
		}
		v, st, err := e.next(ctx)
		if err != nil {
			return time.Time{}, err
		}
		over, again, err := e.partSteps(ctx, v, st, spent)
		switch {
		case errors.Is(err, pawl.ErrConflict) && !errors.Is(err, pawl.ErrLeaseLost) && conflicts < maxConflicts:
			conflicts++
			continue
		case over || err != nil:
			return st.until, err
		case again:
			continue
		}
		if st.do == actWait {
			if err := e.stopWaiting(ctx, v); err != nil {
				return time.Time{}, err
			}
			return st.until, e.settleOnce(ctx, v)
		}
		if st.do.starts() && e.cfg.Halt().Active() {
			return time.Time{}, cmp.Or(e.settleOnce(ctx, v), queue.ErrHalted)
		}
		if until, waits, err := e.awaitFresh(ctx, v, st); err != nil || waits {
			if err == nil && e.partID != "" {
				err = e.leave(ctx, v, until, false)
			}
			if errors.Is(err, pawl.ErrConflict) && !errors.Is(err, pawl.ErrLeaseLost) {
				return time.Now(), nil // the workflow was changed at this moment
			}
			return until, err
		}
		err = e.take(ctx, v, st)
		if err != nil { // somebody may know better
			e.ahead, e.states = nil, nil
		}
		switch {
		case err == nil:
			conflicts = 0
		case errors.Is(err, pawl.ErrConflict) && conflicts < maxConflicts:
			conflicts++ // look again: a person was faster
		default:
			return time.Time{}, err
		}
	}
}

// partSteps are what partitions make of a step: one that has nothing to do, or worked
// for long enough, leaves its place, which ends its session; the workflow's own lane
// sorts, and looks again if there is more to sort and nothing else to do.
func (e *session) partSteps(ctx context.Context, v *view, st step, spent bool) (over, again bool, err error) {
	switch {
	case e.partID != "" && (spent || st.do == actWait):
		return true, false, e.rest(ctx, v, st)
	case e.partID != "" || !v.workflow.Partitioned:
		return false, false, nil
	}
	more, err := e.sort(ctx, v)
	if err == nil && more && e.cfg.Halt().Active() {
		err = cmp.Or(e.settleOnce(ctx, v), queue.ErrHalted)
	}
	return false, more && st.do == actWait, err
}

// next looks and chooses.
func (e *session) next(ctx context.Context) (v *view, st step, err error) {
	if v, e.ahead = e.ahead, nil; v != nil {
		v.now = phaseNow()
		st, err = choose(v, e.memory, func(topics []string) (oldest map[string]int64, err error) {
			err = e.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
				oldest, err = v.oldestPending(ctx, tx, topics)
				return err
			})
			return oldest, err
		})
		return v, st, err
	}
	if err := e.writeCommit(ctx); err != nil && !errors.Is(err, pawl.ErrConflict) {
		return nil, step{}, err
	}
	began := time.Now()
	err = e.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		if v, err = e.loadLane(ctx, tx); err != nil {
			return err
		}
		if !v.workflow.DeletedAt.IsZero() {
			return errGone
		}
		if err := e.refresh(ctx, tx, e.memory, v); err != nil {
			return err
		}
		if err := e.memory.refreshKeys(ctx, tx, v); err != nil {
			return err
		}
		v.untried = v.row.ErrorCode == codeNoConnection && e.memory.missing != v.row.ID
		st, err = choose(v, e.memory, func(topics []string) (map[string]int64, error) {
			return v.oldestPending(ctx, tx, topics)
		})
		if err != nil || st.do != actConsume && st.do != actProduce {
			return err
		}
		v.rights, err = e.rightsFor(ctx, tx, e.id, v.workflow.Version)
		if err != nil {
			return err
		}
		return e.loadStart(ctx, tx, v, st.handler, began)
	})
	if errors.Is(err, pawl.ErrNotFound) {
		err = errGone
	}
	return v, st, err
}

// loadLane reads the view of the lane of the session.
func (e *session) loadLane(ctx context.Context, tx *store.Tx) (*view, error) {
	if e.partID == "" {
		return e.load(ctx, tx, e.id)
	}
	w, err := workflowstore.In(tx).GetWorkflow(ctx, e.id)
	if err != nil {
		return nil, err
	}
	return e.loadPart(ctx, tx, w, e.partID)
}

// rest ends the work of a partition for now.
func (e *session) rest(ctx context.Context, v *view, st step) error {
	if err := e.writeCommit(ctx); err != nil {
		return err
	}
	e.ahead = nil
	return e.leave(ctx, v, st.until, st.do != actWait)
}

// take does one step.
func (e *session) take(ctx context.Context, v *view, st step) error {
	e.log.Debug("workflow", "name", v.workflow.Name, "do", st.do, "handler", st.handler, "why", st.reason)
	switch st.do {
	case actRecover:
		return e.recover(ctx, v)
	case actReconcile:
		return e.reconcile(ctx, v)
	case actFix:
		return e.fix(ctx, v)
	case actRemind:
		return e.remind(ctx, v)
	case actExecute:
		if v.row.Owner != e.claim.Fence() { // whoever recovered it ended before it began
			return e.recover(ctx, v)
		}
		return e.revive(ctx, v, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return e.ledger.Start(ctx, tx, v.row) })
	case actResume:
		return e.revive(ctx, v, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			if err := e.forgetCleared(ctx, tx, v); err != nil {
				return runstore.Run{}, err
			}
			return e.ledger.Resume(ctx, tx, e.claim.Fence(), v.row)
		})
	case actRetry:
		return e.revive(ctx, v, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			if err := e.forgetCleared(ctx, tx, v); err != nil {
				return runstore.Run{}, err
			}
			if err := dropProposal(ctx, tx, v.row); err != nil {
				return runstore.Run{}, err
			}
			version := "" // the same; only a script that failed is replaced
			if v.row.Status == pawl.StatusFailedLogic {
				version = v.workflow.Version
			}
			return e.ledger.Retry(ctx, tx, e.claim.Fence(), v.row, version, st.asked)
		})
	case actConsume:
		return e.begin(ctx, v, st)
	case actProduce:
		st, err := e.pickInstant(ctx, v, st)
		if err != nil || st.do == actWait {
			return err
		}
		return e.begin(ctx, v, st)
	case actWait:
	}
	return nil
}

// forgetCleared takes back what a person said about the newest run, because it
// is acted on now and holds once.
func (e *session) forgetCleared(ctx context.Context, tx *store.Tx, v *view) error {
	if !v.cleared() {
		return nil
	}
	if v.part != nil {
		return partitionstore.In(tx).SetCleared(ctx, e.id, v.part.ID, "")
	}
	return workflowstore.In(tx).SetWorkflowCleared(ctx, e.id, "")
}

// recover ends a run that nobody executes; what follows is chosen next.
func (e *session) recover(ctx context.Context, v *view) error {
	o, err := e.ledger.RecoverLane(ctx, e.db, e.claim.Fence(), pawl.KindWorkflow, v.lane())
	if err == nil && o.Run.ID != "" {
		e.log.Warn("a run was found unfinished", "workflow", v.workflow.Name, "run", o.Run.ID, "phase", o.Run.Phase, "successor", o.Successor.ID, "exhausted", o.Exhausted)
	}
	return err
}

// begin starts a first attempt. It is stored only if nobody changed the
// workflow's row since the view, so that no pause and no deploy comes in between
//
func (e *session) begin(ctx context.Context, v *view, st step) error {
	kind := pawl.HandlerProducer
	if st.do == actConsume {
		kind = pawl.HandlerConsumer
	}
	draft := e.ledger.Draft(e.claim.Fence(), ledger.Spec{
		Kind: pawl.KindWorkflow, Lane: v.lane(), Handler: st.handler, HandlerType: kind,
		Trigger: st.trigger, ScheduledFor: st.scheduledFor, ScriptVersion: v.workflow.Version,
	}, v.row)
	if _, known := e.states[draft.Handler]; !known {
		if err := e.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error { return e.loadState(ctx, tx, draft.Handler) }); err != nil {
			return err
		}
	}
	x := &execution{session: e, view: v, config: v.config, rights: v.rights, state: e.states[draft.Handler], mutation: &ledger.Mutation{}}
	ctx, x.cancel = context.WithCancelCause(ctx)
	defer x.cancel(nil)
	x.draft = draft
	if err := x.later(ctx, draft, x.enter(ledger.Checkpoint{})); err != nil {
		return err
	}
	if err := e.cfg.fault("begun"); err != nil {
		return err
	}
	return x.execute(ctx)
}

// enter stores the run as far as it came.
func (x *execution) enter(kept ledger.Checkpoint, path ...pawl.Phase) transition {
	return func(ctx context.Context, tx *store.Tx, _ runstore.Run) (runstore.Run, error) {
		if err := workflowstore.In(tx).ExpectRevision(ctx, x.id, x.view.workflow.Revision); err != nil {
			return runstore.Run{}, err
		}
		return x.ledger.Enter(ctx, tx, x.draft, kept, path...)
	}
}

// loadState reads what a handler keeps.
func (e *session) loadState(ctx context.Context, tx *store.Tx, handler string) error {
	kept, err := e.keptBy(ctx, tx, handler)
	if e.states == nil {
		e.states = map[string]json.RawMessage{}
	}
	e.states[handler] = kept
	return err
}

// keptBy reads what a handler keeps in the lane of the session.
func (e *session) keptBy(ctx context.Context, tx *store.Tx, handler string) (json.RawMessage, error) {
	if e.partID != "" {
		p, err := partitionstore.In(tx).Get(ctx, e.id, e.partID)
		return p.State, err
	}
	kept, err := workflowstore.In(tx).GetHandlerState(ctx, e.id, handler)
	return kept.State, err
}

// revive makes a run of the database active in a transaction, reads what its handler keeps in
// the same one, and executes it. Losing that transaction repeats nothing, so
// it does not wait for the disk.
func (e *session) revive(ctx context.Context, v *view, activate func(context.Context, *store.Tx) (runstore.Run, error)) error {
	x := &execution{session: e, view: v}
	err := e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if x.run, err = activate(ctx, tx); err != nil {
			return err
		}
		if x.config, err = e.config(ctx, tx, e.id, x.run.ScriptVersion); err != nil {
			return err
		}
		if x.rights, err = e.rightsFor(ctx, tx, e.id, x.run.ScriptVersion); err != nil {
			return err
		}
		if x.trace.logged, err = runstore.In(tx).CountRunLogs(ctx, x.run.ID); err != nil {
			return err
		}
		x.state, err = e.keptBy(ctx, tx, x.run.Handler)
		return err
	}, store.Lazy)
	if err != nil {
		return err
	}
	x.unwritten.row = x.run
	if err := e.cfg.fault("begun"); err != nil {
		return err
	}
	if x.run.Status != pawl.StatusActive { // it waits for reconciliation
		return nil
	}
	ctx, x.cancel = context.WithCancelCause(ctx)
	defer x.cancel(nil)
	return x.execute(ctx)
}
