import assert from "node:assert/strict";
import { test } from "node:test";

import { PawlError, permanent, Worker } from "@pawlrun/client";

import { freshTask, pawl } from "./kit.js";

const code = (want: string) => (e: unknown) => e instanceof PawlError && e.code === want;

test("many jobs are enqueued in order, or none", async () => {
  const task = await freshTask();
  const jobs = await pawl.enqueueAll(Array.from({ length: 500 }, (_, n) => ({ task, payload: n, delay: "1h", key: `${task}-${n}` })));
  assert.deepEqual(jobs.map((j) => j.key), Array.from({ length: 500 }, (_, n) => `${task}-${n}`));
  assert.equal((await pawl.job(jobs[499]!.id)).payload, 499);
  await assert.rejects(pawl.enqueueAll([{ task }, { task: "nobody-serves-this" }]), (e) => e instanceof PawlError && e.faults.some((f) => f.pointer === "/jobs/1/task"));
  assert.equal((await pawl.jobs({ task })).length, 500);
});

test("jobs are cancelled by a filter, after they were counted", async () => {
  const task = await freshTask();
  await pawl.enqueueAll(Array.from({ length: 1200 }, (_, n) => ({ task, delay: "1h", lane: n < 1100 ? "ada" : "bob" })));
  assert.deepEqual(await pawl.cancelJobs({ task, lane: "ada" }, { dryRun: true }), { matched: 1100, changed: 0 });
  assert.deepEqual(await pawl.cancelJobs({ task, lane: "ada" }), { matched: 1100, changed: 1100 });
  assert.equal((await pawl.jobs({ task, state: "scheduled" })).length, 100);
  await assert.rejects(pawl.cancelJobs({}), code("invalid"));
});

test("a result is waited for, and failed jobs are retried by a filter", async () => {
  const task = await freshTask();
  let broken = true;
  const worker = new Worker({ client: pawl, task, log: null, concurrency: 3, do: (job) => { if (broken) { throw permanent("the mail server is away"); } return job.payload; } });
  const running = worker.run({ signals: false });
  const jobs = await pawl.enqueueAll([1, 2, 3].map((n) => ({ task, payload: n, lane: `l${n}` })));
  for (const job of jobs) {
    assert.equal((await pawl.wait(job.id, { timeout: 20_000 })).state, "failed");
  }
  broken = false;
  assert.deepEqual(await pawl.retryJobs({ task, error: "mail server" }), { matched: 3, changed: 3 });
  for (const [n, job] of jobs.entries()) {
    assert.equal((await pawl.wait(job.id)).result, n + 1);
  }
  worker.stop();
  await running;
});

test("waiting ends in time, and when the caller leaves", async () => {
  const { id } = await pawl.enqueue({ task: await freshTask() });
  const began = Date.now();
  await assert.rejects(pawl.wait(id, { timeout: 700 }), code("timeout"));
  assert.ok(Date.now() - began < 10_000);
  const controller = new AbortController();
  setTimeout(() => controller.abort(new Error("enough")), 100);
  await assert.rejects(pawl.wait(id, { signal: controller.signal }), /enough/);
});
