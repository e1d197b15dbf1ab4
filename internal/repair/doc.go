// Package repair asks for a corrected version of a workflow's script after a
// run ended in failed:logic.
//
// A Repairer gets the evidence of the failed run and proposes a script. Three
// kinds exist: a program of the operator, and models behind the two wire
// formats that most servers of models speak.
//
//	evidence -> Repairer.Propose -> proposal -> compile, describe, compare, replay -> deploy, confined
//
// This package owns the asking, and finds which calls a script names (CallsOf).
// Whether a run may be repaired at all, how often, and what a proposal may do is
// decided by whoever asks: see internal/workflow, fix.go and rights.go.
//
// Nothing here is trusted. The evidence holds data from outside, so a prompt
// fences it with a boundary that the data cannot contain. The proposal is
// text of a stranger, so it is bounded and must be one whole script. What it
// reaches is held by the host when it runs, not by reading it.
//
// Errors never hold a key, a header or a query string.
package repair
