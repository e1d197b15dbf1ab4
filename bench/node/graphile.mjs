// Graphile Worker, by default or with its local queue.

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const TASK = "bench";
const JOBS = "graphile_worker._private_jobs";

const logger = new Logger(() => (level, message) => {
  if (level === "error") console.error(message);
});

export class Graphile {
  constructor(tuned) {
    this.tuned = tuned;
    this.watermark = 0;
  }

  async setup({ dsn, lanes, perLane }) {
    this.lanes = lanes;
    this.perLane = perLane || 1;
    this.pool = new pg.Pool({ connectionString: dsn, max: 25 });
    // A connection that the server closes is no reason to die.
    const report = (err) => console.error(err.message);
    this.pool.on("error", report);
    this.pool.on("connect", (client) => client.on("error", report));
    this.utils = await makeWorkerUtils({ pgPool: this.pool, logger });
    await this.utils.migrate();
  }

  /** options are the defaults, or those of Graphile Worker's page on performance. */
  options() {
    if (!this.tuned) return { concurrentJobs: 24 };
    return {
      concurrentJobs: 24,
      pollInterval: 100,
      localQueue: { size: 500 },
      // With named queues, two batches of completions at a time deadlock, and
      // Graphile Worker does not try them again.
      completeJobBatchDelay: this.lanes ? 5 : 0,
      failJobBatchDelay: 0,
    };
  }

  /** Future jobs in the table have lower ids than those of the measurement. */
  async expect() {
    const { rows } = await this.pool.query(`select coalesce(max(id), 0) as id from ${JOBS}`);
    this.watermark = rows[0].id;
  }

  /** A named queue is serial: a lane with room for several jobs is several queues. */
  spec(job) {
    const queueName = job.lane && this.perLane > 1 ? `${job.lane}/${job.seq % this.perLane}` : job.lane;
    return { queueName, runAt: job.runAt };
  }

  async enqueueOne(job) {
    await this.utils.addJob(TASK, job.payload, this.spec(job));
  }

  async enqueueBulk(jobs) {
    await this.utils.addJobs(jobs.map((job) => ({ identifier: TASK, payload: job.payload, ...this.spec(job) })));
  }

  async start(handle) {
    this.runner = await run({
      pgPool: this.pool,
      logger,
      noHandleSignals: true,
      taskList: { [TASK]: async (payload) => handle(payload.seq) },
      crontab: "",
      preset: { worker: this.options() },
    });
  }

  /** A finished job is a deleted one. */
  async finished() {
    const { rows } = await this.pool.query(`select exists (select 1 from ${JOBS} where id > $1) as open`, [this.watermark]);
    return !rows[0].open;
  }

  async stop() {
    await this.runner.stop();
  }

  async cleanup() {
    await this.utils?.release();
    await this.pool?.end();
  }
}
