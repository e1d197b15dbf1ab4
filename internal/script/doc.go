// Package script runs workflow scripts that nobody trusts.
//
// A script is TypeScript or JavaScript. Compile makes one piece of JavaScript
// of it; Pool.Describe tells what it declares; Pool.Run runs one phase of one
// of its handlers. What a script sees of the world is ctx, see prelude.js, and
// what ctx can do is up to a Host.
//
// # Promises
//
//   - Every phase has a fresh environment. Nothing a script does is seen by
//     another phase, of the same script or of another.
//   - Every phase ends, within its Limits, whatever the script does.
//   - The server is never harmed: not by a script that loops, recurses, eats
//     memory or breaks the engine, and not by one that breaks out of it.
//   - A host that ends a phase ends it: no line of the script runs after the
//     call, whatever it catches, and nothing it sends has an effect.
//   - A phase depends on its Request and on what the host answers, and on
//     nothing else: time stands still at Request.Now, and chance comes from
//     Request.Seed.
//   - Errors name the place in the source as its author wrote it.
//
// # Processes
//
// No JavaScript engine can be stopped hard from inside its own process: all of
// them have built-in functions that do not look at the clock. So phases run in
// worker processes, which are this program started again (WorkerMain). A worker
// has no environment and no open files but its pipes. On Linux it dies with the
// server, the kernel bounds its memory, and a filter lets it make no system
// call but those of plain computing; elsewhere it runs without, and the pool
// says so in the log.
//
//	server                                    worker
//	Pool.Run ── run, arguments ─────────────▶ opens the image of its program
//	         ◀─ need ─────────── program ───▶ compiles it and makes the image, once
//	Host.Call ◀─ call 7: tool ─────────────── ctx.tools.mail.search()
//	         ── answer 7 ───────────────────▶ resolves the promise
//	Host.Call ◀─ tell: publish ────────────── ctx.publish()
//	         ◀─ done, value ───────────────── then forgets what the phase left
//
// A worker serves one phase at a time, on one goroutine that also reads and
// writes the pipes. It is replaced after any doubt: a kill, a crash, a full
// heap, or simply many phases. A phase whose script never gets an answer ends
// where it waits for one (Request.EndsAtCall), and the host goes on without a
// worker. Phases wait a little for the worker that has their program, and for
// any before another one is started (pool_wait.go).
//
// # Images
//
// The memory of the engine is an arena of our own, and nothing else points into
// it. So a copy of what is in use is an image of the environment, and copying it
// back makes the environment what it was, whatever a script did to it. A worker
// runs the top level of a program once and starts every phase from there. A top
// level that asks for the time, for chance or for the host depends on the phase;
// it runs in each.
//
// # Limits, and who holds them
//
//	memory of the script    engine; the kernel behind it for the whole process
//	depth of calls          engine
//	processor time          worker: interrupts the engine, then ends itself;
//	                        server: SIGKILL one second of processor time later
//	wall time, cancelling   server: asks the worker to drop the phase, SIGKILL
//	                        after 100 ms
//	calls, sizes            worker, and server again
//
// # What a crash does
//
// A worker that ends unexpectedly fails its phase with ErrWorkerCrashed; calls
// that the phase has made were made. When the server ends, the kernel ends its
// workers. Nothing here is stored.
package script
