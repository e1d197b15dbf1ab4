package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/tool"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// What became of a call, and what "not there" is worth: an other end
// that is still working on a call, or that the call has not reached yet, knows
// nothing of it. So the ledger row keeps from which instant on such an answer
// counts, and the call that is then made again has the key of the one it
// repeats: if that one arrives after all, an other end that honours keys makes
// one effect of both.

// reconcileTime bounds one question what became of a call.
const reconcileTime = 30 * time.Second

// absentAfter is how long a call of a method may be under way, zero if it
// cannot be asked about.
func absentAfter(m tool.Method) time.Duration {
	switch {
	case !m.Reconciles:
		return 0
	case m.AbsentAfter > 0:
		return m.AbsentAfter
	}
	return connector.Absence(0)
}

// actOf names what a call is for: this method, for these events. The next call
// for the same act is a repetition, whatever it sends: a script may put the time
// into its arguments. A call for other events is another one, which would be
// swallowed under the same key.
func actOf(m mutationstore.Mutation, p Prepared) string {
	taken := []string{}
	for _, r := range p.Reservations {
		for _, id := range r.IDs {
			taken = append(taken, fmt.Sprintf("%q %q", r.Topic, id))
		}
	}
	slices.Sort(taken)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%q", m.Tool, m.Method, taken))
	return hex.EncodeToString(sum[:])
}

// unknown asks once what became of the call; if that does not help, the run
// waits for the answer (context 3.6.3).
func (x *execution) unknown(ctx context.Context, c *calledMutation, second *failure) error {
	f := failureFrom(c.err)
	if c.target.Method.Reconciles {
		c.by = "reconcile"
		answer, wait := ask(ctx, c.target, c.row)
		c.wait = wait
		switch answer.State {
		case tool.Applied:
			c.result, c.err = answer.Result, nil
			return x.applied(ctx, c, second)
		case tool.NotApplied, tool.Absent:
			refused := answer.State == tool.NotApplied
			f = &failure{class: pawl.ClassTransient, code: f.code, text: f.text + "; it did not happen"}
			if second != nil {
				f = second
			}
			return x.failed(ctx, c, f, refused)
		case tooEarly, notAsked, tool.Later:
		}
	}
	if second != nil { // who goes on with the run must know
		f = second
	}
	return x.stopWith(ctx, ledger.Failure{Class: pawl.ClassIndeterminate, Code: f.code, Message: f.text}, func(ctx context.Context, tx *store.Tx) error {
		return askLater(ctx, tx, c)
	})
}

// askLater leaves a call that was asked about in vain to the background, which
// begins after the first wait; a tool that cannot be asked leaves it to a
// person.
func askLater(ctx context.Context, tx *store.Tx, c *calledMutation) error {
	if !c.target.Method.Reconciles {
		return mutationstore.In(tx).MoveMutation(ctx, c.row.ID, pawl.MutationInFlight, mutationstore.MutationChange{To: pawl.MutationIndeterminate})
	}
	if err := mutationstore.In(tx).MoveMutation(ctx, c.row.ID, pawl.MutationInFlight, mutationstore.MutationChange{To: pawl.MutationNeedsReconcile}); err != nil {
		return err
	}
	wait, _ := run.Reconcile(0)
	return mutationstore.In(tx).ReconcileLater(ctx, c.row.ID, 0, nextQuestion(c.row, tx.Now, wait, c.wait))
}

// nextQuestion is when to ask next: after a wait, and no later than at the
// instant from which on "not there" is an answer, unless that has passed; but
// not before our own limit allows it.
func nextQuestion(row mutationstore.Mutation, now time.Time, wait, least time.Duration) time.Time {
	next := now.Add(wait)
	if row.AbsentAt.After(now) && next.After(row.AbsentAt) {
		next = row.AbsentAt
	}
	if allowed := now.Add(least); allowed.After(next) {
		return allowed
	}
	return next
}

const (
	// tooEarly is the answer Absent while the call may still be under way.
	tooEarly tool.State = "too early"
	// notAsked is a question that our own limit put off.
	notAsked tool.State = "not asked"
)

// absenceVerdict is what the answer Absent to a question that was asked at that
// instant is worth.
func absenceVerdict(row mutationstore.Mutation, asked time.Time) tool.State {
	if asked.Before(row.AbsentAt) {
		return tooEarly
	}
	return tool.Absent
}

