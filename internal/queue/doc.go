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
//   - Nothing is written for a bucket that has another owner by now: not an end,
//     not a mark.
//   - One end that the database refuses holds back no other: the batch is halved
//     until it is found, and it is written with less and less, at last as failed.
//   - Memory is bounded: some thousand jobs in hand and a small window for
//     each lane. What does not fit stays in the table and is fetched later.
//   - There is one timer, and while applications add jobs often on PostgreSQL a node
//     that looks for these (doorkeeper.go). At idle a node sends a heartbeat every 0.9 s
//     to PostgreSQL, and nothing at all to SQLite, but for the canary: one commit a
//     minute (canary.go).
//
// # Leases
//
// A node raises a counter in its own row. Others hold it for dead when they
// have seen the counter stand still for the length of a lease by their own
// monotonic clock; so clocks need not agree. Time in which the watcher itself
// could not see does not count. A node that cannot raise its counter starts
// nothing from seven tenths of a lease on, by a clock that also counts the time
// in which the machine was suspended; what runs goes on, and how it ended is
// written if the buckets turn out to be still its own. The dead are buried before
// anything of theirs is taken, at the heartbeat that was seen: one that beats at
// that moment either keeps its buckets or finds itself buried.
//
// An id belongs to one living process: a connection of its own holds it as an advisory lock,
// and a heartbeat counts only for the incarnation that joined last. A process
// that finds the lock free is the successor of a dead one and takes over at once;
// one that finds it held, as in a copied data folder, draws another id.
//
// A bucket in a node's own name that it does not hold is taken by it whatever
// its fair share is, because nobody else would; what is too much is drained,
// freed in the table, and only then let go. A bucket that does not become empty
// for a lease is worked on and tried again later. Health fails while shares are
// in the node's name and not held for two leases, while a loop's last try
// failed, and while one does not end for a lease.
//
// # The window of a stale node
//
// With the lease L (4.5 s) and a beat every L/5: after the start of its last good
// beat a node starts jobs for 7L/10 at most, and others take over no earlier than
// L after they last saw it change. StillOwned is asked before every handler,
// before every call, and before each piece of a call's request is written to the
// network (outbound.WithPermit). So what a stale node can still do outside is:
//
//   - hear the answer of a call that was written in time, however long that lasts: a
//     call cannot be fenced. The new owner runs the same job meanwhile, and sends
//     the same idempotency key;
//   - begin a call if it is stopped between the look at the clock and the write to
//     the socket, which are a few instructions apart, and wakes after the lease.
//
// It can write nothing: every write is fenced by the epoch of the bucket.
//
// # Answers that are lost
//
// A transaction whose commit was not answered is never run again by itself
// . Its jobs have their ids; they are looked for, at once and for as long as
// the commit may still arrive, by their owners. Ends, marks, releases and takings
// are repeated, and recognise themselves by revision, start or epoch. A hint that
// could not be sent is kept until it is. What a node committed and could not tell
// of, because it died or took a bucket for its own that another one had, is found
// by its owner: a node that joins, or finds a bucket lost, makes the others look.
//
// Whoever may log in to the database can send a hint. So a hint makes a node look and
// nothing more: a job that is said to be cancelled stops only if its row is gone.
//
// Every round trip of a loop has a deadline (4 s, longer after each that ran
// out), LISTEN asks for a sign of life after as long a silence, and a deadline
// that runs out drops all idle connections: one that died without a word is
// seldom alone.
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
