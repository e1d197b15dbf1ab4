// Package store keeps everything Pawl must not forget, in a SQLite file or in
// PostgreSQL. It holds all SQL for Pawl's own tables, a file per aggregate. The
// tables of sources are the business of source/table, and databases of users that
// of tool/sql.
//
// One SQL text serves both databases: it stays in the subset that both share
// ($N parameters, ON CONFLICT, RETURNING, row values, partial indexes). What
// differs is in dialect.go. Instants are UTC milliseconds and ids are made in
// Go, so that no statement reads a clock or a sequence.
//
// # Transactions
//
// Write runs a function in one transaction that has one Now. The function may
// run more than once, because a transaction that meets contention is retried
// whole; so it has no side effects but its statements. What must happen after
// the commit is registered with Tx.AfterCommit.
//
// SQLite has one writer. Functions that wait for it while another transaction
// is being made durable join the next one, each in a savepoint of its own, and
// share its disk wait (group commit). A function that fails undoes only its
// own savepoint. On PostgreSQL every function has a transaction of its own and
// the server groups the disk waits.
//
// # Fences
//
// Whoever works on a lane holds the lease of its bucket. Tx.Fence, called
// first in a holder's transaction, takes the bucket's shared lock and compares
// the epoch; a takeover takes the same lock exclusively and raises the epoch.
// So a takeover leaves a bucket alone while a transaction of its owner is under
// way, and defeats all later ones: they end with pawl.ErrLeaseLost and write
// nothing. A transaction whose owner vanished is ended by the server before the
// lease is over (see the bounds in postgres.go).
//
// A transaction that needs no answer before it commits is a plan (WritePlan): one
// round trip on PostgreSQL, and one transaction for all plans that wait.
//
// # What a crash does
//
// A transaction is either wholly there after a restart or not at all. A
// function that was told that its transaction committed finds it durable,
// unless it asked for Lazy, whose loss only repeats harmless work. When the
// connection breaks during COMMIT the outcome is not known; the transaction is
// not run again, what was registered with Tx.InDoubt happens, and the caller gets
// pawl.ErrUnavailable and must look before it does the same again. What is run
// again was refused by the server, so that nothing of it is there.
//
// # Text
//
// Every text of every statement passes through cleanArgs: what PostgreSQL cannot
// store is replaced by U+FFFD, on both databases alike. Whoever must not accept
// such a text, because it names something, refuses it before.
package store
