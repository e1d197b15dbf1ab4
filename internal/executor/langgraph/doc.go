// Package langgraph runs the graphs of a LangGraph server, self-hosted or of
// the platform.
//
// Starting a run there is not idempotent, so the executor looks before it
// starts, and what it must not forget is stored, as Remote, before it asks:
//
//	thread   POST /threads            the id is made from the run id; do_nothing if it is there
//	look     GET  /threads/T/runs     a run with this key in its metadata is followed, not started again
//	remember {thread, attempt}
//	start    POST /threads/T/runs     in the background; a second one at a time is rejected (422)
//	remember {thread, attempt, run}
//	follow   GET  /threads/T/runs/R/stream   from the last event that was seen
//	confirm  GET  /threads/T/runs/R          the end of a stream says nothing
//	read     GET  /threads/T/state           output, interrupts, failures
//	remember {thread, attempt, run, settled}
//
// Every attempt has a thread of its own, for a thread keeps the state that a
// failed attempt left. That of the first is the UUIDv5 of the run id. Before a
// later attempt starts, the threads of the earlier ones are looked at, too: a
// run that goes on, or that worked, is taken instead.
//
// What is known after a crash:
//
//	nothing is remembered          nothing was asked for; start
//	a thread, not settled          it was asked for: the run with the key is
//	                               followed; if the thread is there and has
//	                               none, the request never arrived; if the
//	                               thread is gone, the outcome is unknown
//	a run, not settled             it is followed; if it is gone, the outcome
//	                               is unknown
//	settled                        its end was told; it can be told again, and
//	                               the next attempt can start
//
// Statuses of HTTP say little: failures and interrupts come in answers of 200,
// and a cancelled run ends as error or interrupted like any other. So the
// intent to cancel is written to the metadata of the thread first.
//
// An interrupt is told as Result.Interrupt: a list of {id, value}. Run.Resume
// goes on with command.resume in a new run of the same thread, whose metadata
// name the run that asked.
//
// Usage comes from the messages of the state: the unit is the id of a message.
// A LangGraph server knows tokens, not prices.
package langgraph
