// A graph without a model: it ticks, and on request fails, hangs, asks a
// person, or says what two calls of a model would have cost.
import { StateGraph, Annotation, START, END, interrupt, messagesStateReducer } from "@langchain/langgraph";
import { AIMessage } from "@langchain/core/messages";

const State = Annotation.Root({
  input: Annotation(),
  steps: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }),
  messages: Annotation({ reducer: messagesStateReducer, default: () => [] }),
  total: Annotation(),
});

const pause = (ms, signal) => new Promise((done, stop) => {
  const timer = setTimeout(done, ms);
  signal?.addEventListener("abort", () => { clearTimeout(timer); stop(new Error("aborted")); });
});

const call = (id, input, output) => new AIMessage({
  id,
  content: "words",
  usage_metadata: { input_tokens: input, output_tokens: output, total_tokens: input + output },
  response_metadata: { model_name: "tiny-1" },
});

export const graph = new StateGraph(State)
  .addNode("parse", async () => ({ steps: ["parse"], total: 0 }))
  .addNode("work", async (state, config) => {
    const ticks = state.input?.ticks ?? 3;
    for (let i = 0; i < ticks; i++) {
      config.writer?.({ tick: i });
      await pause(state.input?.delay ?? 5, config.signal);
    }
    if (state.input?.fail) throw new Error("boom: asked to fail");
    const messages = state.input?.usage ? [call("m1", 10, 4), call("m2", 7, 0)] : [];
    return { steps: ["work"], total: ticks, messages };
  })
  .addNode("gate", async (state) => {
    if (!state.input?.approve) return { steps: ["gate:auto"] };
    const answer = interrupt({ question: "go on?", total: state.total });
    return { steps: ["gate:" + JSON.stringify(answer)] };
  })
  .addEdge(START, "parse").addEdge("parse", "work").addEdge("work", "gate").addEdge("gate", END)
  .compile();
