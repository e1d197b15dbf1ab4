// Signs what stdin lists, with the libraries of those who send webhooks: a JSON list
// of {scheme, secret, id, at, body}. Answers with the headers of each.
import { sign } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";

let text = "";
for await (const part of process.stdin) text += part;

const stripe = new Stripe("sk_test_none");
const signed = {
  github: async (c) => ({ "X-Hub-Signature-256": await sign(c.secret, c.body) }),
  standard: async (c) => ({
    "webhook-id": c.id,
    "webhook-timestamp": String(c.at),
    "webhook-signature": new Webhook(c.secret).sign(c.id, new Date(c.at * 1000), c.body),
  }),
  stripe: async (c) => ({ "Stripe-Signature": stripe.webhooks.generateTestHeaderString({ payload: c.body, secret: c.secret, timestamp: c.at }) }),
};
const out = [];
for (const c of JSON.parse(text)) out.push(await signed[c.scheme](c));
process.stdout.write(JSON.stringify(out));
