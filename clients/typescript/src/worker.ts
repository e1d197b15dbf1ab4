import { hostname } from "node:os";

import type { Client } from "./client.js";
import { PawlError, refused, strange } from "./error.js";
import { durationText, Failure, messageOf } from "./failure.js";
import { pause, segment } from "./transport.js";
import type { ClaimedJob } from "./types.js";

const claimWait = 20_000;
const answerTimeout = 30_000;
/** How many ends go in one request, and how many characters of results. */
const endsAtOnce = 100;
const endsSize = 2 << 20;
/** How long an end is sent again that was not answered. */
const endsFor = 120_000;
const maxErrorText = 16 << 10;
const maxItems = 1000;

/** A job as a handler gets it. */
export interface WorkerJob extends ClaimedJob {
  /**
   * Aborted when the job must not go on. The reason is a PawlError with the code
   * `cancelled`, `lease_lost` (another worker may have the job) or `stopping`.
   */
  signal: AbortSignal;
}

/** Where a worker says what goes wrong; console is one. */
export interface WorkerLog {
  warn(message: string): void;
  error(message: string): void;
}

export interface WorkerOptions {
  client: Client;
  task: string;
  /** Does a job. What it returns is the result, as JSON. See permanent, retryAfter and snooze for errors that say more. */
  do?: (job: WorkerJob) => unknown;
  /** Does the jobs of a claim together instead. It returns as many results, in order; an Error among them fails its job. */
  doBatch?: (jobs: WorkerJob[]) => unknown[] | Promise<unknown[]>;
  /** Who is told to have the jobs; left out, the machine and the process. */
  id?: string;
  /** How many jobs, or batches, are done at once; 1 if left out. */
  concurrency?: number;
  /** How many jobs doBatch gets at most; left out, what the task says. */
  batchSize?: number;
  /** How long jobs may go on when the worker is to end, in milliseconds; 30,000 if left out. */
  drain?: number;
  /** Left out, it is the console. Null says nothing. */
  log?: WorkerLog | null;
}

export interface RunOptions {
  /** Ends the worker, which drains. */
  signal?: AbortSignal;
  /** Whether SIGTERM and SIGINT end it, too; yes if left out. */
  signals?: boolean;
}

interface InHand {
  job: ClaimedJob;
  unit: { left: number };
  controller: AbortController;
  /** When the lease ends by our own clock. */
  until: number;
}

interface End {
  job: InHand;
  /** As JSON; undefined is none. */
  result?: string | undefined;
  failure?: { message: string; class: string; retryAfter?: string };
}

interface LeaseAnswer {
  id: string;
  ok: boolean;
  code: string | null;
  message: string | null;
}

/** Serves a task: it claims jobs, does them, and says how they ended. */
export class Worker {
  readonly #o: WorkerOptions;
  readonly #log: WorkerLog | null;
  readonly #path: string;
  readonly #id: string;
  readonly #slots: number;
  readonly #hand = new Map<string, InHand>();
  readonly #stopping = new AbortController();
  #lease = 30_000;
  #busy = 0;
  #ends: End[] = [];
  #telling: Promise<void> | undefined;
  #wake: () => void = () => undefined;

  constructor(options: WorkerOptions) {
    if ((options.do === undefined) === (options.doBatch === undefined)) {
      throw new PawlError("usage", "a worker needs one of do and doBatch");
    }
    this.#o = options;
    this.#log = options.log === undefined ? console : options.log;
    this.#path = `/api/v1/tasks/${segment(options.task)}`;
    this.#id = options.id ?? `${hostname()} (process ${process.pid})`;
    this.#slots = Math.min(Math.max(Math.trunc(options.concurrency ?? 1), 1), maxItems);
  }

  /** Ends run: it claims nothing more, lets jobs end for a while, and gives back the others. */
  stop(): void {
    this.#stopping.abort();
  }

