// One job queue in a process that bench/queue measures: a request per line on
// standard input, a response per line on standard output. The protocol is
// described in bench/subject/doc.go.
//
// usage: node driver.mjs graphile-default | graphile-local | pgboss-batch

import { createInterface } from "node:readline";
import { enqueueBulk, enqueueEach, enqueuePaced } from "./enqueue.mjs";
import { Graphile } from "./graphile.mjs";
import { PgBossQueue } from "./pgboss.mjs";
import { Recorder, nowUS } from "./recorder.mjs";

const FINISH_POLL_MS = 2;

// Standard output is the protocol's; libraries that print get the other one.
console.log = console.info = console.debug = console.error;

const makers = {
  "graphile-default": () => new Graphile(false),
  "graphile-local": () => new Graphile(true),
  "pgboss-batch": () => new PgBossQueue(),
};

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class Server {
  constructor(queue) {
    this.queue = queue;
    this.recorder = new Recorder({ first: 0, count: 0 });
  }

  async answer(req) {
    switch (req.op) {
      case "setup":
        await this.queue.setup(req.config);
        return {};
      case "expect":
        this.recorder = new Recorder(req.batch);
        await this.queue.expect();
        return {};
      case "bulk":
        return { seconds: await enqueueBulk(this.queue, req.batch) };
      case "each":
        return { seconds: await enqueueEach(this.queue, req.batch, req.callers) };
      case "paced":
        await enqueuePaced(this.queue, req.batch, req.everyUs, this.recorder);
        return {};
      case "start":
        await this.queue.start((seq) => this.recorder.handle(seq));
        return {};
      case "wait":
        return await this.wait(req.timeoutMs);
      case "samples":
        return { samples: this.recorder.samples() };
      case "stop":
        await this.queue.stop();
        return { tally: this.recorder.tally() };
      case "close":
        await this.queue.cleanup();
        return {};
    }
    throw new Error("unknown request");
  }

  /** wait answers with the tally even when the time is up. */
  async wait(timeoutMs) {
    const r = this.recorder;
    const deadline = performance.now() + timeoutMs;
    const alarm = new AbortController();
    const inTime = await Promise.race([
      r.all.then(() => true),
      new Promise((resolve) => {
        const timer = setTimeout(() => resolve(false), timeoutMs);
        alarm.signal.addEventListener("abort", () => clearTimeout(timer));
      }),
    ]);
    alarm.abort();
    while (inTime && performance.now() < deadline) {
      if (await this.queue.finished()) return { tally: { ...r.tally(), finishedUs: nowUS() } };
      await sleep(FINISH_POLL_MS);
    }
    const tally = r.tally();
    return { tally, error: `wait: ${tally.handled} of ${r.batch.count} jobs handled: deadline exceeded` };
  }
}

async function serve(server) {
  for await (const line of createInterface({ input: process.stdin })) {
    const req = JSON.parse(line);
    let resp;
    try {
      resp = await server.answer(withDefaults(req));
    } catch (err) {
      resp = { error: `${req.op}: ${err.stack ?? err}` };
    }
    process.stdout.write(JSON.stringify(resp) + "\n");
    if (req.op === "close") return;
  }
}

/** Go leaves zero fields out of an empty batch or configuration. */
function withDefaults(req) {
  return { config: {}, batch: { first: 0, count: 0 }, ...req };
}

const make = makers[process.argv[2]];
if (!make) {
  console.error(`unknown queue ${process.argv[2]}`);
  process.exit(2);
}
process.stdin.on("end", () => setTimeout(() => process.exit(0), 1000).unref());
await serve(new Server(make()));
process.stdout.write("", () => process.exit(0));
