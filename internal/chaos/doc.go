//go:build linux

// Command chaos does to real nodes what happens to real nodes, under load, and
// looks from the outside whether Pawl kept its word:
//
//	go run ./internal/chaos -seconds 600 -seed 1
//
// It builds the program, starts three nodes on a PostgreSQL with a synchronous
// standby, each behind proxies of its own, and an upstream that counts effects by
// their idempotency key and sometimes is slow, fails, hangs or lies. It enqueues
// jobs in lanes, publishes events to workflows that make a call for each, lets
// sources fetch pages and schedules run graphs. Meanwhile it kills, stops,
// restarts and disconnects nodes and database, as the seed says. The last fifth of
// the time belongs to a node on SQLite: kills, a full disk, backups, and at the
// end a promotion to PostgreSQL that is itself killed and repeated.
//
// # What is checked
//
// Only what can be seen from outside counts: answers of the API, rows, and what
// arrived at the upstream.
//
//   - Every job, event, item of a feed and slot that was acknowledged had its
//     effect, once; what was not acknowledged had it once or never.
//   - What the upstream had answered was asked again only if its node was killed,
//     frozen or cut off at that moment, and then under the same key.
//   - Two jobs of a lane were never at the upstream at once, unless a frozen node
//     or one that was cut off held one of them.
//   - Rows are not doubled, and tables are what the upstream has.
//   - After each fault every lane runs again, and at the end nothing waits: all
//     buckets are held by living nodes, no lane needs a person, and why answers.
//
// It prints a report with the times after which lanes ran again, ends with 1 if it
// found something, and says where the logs are. It listens and calls on loopback
// only, and ends what it started, on SIGINT and SIGTERM too.
package main
