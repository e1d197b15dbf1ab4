// The server of the graph, in one process: node serve.mjs PORT. It keeps its
// state below the working directory, and ends when its standard input does:
// whoever started it is gone then.
import { fileURLToPath } from "node:url";
import { startServer } from "@langchain/langgraph-api/server";

const server = await startServer({
  port: Number(process.argv[2]), nWorkers: 4, host: "127.0.0.1", cwd: process.cwd(),
  graphs: { demo: fileURLToPath(new URL("./src/graph.mjs", import.meta.url)) + ":graph" },
});
console.log("listening at", server.host);
process.stdin.on("end", () => process.exit()).resume();
