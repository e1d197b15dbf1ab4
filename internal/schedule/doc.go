// Package schedule is the third kind: schedules that run graphs under a grant, or
// commands, URLs and jobs, at their instants, once for each slot.
//
// # Slots
//
// A slot is one instant of a schedule and one row, which is the authority for
// whether that instant ran. Every due slot ends with one disposition. A slot
// has one job, keyed by schedule and instant; its lane is the schedule, so that
// the queue keeps the slots of a schedule apart.
//
//	pending ── claim ── running ── attempts ── success | error      fired
//	   |                                          |
//	   +── skipped: missed, overlap, disabled,    +── the next slot, in the
//	       grant, budget, coalesced, superseded,      same transaction
//	       stale
//
// Whatever closes a slot also inserts the one that follows. Where slots may
// run beside each other (Allow, Replace) the next one is inserted by the claim
// instead, because it can come due before this one ends.
//
// A slot that needs a source which is too old stays pending, with the disposition
// waiting_fresh. Its job is armed for the end of that wait, and by the end of a fetch
// for now (package need, need.go).
//
// # An attempt
//
// A claim is one transaction: the slot is looked at, the grant is checked, the
// run begins and the following instant is noted. Then the execution service is
// asked, in this process or over HTTP, with the slot's key, so that asking twice
// runs once. The outcome closes the slot, or leaves it for another attempt if
// the service says that one may help: three at most, or what the definition says, inside the slot. A service
// that cannot be reached says nothing: it is asked the same again until it
// answers. A slot goes on with the graph, the input and the grant it began with,
// whatever its schedule becomes meanwhile.
//
// Slots of many schedules that are due at the same time, and that nothing speaks
// against, are claimed in one transaction, together with their executions if the
// service is in this process; those that end well are closed in another one
// (together.go). What is different about a slot sends it through take and record,
// by itself.
//
// # Without a grant
//
// What a schedule runs instead of a graph (package work) is a graph to the
// execution service, which needs no grant and costs nothing. It is started once for
// an attempt; how many attempts a slot has is what its definition says (Rules). If
// nobody knows whether it ran, the slot is closed with a doubt, which keeps the
// schedule in need of a person until one has decided: RetrySlot, SkipSlot, Resolve.
//
// # What nobody was there for
//
// Workers note every 20 s that they are at work. What came due in a gap of that
// clock, and more than a minute ago, was missed: it is recorded as such and
// never made up for by itself, unless the definition says so, which is
// consent. What came due before the gap, or a moment ago, only waited.
//
// # What a crash does
//
// The slot's job is still in the queue. Its next owner finds the slot running,
// ends the attempt as crashed, and asks the execution service the same again,
// which goes on with what it had begun; that is no further attempt of the slot.
// A server that stops in good order gives its attempts back, so that restarts
// do not count as crashes. The reconciler, a job of the
// queue itself, looks at start and every five minutes for schedules whose next
// instant is unknown or past, and gives back what they lack.
package schedule
