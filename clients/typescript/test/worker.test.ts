import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, permanent, PawlError, retryAfter, snooze, Worker, type WorkerJob, type WorkerOptions } from "@pawlrun/client";

import { eventually, freshTask, pawl, proxy, start, token } from "./kit.js";

/** Runs a worker while a test looks at what it does. */
async function working<T>(options: Omit<WorkerOptions, "client"> & { client?: Client }, look: () => Promise<T>): Promise<T> {
  const worker = new Worker({ client: pawl, log: null, ...options });
  const running = worker.run({ signals: false });
  try {
    return await Promise.race([look(), running.then(() => Promise.reject(new Error("the worker ended by itself")))]);
  } finally {
    worker.stop();
    await running;
  }
}

const state = async (id: string) => (await pawl.job(id)).state;
const ended = (id: string) => eventually(`job ${id} ended`, async () => ["succeeded", "failed", "cancelled"].includes(await state(id)));

test("jobs are done, several at once, and their results are kept", async () => {
  const task = await freshTask({ concurrencyPerLane: 8 });
  let now = 0;
  let most = 0;
  const jobs = await Promise.all(Array.from({ length: 24 }, (_, n) => pawl.enqueue({ task, payload: { n } })));
  const work = async (job: WorkerJob) => {
    most = Math.max(most, ++now);
    await eventually("others began", () => most >= 4);
    now--;
    return { doubled: (job.payload as { n: number }).n * 2 };
  };
  await working({ task, concurrency: 4, do: work }, async () => {
    for (const [n, job] of jobs.entries()) {
      await ended(job.id);
      assert.deepEqual((await pawl.job(job.id)).result, { doubled: n * 2 });
    }
  });
  assert.equal(most, 4);
});

test("what a handler throws decides what becomes of the job", async () => {
  const task = await freshTask();
  const enqueue = (what: string) => pawl.enqueue({ task, payload: what, lane: what });
  const [gone, later, slept, broken, cyclic, large, nothing] = await Promise.all(["gone", "later", "slept", "broken", "cyclic", "large", "nothing"].map(enqueue));
  const loop: { self?: unknown } = {};
  loop.self = loop;
  const handlers: Record<string, () => unknown> = {
    gone: () => { throw permanent("no such address"); },
    later: () => { throw retryAfter("1h", new Error("try later")); },
    slept: () => { throw snooze(3_600_000, "not yet"); },
    broken: () => { throw new TypeError("it broke"); },
    cyclic: () => loop,
    large: () => "x".repeat(10 << 20),
    nothing: () => undefined,
  };
  await working({ task, concurrency: 8, do: (job) => handlers[job.payload as string]!() }, async () => {
    await ended(gone!.id);
    await ended(cyclic!.id);
    await ended(large!.id);
    await ended(nothing!.id);
    await eventually("the others were given back", async () => (await Promise.all([later!, slept!].map((j) => state(j.id)))).every((s) => s === "scheduled"));
    await eventually("what broke is told", async () => !!(await pawl.job(broken!.id)).lastError);
  });
  const read = async (job: { id: string } | undefined) => pawl.job(job!.id);
  assert.deepEqual([(await read(gone)).state, (await read(gone)).attempt, (await read(gone)).lastError], ["failed", 1, "no such address"]);
  assert.ok(Date.parse((await read(later)).runAt) > Date.now() + 3_000_000);
  assert.equal((await read(later)).attempt, 1);
  assert.equal((await read(slept)).attempt, 0);
  assert.equal((await read(broken)).lastError, "TypeError: it broke");
  assert.match((await read(cyclic)).lastError ?? "", /not JSON/);
  assert.equal((await read(cyclic)).attempt, 1, "what was done is not done again because its result cannot be told");
  assert.match((await read(large)).lastError ?? "", /large|bytes/);
  assert.equal((await read(nothing)).state, "succeeded");
});