  /**
   * Works until it is stopped. It throws at once if the task is not declared or the
   * token is refused; a server that is away is waited for.
   */
  async run(options: RunOptions = {}): Promise<void> {
    const stop = () => this.stop();
    if (options.signal?.aborted) {
      stop();
    }
    options.signal?.addEventListener("abort", stop, { once: true });
    const names: NodeJS.Signals[] = options.signals === false ? [] : ["SIGTERM", "SIGINT"];
    names.forEach((name) => process.once(name, stop));
    try {
      await this.#meet();
      await this.#work();
    } finally {
      names.forEach((name) => process.removeListener(name, stop));
      options.signal?.removeEventListener("abort", stop);
    }
  }

  async #work(): Promise<void> {
    const working = new AbortController();
    const beating = this.#beat(working.signal);
    try {
      await this.#claimLoop();
    } finally {
      await this.#drain();
      working.abort();
      await beating;
    }
  }

  async #claimLoop(): Promise<void> {
    const stopping = this.#stopping.signal;
    for (let wait = 1000; !stopping.aborted; ) {
      if (this.#busy >= this.#slots) {
        await this.#changed();
        continue;
      }
      const began = performance.now();
      try {
        const claimed = await this.#claim();
        this.#begin(claimed, performance.now());
        wait = 1000;
        if (claimed.length === 0 && performance.now() - began < 1000) {
          await pause(250, stopping); // what answers does not wait
        }
      } catch (e) {
        if (stopping.aborted) {
          return;
        }
        if (refused(e)) {
          throw e;
        }
        this.#log?.warn(`pawl: claim jobs of ${this.#o.task}; it is tried again in ${wait / 1000} s: ${messageOf(e)}`);
        await pause(wait, stopping);
        wait = Math.min(2 * wait, 30_000);
      }
    }
  }

  async #claim(): Promise<ClaimedJob[]> {
    const limit = this.#o.doBatch === undefined ? this.#slots - this.#busy : this.#o.batchSize;
    const body = { workerId: this.#id, wait: `${claimWait / 1000}s`, ...(limit === undefined ? {} : { limit }) };
    // Not repeated: whoever took the jobs must hear of them.
    const items = await this.#post<ClaimedJob>("claim", body, claimWait + answerTimeout, this.#stopping.signal);
    if (items.some((job) => typeof job.id !== "string" || typeof job.leaseToken !== "string")) {
      throw strange("the server", "to claim what cannot be read");
    }
    return items;
  }

  async #post<T>(verb: string, body: unknown, timeout: number, signal?: AbortSignal): Promise<T[]> {
    const answer = (await this.#o.client.request({ method: "POST", path: `${this.#path}/${verb}`, body, timeout, signal })) as { items?: unknown } | null | undefined;
    if (!Array.isArray(answer?.items) || answer.items.some((item) => typeof item !== "object" || item === null)) {
      throw strange("the server", `to ${verb} what cannot be read`);
    }
    return answer.items as T[];
  }

  #begin(claimed: ClaimedJob[], now: number): void {
    const units = this.#o.doBatch === undefined ? claimed.map((job) => [job]) : claimed.length > 0 ? [claimed] : [];
    for (const jobs of units) {
      const unit = { left: jobs.length };
      const hands = jobs.map((job) => ({ job, unit, controller: new AbortController(), until: now + this.#lease }));
      hands.forEach((h) => this.#hand.set(h.job.id, h));
      this.#busy++;
      void this.#doAll(hands);
    }
  }

  async #doAll(hands: InHand[]): Promise<void> {
    const jobs = hands.map((h) => ({ ...h.job, signal: h.controller.signal }));
    let ends: End[];
    try {
      ends = await (this.#o.doBatch === undefined ? this.#doOne(hands, jobs) : this.#doBatch(hands, jobs));
    } catch (e) {
      ends = hands.map((h) => failed(h, e));
    }
    this.#ends.push(...ends);
    this.#telling ??= this.#tell();
    this.#wake();
  }

  async #doOne(hands: InHand[], jobs: WorkerJob[]): Promise<End[]> {
    const result: unknown = await this.#o.do!(jobs[0]!);
    return [done(hands[0]!, result)];
  }

  async #doBatch(hands: InHand[], jobs: WorkerJob[]): Promise<End[]> {
    const results: unknown = await this.#o.doBatch!(jobs);
    if (!Array.isArray(results) || results.length !== hands.length) {
      throw new Failure(`doBatch returned ${Array.isArray(results) ? results.length : "no"} results for ${hands.length} jobs`, "permanent");
    }
    return hands.map((h, i) => (results[i] instanceof Error ? failed(h, results[i]) : done(h, results[i])));
  }

  /** Waits until a job ended, or the worker is to end. */
  #changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#stopping.signal.removeEventListener("abort", this.#wake);
        this.#wake = () => undefined;
        resolve();
      };
      this.#stopping.signal.addEventListener("abort", this.#wake, { once: true });
    });
  }

  /** Lets jobs end for a while, tells the others to, and says how all ended. */
  async #drain(): Promise<void> {
    const late = setTimeout(() => {
      for (const h of this.#hand.values()) {
        h.controller.abort(new PawlError("stopping", "the worker stops"));
      }
    }, this.#o.drain ?? 30_000);
    while (this.#hand.size > 0) {
      await (this.#telling ?? new Promise<void>((resolve) => (this.#wake = resolve)));
    }
    clearTimeout(late);
  }

  /** Reads the lease for the first time, from a server that may be away. */
  async #meet(): Promise<void> {
    const stopping = this.#stopping.signal;
    for (let wait = 1000; !stopping.aborted; wait = Math.min(2 * wait, 30_000)) {
      try {
        return await this.#readLease();
      } catch (e) {
        if (refused(e)) {
          throw e;
        }
        this.#log?.warn(`pawl: ask for the task ${this.#o.task}; it is tried again in ${wait / 1000} s: ${messageOf(e)}`);
        await pause(wait, stopping);
      }
    }
  }

  async #readLease(): Promise<void> {
    const task = await this.#o.client.task(this.#o.task);
    this.#lease = Math.max(1000, leaseOf(task.lease));
  }

  /** Asks for more time for all jobs in hand, three times in a lease. */
  async #beat(signal: AbortSignal): Promise<void> {
    for (let asked = performance.now(); ; ) {
      await pause(this.#lease / 3, signal);
      if (signal.aborted) {
        return;
      }
      if (performance.now() - asked > 60_000) {
        asked = performance.now();
        await this.#readLease().catch(() => undefined); // as it was, then
      }
      await this.#extend(signal).catch((e: unknown) => {
        if (!signal.aborted) {
          this.#log?.warn(`pawl: ask for more time for jobs of ${this.#o.task}: ${messageOf(e)}`);
        }
      });
      this.#dropLate();
    }
  }

  async #extend(signal: AbortSignal): Promise<void> {
    const all = [...this.#hand.values()];
    for (let from = 0; from < all.length; from += maxItems) {
      const some = all.slice(from, from + maxItems);
      const items = some.map((job) => nameOf({ job }));
      const asked = new Map(some.map((h) => [h.job.id, h])); // by then another lease of the job may be in hand
      const began = performance.now();
      for (const lease of await this.#post<LeaseAnswer>("extend", { items }, Math.max(1000, this.#lease / 3), signal)) {
        const h = asked.get(lease.id);
        if (h === undefined) {
          continue;
        }
        if (lease.ok) {
          h.until = began + this.#lease;
        } else if (lease.code === "cancelled") {
          h.until = Infinity; // it is still ours, to say that it ended
          h.controller.abort(new PawlError("cancelled", "the job was cancelled"));
        } else {
          h.controller.abort(leaseLost());
        }
      }
    }
  }

  /** Nobody answered for a whole lease: another worker may have the job. */
  #dropLate(): void {
    for (const h of this.#hand.values()) {
      if (performance.now() >= h.until) {
        h.controller.abort(leaseLost());
      }
    }
  }

  /** Says how jobs ended, as many at once as there are. */
  async #tell(): Promise<void> {
    while (this.#ends.length > 0) {
      const batch: End[] = [];
      for (let size = 0; batch.length < endsAtOnce && this.#ends.length > 0; ) {
        size += this.#ends[0]!.result?.length ?? 0;
        if (batch.length > 0 && size > endsSize) {
          break;
        }
        batch.push(this.#ends.shift()!);
      }
      // Whose lease was lost may have been claimed again meanwhile: that one goes on.
      const ours = ({ job: h }: End): boolean => this.#hand.get(h.job.id) === h;
      await this.#tellBatch(batch.filter(ours));
      for (const e of batch) {
        const h = e.job;
        if (ours(e)) {
          this.#hand.delete(h.job.id);
        }
        if (--h.unit.left === 0) {
          this.#busy--;
        }
      }
      this.#wake();
    }
    this.#telling = undefined;
  }

  async #tellBatch(batch: End[]): Promise<void> {
    const completed = batch.filter((e) => e.failure === undefined);
    const ended = batch.filter((e) => e.failure !== undefined);
    if (completed.length > 0) {
      // Results are JSON already.
      const items = completed.map((e) => ({ ...nameOf(e), ...(e.result === undefined ? {} : { result: JSON.parse(e.result) as unknown }) }));
      const answers = await this.#insist("complete", items);
      for (const e of completed) {
        const answer = answers === "too_large" ? { code: "too_large", message: null } : answers.find((a) => a.id === e.job.job.id);
        if (answer?.code === "too_large") {
          ended.push({ job: e.job, failure: { message: answer.message ?? "the result is too large", class: "permanent" } });
        }
      }
    }
    if (ended.length > 0) {
      const items = ended.map(({ job, failure: f }) => ({ ...nameOf({ job }), error: { message: f!.message, class: f!.class }, ...(f!.retryAfter === undefined ? {} : { retryAfter: f!.retryAfter }) }));
      await this.#insist("fail", items);
    }
  }

  /** Says something until it is answered. Saying it twice does no harm. */
  async #insist(verb: string, items: object[]): Promise<LeaseAnswer[] | "too_large"> {
    const began = performance.now();
    for (let wait = 100; ; wait = Math.min(2 * wait, 5000)) {
      try {
        const answers = await this.#post<LeaseAnswer>(verb, { items }, answerTimeout);
        for (const a of answers.filter((a) => !a.ok && a.code !== "too_large")) {
          this.#log?.warn(`pawl: what job ${a.id} of ${this.#o.task} came to does not count: ${a.code}`);
        }
        return answers;
      } catch (e) {
        if (e instanceof PawlError && e.status === 413 && items.length === 1) {
          return "too_large";
        }
        if (refused(e) || performance.now() - began > endsFor) {
          this.#log?.error(`pawl: say how jobs of ${this.#o.task} ended; they come back when their leases end: ${messageOf(e)}`);
          return [];
        }
        this.#log?.warn(`pawl: say how jobs of ${this.#o.task} ended; it is tried again: ${messageOf(e)}`);
        await pause(wait);
      }
    }
  }
}

