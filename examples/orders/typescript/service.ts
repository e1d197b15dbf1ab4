// An order service: POST /orders {"email", "item"} commits the order and its e-mail.
import { createServer } from "node:http";
import { json } from "node:stream/consumers";

import { sql } from "@pawlrun/client";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env.SHOP_DATABASE });

/** Either both are committed, or none: there is no order without its e-mail. */
async function place(email: string, item: string): Promise<{ order: string; job: string }> {
  const tx = await pool.connect();
  try {
    await tx.query("begin");
    const { rows } = await tx.query<{ id: string }>("insert into orders (email, item) values ($1, $2) returning id", [email, item]);
    const order = rows[0]!.id;
    const job = await sql.addJob(tx, { task: "send-mail", payload: { order, to: email, item }, lane: email });
    await tx.query("commit");
    return { order, job };
  } catch (e) {
    await tx.query("rollback");
    throw e;
  } finally {
    tx.release();
  }
}

const [host, port] = (process.env.SHOP_ADDR ?? "127.0.0.1:8102").split(":");
createServer(async (req, res) => {
  const answer = (status: number, body: unknown) => res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  try {
    const { email, item } = (await json(req)) as { email: string; item: string };
    answer(201, await place(String(email), String(item)));
  } catch (e) {
    answer(422, { error: (e as Error).message });
  }
}).listen(Number(port), host);
