package execution

import (
	"errors"
	"fmt"

	pawl "github.com/pawlrun/pawl"
)

// The reasons of refusals, for programs.
const (
	ReasonMismatch       = "idempotency_mismatch" // 422: the key was used for another request
	ReasonInProgress     = "in_progress"          // 409: it runs; ask again
	ReasonNotInterrupted = "not_interrupted"      // 409: it asks nobody anything
	ReasonAbandoned      = "abandoned"            // 409: it was begun, and nobody executes it
)

// InProgressError says that the key is being executed. Asking again later with
// the same key gives the outcome.
type InProgressError struct{ RunID string }

// Error names the run.
func (e *InProgressError) Error() string { return fmt.Sprintf("run %s is in progress", e.RunID) }

// Unwrap tells it in the one error type of Pawl.
func (e *InProgressError) Unwrap() error {
	return &pawl.Error{
		Code: pawl.CodeConflict, Reason: ReasonInProgress, Op: "run graph", Msg: e.Error(),
		Hint: "Ask again with the same Idempotency-Key; the outcome is kept.",
	}
}

// Abandoned says that a run was begun and that whoever executed it is gone.
func Abandoned(runID string) error {
	return &pawl.Error{
		Code: pawl.CodeConflict, Reason: ReasonAbandoned, Op: "look at run", Msg: fmt.Sprintf("run %s is no longer being executed", runID),
		Hint: "Ask for it again with the same Idempotency-Key to go on, or cancel it.",
	}
}

func errMismatch() error {
	return &pawl.Error{
		Code: pawl.CodeInvalid, Reason: ReasonMismatch, Op: "run graph", Msg: "the idempotency key was used for another request",
		Hint: "Use a new key for a new request, and the same key only to repeat one.",
	}
}

func errNotInterrupted(runID string) error {
	return &pawl.Error{
		Code: pawl.CodeConflict, Reason: ReasonNotInterrupted, Op: "resume run", Msg: fmt.Sprintf("run %s asks no question", runID),
	}
}

// again makes an error one that may be met again with hope: what carries no
// code is a fault of the infrastructure.
func again(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*pawl.Error](err); ok {
		return err
	}
	return &pawl.Error{
		Code: pawl.CodeUnavailable, Op: "run graph", Msg: "the run could not be followed to its end",
		Hint: "Repeat the request with the same Idempotency-Key: it continues where it was.", Err: err,
	}
}
