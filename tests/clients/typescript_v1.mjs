// Plays a plan of tool calls with the TypeScript SDK v1 and prints what came back as one JSON object.
// Arguments: the folder whose node_modules has the SDK, the target and the plan (see plan.py).
import { createRequire } from "node:module";

const [packages, told, plan] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { SSEClientTransport } = require("@modelcontextprotocol/sdk/client/sse.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { WebSocketClientTransport } = require("@modelcontextprotocol/sdk/client/websocket.js");
const { ElicitRequestSchema } = require("@modelcontextprotocol/sdk/types.js");

function makeTransport(target) {
  if (target.transport === "stdio") {
    const [command, ...args] = target.command;
    return new StdioClientTransport({ command, args, env: target.env });
  }
  if (target.transport === "sse") return new SSEClientTransport(new URL(target.url));
  if (target.transport === "websocket") return new WebSocketClientTransport(new URL(target.url));
  return new StreamableHTTPClientTransport(new URL(target.url));
}

const client = new Client({ name: "plan", version: "1.0.0" }, { capabilities: { elicitation: {} } });
let current;
client.setRequestHandler(ElicitRequestSchema, (request) => {
  current.questions.push(request.params);
  return current.answer;
});

const target = JSON.parse(told);
const transport = makeTransport(target);
let revision;
const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  revision = version;
  setProtocolVersion?.(version);
};
await client.connect(transport);
// Where messages come in one piece, the SDK drops what it has of progress once it has read the answer behind it. What
// has arrived is noted before the SDK sees it there.
const dropsProgress = target.transport !== "http";
if (dropsProgress) {
  const onmessage = transport.onmessage;
  transport.onmessage = (message, extra) => {
    if (message.method === "notifications/progress") {
      const { progressToken, ...report } = message.params;
      current.progress.push(report);
    }
    onmessage(message, extra);
  };
}
const { tools } = await client.listTools();
const calls = [];
for (const step of JSON.parse(plan)) {
  current = { answer: step.answer, questions: [], progress: [] };
  const { questions, progress } = current;
  const call = { questions, progress };
  try {
    call.result = await client.callTool({ name: step.tool, arguments: step.arguments }, undefined, {
      onprogress: (report) => dropsProgress || progress.push(report),
    });
  } catch (error) {
    call.error = { code: error.code ?? null, message: String(error.message) };
  }
  calls.push(call);
}
await transport.terminateSession?.();
await client.close();
console.log(JSON.stringify({ revision, tools, calls }));
