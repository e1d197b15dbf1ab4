import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";

import { PawlError, sql } from "@pawlrun/client";
import pg from "pg";

import { database, freshTask, freshWorkflow, pawl } from "./kit.js";

if (database !== undefined) {
  const pool = new pg.Pool({ connectionString: database, max: 2 });
  after(() => pool.end());
  const table = `orders_${randomUUID().replaceAll("-", "")}`;

  /** Commits what happens in it, or not. */
  const transaction = async <T>(commit: boolean, what: (tx: pg.PoolClient) => Promise<T>): Promise<T> => {
    const tx = await pool.connect();
    try {
      await tx.query("begin");
      const out = await what(tx);
      await tx.query(commit ? "commit" : "rollback");
      return out;
    } catch (e) {
      await tx.query("rollback");
      throw e;
    } finally {
      tx.release();
    }
  };

  test("a job is committed with the order, or rolled back with it", async () => {
    await pool.query(`create table ${table} (id int primary key)`);
    const task = await freshTask();
    const order = (n: number) => async (tx: pg.PoolClient) => {
      await tx.query(`insert into ${table} values ($1)`, [n]);
      return sql.addJob(tx, { task, payload: { order: n, text: "it's \"quoted\" ☃" }, lane: "ada", priority: 1, maxAttempts: 3, key: `${task}-${n}`, keyMode: "keep", runAt: new Date(Date.now() + 3_600_000) });
    };
    const kept = await transaction(true, order(1));
    const gone = await transaction(false, order(2));
    const job = await pawl.job(kept);
    assert.deepEqual([job.payload, job.lane, job.priority, job.maxAttempts, job.key, job.state], [{ order: 1, text: "it's \"quoted\" ☃" }, "ada", 1, 3, `${task}-1`, "scheduled"]);
    await assert.rejects(pawl.job(gone), (e) => e instanceof PawlError && e.code === "not_found");
    assert.equal((await pool.query(`select * from ${table}`)).rowCount, 1);
    assert.equal(await transaction(true, (tx) => sql.cancelJob(tx, kept)), true);
    assert.equal(await transaction(true, (tx) => sql.cancelJob(tx, kept)), false);
    assert.equal((await pawl.job(kept)).state, "cancelled");
  });

  test("many jobs are added in order, or none", async () => {
    const task = await freshTask();
    const ids = await transaction(true, (tx) => sql.addJobs(tx, [1, 2, 3].map((n) => ({ task, payload: n, runAt: new Date(Date.now() + 3_600_000) }))));
    assert.deepEqual(await Promise.all(ids.map(async (id) => (await pawl.job(id)).payload)), [1, 2, 3]);
    await assert.rejects(transaction(true, (tx) => sql.addJobs(tx, [{ task }, { task: "nobody-serves-this" }])), (e) => (e as { code?: string }).code === "22023");
    assert.equal((await pawl.jobs({ task })).length, 3);
    await assert.rejects(transaction(true, (tx) => sql.addJob(tx, { task, delay: "1h" } as sql.SqlJob)), (e) => e instanceof PawlError && e.code === "usage");
  });

  test("an event is published once", async () => {
    const name = await freshWorkflow();
    const event = { topic: "order.placed", messageId: "1", payload: { n: 1 }, input: { source: "shop", type: "order", id: "1", title: "Order 1" } };
    assert.equal(await transaction(true, (tx) => sql.publish(tx, name, event)), true);
    assert.equal(await transaction(true, (tx) => sql.publish(tx, name, event)), false);
    assert.equal(await transaction(true, (tx) => sql.publish(tx, name, { topic: "order.placed", messageId: "2" })), true);
  });
}
