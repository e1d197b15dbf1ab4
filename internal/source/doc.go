// Package source is the second kind: definitions that fetch paginated APIs into
// tables, on a schedule.
//
// # One lane, one job
//
// A source has one job in the queue, keyed by its id and armed at the earliest
// instant at which it can be due. A claimed job loads the state, asks six gates
// and either fetches or is armed anew:
//
//	wanted     is it neither paused, deleted nor halted?
//	schedule   has its time come, or did somebody ask?
//	in flight  does nothing of it run already?
//	quota      may the domain be called? (asking consumes nothing)
//	retry      is it not backing off, and is its budget not used up?
//	worker     is there a worker of the queue that takes it?
//	halt       is everything halted?
//
// Jobs of sources have workers of their own in the queue, as many as
// --source-queue: these are the places of the bounded queue. Of those that have
// a place at most --workers fetch, in the order they came. What has no place
// stays in the table, so memory does not grow with the number of sources, and
// nothing is lost by waiting, because being due is read from the stored state.
//
// # A fetch
//
// A run is a loop of pages, and a page is one transaction: its rows, its
// rejects, the place where to go on, the progress of the run and the events that
// the rows become. The last page is committed together with the run. While a
// page is written, the next one is fetched.
//
//	begin ── page ── page ── ... ── last page and commit
//	            \
//	             stop: failed (counted), or deferred (not counted)
//
// # What a crash does
//
// Pages that were committed stay, the page in hand is lost whole. The next owner
// ends the run as crashed and begins another one, which goes on where the API
// allows it (cursors, links) and else at page one; duplicates vanish by key
// either way. A fetch that a limit put off always goes on where it was. Crashes
// that get no further than those before them halt the source.
//
// A database that is away is neither a crash nor a failure. The process that had
// to leave its run finds it again, and puts it off (ledger.GaveUp).
package source
