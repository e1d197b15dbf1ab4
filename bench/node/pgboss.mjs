// pg-boss in batches, woken by NOTIFY, fetching again as long as there is work.

import { PgBoss } from "pg-boss";

const QUEUE = "bench";
const WORKERS = 2;
const BATCH_SIZE = 1000;

export class PgBossQueue {
  async setup({ dsn, lanes }) {
    this.boss = new PgBoss({ connectionString: dsn, max: 20, schedule: false, useListenNotify: true });
    this.boss.on("error", (err) => console.error(err.message));
    await this.boss.start();
    await this.boss.createQueue(QUEUE, { policy: lanes ? "key_strict_fifo" : "standard", notify: true });
  }

  async expect() {}

  options(job) {
    const options = {};
    if (job.lane) options.singletonKey = job.lane;
    if (job.runAt) options.startAfter = job.runAt;
    return options;
  }

  async enqueueOne(job) {
    await this.boss.send(QUEUE, job.payload, this.options(job));
  }

  async enqueueBulk(jobs) {
    await this.boss.insert(QUEUE, jobs.map((job) => ({ data: job.payload, ...this.options(job) })));
  }

  async start(handle) {
    const options = {
      batchSize: BATCH_SIZE,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
      notifyPollingIntervalSeconds: 0.5,
    };
    const ids = [];
    const work = async (jobs) => {
      await Promise.all(jobs.map((job) => handle(job.data.seq)));
      // Without this a worker whose batch was short sleeps for half a second.
      for (const id of ids) this.boss.notifyWorker(id);
    };
    for (let i = 0; i < WORKERS; i++) ids.push(await this.boss.work(QUEUE, options, work));
  }

  /** A worker holds its jobs until their completion is committed. */
  async finished() {
    return this.boss.getWipData().every((worker) => worker.count === 0);
  }

  async stop() {
    await this.boss.offWork(QUEUE);
  }

  async cleanup() {
    await this.boss?.stop({ graceful: false, close: true });
  }
}
