// A worker that says when it begins, and takes its time: node victim.js TASK MILLISECONDS DRAIN
import { Worker } from "@pawlrun/client";

import { pawl } from "./kit.js";

const [task, takes, drain] = process.argv.slice(2);
await new Worker({
  client: pawl,
  task: task!,
  drain: Number(drain),
  do: async (job) => {
    console.log(`began ${job.id} ${job.attempt}`);
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, Number(takes));
      job.signal.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(job.signal.reason as Error);
      });
    });
    console.log(`done ${job.id} ${job.attempt}`);
    return "by the first";
  },
}).run();
console.log("goodbye");
