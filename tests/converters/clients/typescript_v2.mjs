// The official TypeScript SDK 2.x, which validates results.
import { official } from "./official.mjs";
import { main, require } from "./playing.mjs";

const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");

async function connect(url) {
  const client = new Client({ name: "converters", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return official(client);
}

await main(connect);
