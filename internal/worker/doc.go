// Package worker lets programs of users serve tasks: they claim jobs, say that they
// still work on them, and say how they ended.
//
// # Where jobs are
//
// Jobs of such tasks are in the table of jobs, in states of their own that no node
// takes. Nothing about them is in the memory of a node: a claim, an end and a wish
// for more time are each one transaction, and any node can answer any of them.
//
//	            claim                    complete
//	waiting ────────────► leased ─────────────────────► gone; outcome and result are kept
//	   ▲                   │   │  fail, and no attempt is left; or permanent
//	   │  fail, snooze,    │   └───────────────────────► failed, for people
//	   └── lease is over ──┘
//
// # Invariants
//
//   - A lease is a row with a token that only its worker was told. Whatever ends a
//     job deletes that row by its token, in the same transaction. So a job ends
//     once, and a worker whose lease was taken back changes nothing: it is told
//     lease_lost. Completing with the same token again is recognised.
//   - Claims of a task come one after the other (they hold its row), so that no
//     lane has more jobs in hand than the task allows. The lease of a job that was
//     cancelled or replaced meanwhile still counts, until its worker has ended it.
//   - Lanes take turns. The lane that was served last is kept with the task, and a
//     claim looks at a bounded number of lanes and jobs, whatever waits.
//
// # What a crash does
//
// A worker that dies, a server that dies between the commit of a claim and its
// answer, and an answer that gets lost are the same: the lease ends, the attempt
// counts, and the job is claimed again, before what came later in its lane. Leases
// are taken back by the next claim and by a sweep that every node makes.
//
// # Waiting
//
// Claims of a process for the same jobs are a line. One look, which is one transaction,
// is for all that are in it, and hands out along it. It is made when there is a sign: a
// commit in this process, a hint of another node, or the instant at which a job comes
// due or a lease ends; for a claim that does not want to wait; and every few seconds,
// for what all that misses. A claim that comes when nothing has happened since the last
// look waits for the next sign without looking. That a lane is free is a sign only if
// the last look found jobs that waited for one.
package worker
