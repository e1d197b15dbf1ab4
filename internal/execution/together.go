package execution

import (
	"context"
	"errors"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
)

// Whoever begins and ends many runs at the same time, in this process, does so in
// transactions of its own: the claims with what it writes before they leave, and
// the outcomes with what it writes of them. Each step is what Run does, and a
// transaction that fails leaves a run where a crash would: asking with its key goes
// on with it.

// Flight is a run that was claimed and has not left.
type Flight struct{ f *flight }

// Prepare is the part of a claim that needs no database, for a request that was
// authorised under a grant. Nil is one that Run must be asked for: what it may cost
// is bounded, or it will be refused.
func (s *Service) Prepare(tx *store.Tx, key, graphID string, req contract.RunRequestV1, g grant.Funded) *Flight {
	a, err := checked(key, graphID, req)
	if err != nil || !billing.Unbounded(g.Grant, g.Account) && !billing.Untouched(g) {
		return nil
	}
	exec, name, err := s.graphs.Lookup(graphID)
	if err != nil {
		return nil
	}
	f := s.draft(tx, a, newcomer{grant: g.Grant, exec: exec, name: name, account: g.Account})
	return &Flight{f}
}

// ClaimAll claims the keys of flights. If one of them is known the transaction
// fails with store.ErrSetRefused.
func (s *Service) ClaimAll(ctx context.Context, tx *store.Tx, list []*Flight) error {
	rows := make([]executionstore.Execution, len(list))
	for i, l := range list {
		rows[i] = l.f.claimed
	}
	return executionstore.In(tx).ClaimExecutions(ctx, rows)
}

// Success is a good outcome that cost nothing and is not written yet.
type Success struct{ row executionstore.Success }

// FinishAll writes outcomes. If one of the claims is lost the transaction fails
// with store.ErrSetRefused.
func (s *Service) FinishAll(ctx context.Context, tx *store.Tx, list []Success) error {
	rows := make([]executionstore.Success, len(list))
	for i, l := range list {
		rows[i] = l.row
	}
	return executionstore.In(tx).FinishExecutions(ctx, rows)
}

// Fly lets a flight leave whose claim is committed, and waits for its outcome like
// Run. A good one that cost nothing is given to end, which writes it and whatever
// else there is to write of it; if it cannot, the outcome is written here. ended
// tells that it did.
func (s *Service) Fly(ctx context.Context, l *Flight, end func(contract.RunAnswerV1, Success) error) (answer contract.RunAnswerV1, ended bool, err error) {
	l.f.end = end
	if err := s.launch(ctx, l.f); err != nil {
		return contract.RunAnswerV1{}, false, err
	}
	answer, err = wait(ctx, l.f)
	select {
	case <-l.f.done:
		return answer, l.f.endedElsewhere, err
	default: // its caller goes away
		return answer, false, err
	}
}

// endElsewhere has a good outcome written by whoever began the run.
func (f *flight) endElsewhere(o executionstore.Outcome, m memory) (contract.RunAnswerV1, bool) {
	answer, err := answerOf(executionstore.Execution{RunID: f.run.RunID, Attempt: f.run.Attempt, Outcome: o, Remote: m.json()})
	if err != nil {
		return answer, false
	}
	err = f.end(answer, Success{executionstore.Success{Key: f.key, Owner: f.owner, TraceID: o.TraceID, Output: o.Output, Remote: m.json()}})
	if err != nil && !errors.Is(err, store.ErrSetRefused) && !errors.Is(err, pawl.ErrLeaseLost) {
		f.s.log.Warn("the end of a run is written by itself", "run", f.run.RunID, "err", err)
	}
	f.endedElsewhere = err == nil
	return answer, err == nil
}
