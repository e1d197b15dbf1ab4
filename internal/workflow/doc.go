// Package workflow is the first kind: scripts whose producers look at the
// outside and publish events, and whose consumers take events and act.
//
// # One lane, one session
//
// A workflow has one job in the queue, keyed by its lane and armed at the
// earliest instant at which anything in it can be due. A claimed job is a
// session: it looks, chooses one step, takes it, and looks again, until there
// is nothing to do; then the job is armed for the next instant, or goes away.
// Whoever makes a lane runnable from outside (deploy, event, run now, resume,
// an answer) commits that and arms the job in one transaction.
//
//	+--> look (one read) --> choose (pure) --+--> wait: arm, leave
//	|                                        |
//	+-- retry, resume, reconcile, run <------+
//
// What a session can see is in the store, but for two flags in memory, which a
// new owner builds anew: which consumers have seen which events, and how many
// consumers ran in a row.
//
// # What a consumer has seen
//
// Every topic counts its events in the order of their commits. A consumer is
// dirty while a topic it subscribes to has a higher number than the one it saw
// when its last prepare began. A commit acknowledges that number and nothing
// later, so an event that comes while prepare runs is never forgotten.
// After a run that took events the consumer stays dirty as long as more wait;
// after one that took none it is clean until there is news or its wakeAt comes
// . A new owner holds every consumer with pending events for dirty.
//
// # Runs
//
// A run's changes are those of internal/ledger. Those before its call are written
// with the call, or after some milliseconds (unwritten.go). What a handler
// publishes or registers is kept aside and written in the transaction
// that commits its run, and so is the state that it returns.
//
//	producer   begin ── handler ── commit: events, inputs, state, schedule
//	consumer   begin ── prepare ── reserve ── mutate ── result ── next ── commit
//	                                            │
//	                            in_flight ─ call ─ applied, failed or unknown
//
// The in_flight row of a call is on the disk before the call leaves; its result
// is on the disk before next runs. Whatever can be lost to a crash without
// repeating an effect is committed without waiting for the disk. The commit of a
// run asks for what the next step depends on (ahead.go).
//
// # What "not there" is worth
//
// A call of unknown outcome is asked about. An other end that is still working
// on it, or that it has not reached yet, does not know it; so its row keeps from
// which instant on that answer means that it did not happen, counted from the
// instant of the row itself, for every later owner of the lane. Before it the
// answer is one for later and spends nothing.
//
// The next call for the same events has the same key and a row of its own,
// unless the other end refused the first one in an answer, withdrew its key, or
// a person said that it did not happen. The key is handed from row to row in the
// transactions that close the one and open the other, so no crash loses it.
//
// # What a crash does
//
// The next owner of the lane finds a run that nobody executes, ends it as
// crashed and goes on as internal/run decides: afresh while nothing was sent,
// to reconciliation while it is unknown what a call did, and only forward once
// the result is recorded. Events are pending only while no call that took them
// can have happened.
package workflow
