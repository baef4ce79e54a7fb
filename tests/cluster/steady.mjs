// Uses one connection of the TypeScript SDK v2 on and on until its input ends (see steady.py). Prints a line when it is
// connected, and at the end what came back as one JSON object.
// Arguments: the folder whose node_modules has the SDK, and how it is used.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const [packages, told] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } = createRequire(`${packages}/package.json`)("@modelcontextprotocol/client");
const PAUSE_MS = 50;

const { url, headers, mode, recovery, longest } = JSON.parse(told);
const client = new Client(
  { name: "typescript", version: "1" },
  {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: mode === "legacy" ? mode : { pin: mode } },
  },
);
client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { size: 3 } }));
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
console.log("connected");

const texts = new Set();
const errors = new Set();

async function call(name, args) {
  try {
    const { content } = await client.callTool({ name, arguments: args }, { timeout: longest * 1000 });
    texts.add(content[0].text);
    return content[0].text;
  } catch (error) {
    errors.add(String(error.message));
    return "";
  }
}

let over = false;
process.stdin.on("end", () => (over = true)).resume();
while (!over) {
  await call("whoami", {});
  await sleep(PAUSE_MS);
}
const deadline = Date.now() + recovery * 1000;
let order = "";
while (!order && Date.now() < deadline) order = await call("order", { what: "Tea" });
const revision = client.getNegotiatedProtocolVersion();
await client.close();
console.log(JSON.stringify({ revision, texts: [...texts], errors: [...errors], order }));
