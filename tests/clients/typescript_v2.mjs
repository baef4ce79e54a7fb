// Plays a plan with the TypeScript SDK v2 and prints what came back as one JSON object.
// Arguments: the folder whose node_modules has the SDK, the target and the plan (see plan.py), the negotiation mode:
// "legacy", "auto" or a revision to insist on.
import { createRequire } from "node:module";
import { Player, capabilities } from "./playing.mjs";

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
  {
    capabilities: { ...capabilities, elicitation: { form: {} } },
    versionNegotiation: { mode: named ? mode : { pin: mode } },
  },
);
const player = new Player(client, {
  perRequest: () => client.getProtocolEra() !== "legacy",
  call: (params, options) => client.callTool(params, options),
});
for (const method of ["elicitation/create", "sampling/createMessage", "roots/list"]) {
  client.setRequestHandler(method, player.answering(method));
}

const target = JSON.parse(told);
const transport = makeTransport(target);
await client.connect(transport);
player.tap(transport);
const { tools } = await client.listTools();
const calls = await player.play(JSON.parse(plan));
const revision = client.getNegotiatedProtocolVersion();
if (client.getProtocolEra() === "legacy") await transport.terminateSession?.();
await client.close();
console.log(JSON.stringify({ revision, tools, calls }));
