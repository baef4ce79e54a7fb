// Drives tasks with the TypeScript SDK v1 (2025-11-25) and prints what came back as one JSON object.
// Arguments: the folder whose node_modules has the SDK, and the URL of samples/everything.
import { createRequire } from "node:module";

const [packages, url] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const types = require("@modelcontextprotocol/sdk/types.js");

const ANSWERS = { name: "Ada", confirm: true };
const questions = [];

const client = new Client({ name: "tasks", version: "1.0.0" }, { capabilities: { elicitation: {}, tasks: {} } });
client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => {
  questions.push(params.message);
  const names = Object.keys(params.requestedSchema.properties);
  return { action: "accept", content: Object.fromEntries(names.map((name) => [name, ANSWERS[name]])) };
});

// Follows a call to its end; cancels the task once it exists if `cancel` is set.
async function follow(name, args, cancel = false) {
  const seen = { statuses: [] };
  for await (const message of client.experimental.tasks.callToolStream({ name, arguments: args })) {
    if (message.type === "taskCreated") {
      seen.created = message.task.status;
      if (cancel) seen.cancelled = (await client.experimental.tasks.cancelTask(message.task.taskId)).status;
    }
    if (message.type === "taskStatus") seen.statuses.push(message.task.status);
    if (message.type === "result") seen.result = message.result;
    if (message.type === "error") seen.error = message.error.message;
  }
  return seen;
}

await client.connect(new StreamableHTTPClientTransport(new URL(url)));
await client.listTools(); // tells the client which tools run as tasks
const [computed, failed, confirmed, asked, cancelled] = await Promise.all([
  follow("slow_compute", { seconds: 0.2, label: "pi" }),
  follow("failing_job", {}),
  follow("confirm_delete", { filename: "notes.txt" }),
  follow("multi_input", {}),
  follow("slow_compute", { seconds: 60 }, true),
]);
await client.close();
console.log(JSON.stringify({ computed, failed, confirmed, asked, cancelled, questions: questions.sort() }));
