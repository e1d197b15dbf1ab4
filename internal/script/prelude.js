// The first code of every environment. It takes away what a script must not
// have, builds ctx, and returns the one function through which the worker
// speaks to JavaScript. A script runs afterwards and can replace every global
// function and every prototype method, so whatever is needed later is taken
// here, and later code uses no method, iterator or setter that it did not take.
(function () {
  "use strict";

  const host = globalThis.__host;
  delete globalThis.__host;

  const { parse, stringify } = JSON;
  const { apply, construct } = Reflect;
  const { create, defineProperty, freeze, getPrototypeOf, keys } = Object;
  const { isArray } = Array;
  const { imul } = Math;
  const RealArrayBuffer = ArrayBuffer;
  const RealDate = Date;
  const RealError = Error;
  const RealFunction = Function;
  const RealPromise = Promise;
  const RealProxy = Proxy;
  const RealString = String;
  const RealTypeError = TypeError;
  const toPrimitive = Symbol.toPrimitive;
  const dateText = RealDate.prototype.toString;
  const dateISO = RealDate.prototype.toISOString;
  const dateValue = RealDate.prototype.getTime;
  const lastIndexOf = RealString.prototype.lastIndexOf;
  const indexOf = RealString.prototype.indexOf;
  const substring = RealString.prototype.substring;

  // ---- What a script may see ----

  // Code comes from the source alone; a clock can be built of shared memory;
  // weak references show when memory is collected. A test holds the list of
  // what is left, so that a new engine brings nothing new unnoticed.
  delete globalThis.eval;
  delete globalThis.SharedArrayBuffer;
  delete globalThis.Atomics;
  delete globalThis.WeakRef;
  delete globalThis.FinalizationRegistry;

  // hide puts a property where it does not show in for-in and keys.
  function hide(object, name, value) {
    defineProperty(object, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });
  }

  // Function("...") and its relatives compile text, as eval does.
  const refuseCode = function Function() {
    throw new RealTypeError("code cannot be made from text here: write it into the script");
  };
  defineProperty(refuseCode, "prototype", { __proto__: null, value: RealFunction.prototype });
  hide(globalThis, "Function", refuseCode);
  for (const f of [function () {}, function* () {}, async function () {}, async function* () {}]) {
    hide(getPrototypeOf(f), "constructor", refuseCode);
  }

  // ---- Time and chance, fixed for the phase ----

  let now = 0; // ms since 1970
  let ready = false; // both are set
  let scheduledFor = null; // the instant that the run stands for, in ISO 8601

  // clock ends the top level of a script that asks for the time before it is
  // set: such a program runs again in each phase.
  function clock() {
    if (!ready) host("early", "");
    return now;
  }

  const FixedDate = function Date(...args) {
    if (new.target === undefined) return apply(dateText, new RealDate(clock()), []);
    return construct(RealDate, args.length === 0 ? [clock()] : args, new.target);
  };
  defineProperty(FixedDate, "length", { __proto__: null, value: 7 });
  defineProperty(FixedDate, "prototype", { __proto__: null, value: RealDate.prototype });
  hide(FixedDate, "now", clock);
  hide(FixedDate, "parse", RealDate.parse);
  hide(FixedDate, "UTC", RealDate.UTC);
  hide(RealDate.prototype, "constructor", FixedDate);
  hide(globalThis, "Date", FixedDate);

  // instant is a Date that also adds and compares like a number.
  function instant() {
    const date = new RealDate(clock());
    hide(date, toPrimitive, (hint) => apply(hint === "string" ? dateISO : dateValue, date, []));
    return date;
  }

  // sfc32: small, fast, and long enough for any phase.
  // Most phases want no chance, so it is made ready for the first that does.
  let seedHigh = 0, seedLow = 0, seeded = false;
  let a = 0, b = 0, c = 0, d = 1;
  function next32() {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + t | 0;
    return t >>> 0;
  }
  function seed() {
    seeded = true;
    a = imul(seedHigh, 0x9e3779b1); b = seedLow | 0; c = seedHigh | 0; d = 1;
    for (let i = 0; i < 12; i++) next32();
  }
  hide(Math, "random", () => {
    if (!ready) host("early", "");
    if (!seeded) seed();
    return ((next32() >>> 5) * 67108864 + (next32() >>> 6)) / 9007199254740992;
  });

  // ---- Calls to the host ----

  let mostCalls = 1, made = 0;
  let mostInFlight = 1, inFlight = 0;
  const waiting = create(null); // id -> call
  let first = null, last = null; // calls that wait until others are answered

  // message carries along where the script called, for when the host objects.
  // Calls are counted here, where those that still wait count as well.
  function message(op, args) {
    if (++made > mostCalls) host("over", "");
    const text = stringify(args);
    return op + "\0" + apply(substring, new RealError().stack, [0, 2000]) + "\0" + text;
  }

  // tell sends what needs no answer. The host takes such messages in order,
  // before any later call.
  function tell(op, args) {
    host("tell", message(op, args));
  }

  // call sends and returns the promise of the answer. The host is called
  // outside of the promise's executor, which would swallow the end of a script.
  function call(op, args) {
    const entry = { __proto__: null, text: "", resolve: null, reject: null, next: null };
    const promise = new RealPromise((resolve, reject) => {
      entry.resolve = resolve;
      entry.reject = reject;
    });
    try {
      entry.text = message(op, args);
    } catch (error) {
      entry.reject(error);
      return promise;
    }
    if (inFlight < mostInFlight) {
      send(entry);
    } else if (last === null) {
      first = last = entry;
    } else {
      last = last.next = entry;
    }
    return promise;
  }

  function send(entry) {
    inFlight++;
    waiting[host("call", entry.text)] = entry;
    entry.text = "";
  }

  function answer(id, text, failed) {
    const entry = waiting[id];
    if (entry === undefined) return;
    delete waiting[id];
    inFlight--;
    if (first !== null) {
      const queued = first;
      first = queued.next;
      if (first === null) last = null;
      send(queued);
    }
    let value;
    try {
      value = parse(text);
    } catch (error) {
      entry.reject(error);
      return;
    }
    if (failed) {
      const error = new RealError(value.message);
      hide(error, "name", "HostError");
      entry.reject(error);
    } else {
      entry.resolve(value);
    }
  }

  // ---- Logging ----

  function show(value) {
    if (typeof value === "string") return value;
    if (typeof value === "bigint") return RealString(value);
    try {
      if (value instanceof RealError) return value.name + ": " + value.message + "\n" + value.stack;
      const text = stringify(value);
      return text === undefined ? RealString(value) : text;
    } catch {
      return "(a value that cannot be shown)";
    }
  }

  function logger(level) {
    return function (...values) {
      let text = "";
      for (let i = 0; i < values.length; i++) text += (i === 0 ? "" : " ") + show(values[i]);
      host("log", level + "\0" + text);
    };
  }

  const log = logger("info");
  hide(globalThis, "console", freeze({
    log, info: log, debug: logger("debug"), warn: logger("warn"), error: logger("error"), trace: logger("debug"),
  }));

  // ---- ctx ----

  // What JavaScript itself looks up on any object. A connection or method of
  // such a name cannot be called; a stray await or a log of ctx.tools would
  // call it otherwise.
  const reserved = { __proto__: null, then: 1, toJSON: 1, toString: 1, valueOf: 1, constructor: 1 };

  function names(make) {
    return new RealProxy(freeze(create(null)), {
      __proto__: null,
      get(_, name) {
        return typeof name === "string" && !reserved[name] ? make(name) : undefined;
      },
    });
  }

  const tools = names((connection) => names((method) => function (args) {
    if (arguments.length > 1) {
      throw new RealTypeError(`tools.${connection}.${method} takes one argument, an object`);
    }
    return call("tool", { __proto__: null, connection, method, args });
  }));

  function nonEmpty(input, field) {
    let value = input[field];
    if (field === "id" && typeof value === "number") value = RealString(value);
    if (typeof value !== "string" || value === "") {
      throw new RealTypeError(`registerInput: ${field} must be a text that is not empty`);
    }
    return value;
  }

  function registerInput(input) {
    if (typeof input !== "object" || input === null) throw new RealTypeError("registerInput takes an object");
    const source = nonEmpty(input, "source");
    const type = nonEmpty(input, "type");
    const id = nonEmpty(input, "id");
    const title = nonEmpty(input, "title");
    const inputId = host("input", stringify({ __proto__: null, source, type, id }));
    tell("registerInput", { __proto__: null, inputId, source, type, id, title });
    return inputId;
  }

  const ctx = freeze({
    peek: (topic, options) => call("peek", { __proto__: null, topic, limit: options?.limit }),
    getByIds: (topic, ids) => call("getByIds", { __proto__: null, topic, ids }),
    publish(topic, event) {
      tell("publish", { __proto__: null, topics: isArray(topic) ? topic : [topic], event });
    },
    registerInput,
    now: instant,
    get scheduledFor() { return scheduledFor; },
    log,
    tools,
  });

  // ---- Phases ----

  // Worker and prelude agree on the name; esbuild puts the exports there.
  function definition() {
    const exported = globalThis.__pawl;
    return exported === undefined || exported === null ? undefined : exported.default;
  }

  // handler finds producers.NAME.handler; NAME may have dots.
  function handler(path) {
    const start = apply(indexOf, path, ["."]);
    const end = apply(lastIndexOf, path, ["."]);
    const group = apply(substring, path, [0, start]);
    const name = apply(substring, path, [start + 1, end]);
    const known = group === "producers" || group === "consumers";
    const owner = known ? definition()?.[group]?.[name] : undefined;
    const fn = owner?.[apply(substring, path, [end + 1])];
    if (start === end || typeof fn !== "function") throw new RealTypeError(`${path} is not a function`);
    return { __proto__: null, owner, fn, pure: apply(substring, path, [end + 1]) === "partition" };
  }

  async function begin(request) {
    try {
      const { owner, fn, pure } = handler(request.handler);
      const { args } = request;
      // What says the partition of an event gets that event and nothing else.
      const value = await apply(fn, owner, pure ? [args[0]] : [ctx, args[0], args[1], args[2]]);
      if (value === undefined) {
        host("nothing", "");
        return;
      }
      const text = stringify(value);
      if (text === undefined) throw new RealTypeError(`${request.handler} returned a ${typeof value}, which is not data`);
      host("value", text);
    } catch (error) {
      fail(error);
    }
  }

  function describe() {
    try {
      const config = definition();
      let functions = "";
      const add = (path) => { functions += (functions === "" ? "" : ",") + stringify(path); };
      const scan = (object, prefix, visit) => {
        if (typeof object !== "object" || object === null) return;
        const list = keys(object);
        for (let i = 0; i < list.length; i++) visit(prefix + list[i], object[list[i]]);
      };
      const leaf = (path, value) => { if (typeof value === "function") add(path); };
      scan(config, "", leaf);
      for (let i = 0; i < 2; i++) {
        const group = i === 0 ? "producers" : "consumers";
        scan(config?.[group], group + ".", (path, value) => {
          leaf(path, value);
          scan(value, path + ".", leaf);
        });
      }
      const kind = config === null ? "null" : isArray(config) ? "array" : typeof config;
      const text = kind === "object" ? stringify(config) : "null";
      host("value", `{"kind":"${kind}","functions":[${functions}],"config":${text === undefined ? "null" : text}}`);
    } catch (error) {
      fail(error);
    }
  }

  // field reads a text of an error, which the script may have made a trap.
  function field(error, name) {
    try {
      const value = error[name];
      return typeof value === "string" ? value : "";
    } catch {
      return "";
    }
  }

  function fail(error) {
    if (error === null) {
      host("thrown", '{"value":true,"null":true,"message":"null"}');
      return;
    }
    if (typeof error === "object" && error instanceof RealError) {
      host("thrown", stringify({
        __proto__: null, name: field(error, "name"), message: field(error, "message"), stack: field(error, "stack"),
      }));
      return;
    }
    host("thrown", stringify({ __proto__: null, value: true, message: show(error) }));
  }

  // dispatch is how the worker speaks to JavaScript.
  return function dispatch(op, id, text) {
    switch (op) {
      case "answer": return answer(id, text, false);
      case "refuse": return answer(id, text, true);
      case "set": {
        const phase = parse(text);
        now = phase[0];
        mostCalls = phase[1];
        mostInFlight = phase[2];
        seedHigh = phase[3];
        seedLow = phase[4];
        scheduledFor = phase[5];
        ready = true;
        return undefined;
      }
      case "begin": begin(parse(text)); return undefined;
      case "describe": describe(); return undefined;
      case "probe": new RealArrayBuffer(+text); return undefined;
    }
    return undefined;
  };
})();
