package execution

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/visible"
)

// maxMessage bounds what is kept of an error message, in bytes.
const maxMessage = 4096

// conclude turns the end of a run into what is stored and answered.
// cause is why the context of the run ended, if it did.
func (f *flight) conclude(cause error, result runner.Result, err error) (contract.RunAnswerV1, error) {
	switch {
	case errors.Is(err, pawl.ErrLeaseLost), errors.Is(cause, pawl.ErrLeaseLost):
		return contract.RunAnswerV1{}, &InProgressError{RunID: f.run.RunID}
	case err == nil && result.Interrupt != nil:
		return f.interrupted(result)
	case err == nil:
		return f.finished(result)
	case errors.Is(cause, runner.ErrCancelled):
		return f.finished(runner.Result{Code: string(contract.Aborted), Message: "the run was cancelled", Unknown: true})
	case errors.Is(cause, context.DeadlineExceeded):
		return f.finished(runner.Result{Code: string(contract.Timeout), Message: "the run took too long and was given up", Unknown: true})
	}
	f.s.log.Warn("a run was given back", "run", f.run.RunID, "err", err)
	if released := f.released(); released != nil {
		f.s.log.Warn("the claim of a run could not be ended; its lease will", "run", f.run.RunID, "err", released)
	}
	return contract.RunAnswerV1{}, again(err)
}

// finished stores an outcome with the receipts of the attempt.
func (f *flight) finished(r runner.Result) (contract.RunAnswerV1, error) {
	o := executionstore.Outcome{OK: r.OK, TraceID: r.TraceID, Output: asJSON(r.Output)}
	if !r.OK {
		o.ErrorCode, o.ErrorMessage = string(contract.Internal), visible.Truncate(f.redact(r.Message), maxMessage)
		if contract.ErrorCode(r.Code).Valid() {
			o.ErrorCode = r.Code
		}
	}
	m, facts := f.snapshotWith(r)
	m.Input = nil
	m.Unknown, m.Retry, m.RetryAfterMS = r.Unknown, r.Retry && !r.OK && !r.Unknown, r.RetryAfter.Milliseconds()
	if f.end != nil && r.OK && f.free && len(facts) == 0 {
		if answer, ended := f.endElsewhere(o, m); ended {
			return answer, nil
		}
	}
	var cost pawl.USD
	err := f.retryWrite(func(ctx context.Context, tx *store.Tx) (err error) {
		if !f.free || len(facts) > 0 {
			if cost, _, err = f.settle(ctx, tx, facts); err != nil {
				return err
			}
		}
		return executionstore.In(tx).FinishExecution(ctx, f.key, f.owner, o, m.json(), int64(cost))
	})
	if err != nil {
		return contract.RunAnswerV1{}, f.writeError(err)
	}
	return answerOf(executionstore.Execution{
		RunID: f.run.RunID, Attempt: f.run.Attempt, Outcome: o, Remote: m.json(), Cost: int64(cost),
	})
}

// interrupted stores a question to a person. What was used so far is settled;
// what goes on after the answer is reserved again.
func (f *flight) interrupted(r runner.Result) (contract.RunAnswerV1, error) {
	m, facts := f.snapshotWith(r)
	m.Units, m.Asked, m.Question, m.Input = m.Units+len(facts), true, store.NewID(), f.run.Input
	question := asJSON(r.Interrupt)
	var cost pawl.USD
	err := f.retryWrite(func(ctx context.Context, tx *store.Tx) (err error) {
		var stop bool
		if cost, stop, err = f.settle(ctx, tx, facts); err != nil {
			return err
		}
		if stop {
			return errStopAsked
		}
		return executionstore.In(tx).InterruptExecution(ctx, f.key, f.owner, r.TraceID, question, m.json(), int64(cost))
	})
	if errors.Is(err, errStopAsked) {
		return f.finished(f.stopElsewhere(context.WithoutCancel(f.s.base)))
	}
	if err != nil {
		return contract.RunAnswerV1{}, f.writeError(err)
	}
	return answerOf(executionstore.Execution{
		RunID: f.run.RunID, Attempt: f.run.Attempt, Outcome: executionstore.Outcome{TraceID: r.TraceID}, Interrupt: question, Remote: m.json(), Cost: int64(cost),
	})
}

// released ends the claim without an outcome.
func (f *flight) released() error {
	_, facts := f.snapshot()
	return f.write(func(ctx context.Context, tx *store.Tx) error {
		if _, _, err := f.settle(ctx, tx, facts); err != nil {
			return err
		}
		return executionstore.In(tx).ReleaseExecution(ctx, f.key, f.owner)
	})
}

// errStopAsked keeps a run that was cancelled from waiting for a person.
var errStopAsked = errors.New("the run was asked to stop")

// settle ends the money of this claim and tells whether somebody asked to stop
// the run. The fence comes first, as in every claim: whoever takes rows in one
// order does not wait for each other in a circle.
func (f *flight) settle(ctx context.Context, tx *store.Tx, facts []billing.Fact) (cost pawl.USD, stop bool, err error) {
	cancelAt, err := executionstore.In(tx).BeatExecution(ctx, f.key, f.owner, tx.Now.Add(leaseFor))
	if err != nil {
		return 0, false, err
	}
	cost, err = billing.Settle(ctx, tx, f.bill, facts)
	return cost, !cancelAt.IsZero(), err
}

func (f *flight) snapshot() (memory, []billing.Fact) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.memory, f.facts
}

// snapshotWith is snapshot with what the executor wants remembered of this result. It is
// stored with the result, so that no crash finds one without the other.
func (f *flight) snapshotWith(r runner.Result) (memory, []billing.Fact) {
	m, facts := f.snapshot()
	if r.Remote != nil {
		m.Remote = r.Remote
	}
	return m, facts
}

// insist writes an outcome, which is known here and nowhere else, as long as
// the database cannot be reached and the service does not stop.
func (f *flight) retryWrite(fn store.Func) error {
	for {
		err := f.write(fn)
		if err == nil || !errors.Is(err, pawl.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		f.s.log.Warn("the outcome of a run could not be written; it is tried again", "run", f.run.RunID, "err", err)
		select {
		case <-f.s.base.Done():
			return err
		case <-time.After(lookEvery):
		}
	}
}

// writeError: who lost the claim does not know the outcome that counts.
func (f *flight) writeError(err error) error {
	if errors.Is(err, pawl.ErrLeaseLost) {
		return &InProgressError{RunID: f.run.RunID}
	}
	return again(err)
}

// asJSON makes sure that what an executor called JSON is.
func asJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	text, _ := json.Marshal(string(raw)) // a string always can be
	return text
}