// ask asks a tool what became of a call; a failed question is one for later. With
// notAsked it returns how long to wait.
func ask(ctx context.Context, t tool.Target, row mutationstore.Mutation) (tool.Answer, time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, reconcileTime)
	defer cancel()
	asked := time.Now()
	answer, err := t.Connection.Reconcile(ctx, tool.Call{Method: row.Method, Args: row.Arguments, Key: row.IdempotencyKey})
	if e, ok := errors.AsType[*tool.Error](err); ok && e.Deferred {
		return tool.Answer{State: notAsked}, e.RetryAfter
	}
	unreadable := answer.State == tool.Applied && !json.Valid(orNullJSON(answer.Result))
	if err != nil || answer.State == "" || unreadable {
		return tool.Answer{State: tool.Later}, 0
	}
	if answer.State == tool.Absent {
		answer.State = absenceVerdict(row, asked)
	}
	return answer, 0
}

// reconcile asks what became of the call of a run that waits, and records what
// it hears. Who goes on with the run is chosen next.
func (e *session) reconcile(ctx context.Context, v *view) error {
	row := *v.open
	var prepared Prepared
	if err := json.Unmarshal(v.row.PrepareResult, &prepared); err != nil {
		return fmt.Errorf("read what run %s prepared: %w", v.row.ID, err)
	}
	target, err := e.cfg.Tools.Lookup(row.Tool, row.Method)
	answer, wait := tool.Answer{State: tool.Later}, time.Duration(0)
	if err == nil {
		answer, wait = ask(ctx, target, row)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := e.cfg.fault("asked"); err != nil {
		return err
	}
	var result json.RawMessage
	if answer.State == tool.Applied {
		if result, err = appliedResult(answer.Result); err != nil {
			answer.State = tool.Later
		}
	}
	return e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		switch answer.State {
		case tool.Applied:
			if err := mutationstore.In(tx).MoveMutation(ctx, row.ID, pawl.MutationNeedsReconcile, mutationstore.MutationChange{To: pawl.MutationApplied, Result: orNullJSON(answer.Result), ResolvedBy: "reconcile"}); err != nil {
				return err
			}
			_, err := e.ledger.Advance(ctx, tx, v.row, ledger.Checkpoint{MutationResult: result}, pawl.PhaseMutated)
			return err
		case tool.NotApplied:
			return mutationstore.In(tx).MoveMutation(ctx, row.ID, pawl.MutationNeedsReconcile, mutationstore.MutationChange{To: pawl.MutationFailed, ResolvedBy: "reconcile"})
		case tool.Absent:
			return mutationstore.In(tx).MoveMutation(ctx, row.ID, pawl.MutationNeedsReconcile, mutationstore.MutationChange{To: pawl.MutationFailed, ResolvedBy: "reconcile", KeepFor: actOf(row, prepared)})
		case tooEarly, notAsked:
			return askAgain(ctx, tx, row, wait)
		case tool.Later:
		}
		return countUnanswered(ctx, tx, row)
	})
}

// askAgain arms the next question, after as long again as the call is out.
// Nothing is counted: somebody answered, or nobody was asked.
func askAgain(ctx context.Context, tx *store.Tx, row mutationstore.Mutation, least time.Duration) error {
	first, _ := run.Reconcile(0)
	longest, _ := run.Reconcile(math.MaxInt)
	wait := min(max(tx.Now.Sub(row.CreatedAt), first), longest)
	return mutationstore.In(tx).ReconcileLater(ctx, row.ID, row.ReconcileAttempts, nextQuestion(row, tx.Now, wait, least))
}

// countUnanswered counts a question without an answer; after the last one a person
// must say what happened.
func countUnanswered(ctx context.Context, tx *store.Tx, row mutationstore.Mutation) error {
	attempts := row.ReconcileAttempts + 1
	wait, ok := run.Reconcile(attempts)
	if err := mutationstore.In(tx).ReconcileLater(ctx, row.ID, attempts, tx.Now.Add(wait)); err != nil || ok {
		return err
	}
	return mutationstore.In(tx).MoveMutation(ctx, row.ID, pawl.MutationNeedsReconcile, mutationstore.MutationChange{To: pawl.MutationIndeterminate})
}
