import { PawlError, strange } from "./error.js";
import { pause, type Transport } from "./transport.js";

const firstReconnect = 200;
const lastReconnect = 5_000;
/** Nothing came for so long, not even a comment: the connection is dead. */
const silence = 90_000;
/** In characters. */
const maxEvent = 4 << 20;

/** What happened. */
export interface StreamEvent {
  /** The number of the event: go on after it with lastEventId. */
  id: string;
  /**
   * job, run, workflow, source or schedule; `connected` at every new connection,
   * before its first event, with the number where it begins; `dropped` where events were lost. Read then what you
   * want to know: what you read and the events after it leave no gap.
   */
  type: string;
  data: unknown;
}

export interface WatchOptions {
  /** Only of these kinds, separated by commas. */
  kind?: string;
  /** Only about the thing with this id. */
  id?: string;
  lastEventId?: string;
  /** Ends the stream; that is no error. */
  signal?: AbortSignal;
}

/**
 * Follows the stream of events until the signal is aborted or the loop is left. A
 * connection that breaks is made again, and goes on where it was; only the first
 * must succeed.
 */
export async function* watch(transport: Transport, options: WatchOptions): AsyncGenerator<StreamEvent, void, undefined> {
  const place = { lastId: options.lastEventId ?? "" };
  let wait = firstReconnect;
  for (let once = false; ; ) {
    try {
      for await (const event of connection(transport, options, place)) {
        once = true;
        wait = firstReconnect;
        yield event;
        if (options.signal?.aborted) {
          return; // what was read already is not wanted any more
        }
      }
    } catch (e) {
      if (options.signal?.aborted) {
        return;
      }
      const retriable = e instanceof PawlError && (e.code === "unreachable" || e.code === "unavailable" || e.status === 429);
      if (!retriable || !once) {
        throw e;
      }
    }
    await pause(wait * (0.5 + Math.random()), options.signal);
    if (options.signal?.aborted) {
      return;
    }
    wait = Math.min(2 * wait, lastReconnect);
  }
}

/** The events of one connection, until it ends. */
async function* connection(transport: Transport, options: WatchOptions, place: { lastId: string }): AsyncGenerator<StreamEvent> {
  const controller = new AbortController();
  const leave = () => controller.abort();
  options.signal?.addEventListener("abort", leave, { once: true });
  if (options.signal?.aborted) {
    leave();
  }
  let dead = setTimeout(leave, silence);
  try {
    const headers: Record<string, string> = { accept: "text/event-stream", ...(place.lastId === "" ? {} : { "last-event-id": place.lastId }) };
    const request = { method: "GET", path: "/api/v1/stream", query: { kind: options.kind, id: options.id }, headers } as const;
    const answer = await transport.open(request, undefined, undefined, controller.signal);
    if (answer.status !== 200) {
      throw await transport.refusal(answer);
    }
    if (answer.body === null || !(answer.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
      throw strange(transport.where, "no stream of events", answer.status);
    }
    const reader = new EventReader(transport.where, place);
    const decoder = new TextDecoder();
    for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
      clearTimeout(dead);
      dead = setTimeout(leave, silence);
      yield* reader.read(decoder.decode(chunk, { stream: true }));
    }
  } catch (e) {
    throw e instanceof PawlError ? e : transport.unreachable(e, "the stream broke");
  } finally {
    clearTimeout(dead);
    options.signal?.removeEventListener("abort", leave);
    controller.abort();
  }
}

/** Takes server-sent events apart. What the end cuts off is dropped. */
class EventReader {
  #rest = "";
  #greeted = false;
  #type = "message";
  #data: string[] = [];
  #size = 0;
  #id: string;

  constructor(
    readonly where: string,
    readonly place: { lastId: string },
  ) {
    this.#id = place.lastId;
  }

  *read(text: string): Generator<StreamEvent> {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length + this.#size > maxEvent) {
      throw strange(this.where, "an event without end");
    }
    for (const line of lines) {
      const text = line.endsWith("\r") ? line.slice(0, -1) : line;
      if (text === "") {
        yield* this.#block();
      } else {
        this.#line(text);
      }
    }
  }

  /** The first block of a connection says where it begins, unless it is an event already. */
  *#block(): Generator<StreamEvent> {
    const greet = !this.#greeted;
    this.#greeted = true;
    if (greet && this.#data.length > 0) {
      yield { id: this.place.lastId, type: "connected", data: null };
    }
    const event = this.#dispatch();
    if (event !== undefined) {
      yield event;
    } else if (greet) {
      yield { id: this.place.lastId, type: "connected", data: null };
    }
  }

  #line(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") {
      this.#type = value;
    } else if (name === "data") {
      this.#data.push(value);
      this.#size += value.length;
    } else if (name === "id" && /^\d+$/.test(value)) {
      this.#id = value; // anything else could not be sent back
    }
  }

  #dispatch(): StreamEvent | undefined {
    const text = this.#data.length === 0 ? undefined : this.#data.join("\n");
    const type = this.#type;
    this.#type = "message";
    this.#data = [];
    this.#size = 0;
    this.place.lastId = this.#id; // not before: half an event has not been seen
    if (text === undefined) {
      return undefined;
    }
    try {
      return { id: this.place.lastId, type, data: JSON.parse(text) as unknown };
    } catch {
      throw strange(this.where, "an event that is not JSON");
    }
  }
}
