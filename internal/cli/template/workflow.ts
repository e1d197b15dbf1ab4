import { workflow, consumer } from "pawl";

// Types for your editor: pawl types > pawl.d.ts
export default workflow({
  name: "NAME",

  // What is waiting to be worked on. Others publish to it with:
  //   pawl publish NAME NAME.asked --id 1 --payload '{"text": "hello"}'
  topics: { "NAME.asked": {} },

  producers: {
    // Looks at the outside, on a schedule, and publishes what is new. A messageId
    // that the topic knows already is no new event.
    look: {
      publishes: ["NAME.asked"],
      schedule: { interval: "1h" }, // or { cron: "0 9 * * 1-5", timezone: "Europe/Berlin" }
      handler: async (ctx) => {
        const day = new Date(ctx.now()).toISOString().slice(0, 10);
        const inputId = ctx.registerInput({ source: "calendar", type: "day", id: day, title: `The day ${day}` });
        ctx.publish("NAME.asked", { messageId: day, inputId, payload: { text: `It is ${day}` } });
      },
    },
  },

  consumers: {
    answer: consumer({
      subscribe: ["NAME.asked"],

      // Chooses what to work on, and reads whatever is needed.
      async prepare(ctx) {
        const [first] = await ctx.peek("NAME.asked");
        if (!first) return { reservations: [], data: {} };
        return {
          reservations: [{ topic: "NAME.asked", ids: [first.messageId] }],
          data: first.payload,
          ui: { title: `Answer ${first.messageId}` },
        };
      },

      // Makes the one call that changes something. Connections are files of the
      // server (--connection-dir), and are called as ctx.tools.CONNECTION.METHOD:
      //
      // async mutate(ctx, prepared) {
      //   await ctx.tools.shop.post({ path: "/orders", body: prepared.data });
      // },

      // Remembers something for the next time.
      next(ctx, prepared, result) {
        ctx.log("worked on", prepared.data);
      },
    }),
  },
});
