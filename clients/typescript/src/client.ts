import { PawlError, strange } from "./error.js";
import { watch, type StreamEvent, type WatchOptions } from "./stream.js";
import { pause, segment, Transport, type Request, type TransportOptions } from "./transport.js";
import type { ChangedJobs, EventRequest, Job, JobFilter, JobRequest, JobsFilter, Kind, Lane, LaneWhy, PublishedEvent, Run, RunDetail, Task, TaskRequest } from "./types.js";

export interface ClientOptions extends TransportOptions {
  /** Such as http://127.0.0.1:7295. */
  url: string;
  token?: string;
  /** In milliseconds, for a whole call with its repeats; 30,000 if left out. */
  timeout?: number;
  /** How often a call is repeated that is safe to repeat; 3 if left out. */
  retries?: number;
  /** How the program is called in the server's log. */
  userAgent?: string;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** In milliseconds, for the whole call. */
  timeout?: number;
  /** Names what is asked: it is acted on once. Left out, one is made for each call. */
  idempotencyKey?: string;
}

export interface ListOptions extends CallOptions {
  /** How many at most; left out, all. */
  limit?: number;
}

export interface ChangeOptions extends Omit<CallOptions, "idempotencyKey"> {
  /** Only counts them. */
  dryRun?: boolean;
}

export interface WaitOptions {
  signal?: AbortSignal;
  /** In milliseconds; left out, as long as it takes. */
  timeout?: number;
}

const pageSize = 200;
/** How long the server waits for a job in one request, in milliseconds. */
const longPoll = 20_000;

/** Talks to one server. Calls throw a PawlError. */
export class Client {
  readonly #transport: Transport;

