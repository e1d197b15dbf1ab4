// The three ways to enqueue a batch, as bench/subject/enqueue.go does them.

import { jobAt, jobsBetween } from "./jobs.mjs";
import { nowUS } from "./recorder.mjs";

const CHUNK_SIZE = 1000;

export async function enqueueBulk(queue, batch) {
  const began = performance.now();
  for (let from = 0; from < batch.count; from += CHUNK_SIZE) {
    await queue.enqueueBulk(jobsBetween(batch, from, Math.min(from + CHUNK_SIZE, batch.count)));
  }
  return (performance.now() - began) / 1000;
}

export async function enqueueEach(queue, batch, callers) {
  let next = 0;
  const caller = async () => {
    while (next < batch.count) await queue.enqueueOne(jobAt(batch, next++));
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: callers }, caller));
  return (performance.now() - began) / 1000;
}

/** enqueuePaced calls on time even while earlier calls have not returned. */
export async function enqueuePaced(queue, batch, everyUs, recorder) {
  const began = performance.now();
  const calls = [];
  for (let i = 0; i < batch.count; i++) {
    const wait = began + ((i + 1) * everyUs) / 1000 - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    calls.push(timedCall(queue, batch, i, recorder));
  }
  await Promise.all(calls);
}

async function timedCall(queue, batch, i, recorder) {
  recorder.called[i] = nowUS();
  await queue.enqueueOne(jobAt(batch, i));
  recorder.committed[i] = nowUS();
}
