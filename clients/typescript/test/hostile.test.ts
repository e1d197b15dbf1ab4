import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { test } from "node:test";

import { Client, PawlError, Worker } from "@pawlrun/client";

import { eventually, freshTask, pawl, proxy, serve, token } from "./kit.js";

const json = (res: ServerResponse, status: number, body: unknown) => res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
const is = (...codes: string[]) => (e: unknown) => e instanceof PawlError && codes.includes(e.code);
const client = async (handle: (req: IncomingMessage, res: ServerResponse) => void, options = {}) => new Client({ url: await serve(handle), token: "secret-token", ...options });

test("answers that are nonsense are errors of their own", async () => {
  for (const body of ["", "<html>", "[]", "null", "7", '"text"', "{"]) {
    const c = await client((_, res) => res.writeHead(200, { "content-type": "application/json" }).end(body));
    await assert.rejects(c.job("1"), is("strange"), body);
  }
  const lists = await client((_, res) => json(res, 200, { items: [1], nextCursor: "again" }));
  await assert.rejects(lists.jobs(), is("strange"));
  const problem = await client((_, res) => res.writeHead(400, { "content-type": "application/problem+json" }).end("{not"));
  await assert.rejects(problem.job("1"), (e) => is("strange")(e) && (e as PawlError).status === 400);
  const odd = await client((_, res) => res.writeHead(409, { "content-type": "application/problem+json" }).end(JSON.stringify({ code: "conflict", detail: 7, errors: [null, 3] })));
  await assert.rejects(odd.job("1"), is("conflict"));
});

test("what fails for a while is asked again, with the same key", async () => {
  const keys: unknown[] = [];
  const c = await client((req, res) => {
    keys.push(req.headers["idempotency-key"]);
    if (keys.length === 1) { return void res.destroy(); }
    if (keys.length === 2) { return void res.writeHead(503, { "retry-after": "0" }).end("busy"); }
    json(res, 201, { id: "1", state: "pending" });
  });
  assert.equal((await c.enqueue({ task: "log" })).id, "1");
  assert.equal(keys.length, 3);
  assert.ok(typeof keys[0] === "string" && new Set(keys).size === 1);
});

test("what is not safe to repeat, or was refused, is not sent again", async () => {
  const seen: string[] = [];
  const c = await client((req, res) => {
    seen.push(`${req.method} ${req.url}`);
    if (req.method === "DELETE") { return void res.destroy(); }
    res.writeHead(req.url!.endsWith("/1") ? 500 : 404, { "content-type": "application/problem+json" }).end(JSON.stringify({ code: req.url!.endsWith("/1") ? "internal" : "not_found", requestId: "r-1" }));
  });
  await assert.rejects(c.cancel("9"), is("unreachable"));
  await assert.rejects(c.job("1"), (e) => is("internal")(e) && (e as PawlError).requestId === "r-1" && /r-1/.test((e as Error).message));
  await assert.rejects(c.job("2"), is("not_found"));
  assert.equal(seen.length, 3, seen.join());
});

test("a server that hangs, or trickles, is left in time", async () => {
  const hung = await client(() => undefined, { timeout: 300 });
  const slow = await client((_, res) => { res.writeHead(200, { "content-type": "application/json" }); const t = setInterval(() => res.write(" "), 20); res.on("close", () => clearInterval(t)); }, { timeout: 300 });
  for (const c of [hung, slow]) {
    const began = Date.now();
    await assert.rejects(c.enqueue({ task: "log" }), is("unreachable"));
    assert.ok(Date.now() - began < 3000);
  }
  const controller = new AbortController();
  const call = hung.job("1", { signal: controller.signal, timeout: 60_000 });
  controller.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
});

test("redirects do not carry the token to another host", async () => {
  const stolen: unknown[] = [];
  const thief = await serve((req, res) => { stolen.push(req.headers); json(res, 200, {}); });
  for (const status of [301, 302, 303, 307, 308]) {
    const c = await client((_, res) => res.writeHead(status, { location: `${thief}/api/v1/jobs/1` }).end());
    await assert.rejects(c.job("1"), is("strange"));
    await assert.rejects(c.enqueue({ task: "log" }), is("strange"));
    await assert.rejects(c.watch().next(), is("strange"));
  }
  assert.deepEqual(stolen, []);
});

