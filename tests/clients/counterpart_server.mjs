// The same server as counterpart_server.py, with the official TypeScript SDK 1.x on stdio: MODULES
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.argv[2]}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { McpServer, ResourceTemplate } = await load("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = await load("@modelcontextprotocol/sdk/server/stdio.js");
const { z } = await load("zod");

const server = new McpServer({ name: "Counterpart", version: "1" });
const content = (text) => ({ content: [{ type: "text", text }] });
server.registerTool("add", { inputSchema: { a: z.number(), b: z.number() } }, async ({ a, b }) => content(String(a + b)));
server.registerTool("repeat", { inputSchema: { text: z.string(), times: z.number() } }, async ({ text, times }) =>
  content(text.repeat(times)),
);
server.registerTool("fail", { inputSchema: { reason: z.string() } }, async ({ reason }) => {
  throw new Error(reason);
});
server.registerResource("text", "data://text", {}, async (uri) => ({
  contents: [{ uri: uri.href, text: "Grüße, 世界 🎉" }],
}));
server.registerResource("item", new ResourceTemplate("data://items/{name}", { list: undefined }), {}, async (uri, { name }) => ({
  contents: [{ uri: uri.href, text: `item ${name}` }],
}));
server.registerPrompt("greet", { argsSchema: { name: z.string() } }, ({ name }) => ({
  messages: [{ role: "user", content: { type: "text", text: `Hello, ${name}!` } }],
}));
await server.connect(new StdioServerTransport());
