/**
 * What crosses the API, with its names. Instants are texts: UTC, RFC 3339.
 * Servers may add fields.
 */

export type JobState = "scheduled" | "pending" | "running" | "failed" | "succeeded" | "cancelled";
export type Kind = "workflow" | "source" | "schedule";

export interface Job {
  id: string;
  task: string;
  /** Null once the job has ended. */
  payload: unknown;
  runAt: string;
  key: string | null;
  lane: string | null;
  priority: number | null;
  state: JobState;
  /** Attempts that have ended. */
  attempt: number;
  maxAttempts: number | null;
  createdAt: string;
  createdBy: string | null;
  internal: boolean;
  startedAt: string | null;
  finishedAt: string | null;
  lastError: string | null;
  node: string | null;
  /** What its worker said when it was done, while that is kept; not in lists. */
  result?: unknown;
}

export interface JobRequest {
  task: string;
  /** Any JSON value. Absent is {}. */
  payload?: unknown;
  /** When. Absent is now. */
  runAt?: Date | string;
  /** How long from now instead, such as 90s or 7d. */
  delay?: string;
  /** At most one job with this key waits; keyMode says what a second one does to it. */
  key?: string;
  keyMode?: "replace" | "preserve_run_at" | "keep";
  /** Jobs of a lane run one at a time, in order. */
  lane?: string;
  /** 1 before 0 before -1. */
  priority?: -1 | 0 | 1;
  /** Absent is what the task says. */
  maxAttempts?: number;
}

/** Which jobs. What is left out does not matter. */
export interface JobFilter {
  task?: string;
  lane?: string;
  key?: string;
  state?: JobState;
}

/** Which jobs are changed together; it must name something. */
export interface JobsFilter extends Omit<JobFilter, "state"> {
  state?: "scheduled" | "pending" | "running" | "failed";
  /** Whose last error contains this text. */
  error?: string;
  /** Made longer ago than this, such as 2h. */
  olderThan?: string;
}

/** What was done to the jobs that a filter names. */
export interface ChangedJobs {
  matched: number;
  /** Fewer than matched if some ended meanwhile; 0 in a dry run. */
  changed: number;
}

export interface TaskRequest {
  /** How long a worker has a job before it must ask for more time. Absent is 30s. */
  lease?: string;
  maxAttempts?: number;
  concurrencyPerLane?: number;
  keepResults?: string;
  rate?: { limit: number; period: string; per?: "task" | "lane" };
  batch?: { size: number; wait: string };
}

export interface Task {
  name: string;
  lease: string;
  maxAttempts: number;
  concurrencyPerLane: number;
  keepResults: string;
  rate: { limit: number; period: string; per: "task" | "lane" } | null;
  batch: { size: number; wait: string } | null;
  ownerUserId: string;
  updatedBy: string;
  createdAt: string;
  updatedAt: string;
}

/** A job in the hands of a worker. */
export interface ClaimedJob {
  id: string;
  task: string;
  payload: unknown;
  lane: string | null;
  key: string | null;
  priority: number;
  runAt: string;
  /** 1 is the first. */
  attempt: number;
  maxAttempts: number;
  /** The trace that it is a part of (W3C Trace Context). */
  traceparent: string | null;
  leaseToken: string;
  leaseUntil: string;
}

export interface EventRequest {
  topic: string;
  /** Names the event in its topic: once more with the same one is a duplicate. */
  messageId: string;
  payload?: unknown;
  /** The thing outside that it comes from. */
  input?: { source: string; type: string; id: string; title?: string };
}

export interface PublishedEvent {
  topic: string;
  messageId: string;
  payload: unknown;
  status: "pending" | "reserved" | "consumed" | "skipped";
  createdAt: string;
  /** The messageId was known already. */
  duplicate: boolean;
  /** It was known and still pending, and has the new payload now. */
  changed: boolean;
}

export interface Lane {
  kind: Kind;
  name: string;
  id: string;
  status: "Running" | "Idle" | "Needs attention" | "Stopped" | "Halted";
  issue: string | null;
  issueCode: string | null;
  schedule: string;
  nextAt: string | null;
  pending: number;
  paused: boolean;
  labels: Record<string, string>;
}

export interface LaneWhy extends Lane {
  at: string;
  /** What it does next. */
  next: string;
  /** The command that resolves its status. */
  do: string | null;
  /** It runs when all are open. */
  gates: { name: string; open: boolean; text: string; until: string | null }[];
  recent: Run[];
}

export interface Run {
  id: string;
  kind: Kind;
  lane: string;
  handler: string;
  trigger: string;
  phase: string;
  status: string;
  attempt: number;
  scheduledFor: string | null;
  error: { code: string; message: string; class: string } | null;
  createdAt: string;
  startedAt: string | null;
  endedAt: string | null;
}

export interface RunDetail extends Run {
  chain: Run[];
  logs: { phase: string; at: string; level: string; text: string }[];
  output: unknown;
}
