import { workflow, consumer } from "pawl";

export default workflow({
  name: "mail-to-sheet",
  topics: { "mail.received": {}, "row.added": {} },
  producers: {
    pollMail: {
      publishes: ["mail.received"],
      schedule: { interval: "5m" },
      handler: async (ctx, state) => {
        const mails = await ctx.tools.mail.search({ after: state?.cursor });
        for (const m of mails.items) {
          const inputId = ctx.registerInput({ source: "mail", type: "message", id: m.id, title: `Mail from ${m.from}: ${m.subject}` });
          ctx.publish("mail.received", { messageId: m.id, inputId, payload: m });
        }
        return { cursor: mails.cursor };
      },
    },
  },
  consumers: {
    addRow: consumer({
      subscribe: ["mail.received"],
      publishes: ["row.added"],
      async prepare(ctx, state) {
        const [first] = await ctx.peek("mail.received");
        if (!first) return { reservations: [], data: {} };
        return {
          reservations: [{ topic: "mail.received", ids: [first.messageId] }],
          data: first.payload,
          ui: { title: `Add a row for ${first.payload.from}` },
          wakeAt: undefined,
        };
      },
      async mutate(ctx, prepared) {
        await ctx.tools.sheet.append({ row: [prepared.data.from, prepared.data.subject] });
      },
      async next(ctx, prepared, result) {
        if (result.status === "applied") ctx.publish("row.added", { messageId: `row:${prepared.data.id}`, payload: result.result });
        return { count: 1 };
      },
    }),
  },
});
