import { workflow, producer, consumer, type Event, type PrepareResult } from "pawl";

interface Notice {
  from: string;
  text: string;
}

interface DigestState {
  sent: number;
}

const collect = producer({
  publishes: ["notice"],
  schedule: { cron: "*/10 * * * *", timezone: "Europe/Berlin" },
  async handler(ctx, state: { after: string | undefined } | undefined) {
    const answer = await ctx.tools.desk.get({ path: "/notices", query: { after: state?.after ?? "" } });
    const notices: Array<Notice & { id: number }> = answer.body.items;
    for (const notice of notices) {
      const inputId = ctx.registerInput({ source: "desk", type: "notice", id: notice.id, title: notice.text });
      ctx.publish<Notice>("notice", { messageId: `notice:${notice.id}`, inputId, payload: notice });
    }
    ctx.log("collected", notices.length);
    return { after: notices.at(-1)?.id.toString() };
  },
});

const digest = consumer({
  subscribe: ["notice"],
  async prepare(ctx, state: DigestState | undefined): Promise<PrepareResult<{ lines: string[]; number: number }, "notice">> {
    const pending: Event<Notice>[] = await ctx.peek<Notice>("notice", { limit: 500 });
    const hour = 3_600_000;
    const next = new Date(Math.ceil((ctx.now().getTime() + 1) / hour) * hour);
    return {
      reservations: [{ topic: "notice", ids: pending.map((event) => event.messageId) }],
      data: { lines: pending.map(({ payload }) => `${payload.from}: ${payload.text}`), number: (state?.sent ?? 0) + 1 },
      wakeAt: next.toISOString(),
    };
  },
  async mutate(ctx, prepared) {
    await ctx.tools.mail.send({ subject: `Digest ${prepared.data.number}`, body: prepared.data.lines.join("\n") });
  },
  next(ctx, prepared, result) {
    console.log(result.status);
    return { sent: prepared.data.number };
  },
});

export default workflow({ name: "digest", topics: { notice: {} }, producers: { collect }, consumers: { digest } });