test("a batch is done by one call, and each of its jobs ends for itself", async () => {
  const task = await freshTask({ batch: { size: 3, wait: "200ms" } });
  const jobs = await Promise.all([1, 2, 3].map((n) => pawl.enqueue({ task, payload: n })));
  const calls: number[] = [];
  const doBatch = (batch: WorkerJob[]) => {
    calls.push(batch.length);
    return batch.map((job) => (job.payload === 2 ? permanent("not two") : (job.payload as number) * 10));
  };
  await working({ task, doBatch }, async () => {
    for (const job of jobs) {
      await ended(job.id);
    }
  });
  assert.deepEqual(calls, [3]);
  assert.deepEqual(await Promise.all(jobs.map(async (j) => (await pawl.job(j.id)).result ?? null)), [10, null, 30]);
  assert.equal(await state(jobs[1]!.id), "failed");
});

test("a batch with the wrong number of results is not done again", async () => {
  const task = await freshTask();
  const job = await pawl.enqueue({ task });
  await working({ task, doBatch: () => [] }, () => ended(job.id));
  assert.deepEqual([await state(job.id), (await pawl.job(job.id)).attempt], ["failed", 1]);
});

test("a lease is extended while a job takes longer", async () => {
  const task = await freshTask({ lease: "1s" });
  const job = await pawl.enqueue({ task });
  let calls = 0;
  let aborted = false;
  const work = async (j: WorkerJob) => {
    calls++;
    await new Promise((resolve) => setTimeout(resolve, 2500));
    aborted = j.signal.aborted;
    return "late";
  };
  await working({ task, do: work }, () => ended(job.id));
  assert.equal((await pawl.job(job.id)).result, "late");
  assert.deepEqual([calls, aborted], [1, false]);
});

test("a cancelled job is told by its signal", async () => {
  const task = await freshTask({ lease: "1s" });
  const job = await pawl.enqueue({ task });
  let reason: unknown;
  const work = (j: WorkerJob) => new Promise((_, reject) => j.signal.addEventListener("abort", () => { reason = j.signal.reason; reject(reason as Error); }));
  await working({ task, do: work }, async () => {
    await eventually("it runs", async () => (await state(job.id)) === "running");
    await pawl.cancel(job.id);
    await eventually("the handler knows", () => reason !== undefined);
  });
  assert.equal((reason as PawlError).code, "cancelled");
  assert.equal(await state(job.id), "cancelled");
});

test("a lost lease is told by the signal, and what comes after it does not count", async () => {
  const task = await freshTask({ lease: "1s" });
  const job = await pawl.enqueue({ task });
  let cut = true;
  const through = new Client({ url: await proxy((req, res) => (req.url!.endsWith("/extend") && cut ? (res.destroy(), true) : false)), token });
  let reason: unknown;
  let release: () => void = () => undefined;
  const zombie = (j: WorkerJob) => new Promise((resolve) => {
    j.signal.addEventListener("abort", () => (reason = j.signal.reason));
    release = () => resolve("by the zombie");
  });
  await working({ task, client: through, do: zombie }, async () => {
    await eventually("the handler knows", () => reason !== undefined);
    assert.equal((reason as PawlError).code, "lease_lost");
    cut = false;
    await working({ task, do: () => "by the other" }, () => ended(job.id));
    release();
  });
  const is = await pawl.job(job.id);
  assert.deepEqual([is.state, is.result, is.attempt], ["succeeded", "by the other", 2]);
});

test("a server that is away is waited for", async () => {
  const task = await freshTask();
  const job = await pawl.enqueue({ task });
  const until = performance.now() + 1500;
  const through = new Client({ url: await proxy((_, res) => (performance.now() < until ? (res.writeHead(503).end("{}"), true) : false)), token, retries: 0 });
  await working({ task, client: through, do: () => "done" }, () => ended(job.id));
  assert.equal((await pawl.job(job.id)).result, "done");
});

test("a job that comes back to the same worker is held on to", async () => {
  const task = await freshTask({ lease: "1s" });
  const job = await pawl.enqueue({ task });
  let again: () => void = () => undefined;
  const came = new Promise<void>((resolve) => (again = resolve));
  let cut = true;
  const through = new Client({ url: await proxy((req, res) => (req.url!.endsWith("/extend") && cut ? (res.destroy(), true) : false)), token });
  const attempts: number[] = [];
  const work = async (j: WorkerJob) => {
    attempts.push(j.attempt);
    if (j.attempt === 1) {
      await came;
      return "late";
    }
    cut = false;
    again();
    await new Promise((resolve) => setTimeout(resolve, 2500));
    return j.signal.aborted ? "stopped" : "held";
  };
  await working({ task, client: through, concurrency: 2, do: work }, () => ended(job.id));
  assert.deepEqual([(await pawl.job(job.id)).result, attempts], ["held", [1, 2]]);
});

