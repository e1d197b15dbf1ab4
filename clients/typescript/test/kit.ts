import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer, request, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

import { Client } from "@pawlrun/client";

function env(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") {
    throw new Error(`${name} is missing: the tests speak to a real server`);
  }
  return value;
}

export const url = env("PAWL_URL");
export const token = env("PAWL_TOKEN");
/** Of an application on the server's PostgreSQL; undefined on SQLite. */
export const database = process.env.PAWL_TEST_APPLICATION || undefined;

export const pawl = new Client({ url, token });

/** A task of its own for each test. */
export async function freshTask(definition: Parameters<Client["declare"]>[1] = {}): Promise<string> {
  const name = `t-${randomUUID()}`;
  await pawl.declare(name, definition);
  return name;
}

export async function eventually(what: string, holds: () => boolean | Promise<boolean>, within = 30_000): Promise<void> {
  for (const end = Date.now() + within; Date.now() < end; ) {
    if (await holds()) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`did not happen: ${what}`);
}

/** A server of the test's own. */
export async function serve(handle: RequestListener): Promise<string> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/**
 * Stands between a client and the real server. The rule may answer, or spoil,
 * instead of passing on (true), or lose the answer of what was passed on.
 */
export async function proxy(rule: (req: IncomingMessage, res: ServerResponse) => boolean | "lose"): Promise<string> {
  return serve((req, res) => {
    const did = rule(req, res);
    if (did === true) {
      return;
    }
    const up = request(url + req.url, { method: req.method, headers: req.headers }, (answer) => {
      if (did === "lose") {
        answer.resume().on("end", () => res.destroy());
        return;
      }
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on("error", () => res.destroy()).pipe(res);
    });
    up.on("error", () => res.destroy());
    res.on("close", () => up.destroy());
    req.pipe(up);
  });
}

/** Starts a program beside this one. */
export function start(name: string, args: string[]): { child: ChildProcess; said: () => string } {
  const child = spawn(process.execPath, [fileURLToPath(new URL(name, import.meta.url)), ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout!.on("data", (part: Buffer) => (text += part.toString()));
  after(() => child.kill("SIGKILL"));
  return { child, said: () => text };
}

/** Deploys a workflow that takes what is published to order.placed, and returns its name. */
export async function freshWorkflow(): Promise<string> {
  const name = `w-${randomUUID()}`;
  const script = `import { workflow } from "pawl";
export default workflow({
  name: "${name}",
  topics: { "order.placed": {} },
  producers: { look: { publishes: ["order.placed"], schedule: { interval: "1h" }, handler: async () => {} } },
  consumers: {
    take: {
      subscribe: ["order.placed"],
      async prepare(ctx) {
        const list = await ctx.peek("order.placed", { limit: 10 });
        return { reservations: [{ topic: "order.placed", ids: list.map((e) => e.messageId) }], data: list.length };
      },
      next() {},
    },
  },
});
`;
  await pawl.request({ method: "PUT", path: `/api/v1/workflows/${name}`, body: { script } });
  return name;
}
