package execution

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
)

// Outcome implements API.
func (s *Service) Outcome(ctx context.Context, key string) (answer contract.RunAnswerV1, err error) {
	if err := contract.CheckKey(key); err != nil {
		return answer, err
	}
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		e, err := executionstore.In(tx).ExecutionByKey(ctx, key)
		if err != nil {
			return err
		}
		switch {
		case e.Finished || e.Interrupt != nil:
		case e.Alive(tx.Now):
			return &InProgressError{RunID: e.RunID}
		default:
			return Abandoned(e.RunID)
		}
		answer, err = answerOf(e)
		return err
	})
	return answer, err
}

// Executions that died and that nobody asked for again are given up after a
// day, so that what is reserved for them is free again.
const (
	abandonedAfter = 24 * time.Hour
	sweepAtOnce    = 100
)

// Sweep gives up what nobody goes on with and tells how many those were. It
// does one bounded piece of work and is safe to call from every node.
func (s *Service) Sweep(ctx context.Context) (closed int, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		closed = 0
		left, err := executionstore.In(tx).AbandonedExecutions(ctx, tx.Now.Add(-abandonedAfter), sweepAtOnce)
		if err != nil {
			return err
		}
		for _, e := range left {
			given, err := s.giveUp(ctx, tx, e)
			if err != nil {
				return err
			}
			if given {
				closed++
			}
		}
		return nil
	})
	return closed, err
}

func (s *Service) giveUp(ctx context.Context, tx *store.Tx, seen executionstore.Execution) (bool, error) {
	m, err := memoryOf(seen)
	if err != nil {
		m = memory{} // it is given up all the same
	}
	m.Unknown = true
	next := seen
	next.Owner, next.LeaseUntil = s.newOwner(), tx.Now.Add(leaseFor)
	taken, err := executionstore.In(tx).TakeExecution(ctx, seen, next)
	if err != nil || !taken {
		return false, err
	}
	cost, err := billing.Settle(ctx, tx, billing.Attempt{RunID: seen.RunID, Attempt: seen.Attempt}, nil)
	if err != nil {
		return false, err
	}
	o := executionstore.Outcome{ErrorCode: string(contract.Aborted), ErrorMessage: "its executor died and was not asked again; it is unknown whether it ran"}
	return true, executionstore.In(tx).FinishExecution(ctx, seen.Key, next.Owner, o, m.json(), int64(cost))
}

// Recover gives up the claims of earlier processes of this node, so that nobody
// has to wait for their leases. It is called before the service is used, by a
// process that knows that no other one has its node's name.
func (s *Service) Recover(ctx context.Context) (released int64, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		released, err = tx.ReleaseExecutionsOf(ctx, s.node+"/")
		return err
	})
	return released, err
}
