import { workflow, consumer } from "pawl";

// Every small wish at the desk becomes one order. If the desk takes the order
// and loses its answer, Pawl asks for it by the key that it sent along.
export default workflow({
  name: "orders",
  topics: { "wish.made": {} },

  producers: {
    askForWishes: {
      publishes: ["wish.made"],
      schedule: { interval: "2s" },
      handler: async (ctx) => {
        const { body } = await ctx.tools.desk.get({ path: "/wishes", query: { size: "small" } });
        for (const wish of body.items) {
          const inputId = ctx.registerInput({ source: "desk", type: "wish", id: wish.id, title: `A wish for ${wish.thing}` });
          ctx.publish("wish.made", { messageId: wish.id, inputId, payload: { id: wish.id, thing: wish.thing } });
        }
      },
    },
  },

  consumers: {
    placeOrder: consumer({
      subscribe: ["wish.made"],
      async prepare(ctx) {
        const [wish] = await ctx.peek("wish.made");
        if (!wish) return { reservations: [], data: {} };
        return {
          reservations: [{ topic: "wish.made", ids: [wish.messageId] }],
          data: wish.payload,
          ui: { title: `Order ${wish.payload.thing}` },
        };
      },
      async mutate(ctx, prepared) {
        await ctx.tools.desk.post({ path: "/orders", body: { wish: prepared.data.id, thing: prepared.data.thing } });
      },
    }),
  },
});
