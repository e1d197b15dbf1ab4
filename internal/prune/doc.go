// Package prune removes what is too old to be kept.
//
// A pass looks at the clock (retention.Clock), and then walks through what is
// kept, kind by kind, from the oldest row to the cut: the instant before which rows
// are older than their age. It goes in steps. A step reads a few rows, decides
// which of them nothing and nobody needs, and removes those in one small
// transaction that does not wait for the disk. Then it rests for longer than it
// worked, so that others hardly wait; steps that take long become smaller.
//
// How far a walk has come is stored, so that the next pass does not look again at
// what was kept; once a day a walk begins at its beginning, for what is needed no
// longer. A process that dies in the middle has removed whole chains of runs and
// whole events, and nothing else; the next pass goes on.
//
// Runs that found nothing to do are folded when they are an hour old: the first of a
// stretch stays and stands for those after it, which are removed in the same
// transaction (fold.go).
//
// What is never removed: the newest run of a lane, runs and calls that are open,
// runs that an event, a call or a receipt refers to, the last good runs of
// each handler with what they read and published, slots of a backfill that is not
// at its end, and the message ids of events, of which a hash stays for ever.
package prune
