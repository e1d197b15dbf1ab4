/**
 * Talks to a Pawl server: jobs, workers, events, runs, lanes and streams; and
 * adds jobs inside the transactions of an application, with the driver that it
 * has already. It needs nothing but Node.
 */
export { Client } from "./client.js";
export type { ClientOptions, CallOptions, ChangeOptions, ListOptions, WaitOptions } from "./client.js";
export { PawlError } from "./error.js";
export type { Fault } from "./error.js";
export { Failure, permanent, retryAfter, snooze } from "./failure.js";
export * as sql from "./sql.js";
export type { Queryable } from "./sql.js";
export type { StreamEvent, WatchOptions } from "./stream.js";
export type * from "./types.js";
export { Worker } from "./worker.js";
export type { RunOptions, WorkerJob, WorkerLog, WorkerOptions } from "./worker.js";
