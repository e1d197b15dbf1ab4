/**
 * Jobs and events inside the application's own transaction, by the SQL functions
 * of Pawl's PostgreSQL: committed together, rolled back together. The first
 * argument is what the transaction runs on, such as a client of `pg`.
 */
import { PawlError } from "./error.js";
import type { EventRequest, JobRequest } from "./types.js";

/** Whatever runs a statement with $1, $2 …: a Client or PoolClient of pg, for example. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** A job for SQL, which has no delay: say runAt. */
export type SqlJob = Omit<JobRequest, "delay" | "runAt"> & { runAt?: Date | string };

const columns: Record<keyof SqlJob, string> = {
  task: "task",
  payload: "payload",
  runAt: "run_at",
  lane: "lane",
  key: "key",
  keyMode: "key_mode",
  priority: "priority",
  maxAttempts: "max_attempts",
};

const types: Record<string, string> = { payload: "jsonb", run_at: "timestamptz", priority: "int", max_attempts: "int" };

/** Adds a job, and returns its id. */
export async function addJob(tx: Queryable, job: SqlJob): Promise<string> {
  const values: unknown[] = [];
  const given = Object.entries(rowOf(job)).map(([column, value]) => {
    values.push(column === "payload" ? json(value) : value);
    return `${column} => $${values.length}::${types[column] ?? "text"}`;
  });
  return one<string>(tx, `select pawl.add_job(${given.join(", ")})::text as it`, values);
}

/** Adds up to 10,000 jobs, all or none, and returns their ids in order. */
export async function addJobs(tx: Queryable, jobs: readonly SqlJob[]): Promise<string[]> {
  const { rows } = await tx.query("select added::text as it from pawl.add_jobs($1::jsonb) added", [json(jobs.map(rowOf))]);
  return rows.map((row) => (row as { it: string }).it);
}

/** Publishes an event to a workflow. False: its messageId was known already. */
export async function publish(tx: Queryable, workflow: string, event: EventRequest): Promise<boolean> {
  const values = [workflow, event.topic, event.messageId, json(event.payload ?? null), event.input === undefined ? null : json(event.input)];
  return one<boolean>(tx, "select pawl.publish($1, $2, $3, $4::jsonb, $5::jsonb) as it", values);
}

/** Cancels a job of the application. False: it has ended, or is not the application's. */
export async function cancelJob(tx: Queryable, id: string): Promise<boolean> {
  return one<boolean>(tx, "select pawl.cancel_job($1::uuid) as it", [id]);
}

async function one<T>(tx: Queryable, text: string, values: unknown[]): Promise<T> {
  const { rows } = await tx.query(text, values);
  return (rows[0] as { it: T }).it;
}

function rowOf(job: SqlJob): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(job)) {
    const column = columns[name as keyof SqlJob];
    if (column === undefined) {
      throw new PawlError("usage", `a job in SQL has no ${name}`, { hint: `It has ${Object.keys(columns).join(", ")}.` });
    }
    if (value !== undefined) {
      row[column] = value instanceof Date ? value.toISOString() : value;
    }
  }
  return row;
}

function json(value: unknown): string {
  const text = JSON.stringify(value);
  if (text === undefined) {
    throw new PawlError("usage", "the payload is not JSON");
  }
  return text;
}
