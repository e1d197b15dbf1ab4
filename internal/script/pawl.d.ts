// Types of the module "pawl", for editors and type checkers.
// Pawl itself translates scripts without checking types.

declare module "pawl" {
  /** What JSON can carry. State, payloads and prepared data are stored as JSON. */
  export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

  // ---- Definitions ----

  export interface WorkflowDefinition<Topic extends string = string> {
    /** Unique; this is how people and commands speak of the workflow. */
    name: string;
    /** Every topic that a handler publishes to or subscribes to. */
    topics: { [T in Topic]: TopicOptions };
    /** Producers look at the outside and publish what is new. */
    producers?: { [name: string]: Producer<NoInfer<Topic>> };
    /** Consumers take events and act on the outside, at most one act a run. */
    consumers?: { [name: string]: Consumer<NoInfer<Topic>> };
    /** For how long its own history is kept, such as { runs: "7d", reads: "1d" }; else as the server keeps that of all. */
    keep?: { [K in "runs" | "idle-runs" | "reads" | "logs" | "events" | "slots" | "rejects" | "mutations"]?: string };
    /** What is expected of it; what is not met needs attention. doneBy and onTime are about its producers. */
    expect?: { freshWithin?: string; doneBy?: string; onTime?: number };
    /** Sources that must be fresh before a run begins: one that is older than maxAge is asked to fetch, and the run waits. */
    needs?: readonly { source: string; maxAge: string; wait?: string }[];
  }

  export interface TopicOptions {}

  export interface Producer<Topic extends string = string, State = any> {
    /** At least one; publishing to another topic fails. */
    publishes: readonly Topic[];
    schedule: Schedule;
    /**
     * Runs when the schedule is due. What it returns is the state that the
     * next run gets; nothing keeps the old state.
     */
    handler(ctx: ProducerContext<Topic>, state: State | undefined): Returned<State>;
  }

  /** When a producer runs. */
  export type Schedule = ScheduleLimits &
    (
      | { /** Such as "30s", "5m", "2h" or "1d". */ interval: string }
      | { /** Five fields, such as "0 9 * * 1-5". */ cron: string }
    );

  /** What limits when a producer runs. */
  export interface ScheduleLimits {
    /** An IANA name, such as "Europe/Berlin", for cron, dates and times. UTC if it is missing. */
    timezone?: string;
    /** A date or an instant: nothing runs before it. An interval counts from it. */
    from?: string;
    /** A date or an instant, which is the last: a date counts to its end. */
    until?: string;
    /** What is left out: dates, ranges such as "2026-12-24/2027-01-01", cron expressions, "calendar:NAME". */
    except?: readonly string[];
    /** Each run starts later than its time by less than this, always by the same. */
    jitter?: string;
    /** What becomes of times that came due while it could not run; without it, one run stands for all of them. */
    missed?: {
      /** skip: none of them runs; last: the latest one does; all: each does, one after the other. */
      policy: "skip" | "last" | "all";
      /** How late a run may be, such as "12h". */
      within?: string;
    };
  }

  export interface Consumer<Topic extends string = string, Data = any, State = any> {
    /** At least one; new events of these topics wake the consumer. */
    subscribe: readonly Topic[];
    /** Only with next. */
    publishes?: readonly Topic[];
    /**
     * Which events wait for each other: those of the same partition are taken
     * one after the other, those of different ones independently. The path of a
     * field, such as "payload.customerId", or a function of the event alone. A
     * consumer that says it is the only one of its topics, and its state is that
     * of each partition.
     */
    partition?: string | ((event: Event) => string);
    /** How many partitions are at work at once; 10 if it is missing, at most 1000. */
    partitionLimit?: number;
    /**
     * Chooses events and prepares what is to be done with them. It may read,
     * and changes nothing. Without work it returns no reservations.
     */
    prepare(ctx: PrepareContext<Topic>, state: State | undefined): Promise<PrepareResult<Data, Topic>> | PrepareResult<Data, Topic>;
    /**
     * Does it: one call of a tool that changes something. The phase ends with
     * that call; what comes after it does not run.
     */
    mutate?(ctx: MutateContext, prepared: Prepared<Data, Topic>): Promise<void> | void;
    /**
     * Tells others what became of it. What it returns is the state that the
     * next run gets; nothing keeps the old state.
     */
    next?(ctx: NextContext<Topic>, prepared: Prepared<Data, Topic>, result: MutationResult): Returned<State>;
  }

  type Returned<State> = Promise<State | void | undefined> | State | void | undefined;

  // ---- Prepare ----