function nameOf(e: { job: InHand }): { id: string; leaseToken: string } {
  return { id: e.job.job.id, leaseToken: e.job.job.leaseToken };
}

function leaseLost(): PawlError {
  return new PawlError("lease_lost", "another worker may have the job");
}

/** A job was done. If its result cannot be told, doing it again would not help. */
function done(job: InHand, result: unknown): End {
  try {
    return { job, result: result === undefined ? undefined : JSON.stringify(result) };
  } catch (e) {
    return failed(job, new Failure(`the result is not JSON: ${messageOf(e)}`, "permanent"));
  }
}

function failed(job: InHand, e: unknown): End {
  const reason: unknown = job.controller.signal.reason;
  if (job.controller.signal.aborted && reason instanceof PawlError && ["stopping", "cancelled"].includes(reason.code)) {
    return { job, failure: { message: reason.message, class: "snooze", retryAfter: "0s" } };
  }
  const failure = { message: messageOf(e).slice(0, maxErrorText), class: e instanceof Failure ? e.jobClass : e instanceof Error ? e.name.slice(0, 128) : "" };
  return { job, failure: e instanceof Failure && e.after !== undefined ? { ...failure, retryAfter: durationText(e.after) } : failure };
}

function leaseOf(text: string): number {
  const units: Record<string, number> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 };
  return [...String(text).matchAll(/(\d+)([dhms])/g)].reduce((sum, [, n, unit]) => sum + Number(n) * units[unit!]!, 0);
}