test("the server itself tells of a lost lease", async () => {
  const task = await freshTask({ lease: "9s" });
  const job = await pawl.enqueue({ task });
  let told = "";
  const through = new Client({ url: await proxy((req, res) => {
    if (!req.url!.endsWith("/extend")) { return false; }
    res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ items: [{ id: job.id, ok: false, code: "lease_lost", message: "gone" }] }));
    return true;
  }), token });
  const began = Date.now();
  await working({ task, client: through, do: (j) => new Promise((resolve) => j.signal.addEventListener("abort", () => { told = (j.signal.reason as PawlError).code; resolve(null); })) }, () => eventually("the handler knows", () => told !== ""));
  assert.equal(told, "lease_lost");
  assert.ok(Date.now() - began < 8000, "before the lease ended");
});

test("kill -9 of a worker: its job is done by another one, once", async () => {
  const task = await freshTask({ lease: "1s" });
  const job = await pawl.enqueue({ task });
  const victim = start("victim.js", [task, "60000", "1000"]);
  await eventually("it began", () => victim.said().includes(`began ${job.id} 1`));
  victim.child.kill("SIGKILL");
  const attempts: number[] = [];
  await working({ task, do: (j) => { attempts.push(j.attempt); return "by the second"; } }, () => ended(job.id));
  assert.deepEqual(attempts, [2]);
  assert.equal((await pawl.job(job.id)).result, "by the second");
  assert.ok(!victim.said().includes("done"));
});

test("SIGTERM lets a job end, and claims nothing more", async () => {
  const task = await freshTask();
  const first = await pawl.enqueue({ task });
  const victim = start("victim.js", [task, "500", "20000"]);
  await eventually("it began", () => victim.said().includes("began"));
  victim.child.kill("SIGTERM");
  const second = await pawl.enqueue({ task });
  await eventually("it ended", () => victim.child.exitCode !== null || victim.child.signalCode !== null);
  assert.deepEqual([victim.child.exitCode, victim.child.signalCode], [0, null]);
  assert.match(victim.said(), /done[^]*goodbye/);
  assert.deepEqual([await state(first.id), await state(second.id)], ["succeeded", "pending"]);
});

test("what takes too long at the end is given back at once, without an attempt", async () => {
  const task = await freshTask();
  const job = await pawl.enqueue({ task });
  const victim = start("victim.js", [task, "60000", "100"]);
  await eventually("it began", () => victim.said().includes("began"));
  victim.child.kill("SIGTERM");
  await eventually("it ended", () => victim.child.exitCode !== null);
  assert.deepEqual([await state(job.id), (await pawl.job(job.id)).attempt], ["pending", 0]);
});

test("a worker without its task, or with a bad token, ends with the error", async () => {
  const run = (client: Client, task: string) => new Worker({ client, task, do: () => null, log: null }).run({ signals: false });
  await assert.rejects(run(pawl, "nobody-declared-this"), (e) => e instanceof PawlError && e.code === "not_found");
  const task = await freshTask();
  const url = await proxy(() => false);
  await assert.rejects(run(new Client({ url, token: "wrong" }), task), (e) => e instanceof PawlError && e.code === "unauthorized");
  assert.throws(() => new Worker({ client: pawl, task }), PawlError);
});

test("an answer that gets lost is asked for again, and the job is done once", async () => {
  const task = await freshTask();
  const lost = new Set<string>();
  const through = new Client({ url: await proxy((req) => {
    const verb = req.url!.split("/").pop()!;
    if (verb !== "complete" || lost.has(verb)) { return false; }
    lost.add(verb);
    return "lose";
  }), token });
  const job = await pawl.enqueue({ task });
  let calls = 0;
  await working({ task, client: through, do: () => ++calls }, () => ended(job.id));
  assert.deepEqual([calls, (await pawl.job(job.id)).result, lost.size], [1, 1, 1]);
});
