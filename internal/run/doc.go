// Package run holds the rules of runs: how far a run may move, what became of
// it, and what follows when it stops. All of it is pure: no database, no
// clock, no goroutine. The store applies these rules inside its transactions;
// views ask the same functions, so what people read is what the host does.
//
// # Phases
//
// A phase says how far a run has come. It only moves forward (CanAdvance).
//
//	producer   executing ------------------------------------------> committed
//	source     fetching -------------------------------------------> committed
//	schedule   validating -> executing ----------------------------> committed
//	consumer   preparing -> prepared -> mutating -> mutated -> emitting -> committed
//	                            |                               ^
//	                            +------- nothing reserved ------+
//
// A consumer becomes mutated in the transaction that records the result of its
// mutation: applied, none or skipped. A mutation that definitely failed leaves
// it at mutating. So phase >= mutated means "only forward" (MutationApplied),
// and what a run found at mutating needs is decided by the mutation ledger.
//
// # Statuses
//
// A status says what became of a run. It is independent of the phase.
//
//	active --+--> committed                 over
//	  ^      +--> cancelled <-----+         over: cancelled or rejected
//	  |      |                    |
//	  +------+--> paused:approval-+         waits; the same row resumes
//	  +------+--> paused:reconciliation     waits; the same row resumes, or a
//	         |                              fresh run if it did not happen
//	         +--> paused:transient          history; a successor after backoff
//	         +--> failed:logic              history; a successor after a fix
//	         +--> failed:internal           history; one when a person asks
//	         +--> crashed                   history; a successor at once
//
// Only the holder of the lane sets active. A row that ended stays as it ended;
// the attempt after it is another row that names it in retry_of (Walk). A run
// with a successor is history, whatever its status (IsOpen).
//
// # Mutation ledger
//
//	(no row)        --> in_flight
//	in_flight       --> applied | failed | needs_reconcile | indeterminate
//	needs_reconcile --> applied | failed | needs_reconcile | indeterminate
//	indeterminate   --> applied | failed | needs_reconcile | skipped
//	applied, failed, skipped are final
//
// The host makes all moves but those from indeterminate, which only a person
// makes. The in_flight row is durable before the call leaves the host. A run holds at
// most one row that is not failed.
//
// # Slots
//
//	pending --> running --> success | error | skipped
//	   +--------------------^ (closed without a start)
//
// # Invariants
//
//   - Reserved events are never released while their mutation is in_flight,
//     needs_reconcile, indeterminate, applied or skipped.
//   - At phase >= mutated nothing starts afresh.
//   - Nothing follows a committed or a cancelled run.
//   - Cancelling is possible only while nothing was sent (CanCancel).
//   - Decide has an answer for every combination, the impossible ones too.
//
// # What a crash does
//
// A crash leaves rows active that nobody executes. The restart marks them
// crashed and asks Decide, in one transaction for each run. At preparing,
// prepared, and at mutating without an open call, the work starts afresh. At
// mutating with an open call a successor is born that waits until it is known
// what became of it; the ledger row moves from in_flight to needs_reconcile,
// or to indeterminate if the tool cannot be asked. From mutated on the
// successor repeats only the last phase, with the results copied. Producers,
// sources and schedules start afresh. A crash between two transactions is one
// of these cases, because every phase change is one transaction. Three crashed
// attempts in a row call a person (CrashLoop).
package run
