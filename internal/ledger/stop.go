package ledger

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Failure is why a run stops. Its class was decided where it arose.
type Failure struct {
	Class   pawl.Class
	Code    string
	Message string

	// RetryAfter is how long the other side asked to wait, cut to a limit by
	// the caller; the own backoff is used if it is longer.
	RetryAfter time.Duration
	// Deferred is a stop that is nobody's failure: our own limit said no, or
	// the process ends. Nothing is counted.
	Deferred bool
	// Budget is what a source may spend; the zero Budget is the default one.
	Budget run.Budget
	// Slot is what a slot of a schedule may spend; the zero one is the default.
	Slot run.SlotBudget
}

// maxMessage bounds a stored message, in bytes.
const maxMessage = 4096

// stored is the failure as both databases can keep it.
func (f Failure) stored() runstore.RunFailure {
	return runstore.RunFailure{Code: clean(f.Code), Class: f.Class, Message: clean(f.Message)}
}

// clean drops what PostgreSQL refuses, because a strange answer of some
// service must not keep a run from stopping.
func clean(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	if len(text) <= maxMessage {
		return text
	}
	end := maxMessage
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// Outcome is what a transition that ends an attempt did and decided.
type Outcome struct {
	Run      runstore.Run // as it ended
	Decision run.Decision // what follows
	Retry    run.Retry    // of the lane, afterwards; zero in a pause that the same row leaves again
	// Exhausted says that a budget is used up: the host starts nothing more by
	// itself, or not in this period.
	Exhausted bool
	Successor runstore.Run // what was inserted in the same transaction; zero if nothing
}

// Stop ends the execution of an active run that failed. The class decides the
// status (A-113..A-118) and the phase stays. Reservations are released if the
// work will start afresh; the mutation row leaves in_flight; the failure is
// counted for the lane. The successor, if there is to be one, is made by Retry
// when its time has come.
func (l *Ledger) Stop(ctx context.Context, tx *store.Tx, r runstore.Run, f Failure) (Outcome, error) {
	if r.Status != pawl.StatusActive {
		return Outcome{}, refuse("stop run", r, "it is %s", r.Status)
	}
	if err := tx.Fence(ctx, r.Owner); err != nil {
		return Outcome{}, err
	}
	status, why := run.StatusFor(r.HandlerType, f.Class), f.stored()
	stopped, err := runstore.In(tx).StopRun(ctx, r, status, !run.Resumable(status), &why)
	if err != nil {
		return Outcome{}, err
	}
	return l.conclude(ctx, tx, stopped, f)
}

// conclude decides what follows a run that was stopped, and counts.
func (l *Ledger) conclude(ctx context.Context, tx *store.Tx, stopped runstore.Run, f Failure) (Outcome, error) {
	v, err := l.View(ctx, tx, stopped)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Run: stopped, Decision: run.Decide(v)}
	if err := l.settle(ctx, tx, stopped, o.Decision, ""); err != nil {
		return Outcome{}, err
	}
	if !run.Resumable(stopped.Status) { // a pause is not an end
		o.Retry, o.Exhausted, err = changeRetry(ctx, tx, stopped, func(was run.Retry) (run.Retry, bool) { return failed(was, stopped, f, tx.Now) })
		if err != nil {
			return Outcome{}, err
		}
	}
	l.emit(tx, Stopped, stopped, o.Decision)
	return o, nil
}

// Pause makes an active run wait for a person, who is asked something. It is
// a signal, not a failure: nothing is counted, and the same row goes on.
func (l *Ledger) Pause(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
	if r.Status != pawl.StatusActive {
		return runstore.Run{}, refuse("pause run", r, "it is %s", r.Status)
	}
	if err := tx.Fence(ctx, r.Owner); err != nil {
		return runstore.Run{}, err
	}
	paused, err := runstore.In(tx).StopRun(ctx, r, pawl.StatusPausedApproval, false, nil)
	if err != nil {
		return runstore.Run{}, err
	}
	v, err := l.View(ctx, tx, paused)
	if err != nil {
		return runstore.Run{}, err
	}
	d := run.Decide(v)
	if !d.Resume { // the rules would not let it go on
		return runstore.Run{}, refuse("pause run", paused, "%s", d.Reason)
	}
	l.emit(tx, Stopped, paused, d)
	return paused, nil
}

// Cancel ends a run for good, as long as nothing was sent or what was sent is
// known not to have happened; what it reserved is released. r may be
// some phases old: what counts is where the run is now. The owner that
// executes it learns of it from its next transition, which fails.
func (l *Ledger) Cancel(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
	const op = "cancel run"
	if r.Status == pawl.StatusActive {
		if err := tx.Fence(ctx, r.Owner); err != nil {
			return runstore.Run{}, err
		}
	}
	now, err := runstore.In(tx).HoldRun(ctx, r.ID)
	if err != nil {
		return runstore.Run{}, err
	}
	if now.Status != r.Status || now.Owner != r.Owner {
		return runstore.Run{}, refuse(op, now, "it is %s by now", now.Status)
	}
	v, err := l.View(ctx, tx, now)
	if err != nil {
		return runstore.Run{}, err
	}
	if !run.CanCancel(v) {
		return runstore.Run{}, refuse(op, now, "it is %s at %s, which cannot be cancelled", now.Status, now.Phase)
	}
	cancelled, err := runstore.In(tx).StopRun(ctx, now, pawl.StatusCancelled, true, nil)
	if err != nil {
		return runstore.Run{}, err
	}
	v.Status = pawl.StatusCancelled
	d := run.Decide(v)
	if err := l.settle(ctx, tx, cancelled, d, ""); err != nil {
		return runstore.Run{}, err
	}
	if err := runstore.In(tx).ClearRetry(ctx, r.Kind, r.Lane); err != nil {
		return runstore.Run{}, err
	}
	l.emit(tx, Cancelled, cancelled, d)
	return cancelled, nil
}
