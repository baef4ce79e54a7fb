// A server on the TypeScript SDK v1 that counts for each session. A process on stdio is one session.
// Over HTTP, /sessions has the number of its sessions.
// Arguments: the folder whose node_modules has the SDK, and "stdio" or "http".
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";

const [packages, transportName] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");

function counter() {
  const server = new McpServer({ name: "counter", version: "1.0.0" });
  let count = 0;
  server.registerTool("count", { description: "Return the number of calls in this session." }, async () => {
    count += 1;
    return { content: [{ type: "text", text: String(count) }] };
  });
  return server;
}

async function serveHTTP() {
  const transports = new Map();
  const http = createServer(async (request, response) => {
    if (request.url === "/sessions") return response.end(String(transports.size));
    const known = transports.get(request.headers["mcp-session-id"]);
    if (known) return known.handleRequest(request, response);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => transports.set(id, transport),
      onsessionclosed: (id) => transports.delete(id),
    });
    await counter().connect(transport);
    return transport.handleRequest(request, response);
  });
  http.listen(0, "127.0.0.1", () => console.log(`running on http://127.0.0.1:${http.address().port}`));
}

if (transportName === "stdio") await counter().connect(new StdioServerTransport());
else await serveHTTP();
