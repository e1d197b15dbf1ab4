package ledger

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// changeRetry changes the retry state of the run's lane. Nobody else changes
// it between the read and the write.
func changeRetry(ctx context.Context, tx *store.Tx, r runstore.Run, change func(run.Retry) (run.Retry, bool)) (run.Retry, bool, error) {
	row, err := runstore.In(tx).HoldRetry(ctx, r.Kind, r.Lane)
	if err != nil {
		return run.Retry{}, false, err
	}
	was := RetryOf(row)
	next, exhausted := change(was)
	if next == was {
		return next, exhausted, nil
	}
	row.Count, row.Crashes, row.PeriodStart, row.NextAt = next.Count, next.Crashes, next.PeriodStart, next.NextAt
	return next, exhausted, runstore.In(tx).SetRetry(ctx, row)
}

// RetryOf is the stored retry state as the rules know it.
func RetryOf(row runstore.LaneRetry) run.Retry {
	return run.Retry{Count: row.Count, Crashes: row.Crashes, PeriodStart: row.PeriodStart, NextAt: row.NextAt}
}

// failed counts an attempt that ended without a crash, and says until when to
// wait. A source has one budget for all failures, a workflow one for
// transient ones, a schedule one for the attempts within a slot.
func failed(was run.Retry, r runstore.Run, f Failure, now time.Time) (next run.Retry, exhausted bool) {
	switch {
	case f.Deferred:
		next = was
		next.Crashes = 0
		if r.HandlerType == pawl.HandlerProducer || r.HandlerType == pawl.HandlerConsumer { // others keep their own time
			next.NextAt = now.Add(f.RetryAfter)
		}
		return next, false
	case r.HandlerType == pawl.HandlerSource:
		budget := f.Budget
		if budget == (run.Budget{}) {
			budget = run.DefaultBudget()
		}
		next = was.Fail(budget, now)
		exhausted = next.Exhausted(budget)
	case r.Status != pawl.StatusPausedTransient:
		next = was
		next.Crashes = 0
		return next, false
	case r.HandlerType == pawl.HandlerSchedule:
		next = run.Retry{Count: was.Count + 1, PeriodStart: was.PeriodStart}
		next.NextAt = f.Slot.Next(next.Count, now, f.RetryAfter, r.ID)
		return next, next.NextAt.IsZero()
	default:
		var ok bool
		next, ok = was.FailTransient(now)
		exhausted = !ok
	}
	if asked := now.Add(f.RetryAfter); !next.NextAt.IsZero() && asked.After(next.NextAt) {
		next.NextAt = asked
	}
	return next, exhausted
}
