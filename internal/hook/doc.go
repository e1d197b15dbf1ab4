// Package hook takes what others send: webhooks. A hook is an address, /hooks/NAME,
// with a rule whom to believe and what a delivery becomes: an event of a workflow, a
// job, or a run of a schedule. It is not a lane: it runs nothing itself, and what it
// starts is governed by where it goes.
//
// # What becomes of a delivery
//
//	        404 nobody has that name          401 it is not believed
//	           |                                 |  413 too large, 422 unreadable
//	request -> known? -> body -> believed? -> read? -----> refused (kept without its body, the newest only)
//	                                            |
//	                  one transaction           v
//	                +--------------------------------------------+
//	                | is its id known?  ---- yes ----> 200       |
//	                |  no: keep it, and                          |
//	                |      filtered   when does not fit          |
//	                |      delivered  its effect, here           | -> 202
//	                +--------------------------------------------+
//	                      | the effect is refused (no such workflow, a run is active)
//	                      v
//	                a second transaction: kept as pending, with a job  -> 202
//	                      | the job, again and again
//	                      v
//	                delivered, or failed when it gives up
//
// # What a crash does
//
// A delivery and its effect are one transaction, and a pending one and its job are.
// So there is no delivery without its effect, none without somebody who sees to it,
// and no effect twice: whoever sends again because no answer came is told that the
// delivery is known. When nobody can say whether a transaction was committed, the
// answer is 503, and the sender's next try finds out.
//
// The version of the hook by which a delivery was believed is a condition of keeping
// it. So a node that has not heard of a new secret, or that the hook is gone, looks
// again instead of believing the old one.
//
// # Order
//
// Effects take place in the order in which transactions are committed, which for
// deliveries that come one after the other is the order in which they came. One that
// had to wait comes later than those that did not.
package hook
