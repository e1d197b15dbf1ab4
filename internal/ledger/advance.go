package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Checkpoint is what a run keeps on reaching a phase: the prepare result on
// prepared and the mutation result on mutated, and neither elsewhere.
type Checkpoint struct {
	PrepareResult  json.RawMessage
	MutationResult json.RawMessage

	// Mutation is what the owner of the run knows about its call, because it made
	// it and has held the lane since; nil is to be looked up.
	Mutation *Mutation
}

// Start notes that the owner executes the run now. Begin, Retry and Resume
// imply it; a successor that recovery made needs it.
func (l *Ledger) Start(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
	if r.Status != pawl.StatusActive {
		return runstore.Run{}, refuse("start run", r, "it is %s", r.Status)
	}
	if err := tx.Fence(ctx, r.Owner); err != nil {
		return runstore.Run{}, err
	}
	started, err := runstore.In(tx).StartRun(ctx, r)
	if err != nil {
		return runstore.Run{}, err
	}
	l.emit(tx, Started, started, run.Decision{})
	return started, nil
}

// Advance moves an active run on, through all phases of a path, and stores the
// results of those that are completed. The last step is Commit's.
//
// The transaction that advances to mutated is the one that also resolves the
// mutation row, before this call: while it is unresolved there is no result.
// This step alone is also made on a run that is paused for reconciliation,
// once it is known that the call happened or a person skipped it; the run stays
// paused until the owner of its lane resumes it.
func (l *Ledger) Advance(ctx context.Context, tx *store.Tx, r runstore.Run, c Checkpoint, path ...pawl.Phase) (runstore.Run, error) {
	const op = "advance run"
	waiting := r.Status == pawl.StatusPausedReconciliation && slices.Equal(path, []pawl.Phase{pawl.PhaseMutated})
	if r.Status != pawl.StatusActive && !waiting {
		return runstore.Run{}, refuse(op, r, "it is %s", r.Status)
	}
	at, err := c.check(op, r, path)
	if err != nil {
		return runstore.Run{}, err
	}
	if !waiting {
		if err := tx.Fence(ctx, r.Owner); err != nil {
			return runstore.Run{}, err
		}
	}
	if slices.Contains(path, pawl.PhaseMutated) {
		if err := l.mutationResolved(ctx, tx, r, c.Mutation, waiting); err != nil {
			return runstore.Run{}, err
		}
	}
	advanced, err := runstore.In(tx).AdvanceRun(ctx, r, at, runstore.RunResults{Prepare: c.PrepareResult, Mutation: c.MutationResult})
	if err != nil {
		return runstore.Run{}, err
	}
	l.emitPath(tx, advanced, path)
	return advanced, nil
}

// emitPath notes that a run went through phases.
func (l *Ledger) emitPath(tx *store.Tx, r runstore.Run, path []pawl.Phase) {
	for _, to := range path {
		r.Phase = to
		l.emit(tx, Advanced, r, run.Decision{})
	}
}

// mutationResolved fails unless there is a result to record. A run that waits
// made a call, so for it the absence of an effect is none (X-20 is for others).
func (l *Ledger) mutationResolved(ctx context.Context, tx *store.Tx, r runstore.Run, known *Mutation, waiting bool) error {
	v, err := l.viewKnowing(ctx, tx, r, known)
	if err != nil {
		return err
	}
	if run.Unresolved(v.Ledger) || waiting && run.CanCall(v.Ledger) {
		return refuse("advance run", r, "its mutation has no result to record (%q)", v.Ledger)
	}
	return nil
}

