import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { inspect } from "node:util";

import { Client, PawlError } from "@pawlrun/client";

import { eventually, freshTask, freshWorkflow, pawl, token, url } from "./kit.js";

const code = (want: string) => (e: unknown) => e instanceof PawlError && e.code === want;

test("a job is enqueued, read, listed, cancelled and retried", async () => {
  const task = await freshTask();
  const job = await pawl.enqueue({ task, payload: { n: 1 }, delay: "1h", lane: "ada", key: task, priority: 1, maxAttempts: 3 });
  assert.equal(job.state, "scheduled");
  assert.deepEqual((await pawl.job(job.id)).payload, { n: 1 });
  assert.deepEqual((await pawl.jobs({ task })).map((j) => j.id), [job.id]);
  await pawl.cancel(job.id);
  assert.equal((await pawl.job(job.id)).state, "cancelled");
  await assert.rejects(pawl.cancel(job.id), code("conflict"));
  await assert.rejects(pawl.retry(job.id), code("conflict"));
  const at = new Date(Date.now() + 3_600_000);
  assert.equal((await pawl.enqueue({ task, runAt: at })).runAt, at.toISOString());
});

test("lists go on over pages, up to a limit", async () => {
  const task = await freshTask();
  const ids = new Set<string>();
  for (let i = 0; i < 205; i += 41) {
    const made = await Promise.all(Array.from({ length: 41 }, () => pawl.enqueue({ task, delay: "1h" })));
    made.forEach((j) => ids.add(j.id));
  }
  assert.deepEqual(new Set((await pawl.jobs({ task })).map((j) => j.id)), ids);
  assert.equal((await pawl.jobs({ task }, { limit: 7 })).length, 7);
});

test("the same idempotency key enqueues once", async () => {
  const task = await freshTask();
  const idempotencyKey = randomUUID();
  const one = await pawl.enqueue({ task, delay: "1h" }, { idempotencyKey });
  const two = await pawl.enqueue({ task, delay: "1h" }, { idempotencyKey });
  assert.equal(one.id, two.id);
  await assert.rejects(pawl.enqueue({ task, delay: "2h" }, { idempotencyKey }), code("idempotency_mismatch"));
});

test("errors are typed, with their place, hint and request", async () => {
  await assert.rejects(pawl.job("355813294120960001"), (e) => code("not_found")(e) && (e as PawlError).status === 404 && (e as PawlError).requestId !== "");
  await assert.rejects(pawl.enqueue({ task: "nobody-serves-this" }), (e) => {
    assert.ok(e instanceof PawlError);
    assert.equal(e.status, 422);
    assert.ok(e.hint !== "" && e.faults.some((f) => f.pointer === "/task"), inspect(e));
    return true;
  });
  for (const name of ["..", ".", ""]) {
    await assert.rejects(pawl.job(name), code("usage"));
  }
  await assert.rejects(pawl.job("../tokens"), (e) => e instanceof PawlError && [404, 422].includes(e.status));
});

test("tokens are in no error and no picture of a client", async () => {
  const wrong = new Client({ url, token: "pawl_wrong-and-secret" });
  const e = await wrong.job("1").catch((e: unknown) => e);
  assert.ok(code("unauthorized")(e));
  for (const what of [e, wrong, new Client({ url, token })]) {
    const picture = inspect(what, { depth: 9, showHidden: true }) + JSON.stringify(what);
    assert.ok(!picture.includes("wrong-and-secret") && !picture.includes(token), picture);
  }
  assert.throws(() => new Client({ url, token: "with a\nbreak" }), (e) => code("usage")(e) && !inspect(e).includes("with a"));
  assert.throws(() => new Client({ url: "http://ada:hunter2@example.com" }), (e) => code("usage")(e) && !inspect(e).includes("hunter2"));
});

test("events are published once, and lanes tell why, run, pause and resume", async () => {
  const name = await freshWorkflow();
  const event = { topic: "order.placed", messageId: "4711", payload: { total: 7 } };
  assert.equal((await pawl.publish(name, event)).duplicate, false);
  assert.equal((await pawl.publish(name, event)).duplicate, true);
  assert.ok((await pawl.lanes("workflow")).some((l) => l.name === name));
  await pawl.pause("workflow", name);
  assert.equal((await pawl.why("workflow", name)).paused, true);
  await assert.rejects(pawl.runNow("workflow", name), (e) => e instanceof PawlError && e.code === "paused" && e.status === 409);
  await pawl.resume("workflow", name);
  await eventually("the event is dealt with, and it runs again", async () => {
    try {
      await pawl.runNow("workflow", name);
      return true;
    } catch (e) {
      if (code("run_active")(e)) return false;
      throw e;
    }
  });
  await eventually("there is a run", async () => (await pawl.runs({ lane: name })).length > 0);
  const [run] = await pawl.runs({ lane: name }, { limit: 1 });
  assert.equal((await pawl.run(run!.id)).lane, name);
});

test("schedules are paused, resumed and run by their name", async () => {
  const name = `s-${randomUUID()}`;
  await pawl.request({ method: "POST", path: "/api/v1/schedules", body: { name, run: { job: { task: "log", payload: { message: "hello" } } }, cron: "0 0 1 1 *", timezone: "UTC" } });
  await pawl.pause("schedule", name);
  assert.equal((await pawl.why("schedule", name)).paused, true);
  await pawl.resume("schedule", name);
  await pawl.runNow("schedule", name);
  await assert.rejects(pawl.pause("schedule", "nobody-has-this"), code("not_found"));
});
