// Package execution is the execution service: it runs a graph once for every
// idempotency key, however often and from wherever it is asked.
//
// # The order of a request
//
// Who asks (Handler), the shape of the graph id, the key, the body; then, in
// one transaction: the grant, the graph, the claim by insert, the reservation of
// its probable cost. What is known under the key goes before a refusal. A refusal
// leaves no trace, and the same key may be used again.
//
// # States of a key
//
//	            claim                    outcome
//	(absent) ---------> executing ---------------------> finished
//	                     |  ^  |                             |
//	        lease ended, |  |  | interrupt                   | failed, and a
//	        or released  |  |  v                             | later attempt
//	                     |  |  waiting for a person          | is asked for
//	                     v  |  |  Resume, Cancel             |
//	                  abandoned <--(crash)                   v
//	                     |                                executing
//	                     +--> whoever asks next takes over
//
// executing has an owner and a lease. The owner moves the lease every 5 s to
// 30 s ahead, by its own clock. A lease that has passed may be taken over, by
// compare-and-set on the owner and lease that were seen, so that of two
// services on one database one wins. The claims of a node that the others take
// for dead end with it (store.Bury), before their leases do. Every claim has an owner name of its own,
// and every write of an owner is fenced by it: whoever lost its claim writes no
// outcome. Clocks may differ by some 20 s before a living lease looks dead, and
// even then the executor finds the run that was started instead of starting a
// second one.
//
// # In whose name
//
// After the claim and before the executor is called, of every attempt and every
// take-over, the account of the grant is read and the key that it names is
// resolved, here, in the process that runs the graph. The key goes to the
// executor and nowhere else: not into the book, an answer, a message or a log. A
// key that is not there fails the attempt, which may be tried again, without a
// call.
//
// Commands, URLs and jobs of schedules (package work) go in nobody's name: they have
// no grant and no account, and nobody but the slot of a schedule can ask for them.
//
// # What a crash does
//
// What the executor asked to be remembered was stored before the call that it
// protects. Whoever takes over gives it back, and the executor looks before it
// starts. Receipts are written as usage is reported, once per unit, and once
// more with the outcome in one transaction. The reservation stays until then.
//
// A claim whose commit was not answered never leaves. If it is found to be there,
// this process takes it over at once (doubts).
//
// # Who stops a run
//
// A caller that goes away does not: the run goes on to its end and the next
// request with the key gets the outcome. Cancel does, also when another node
// owns the run: it leaves a note that the owner reads every second. A service
// that closes ends its claims without an outcome.
package execution
