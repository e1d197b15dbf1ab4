/** A length of time: milliseconds, or a text such as 90s, 5m or 7d. */
export type Duration = number | string;

/** What a handler throws to say what becomes of a job. */
export class Failure extends Error {
  override readonly name = "Failure";

  constructor(
    message: string,
    /** permanent: not again. snooze: no failure. Any other word is for people. */
    readonly jobClass: string,
    readonly after?: Duration,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }
}

/** The job need not be tried again. */
export function permanent(error: unknown): Failure {
  return new Failure(messageOf(error), "permanent", undefined, error);
}

/** The job is tried again then, if it has attempts left. */
export function retryAfter(after: Duration, error: unknown): Failure {
  return new Failure(messageOf(error), "", after, error);
}

/** The job is given back for a while; no attempt is counted. */
export function snooze(after: Duration, why = "later"): Failure {
  return new Failure(why, "snooze", after);
}

export function messageOf(error: unknown): string {
  if (error instanceof Error) {
    return error.message || error.name;
  }
  return typeof error === "string" ? error : `a handler threw ${typeof error}`;
}

/** As the API takes it. */
export function durationText(d: Duration): string {
  if (typeof d === "string") {
    return d;
  }
  const ms = Math.max(0, Math.ceil(d));
  return ms < 1000 && ms > 0 ? `${ms}ms` : `${Math.ceil(ms / 1000)}s`;
}
