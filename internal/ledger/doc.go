// Package ledger keeps the record of runs: the transitions of a run, for every
// kind. The rules are those of internal/run, the statements those of
// internal/store; here they become one.
//
// # Transitions
//
// A transition is one function that does all of it in the caller's
// transaction: phase, status, results, retry link, retry state of the lane,
// reservations and mutation ledger. A caller adds what is its own (handler
// state, slot, next job) to the same transaction, but never makes one
// transition out of two.
//
//	Begin    ---------------------> active           a first attempt
//	Start    active                                  somebody executes it now
//	Advance  active, one phase on                    with the result of the phase
//	Commit   active --------------> committed        and the last phase
//	Stop     active --------------> paused, failed   by the class of the failure
//	Cancel   active, approval ----> cancelled        while nothing was sent
//	Crash    active --------------> crashed          and its successor
//	Retry    paused, failed, crashed                 its successor, a new row
//	Resume   approval, reconciliation ----> active   the same row
//
// Each takes the run as its caller last saw it and returns it as it is now. If
// the row is not as the caller believes, or the rules forbid the step, it fails
// with pawl.ErrConflict; the caller must then give up its transaction.
//
// # Ownership
//
// Only the owner of the lane's bucket makes runs active: Begin, Retry, Resume
// and Crash take its fence, and the row remembers it. Whatever follows on an
// active row is fenced by what the row remembers, so an owner that lost its
// bucket writes nothing (pawl.ErrLeaseLost). A row whose fence is not that of
// the present owner is one whose owner is gone.
//
// A run that waits has no owner. A person may cancel it, and whoever learns
// what became of its call may record that (Advance to mutated); it is the owner
// of the lane that resumes it.
//
// # Invariants
//
//   - A lane has at most one active run and a run at most one successor. Unique
//     indexes say so; nothing here looks before it inserts.
//   - A phase only moves forward, and reaching prepared or mutated stores the
//     result in the same statement.
//   - A row that ended is never changed again; the next attempt is another row
//
//   - Reservations and the mutation row move in the transaction of the run they
//     belong to; see Holdings.
//
// # What a crash does
//
// A crash leaves a run active that nobody executes. A new owner calls Recover
// for its bucket, or RecoverLane when it takes up a lane. Each run is one
// transaction: crashed, the mutation row moved on from in_flight, reservations
// released or handed over, and the successor inserted as run.Decide says. So a
// crash during recovery leaves either all of that or nothing, and recovering
// again finds nothing left to do. A successor has not started until somebody
// calls Start; recovery by the same owner leaves such a run alone.
//
// After three crashes in a row no successor is started any more: the crashed
// run stays open and a person must retry it. A successor that only
// waits for reconciliation is made all the same, because until it exists
// nobody asks what became of the call.
package ledger