  export interface PrepareResult<Data = any, Topic extends string = string> {
    /** The events that this run takes; none means that there is nothing to do. */
    reservations: readonly Reservation<Topic>[];
    /** What mutate and next get. */
    data: Data;
    ui?: {
      /** A label for people. What they approve is shown beside it by Pawl itself. */
      title?: string;
    };
    /** Wake the consumer at this time (ISO 8601) even without new events. */
    wakeAt?: string | undefined;
  }

  export interface Reservation<Topic extends string = string> {
    topic: Topic;
    /** Their messageId. */
    ids: readonly string[];
  }

  /** What prepare returned, as it was stored. */
  export interface Prepared<Data = any, Topic extends string = string> {
    readonly reservations: readonly Reservation<Topic>[];
    readonly data: Data;
    readonly ui?: { readonly title?: string };
    readonly wakeAt?: string;
  }

  // ---- Next ----

  /** What became of the call in mutate. */
  export type MutationResult<Result = any> =
    | { readonly status: "applied"; /** What the tool answered. */ readonly result: Result }
    | { readonly status: "none"; /** mutate called nothing. */ readonly result?: undefined }
    | { readonly status: "skipped"; /** A person decided so. */ readonly result?: undefined };

  // ---- Events and inputs ----

  /** An event as peek and getByIds return it. */
  export interface Event<Payload = any> {
    readonly topic: string;
    /** Unique within the topic. */
    readonly messageId: string;
    readonly payload: Payload;
    /** How often it was reserved and released before. */
    readonly attempt: number;
    /** ISO 8601. */
    readonly createdAt: string;
  }

  /** An event to publish. A messageId that is known already is not a new event. */
  export interface NewEvent<Payload = any> {
    messageId: string;
    payload: Payload;
  }

  /** A producer says which input an event comes from. */
  export interface NewInputEvent<Payload = any> extends NewEvent<Payload> {
    /** From registerInput. */
    inputId: string;
  }

  /** A thing of the outside, such as a mail. */
  export interface Input {
    /** Where it is, such as "mail". */
    source: string;
    /** What it is, such as "message". */
    type: string;
    /** Its id there. */
    id: string | number;
    /** What people call it. */
    title: string;
  }

  // ---- ctx ----

  export interface BaseContext {
    /**
     * The instant of this phase: always the same, and that of new Date(). In
     * JavaScript it also adds like a number: ctx.now() + 60_000.
     */
    now(): Date;
    /** Writes a line to the log of the run. */
    log(...values: unknown[]): void;
  }

  export interface ProducerContext<Topic extends string = string> extends BaseContext {
    /**
     * The time of the schedule that this run stands for (ISO 8601, UTC), without
     * jitter and the same in every attempt; null if the run was asked for.
     */
    readonly scheduledFor: string | null;
    readonly tools: Tools;
    publish<Payload = any>(topic: Topic | readonly Topic[], event: NewInputEvent<Payload>): void;
    /** Returns the same id for the same source, type and id, in every run. */
    registerInput(input: Input): string;
  }

  export interface PrepareContext<Topic extends string = string> extends BaseContext {
    readonly tools: Tools;
    /** Pending events, the oldest first; 100 unless limit says otherwise, at most 1000. */
    peek<Payload = any>(topic: Topic, options?: { limit?: number }): Promise<Event<Payload>[]>;
    getByIds<Payload = any>(topic: Topic, ids: readonly string[]): Promise<Event<Payload>[]>;
  }

  export interface MutateContext extends BaseContext {
    readonly tools: Tools;
  }

  export interface NextContext<Topic extends string = string> extends BaseContext {
    publish<Payload = any>(topic: Topic | readonly Topic[], event: NewEvent<Payload>): void;
  }

  /**
   * The connections of this installation: ctx.tools.CONNECTION.METHOD(args)
   * gives a promise of the tool's answer. A failed call cannot be caught: Pawl
   * ends the phase and decides about trying again.
   */
  export interface Tools {
    readonly [connection: string]: any;
  }

  // ---- Helpers ----

  /** These return what they get; they are here for its types. */
  export function workflow<const Topic extends string>(definition: WorkflowDefinition<Topic>): WorkflowDefinition<Topic>;
  export function producer<const Topic extends string, State = any>(definition: Producer<Topic, State>): Producer<Topic, State>;
  export function consumer<const Topic extends string, Data = any, State = any>(
    definition: Consumer<Topic, Data, State>,
  ): Consumer<Topic, Data, State>;
}

interface Console {
  log(...values: any[]): void;
  info(...values: any[]): void;
  debug(...values: any[]): void;
  warn(...values: any[]): void;
  error(...values: any[]): void;
  trace(...values: any[]): void;
}

/** Writes to the log of the run, as ctx.log does. */
declare var console: Console;
