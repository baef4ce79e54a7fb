// Plays a plan of tool calls with the TypeScript SDK v2 and prints what came back as one JSON object.
// Arguments: the folder whose node_modules has the SDK, the endpoint, the plan (see plan.py), the negotiation mode:
// "legacy", "auto" or a revision to insist on.
import { createRequire } from "node:module";

const [packages, url, plan, mode] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");

const named = mode === "legacy" || mode === "auto";
const client = new Client(
  { name: "plan", version: "1.0.0" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: named ? mode : { pin: mode } } },
);
let current;
client.setRequestHandler("elicitation/create", (request) => {
  current.questions.push(request.params);
  return current.answer;
});

const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
const { tools } = await client.listTools();
const calls = [];
for (const step of JSON.parse(plan)) {
  current = { answer: step.answer, questions: [] };
  const progress = [];
  const call = { questions: current.questions, progress };
  try {
    call.result = await client.callTool(
      { name: step.tool, arguments: step.arguments },
      { onprogress: (report) => progress.push(report) },
    );
  } catch (error) {
    call.error = { code: error.code ?? null, message: String(error.message) };
  }
  calls.push(call);
}
const revision = client.getNegotiatedProtocolVersion();
if (client.getProtocolEra() === "legacy") await transport.terminateSession();
await client.close();
console.log(JSON.stringify({ revision, tools, calls }));