// check returns where a path leads. It holds: phases are passed in
// their order, and one is reached together with its result.
func (c Checkpoint) check(op string, r runstore.Run, path []pawl.Phase) (at pawl.Phase, err error) {
	at = r.Phase
	for _, to := range path {
		if to == pawl.PhaseCommitted || !run.CanAdvance(r.HandlerType, at, to) {
			return at, refuse(op, r, "a %s cannot go from %s to %s", r.HandlerType, at, to)
		}
		at = to
	}
	for _, result := range []struct {
		of    pawl.Phase
		value json.RawMessage
	}{{pawl.PhasePrepared, c.PrepareResult}, {pawl.PhaseMutated, c.MutationResult}} {
		if slices.Contains(path, result.of) != (len(result.value) > 0) {
			return at, &pawl.Error{Code: pawl.CodeInvalid, Op: op, Msg: fmt.Sprintf("the result of %s is stored on reaching it, not on the way over %s and not later", result.of, path)}
		}
		if err := checkJSON(op, result.value); err != nil {
			return at, err
		}
	}
	return at, nil
}

// checkJSON refuses what PostgreSQL would refuse, before the transaction is
// spoiled.
func checkJSON(op string, raw json.RawMessage) error {
	if len(raw) > 0 && (!json.Valid(raw) || !utf8.Valid(raw)) {
		return &pawl.Error{Code: pawl.CodeInvalid, Op: op, Msg: "the result is not JSON"}
	}
	return nil
}

// Commit ends an active run that completed its last phase: what it reserved is
// consumed, and the failures of its lane are forgotten. output
// is the state that the handler returned; it may be empty.
func (l *Ledger) Commit(ctx context.Context, tx *store.Tx, r runstore.Run, output json.RawMessage) (runstore.Run, error) {
	return l.CommitKnowing(ctx, tx, r, output, nil, false)
}

// CommitKnowing is Commit for an owner that may know about the call of the run,
// see Checkpoint, and whether the lane is calm: the run before committed, so that
// there are no failures to forget.
func (l *Ledger) CommitKnowing(ctx context.Context, tx *store.Tx, r runstore.Run, output json.RawMessage, known *Mutation, calm bool) (runstore.Run, error) {
	const op = "commit run"
	if r.Status != pawl.StatusActive || !run.CanAdvance(r.HandlerType, r.Phase, pawl.PhaseCommitted) {
		return runstore.Run{}, refuse(op, r, "it is %s at %s", r.Status, r.Phase)
	}
	if err := checkJSON(op, output); err != nil {
		return runstore.Run{}, err
	}
	if err := tx.Fence(ctx, r.Owner); err != nil {
		return runstore.Run{}, err
	}
	committed, err := runstore.In(tx).CommitRun(ctx, r, output)
	if err != nil {
		return runstore.Run{}, err
	}
	if !calm {
		if err := runstore.In(tx).ClearRetry(ctx, r.Kind, r.Lane); err != nil {
			return runstore.Run{}, err
		}
	}
	v, err := l.viewKnowing(ctx, tx, committed, known)
	if err != nil {
		return runstore.Run{}, err
	}
	d := run.Decide(v)
	if err := l.settle(ctx, tx, committed, d, ""); err != nil {
		return runstore.Run{}, err
	}
	l.emit(tx, Committed, committed, d)
	return committed, nil
}

// CommitAll is Commit for runs of lanes without failures that hold nothing, whose
// fences the transaction has. If one is not as its caller believes any more the
// transaction fails with store.ErrSetRefused.
func (l *Ledger) CommitAll(ctx context.Context, tx *store.Tx, list []runstore.Run, outputs []json.RawMessage) error {
	for i, r := range list {
		if l.holdings[r.Kind] != nil || r.Status != pawl.StatusActive || !run.CanAdvance(r.HandlerType, r.Phase, pawl.PhaseCommitted) || checkJSON("commit run", outputs[i]) != nil {
			return fmt.Errorf("commit run %s: %w", r.ID, store.ErrSetRefused)
		}
	}
	committed, err := runstore.In(tx).CommitRuns(ctx, list, outputs)
	if err != nil {
		return err
	}
	for _, r := range committed {
		l.emit(tx, Committed, r, run.Decision{})
	}
	return nil
}
