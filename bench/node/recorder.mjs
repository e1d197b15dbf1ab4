// What happens to the jobs of one batch, as bench/subject/recorder.go does it.

import { laneIndex } from "./jobs.mjs";

/** nowUS is the wall clock in microseconds; Date has milliseconds only. */
export function nowUS() {
  return Math.round((performance.timeOrigin + performance.now()) * 1000);
}

export class Recorder {
  constructor(batch) {
    this.batch = batch;
    this.called = new Float64Array(batch.count);
    this.committed = new Float64Array(batch.count);
    this.started = new Float64Array(batch.count);
    this.lastInLane = new Float64Array(batch.lanes ? batch.lanes + 1 : 0).fill(-1);
    this.laneBusy = new Uint8Array(this.lastInLane.length);
    this.counts = { handled: 0, duplicates: 0, strays: 0, overlaps: 0, disorder: 0, firstUs: 0, handledUs: 0 };
    this.all = new Promise((resolve) => (this.complete = resolve));
  }

  /** handle is the handler of every job; what it returns must be awaited. */
  handle(seq) {
    const now = nowUS();
    const i = seq - this.batch.first;
    if (i < 0 && i >= -(this.batch.beside ?? 0)) {
      return new Promise((resolve) => setTimeout(resolve, this.batch.slowMs));
    }
    if (i < 0 || i >= this.started.length) {
      this.counts.strays++;
      return;
    }
    if (this.started[i] !== 0) {
      this.counts.duplicates++;
      return;
    }
    this.started[i] = now;
    this.counts.firstUs ||= now;
    const lane = laneIndex(this.batch, seq);
    if (lane >= 0) return this.runInLane(lane, seq);
    this.done();
  }

  /** runInLane lets other handlers run meanwhile, or no overlap could be seen. */
  async runInLane(lane, seq) {
    if (this.laneBusy[lane]++ >= (this.batch.perLane || 1)) this.counts.overlaps++;
    if (this.lastInLane[lane] > seq) this.counts.disorder++;
    this.lastInLane[lane] = seq;
    await new Promise(setImmediate);
    this.laneBusy[lane]--;
    this.done();
  }

  done() {
    if (++this.counts.handled === this.started.length) {
      this.counts.handledUs = nowUS();
      this.complete();
    }
  }

  tally() {
    return { ...this.counts };
  }

  samples() {
    return { called: [...this.called], committed: [...this.committed], started: [...this.started] };
  }
}
