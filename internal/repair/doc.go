// Package repair asks for a corrected version of a workflow's script after a
// run ended in failed:logic.
//
// A Repairer gets the evidence of the failed run and proposes a script. Three
// kinds exist: a program of the operator, and models behind the two wire
// formats that most servers of models speak.
//
//	evidence -> Repairer.Propose -> proposal -> compile, describe -> Narrow -> deploy
//
// This package owns the two steps on either side of the check that every
// deploy gets: asking, and refusing a proposal that reaches further than the
// script it replaces. Whether a run may be repaired at all, and how often, is
// decided by whoever asks.
//
// Nothing here is trusted. The evidence holds data from outside, so a prompt
// fences it with a boundary that the data cannot contain. The proposal is
// text of a stranger, so it is bounded, it must be one whole script, and it
// may use only the topics, handlers and tools that the operator deployed.
//
// Errors never hold a key, a header or a query string.
package repair
