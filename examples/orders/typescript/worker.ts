// Sends the e-mails of orders. Here it prints them.
import { Client, permanent, Worker } from "@pawlrun/client";

const client = new Client({ url: process.env.PAWL_URL ?? "http://127.0.0.1:7295", token: process.env.PAWL_TOKEN! });
await client.declare("send-mail", { lease: "30s", maxAttempts: 5 });

await new Worker({
  client,
  task: "send-mail",
  concurrency: 10,
  do: async (job) => {
    const mail = job.payload as { order: string; to: string; item: string };
    if (!mail.to.includes("@")) throw permanent(`${mail.to} is no address`);
    // The job's id names the message, so that one that is sent twice is known.
    console.log(`to ${mail.to}: your order ${mail.order} of ${mail.item} <${job.id}>`);
    return { messageId: job.id };
  },
}).run();
