// Package lane is the one vocabulary of what runs by itself: how a lane looks to
// people, why it runs or waits, what changed about it, and when it comes due.
//
// A kind (workflow, source, schedule) is a package whose service implements
// Kind. The surfaces, the server and the notifier know kinds by that interface
// alone; what only one kind has keeps its own routes and pages. A new kind is a
// folder and a line in internal/server. Its room in the store gives every lane a
// row (runstore.InsertLane), by which lanes are filtered and counted.
//
//	kind's transaction ── Host.Emit ───────────► stream, pages   (after the commit)
//	                   ── Host.Settle ─────────► its row, and a person (in the same transaction)
//	surfaces           ── Kind.List, Why, Due, Actions ──► lanes
package lane
