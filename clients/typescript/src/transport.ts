import { randomUUID } from "node:crypto";

import { PawlError, problemOf, strange } from "./error.js";

/** In bytes. */
const maxAnswer = 64 << 20;
const firstPause = 100;
const lastPause = 5_000;

export interface TransportOptions {
  url: string;
  token?: string;
  timeout?: number;
  retries?: number;
  userAgent?: string;
}

export interface Request {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
  /** In milliseconds, for the whole call with its repeats. */
  timeout?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Whether it may be sent again when nobody knows whether it was acted on. */
  repeat?: boolean;
  idempotencyKey?: string | undefined;
}

/** Sends requests to one server, and to no other: redirects are not followed. */
export class Transport {
  readonly #base: URL;
  readonly #token: string; // private to the engine: it is in no log of the object
  readonly #timeout: number;
  readonly #retries: number;
  readonly #userAgent: string;
  /** Where the server is, without a password. */
  readonly where: string;

  constructor(options: TransportOptions) {
    this.#base = baseOf(options.url);
    this.#token = options.token ?? "";
    // Else the engine would quote it in its own error.
    if (!/^[\x21-\x7e]*$/.test(this.#token)) {
      throw new PawlError("usage", "the token has characters that no token has", { hint: "Look for spaces and line breaks around it." });
    }
    this.#timeout = options.timeout ?? 30_000;
    this.#retries = options.retries ?? 3;
    this.#userAgent = options.userAgent ?? "pawl-typescript";
    this.where = this.#base.origin + this.#base.pathname.replace(/\/$/, "");
  }

  /** Sends a request and returns what was answered as JSON; undefined if that is nothing. */
  async send(r: Request): Promise<unknown> {
    const limit = new Limit(r.timeout ?? this.#timeout, r.signal);
    const body = r.body === undefined ? undefined : encode(r.body);
    const key = r.method === "POST" && r.repeat ? (r.idempotencyKey ?? randomUUID()) : r.idempotencyKey;
    try {
      for (let n = 0; ; n++) {
        try {
          return await this.#once(r, body, key, limit.signal);
        } catch (e) {
          const error = this.#explain(e, limit);
          if (!r.repeat || n >= this.#retries || !limit.lasts() || !again(error)) {
            throw error;
          }
          await pause(pauseOf(n, error), limit.signal);
          if (!limit.lasts()) {
            throw this.#explain(error, limit);
          }
        }
      }
    } finally {
      limit.end();
    }
  }

  async #once(r: Request, body: string | undefined, key: string | undefined, signal: AbortSignal): Promise<unknown> {
    const answer = await this.open(r, body, key, signal);
    const text = await readAll(answer, this.where);
    if (!answer.ok) {
      throw problemOf(this.where, answer, text, this.#token === "");
    }
    if (text === "") {
      return undefined;
    }
    try {
      return JSON.parse(text) as unknown;
    } catch (e) {
      throw strange(this.where, "something that is not JSON", answer.status);
    }
  }

  /** Sends a request once and returns the answer before its body was read. */
  async open(r: Request, body: string | undefined, key: string | undefined, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { accept: "application/json", "user-agent": this.#userAgent, ...r.headers };
    if (this.#token !== "") {
      headers.authorization = `Bearer ${this.#token}`;
    }
    if (body !== undefined) {
      headers["content-type"] = "application/json";
    }
    if (key !== undefined) {
      headers["idempotency-key"] = key;
    }
    // A token is for the server that was named, and for no other.
    return fetch(this.#urlOf(r), { method: r.method, headers, signal, redirect: "manual", ...(body === undefined ? {} : { body }) });
  }

  /** Reads the refusal of a stream. */
  async refusal(answer: Response): Promise<PawlError> {
    return problemOf(this.where, answer, await readAll(answer, this.where), this.#token === "");
  }

  /** What went wrong on the way, as an error of this package. */
  unreachable(cause: unknown, what = "no answer from the server"): PawlError {
    return new PawlError("unreachable", `${what} at ${this.where}`, { hint: "Check the address, and that the server runs.", cause });
  }

  #urlOf(r: Request): URL {
    const url = new URL(this.#base);
    url.pathname = url.pathname.replace(/\/$/, "") + r.path;
    for (const [name, value] of Object.entries(r.query ?? {})) {
      if (value !== undefined && value !== "") {
        url.searchParams.set(name, String(value));
      }
    }
    return url;
  }

  #explain(e: unknown, limit: Limit): unknown {
    if (limit.left) {
      return limit.left.reason; // the caller's own
    }
    if (limit.late) {
      return this.unreachable(e instanceof PawlError ? e : undefined, "no answer in time from the server");
    }
    return e instanceof PawlError ? e : this.unreachable(e);
  }
}

/** A part of a path. Dots alone would lead elsewhere. */
export function segment(name: string): string {
  if (typeof name !== "string" || name === "" || name === "." || name === "..") {
    throw new PawlError("usage", `${JSON.stringify(name)} is not a name or an id`);
  }
  return encodeURIComponent(name);
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      return resolve();
    }
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}

/** Limit ends a call: late, or because the caller left. */
class Limit {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #leave = () => this.#controller.abort();
  late = false;

  constructor(
    timeout: number,
    readonly caller: AbortSignal | undefined,
  ) {
    this.#timer = setTimeout(() => {
      this.late = true;
      this.#controller.abort();
    }, timeout);
    if (caller?.aborted) {
      this.#controller.abort();
    }
    caller?.addEventListener("abort", this.#leave, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get left(): AbortSignal | undefined {
    return this.caller?.aborted ? this.caller : undefined;
  }

  lasts(): boolean {
    return !this.#controller.signal.aborted;
  }

  end(): void {
    clearTimeout(this.#timer);
    this.caller?.removeEventListener("abort", this.#leave);
  }
}

function baseOf(url: string): URL {
  let base: URL | undefined;
  try {
    base = new URL(url);
  } catch {
    // told below, and without what may be a password
  }
  if (base === undefined || !["http:", "https:"].includes(base.protocol) || base.username !== "" || base.password !== "") {
    throw new PawlError("usage", "the url is not an address of a server", { hint: "Use one such as http://127.0.0.1:7295, and the token for the password." });
  }
  base.search = "";
  base.hash = "";
  return base;
}

function encode(body: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(body);
  } catch (e) {
    throw new PawlError("usage", `what is to be sent is not JSON: ${(e as Error).message}`);
  }
  if (text === undefined) {
    throw new PawlError("usage", "what is to be sent is not JSON");
  }
  return text;
}

/** Whether another try may do better. */
function again(e: unknown): boolean {
  return e instanceof PawlError && (e.code === "unreachable" || e.status === 429 || e.status === 503);
}

function pauseOf(n: number, e: unknown): number {
  const wanted = e instanceof PawlError ? e.retryAfter : undefined;
  const own = Math.min(firstPause * 2 ** n, lastPause) * (0.5 + Math.random());
  return Math.max(own, Math.min(wanted ?? 0, lastPause));
}

async function readAll(answer: Response, where: string): Promise<string> {
  if (answer.body === null) {
    return "";
  }
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of answer.body as unknown as AsyncIterable<Uint8Array>) {
    size += part.byteLength;
    if (size > maxAnswer) {
      throw strange(where, `more than ${maxAnswer} bytes`, answer.status);
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}