  /** It does not talk to the server yet. */
  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
  }

  /** Asks for a job. */
  async enqueue(job: JobRequest, options: CallOptions = {}): Promise<Job> {
    return this.#object<Job>("a job", { method: "POST", path: "/api/v1/jobs", body: job, repeat: true, ...options });
  }

  /** Asks for up to 10,000 jobs: all of them are enqueued, or none. Answers are in the same order, without payloads. */
  async enqueueAll(jobs: readonly JobRequest[], options: CallOptions = {}): Promise<Job[]> {
    const { items } = await this.#object<{ items: Job[] }>("jobs", { method: "POST", path: "/api/v1/jobs:bulk", body: { jobs }, repeat: true, ...options });
    if (!Array.isArray(items) || items.length !== jobs.length) {
      throw strange(this.#transport.where, "jobs that cannot be read");
    }
    return items;
  }

  /** Reads a job, waiting or ended. */
  async job(id: string, options: CallOptions = {}): Promise<Job> {
    return this.#object<Job>("a job", { method: "GET", path: jobPath(id), repeat: true, ...options });
  }

  /** Lists jobs, the newest first. */
  async jobs(filter: JobFilter = {}, options: ListOptions = {}): Promise<Job[]> {
    return this.#list<Job>("/api/v1/jobs", { ...filter }, options);
  }

  /** Waits until a job has ended, and returns it with its result. */
  async wait(id: string, options: WaitOptions = {}): Promise<Job> {
    const end = options.timeout === undefined ? Infinity : Date.now() + options.timeout;
    for (;;) {
      const left = Math.max(0, Math.min(longPoll, end - Date.now()));
      const began = Date.now();
      const query = { wait: left > 0 ? `${Math.ceil(left / 1000)}s` : undefined };
      const job = await this.#object<Job>("a job", { method: "GET", path: jobPath(id), query, repeat: true, timeout: left + 30_000, ...(options.signal ? { signal: options.signal } : {}) });
      if (["succeeded", "failed", "cancelled"].includes(job.state)) {
        return job;
      }
      if (Date.now() >= end) {
        throw new PawlError("timeout", `job ${job.id} has not ended; it is ${job.state}`);
      }
      if (Date.now() - began < 500) {
        await pause(250, options.signal); // the server does not wait
      }
    }
  }

  /** Cancels a job, and stops it if it runs. It is not repeated by itself: a second one is refused. */
  async cancel(id: string, options: CallOptions = {}): Promise<void> {
    await this.request({ method: "DELETE", path: jobPath(id), ...options });
  }

  /** Runs a failed job again, now. */
  async retry(id: string, options: CallOptions = {}): Promise<Job> {
    return this.#object<Job>("a job", { method: "POST", path: `${jobPath(id)}/retry`, repeat: true, ...options });
  }

  /** Runs all failed jobs again that the filter names, some at a time. */
  async retryJobs(filter: JobsFilter, options: ChangeOptions = {}): Promise<ChangedJobs> {
    return this.#change("/api/v1/jobs:retry", filter, options);
  }

  /** Cancels all jobs that have not succeeded and that the filter names, some at a time. */
  async cancelJobs(filter: JobsFilter, options: ChangeOptions = {}): Promise<ChangedJobs> {
    return this.#change("/api/v1/jobs:cancel", filter, options);
  }

  /** Declares a task that workers serve. The same again changes nothing. */
  async declare(task: string, definition: TaskRequest = {}, options: CallOptions = {}): Promise<Task> {
    return this.#object<Task>("a task", { method: "PUT", path: `/api/v1/tasks/${segment(task)}`, body: definition, repeat: true, ...options });
  }

  async task(name: string, options: CallOptions = {}): Promise<Task> {
    return this.#object<Task>("a task", { method: "GET", path: `/api/v1/tasks/${segment(name)}`, repeat: true, ...options });
  }

  async tasks(options: ListOptions = {}): Promise<Task[]> {
    return this.#list<Task>("/api/v1/tasks", {}, options);
  }

  /** Publishes an event to a workflow. One with a messageId that is known is not added twice. */
  async publish(workflow: string, event: EventRequest, options: CallOptions = {}): Promise<PublishedEvent> {
    return this.#object<PublishedEvent>("an event", { method: "POST", path: `/api/v1/workflows/${segment(workflow)}/events`, body: event, repeat: true, ...options });
  }

  /** Lists lanes: workflows, sources and schedules, or those of one kind. */
  async lanes(kind?: Kind, options: ListOptions = {}): Promise<Lane[]> {
    return this.#list<Lane>("/api/v1/lanes", { kind }, options);
  }

  /** Reads why a lane runs, does not run, or waits. */
  async why(kind: Kind, name: string, options: CallOptions = {}): Promise<LaneWhy> {
    return this.#object<LaneWhy>("a lane", { method: "GET", path: `/api/v1/lanes/${segment(kind)}/${segment(name)}/why`, repeat: true, ...options });
  }

  /** Runs a lane now. */
  async runNow(kind: Kind, name: string, options: CallOptions = {}): Promise<unknown> {
    return this.request({ method: "POST", path: `${await this.#lanePath(kind, name, options)}/run`, repeat: true, ...options });
  }

  /** Pauses a lane: nothing more of it is started. */
  async pause(kind: Kind, name: string, options: CallOptions = {}): Promise<void> {
    await this.#enable(kind, name, false, options);
  }

  async resume(kind: Kind, name: string, options: CallOptions = {}): Promise<void> {
    await this.#enable(kind, name, true, options);
  }

  /** Lists the newest runs, of one lane or of all. */
  async runs(filter: { kind?: Kind; lane?: string; status?: string } = {}, options: ListOptions = {}): Promise<Run[]> {
    return this.#list<Run>("/api/v1/runs", { ...filter }, options);
  }

  /** Reads everything about a run. */
  async run(id: string, options: CallOptions = {}): Promise<RunDetail> {
    return this.#object<RunDetail>("a run", { method: "GET", path: `/api/v1/runs/${segment(id)}`, repeat: true, ...options });
  }

  /** Follows what happens, across connections that break. */
  watch(options: WatchOptions = {}): AsyncGenerator<StreamEvent, void, undefined> {
    return watch(this.#transport, options);
  }

  /** Asks for what has no method of its own. Only what says `repeat` is sent again. */
  async request(r: Request): Promise<unknown> {
    return this.#transport.send(r);
  }

  async #object<T>(what: string, r: Request): Promise<T> {
    const answer = await this.#transport.send(r);
    if (typeof answer !== "object" || answer === null || Array.isArray(answer)) {
      throw strange(this.#transport.where, `${what} that cannot be read`);
    }
    return answer as T;
  }

  async #list<T>(path: string, query: Record<string, string | undefined>, options: ListOptions): Promise<T[]> {
    const { limit, ...call } = options;
    const items: T[] = [];
    for (let cursor: string | undefined; ; ) {
      const want = limit === undefined ? pageSize : Math.min(pageSize, limit - items.length);
      const page = await this.#object<{ items: T[]; nextCursor?: string | null }>("a list", { method: "GET", path, query: { ...query, limit: want, cursor }, repeat: true, ...call });
      if (!Array.isArray(page.items)) {
        throw strange(this.#transport.where, "a list that cannot be read");
      }
      items.push(...page.items);
      if (!page.nextCursor || (limit !== undefined && items.length >= limit)) {
        return items;
      }
      if (page.nextCursor === cursor) {
        throw strange(this.#transport.where, "the same page of a list twice");
      }
      cursor = page.nextCursor;
    }
  }

  /** Goes on until nothing is left that the filter names. Each request is acted on once. */
  async #change(path: string, filter: JobsFilter, { dryRun, ...call }: ChangeOptions): Promise<ChangedJobs> {
    const sum = { matched: 0, changed: 0 };
    for (let cursor: string | undefined; ; ) {
      const body = { filter, ...(dryRun === true ? { dryRun } : {}), ...(cursor === undefined ? {} : { cursor }) };
      const did = await this.#object<ChangedJobs & { nextCursor?: string | null }>("an answer", { method: "POST", path, body, repeat: true, ...call });
      if (!Number.isInteger(did.matched) || !Number.isInteger(did.changed) || (did.nextCursor && did.nextCursor === cursor)) {
        throw strange(this.#transport.where, "about jobs what cannot be read");
      }
      sum.matched += did.matched;
      sum.changed += did.changed;
      if (!did.nextCursor) {
        return sum;
      }
      cursor = did.nextCursor;
    }
  }

  /** Schedules are found by their id, because their name is their owner's. */
  async #lanePath(kind: Kind, name: string, options: CallOptions): Promise<string> {
    if (kind !== "schedule") {
      return `/api/v1/${segment(kind)}s/${segment(name)}`;
    }
    const [found] = await this.#list<{ id: string }>("/api/v1/schedules", { name }, { ...options, limit: 1 });
    if (found === undefined) {
      throw new PawlError("not_found", `you have no schedule ${JSON.stringify(name)}`, { status: 404 });
    }
    return `/api/v1/schedules/${segment(found.id)}`;
  }

  async #enable(kind: Kind, name: string, enabled: boolean, options: CallOptions): Promise<void> {
    const path = await this.#lanePath(kind, name, options);
    if (kind === "schedule") {
      await this.request({ method: "PATCH", path, body: { enabled }, repeat: true, ...options });
      return;
    }
    await this.request({ method: "POST", path: `${path}/${enabled ? "resume" : "pause"}`, repeat: true, ...options });
  }
}

function jobPath(id: string): string {
  return `/api/v1/jobs/${segment(id)}`;
}
