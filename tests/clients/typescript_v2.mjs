// Plays a plan of tool calls with the TypeScript SDK v2 and prints what came back as one JSON object.
// Arguments: the folder whose node_modules has the SDK, the target and the plan (see plan.py), the negotiation mode:
// "legacy", "auto" or a revision to insist on.
import { createRequire } from "node:module";

const [packages, told, plan, mode] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const { Client, SSEClientTransport, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const named = mode === "legacy" || mode === "auto";
function makeTransport(target) {
  if (target.transport === "stdio") {
    const [command, ...args] = target.command;
    return new StdioClientTransport({ command, args, env: target.env });
  }
  if (target.transport === "sse") return new SSEClientTransport(new URL(target.url));
  return new StreamableHTTPClientTransport(new URL(target.url));
}

const client = new Client(
  { name: "plan", version: "1.0.0" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: named ? mode : { pin: mode } } },
);
let current;
client.setRequestHandler("elicitation/create", (request) => {
  current.questions.push(request.params);
  return current.answer;
});

const target = JSON.parse(told);
const transport = makeTransport(target);
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
    call.result = await client.callTool(
      { name: step.tool, arguments: step.arguments },
      { onprogress: (report) => dropsProgress || progress.push(report) },
    );
  } catch (error) {
    call.error = { code: error.code ?? null, message: String(error.message) };
  }
  calls.push(call);
}
const revision = client.getNegotiatedProtocolVersion();
if (client.getProtocolEra() === "legacy") await transport.terminateSession?.();
await client.close();
console.log(JSON.stringify({ revision, tools, calls }));
