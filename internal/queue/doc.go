// Package queue is the durable job queue: what must run later, runs here, on
// time and one at a time for each lane.
//
// # Ownership
//
// Every job hashes to a bucket, by its lane. A node leases buckets and
// schedules their jobs from memory: claiming is a read, and finishing is a
// fenced batch of deletes. A lane lives in one bucket and a bucket has one
// owner, so a lane needs no lock.
//
//	          fetch (due within the horizon), hint, local commit
//	jobs ───────────────────────────────────────────────────────► board
//	 ▲                                                              │
//	 │                                     timer ──due──► lane ──free──► ready
//	 │  delete, or new run_at (fenced)                                    │
//	 └──────────────────────── finisher ◄── finished ◄── worker ◄─────────┘
//
// A job in hand is in exactly one place: in the heap of timers until it is
// due, in the queue of its lane until the lane is free, among the ready until
// a worker is free, running, or finished and waiting for the batch that says
// so to the database.
//
// # Invariants
//
//   - A lane has at most one job that is ready or running. Its jobs are
//     finished in the order they ran: what a crash repeats is always the last
//     part of what a lane did.
//   - A row is deleted only at the revision that ran. Whatever changed the row
//     meanwhile (a key, a retry) makes it run again.
//   - Nothing is written for a bucket that has another owner by now.
//   - Memory is bounded: some thousand jobs in hand and a small window for
//     each lane. What does not fit stays in the table and is fetched later.
//   - There is one timer. At idle a node sends one heartbeat every two seconds
//     to PostgreSQL, and nothing at all to SQLite.
//
// # Leases
//
// A node raises a counter in its own row. Others hold it for dead when they
// have seen the counter stand still for the length of a lease by their own
// monotonic clock; so clocks need not agree. A node that cannot raise its
// counter stops its work before that time is over. A process that finds itself
// to be the successor of a dead one (same SQLite file, or same data folder)
// takes over at once.
//
// # What a crash does
//
// A job whose process died is still in the table. The next owner of its bucket
// finds it and runs it again: a handler must expect to run more than once, and
// what must not happen twice is guarded by the rows the handler itself writes
// (Job.Write is fenced). A job that ran for more than a second carries a mark;
// finding the mark counts as an attempt, so that a job which kills its process
// does not do so for ever.
package queue
