package workflow

import (
	"context"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/when"
)

// What a person wants of a workflow.
const (
	desiredActive   = string(run.DesiredActive)
	desiredPaused   = string(run.DesiredPaused)
	desiredArchived = string(run.DesiredArchived)
)

// view is everything that the next step of a lane depends on, as of one
// instant; the lane's flags apart.
type view struct {
	now       time.Time
	workflow  workflowstore.Workflow
	config    Config // of the version in force
	rights    rights // of the version in force, if a run of it is to begin
	schedules []workflowstore.ProducerSchedule
	times     map[string]when.Schedule // of the producers with limits
	wakes     map[string]time.Time     // by consumer
	seqs      map[string]int64         // by topic

	part  *partitionstore.Partition // whose lane it is; nil is the workflow's own
	parts *partsView                // of a workflow that may have partitions; nil of one of them

	row    runstore.Run // the newest run; zero if there was none
	newest run.Run      // the same, as the rules see it
	retry  run.Retry
	open   *mutationstore.Mutation // its unresolved call
	asked  *mutationstore.Approval // the question that it waits for

	// untried says that the newest run waits for a connection that this process
	// has not looked for yet.
	untried bool

	waits []terms.Stale  // the sources that it waits for; none while a run that it would wait with is under way
	pause runstore.Pause // what was said about its pause; looked up for people only

	foreseen *foreseen // what its prepare is likely to ask for; nil if nobody knows
	calm     bool      // the newest run committed here, so that the lane has no failures to forget

	fixes   []workflowstore.Repair // what was asked for along its chain, the oldest first
	fixable bool                   // another one may be asked for
	fixAt   time.Time              // but not before
}

// load reads the view of a lane.
func (s *Service) load(ctx context.Context, tx *store.Tx, workflowID string) (*view, error) {
	w, err := workflowstore.In(tx).GetWorkflow(ctx, workflowID)
	if err != nil {
		return nil, err
	}
	return s.loadFrom(ctx, tx, w)
}

func (s *Service) loadFrom(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) (*view, error) {
	v := &view{now: tx.Now, workflow: w, wakes: map[string]time.Time{}, seqs: map[string]int64{}}
	workflowID := w.ID
	var err error
	if v.config, err = s.config(ctx, tx, workflowID, v.workflow.Version); err != nil {
		return nil, err
	}
	var wakes []workflowstore.HandlerState
	var newest []runstore.Run
	err = errors.Join(
		workflowstore.In(tx).AskWakeTimes(ctx, workflowID, &wakes),
		eventstore.In(tx).AskTopicSeqs(ctx, workflowID, v.seqs),
		runstore.In(tx).AskNewestRun(ctx, pawl.KindWorkflow, v.workflow.Lane, &newest))
	if err == nil && len(v.config.Producers) > 0 {
		err = workflowstore.In(tx).AskProducerSchedules(ctx, workflowID, &v.schedules)
	}
	if err == nil {
		err = tx.Flush(ctx)
	}
	if err != nil {
		return nil, err
	}
	for _, h := range wakes {
		v.wakes[h.Handler] = h.WakeAt
	}
	if err := s.loadTimes(ctx, tx, v); err != nil {
		return nil, err
	}
	if len(v.config.Needs) > 0 {
		if v.waits, err = s.cfg.Needs.Waiting(ctx, tx, pawl.KindWorkflow, w.Lane, v.config.Needs); err != nil {
			return nil, err
		}
	}
	if w.Partitioned {
		if err := s.loadParts(ctx, tx, v); err != nil {
			return nil, err
		}
	}
	if len(newest) == 0 {
		return v, nil
	}
	return v, s.loadRun(ctx, tx, v, newest[0])
}

// loadRun reads what belongs to the newest run of a lane.
func (s *Service) loadRun(ctx context.Context, tx *store.Tx, v *view, row runstore.Run) (err error) {
	v.row = row
	if !run.Open(row.Status) { // what it called is history
		v.newest = ended(row)
		return nil
	}
	if v.newest, err = s.ledger.View(ctx, tx, row); err != nil {
		return err
	}
	if run.Unresolved(v.newest.Ledger) {
		if v.open, err = openMutation(ctx, tx, row.ID); err != nil {
			return err
		}
	}
	if v.asked, err = askedBy(ctx, tx, row); err != nil {
		return err
	}
	if v.asked == nil {
		if v.asked, err = proposalFor(ctx, tx, row); err != nil {
			return err
		}
	}
	if err := s.loadFixes(ctx, tx, v); err != nil {
		return err
	}
	retry, err := runstore.In(tx).GetRetry(ctx, pawl.KindWorkflow, v.lane())
	if errors.Is(err, pawl.ErrNotFound) {
		return nil
	}
	v.retry = ledger.RetryOf(retry)
	return err
}

// ended is a run that is history, as the rules see it.
func ended(row runstore.Run) run.Run {
	return run.Run{ID: row.ID, RetryOf: row.RetryOf, Type: row.HandlerType, Phase: row.Phase, Status: row.Status, Class: row.ErrorClass}
}

// exhausted reports whether the budget that belongs to the newest run's status
// is used up.
func (v *view) exhausted() bool {
	switch v.newest.Status {
	case pawl.StatusPausedTransient:
		return v.retry.Count >= run.TransientAttempts
	case pawl.StatusCrashed:
		return run.CrashLoop(v.retry.Crashes)
	case pawl.StatusFailedLogic:
		return !v.fixable
	default:
		return false
	}
}

// cleared reports whether a person said that what stopped the newest run is
// mended.
func (v *view) cleared() bool {
	if v.part != nil {
		return v.row.ID != "" && v.part.ClearedRun == v.row.ID
	}
	return v.row.ID != "" && v.workflow.ClearedRun == v.row.ID
}
