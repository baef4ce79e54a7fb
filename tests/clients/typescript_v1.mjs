// Plays a plan with the TypeScript SDK v1 and prints what came back as one JSON object.
// Arguments: the folder whose node_modules has the SDK, the target and the plan (see plan.py).
import { createRequire } from "node:module";
import { Player, capabilities } from "./playing.mjs";

const [packages, told, plan] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { SSEClientTransport } = require("@modelcontextprotocol/sdk/client/sse.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { WebSocketClientTransport } = require("@modelcontextprotocol/sdk/client/websocket.js");
const types = require("@modelcontextprotocol/sdk/types.js");

function makeTransport(target) {
  if (target.transport === "stdio") {
    const [command, ...args] = target.command;
    return new StdioClientTransport({ command, args, env: target.env });
  }
  if (target.transport === "sse") return new SSEClientTransport(new URL(target.url));
  if (target.transport === "websocket") return new WebSocketClientTransport(new URL(target.url));
  return new StreamableHTTPClientTransport(new URL(target.url));
}

const client = new Client({ name: "plan", version: "1.0.0" }, { capabilities });
const player = new Player(client, {
  perRequest: () => false,
  call: (params, options) => client.callTool(params, undefined, options),
});
client.setRequestHandler(types.ElicitRequestSchema, player.answering("elicitation/create"));
client.setRequestHandler(types.CreateMessageRequestSchema, player.answering("sampling/createMessage"));
client.setRequestHandler(types.ListRootsRequestSchema, player.answering("roots/list"));

const target = JSON.parse(told);
const transport = makeTransport(target);
let revision;
const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  revision = version;
  setProtocolVersion?.(version);
};
await client.connect(transport);
player.tap(transport);
const { tools } = await client.listTools();
const calls = await player.play(JSON.parse(plan));
await transport.terminateSession?.();
await client.close();
console.log(JSON.stringify({ revision, tools, calls }));
