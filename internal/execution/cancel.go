package execution

import (
	"context"
	"encoding/json"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// Cancel implements API. What nobody executes, because it waits for a person or
// its executor died, is claimed in order to be ended.
func (s *Service) Cancel(ctx context.Context, key string) error { return s.cancel(ctx, key, "") }

func (s *Service) cancel(ctx context.Context, key, by string) error {
	if err := contract.CheckKey(key); err != nil {
		return err
	}
	var f *flight
	err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		f = nil
		asked, err := executionstore.In(tx).AskCancelExecution(ctx, key)
		if err != nil {
			return err
		}
		e, err := executionstore.In(tx).ExecutionByKey(ctx, key)
		if err != nil || !asked {
			return err
		}
		if err := audit(ctx, tx, by, "graph.cancel", e.RunID, map[string]any{"graph": e.GraphID}); err != nil || e.Alive(tx.Now) {
			return err
		}
		f, err = s.takeToStop(ctx, tx, e)
		return err
	})
	if err != nil {
		return err
	}
	if f != nil {
		return s.launch(ctx, f)
	}
	if here := s.flightOf(key); here != nil {
		here.askStop(ctx)
	}
	return nil
}

// takeToStop claims an execution that is to be stopped, whatever its grant and
// its graph have become. Nil means that a rival was faster; it sees the note.
func (s *Service) takeToStop(ctx context.Context, tx *store.Tx, seen executionstore.Execution) (*flight, error) {
	m, err := memoryOf(seen)
	if err != nil {
		return nil, err
	}
	var g grantstore.Grant
	if !work.Is(seen.GraphID) {
		if g, err = grantstore.In(tx).GrantByID(ctx, seen.GrantID); err != nil {
			return nil, err
		}
	}
	exec, name, err := s.graphs.Lookup(seen.GraphID)
	if err != nil { // the graph is gone: there is nobody to tell
		exec, name = gone{}, ""
	}
	next := seen
	next.Owner, next.LeaseUntil = s.newOwner(), tx.Now.Add(leaseFor)
	taken, err := executionstore.In(tx).TakeExecution(ctx, seen, next)
	if err != nil || !taken {
		return nil, err
	}
	return s.newFlight(next, m, exec, name, grant.Grant{ID: g.ID, BillingAccountID: g.AccountID}, nil, nil), nil
}

// gone is the executor of a graph that is not defined any more.
type gone struct{}

var errGone = &pawl.Error{Code: pawl.CodeNotFound, Op: "cancel run", Msg: "the graph is not defined any more"}

func (gone) Run(context.Context, runner.Run, func(runner.Event) error) (runner.Result, error) {
	return runner.Result{}, errGone
}

func (gone) Cancel(context.Context, runner.Run) error { return errGone }

// Resume implements API.
func (s *Service) Resume(ctx context.Context, key, question string, answer []byte) (contract.RunAnswerV1, error) {
	return s.resume(ctx, key, question, answer, "")
}

func (s *Service) resume(ctx context.Context, key, question string, answer []byte, by string) (contract.RunAnswerV1, error) {
	none := contract.RunAnswerV1{}
	if err := contract.CheckKey(key); err != nil {
		return none, err
	}
	if !json.Valid(answer) {
		return none, &pawl.Error{Code: pawl.CodeInvalid, Reason: string(contract.InvalidRequest), Op: "resume run", Msg: "the answer is not JSON"}
	}
	var f *flight
	var stored contract.RunAnswerV1
	err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		f, stored, err = s.claimResumption(ctx, tx, key, question, answer)
		if err != nil || f == nil {
			return err
		}
		return audit(ctx, tx, by, "graph.answer", f.run.RunID, map[string]any{"graph": f.run.GraphID})
	})
	if err != nil || f == nil {
		return stored, err
	}
	if err := s.launch(ctx, f); err != nil {
		return none, err
	}
	return wait(ctx, f)
}

// claimResumption claims a run that waits for a person, or whose resumption
// died; the executor tells whether the answer had arrived.
func (s *Service) claimResumption(ctx context.Context, tx *store.Tx, key, question string, answer []byte) (*flight, contract.RunAnswerV1, error) {
	none := contract.RunAnswerV1{}
	e, err := executionstore.In(tx).ExecutionByKey(ctx, key)
	if err != nil {
		return nil, none, err
	}
	m, err := memoryOf(e)
	switch {
	case err != nil:
		return nil, none, err
	case e.Finished, e.Interrupt != nil && question != "" && question != m.Question:
		stored, err := answerOf(e) // the answer arrived long ago
		return nil, stored, err
	case e.Alive(tx.Now):
		return nil, none, &InProgressError{RunID: e.RunID}
	case e.Interrupt == nil && (!m.Asked || question != "" && question != m.Question):
		return nil, none, errNotInterrupted(e.RunID)
	}
	f, err := s.takeOver(ctx, tx, e, takeWish{resume: answer})
	if err == nil && f == nil {
		err = errBusy()
	}
	return f, none, err
}
