/** One fault of the input. */
export interface Fault {
  /** Where: a JSON pointer into the body, or / and the name of a parameter. */
  pointer: string;
  message: string;
}

export interface ErrorDetails {
  status?: number;
  hint?: string;
  requestId?: string;
  faults?: Fault[];
  /** In milliseconds: when the server wants to be asked again. */
  retryAfter?: number;
  cause?: unknown;
}

/**
 * What every call of a client throws. The code is the server's, such as
 * `not_found`, `conflict` or `invalid`, or one of these:
 *
 * - `unreachable`: nothing answered, or not in time; see `status` for a proxy's answer
 * - `strange`: what answered does not look like a Pawl server
 * - `timeout`: what was waited for did not come
 * - `usage`: the call itself is wrong; nothing was sent
 * - `cancelled`, `lease_lost`, `stopping`: why a job's signal was aborted
 */
export class PawlError extends Error {
  override readonly name = "PawlError";
  readonly code: string;
  /** Of the answer; 0 if there was none. */
  readonly status: number;
  /** What to do about it. */
  readonly hint: string;
  /** The request, as it is called in the server's log. */
  readonly requestId: string;
  readonly faults: readonly Fault[];
  readonly retryAfter: number | undefined;

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.status = details.status ?? 0;
    this.hint = details.hint ?? "";
    this.requestId = details.requestId ?? "";
    this.faults = details.faults ?? [];
    this.retryAfter = details.retryAfter;
  }
}

/** The error that an answer stands for. */
export function problemOf(where: string, answer: Response, body: string, anonymous: boolean): PawlError {
  const status = answer.status;
  const kind = answer.headers.get("content-type") ?? "";
  const told = kind.startsWith("application/problem+json") ? objectOf(body) : undefined;
  const retryAfter = secondsOf(answer.headers.get("retry-after"));
  if (told === undefined || typeof told.code !== "string" || told.code === "") {
    if (status === 502 || status === 503 || status === 504) {
      return new PawlError("unreachable", `what answers at ${where} cannot reach the server: ${status}`, { status, ...(retryAfter === undefined ? {} : { retryAfter }) });
    }
    return strange(where, `${status}`, status);
  }
  let hint = text(told.hint);
  if (told.code === "unauthorized") {
    hint = anonymous ? "Give the client a token." : "The token is not valid here.";
  }
  const requestId = text(told.requestId);
  let message = text(told.detail) || text(told.title) || `${status}`;
  if (told.code === "internal" && requestId !== "") {
    message += ` (request ${requestId}, see the log of the server)`;
  }
  return new PawlError(told.code, message, { status, hint, requestId, faults: faultsOf(told.errors), ...(retryAfter === undefined ? {} : { retryAfter }) });
}

/** An answer that does not look like one of a Pawl server. */
export function strange(where: string, what: string, status = 0, cause?: unknown): PawlError {
  return new PawlError("strange", `${where} answered ${what}`, { status, hint: "Is it a Pawl server?", cause });
}

/** Whether the server itself refused, so that asking again is of no use. */
export function refused(e: unknown): boolean {
  if (!(e instanceof PawlError)) {
    return false;
  }
  return e.code === "usage" || (e.code !== "strange" && e.status >= 400 && e.status < 500 && ![408, 409, 429].includes(e.status));
}

function objectOf(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function faultsOf(list: unknown): Fault[] {
  if (!Array.isArray(list)) {
    return [];
  }
  return list.map((f: { pointer?: unknown; message?: unknown } | null) => ({ pointer: text(f?.pointer), message: text(f?.message) }));
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function secondsOf(header: string | null): number | undefined {
  return header !== null && /^\d{1,6}$/.test(header) ? Number(header) * 1000 : undefined;
}
