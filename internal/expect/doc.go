// Package expect judges lanes by what their definitions expect of them: a fresh
// success, a day that is done in time, as many rows as usual, starts on time.
//
// One job for all nodes looks at the lanes that have expectations, every few
// seconds: a lane that is silent tells nobody, so somebody has to look. What is found
// is kept in the row of the lane (terms.Standing), in the transaction that enqueues
// the notice. So whoever judges next, on whatever node, knows what people were told:
//
//	             look (read only)           the same again, and the notice
//	met     ──── it is not met  ──► write: since, sentence, Needs attention, needs_attention
//	not met ──── still          ──► nothing
//	not met ──── it is met      ──► write: met, Idle, recovered
//	any     ──── it is paused   ──► write: nothing is expected; what comes counts from its resumption
//
// A crash before the commit loses both and a later look does both; a crash after it
// changes nothing. Two that judge at once are put one behind the other by the
// database, and the second finds it done.
//
// The cost of a look: a page of lanes by an index of those with expectations, and for
// each a few rows that are found by their own. Nothing is written while nothing
// changes, but about four times for every freshWithin when the newest success is
// noted, for lanes whose runs are pruned or fail very often.
package expect
