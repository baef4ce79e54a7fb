// The official TypeScript SDK 1.x, which validates results.
import { official } from "./official.mjs";
import { main, require } from "./playing.mjs";

const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

async function connect(url) {
  const client = new Client({ name: "converters", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return official(client);
}

await main(connect);