test("a stream goes on where it broke, and leaves out half an event", async () => {
  const asked: unknown[] = [];
  const c = await client((req, res) => {
    asked.push(req.headers["last-event-id"]);
    res.writeHead(200, { "content-type": "text/event-stream" });
    if (asked.length === 1) {
      res.write(": hello\r\n\r\nid: 7\r\nevent: job\r\ndata: {\"n\":\r\ndata: 1}\r\n\r\nid: 8\nevent: job\ndata: {\"n\": 2");
      setTimeout(() => res.destroy(), 50);
    } else if (asked.length === 2) {
      res.end(); // one that says nothing ends as well
    } else {
      res.write("event: dropped\ndata: {\"count\":1,\"atLeast\":false}\n\nid: 9\nevent: job\ndata: {\"n\": 3}\n\n");
    }
  });
  const seen: string[] = [];
  for await (const e of c.watch()) {
    seen.push(`${e.type} ${e.id} ${JSON.stringify(e.data)}`);
    if (e.id === "9") { break; }
  }
  assert.deepEqual(seen, ["connected  null", 'job 7 {"n":1}', "connected 7 null", 'dropped 7 {"count":1,"atLeast":false}', 'job 9 {"n":3}']);
  assert.deepEqual(asked, [undefined, "7", "7"]);
});

test("the real stream goes on over cuts, without a gap", { timeout: 120_000 }, async () => {
  const task = await freshTask();
  const cuts: ServerResponse[] = [];
  const through = new Client({ url: await proxy((_, res) => { cuts.push(res); return false; }), token });
  const made: string[] = [];
  const seen = new Set<string>();
  const cutAndEnqueue = async () => { // while nobody listens
    cuts.at(-1)!.destroy();
    made.push((await pawl.enqueue({ task, delay: "1h" })).id);
  };
  for await (const e of through.watch({ kind: "job" })) {
    if (e.type === "connected" && made.length === 0) {
      await cutAndEnqueue(); // before the first event
    }
    const id = (e.data as { job?: { id: string } } | null)?.job?.id ?? "";
    // Other tests may do more meanwhile than is remembered; that is told.
    const told = made.filter((m) => m === id || (e.type === "dropped" && !seen.has(m)));
    if (told.length > 0) {
      told.forEach((m) => seen.add(m));
      if (seen.size === 3) { break; }
      await cutAndEnqueue();
    }
  }
  assert.deepEqual([...seen], made);
});

test("streams that are none are errors, and one that is left ends", async () => {
  const html = await client((_, res) => res.writeHead(200, { "content-type": "text/html" }).end("<html>"));
  await assert.rejects(html.watch().next(), is("strange"));
  const junk = await client((_, res) => res.writeHead(200, { "content-type": "text/event-stream" }).end("data: {nonsense\n\n"));
  await assert.rejects(async () => { for await (const _ of junk.watch()) { /* until it fails */ } }, is("strange"));
  const endless = await client((_, res) => { res.writeHead(200, { "content-type": "text/event-stream" }); const flood = () => { while (res.write(`data: ${"x".repeat(1 << 16)}`)); }; res.on("drain", flood); flood(); });
  await assert.rejects(async () => { for await (const _ of endless.watch()) { /* until it fails */ } }, is("strange"));
  const down = new Client({ url: "http://127.0.0.1:1" });
  await assert.rejects(down.watch().next(), is("unreachable"));
  const controller = new AbortController();
  for await (const e of pawl.watch({ signal: controller.signal })) {
    assert.equal(e.type, "connected");
    controller.abort();
  }
});

test("a worker waits for a server that is away or talks nonsense, and works on", async () => {
  const task = await freshTask();
  let n = 0;
  const spoil = [
    (res: ServerResponse) => res.destroy(),
    (res: ServerResponse) => json(res, 200, { items: [{ id: 7 }] }),
  ];
  const through = new Client({ url: await proxy((req, res) => {
    const bad = req.url!.endsWith("/claim") ? spoil[n++] : undefined;
    bad?.(res);
    return bad !== undefined;
  }), token });
  const job = await pawl.enqueue({ task });
  const said: string[] = [];
  const worker = new Worker({ client: through, task, do: () => "done", log: { warn: (m) => said.push(m), error: (m) => said.push(m) } });
  const running = worker.run({ signals: false });
  await eventually("it is done", async () => (await pawl.job(job.id)).state === "succeeded");
  worker.stop();
  await running;
  assert.equal(said.length, 2, said.join("\n"));
  assert.ok(!said.join().includes(token));
});

test("a server that does not wait is not asked in a loop", async () => {
  let claims = 0;
  const c = await client((req, res) => {
    if (req.url!.endsWith("/claim")) { claims++; }
    json(res, 200, req.method === "GET" ? { lease: "30s" } : { items: [] });
  });
  const worker = new Worker({ client: c, task: "t", do: () => null, log: null });
  const running = worker.run({ signals: false });
  await eventually("it claims again", () => claims >= 3);
  const [from, at] = [claims, Date.now()];
  await new Promise((resolve) => setTimeout(resolve, 1000));
  assert.ok(claims - from <= 1 + (Date.now() - at) / 200, `${claims - from} claims in a second`);
  worker.stop();
  await running;
});
