import { workflow, consumer } from "pawl";

// Every letter in the folder inbox becomes one line of the book: once, whatever
// happens in between.
export default workflow({
  name: "letters",
  topics: { "letter.arrived": {} },

  producers: {
    lookIntoInbox: {
      publishes: ["letter.arrived"],
      schedule: { interval: "2s" },
      handler: async (ctx) => {
        const { items } = await ctx.tools.inbox.list({});
        for (const letter of items) {
          const inputId = ctx.registerInput({ source: "inbox", type: "letter", id: letter.name, title: `Letter ${letter.name}` });
          // A messageId that is known already is not a new event.
          ctx.publish("letter.arrived", { messageId: letter.name, inputId, payload: { file: letter.name } });
        }
      },
    },
  },

  consumers: {
    enterIntoBook: consumer({
      subscribe: ["letter.arrived"],

      // Looks, and says what is to be done with what.
      async prepare(ctx) {
        const [letter] = await ctx.peek("letter.arrived");
        if (!letter) return { reservations: [], data: {} };
        const { text } = await ctx.tools.inbox.read({ path: letter.payload.file });
        return {
          reservations: [{ topic: "letter.arrived", ids: [letter.messageId] }],
          data: { file: letter.payload.file, text: text.trim() },
          ui: { title: `Enter ${letter.payload.file} into the book` },
        };
      },

      // Does it: one call, written down before it is made.
      async mutate(ctx, prepared) {
        await ctx.tools.book.append({ path: "book.txt", line: `${prepared.data.file}: ${prepared.data.text}` });
      },

      // Remembers something for the next time.
      next(ctx, prepared, result) {
        if (result.status !== "applied") return;
        ctx.log("entered", prepared.data.file);
        return { last: prepared.data.file };
      },
    }),
  },
});
