// The jobs of a batch, by the same rules as bench/subject/job.go.

export const HOT_LANE = "hot";

/** laneIndex is -1 without lanes, and batch.lanes for the hot one. */
export function laneIndex(batch, seq) {
  if (batch.oneLane) return batch.lanes ?? 0;
  if (!batch.lanes) return -1;
  if (batch.hot && seq % 2 === 0) return batch.lanes;
  return seq % batch.lanes;
}

function laneName(batch, seq) {
  const i = laneIndex(batch, seq);
  if (i < 0) return undefined;
  return i === (batch.lanes ?? 0) ? HOT_LANE : `lane-${i}`;
}

/** jobAt returns the i-th job of a batch: its payload, lane and due instant. */
export function jobAt(batch, i) {
  const seq = batch.first + i;
  return {
    payload: { seq, note: "a small and ordinary payload" },
    seq,
    lane: laneName(batch, seq),
    runAt: batch.atMs > 0 ? new Date(batch.atMs + i * batch.stepMs) : undefined,
  };
}

export function jobsBetween(batch, from, to) {
  const jobs = [];
  for (let i = from; i < to; i++) jobs.push(jobAt(batch, i));
  return jobs;
}
