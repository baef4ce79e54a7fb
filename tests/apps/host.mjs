// A client that shows MCP Apps, as a web page: the official TypeScript client towards the server, and the bridge of
// the extension's own package towards the page, which lives in a sandboxed frame. play.mjs bundles this script and
// works it through `window.host`.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  AppBridge, PostMessageTransport, RESOURCE_MIME_TYPE, getToolUiResourceUri, isToolVisibilityAppOnly,
} from "@modelcontextprotocol/ext-apps/app-bridge";

const info = { name: "host", version: "1.0.0" };
const sizes = [];
let client;
let bridge;

window.host = {
  sizes,

  async connect(mode) {
    const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: [RESOURCE_MIME_TYPE] } };
    client = new Client(info, { capabilities: { extensions }, versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", location.origin)));
    const { tools } = await client.listTools();
    return {
      revision: client.getNegotiatedProtocolVersion(),
      serverExtensions: client.getServerCapabilities().extensions ?? {},
      tools,
      forTheModel: tools.filter((tool) => !isToolVisibilityAppOnly(tool)).map((tool) => tool.name),
    };
  },

  call: (name, args) => client.callTool({ name, arguments: args }),

  // Calls a tool and shows its page with the result.
  async show(name) {
    const { tools } = await client.listTools();
    const tool = tools.find((found) => found.name === name);
    const { contents } = await client.readResource({ uri: getToolUiResourceUri(tool) });
    const [{ text, mimeType, _meta }] = contents;
    const result = await client.callTool({ name, arguments: {} });

    bridge = new AppBridge(client, info, { serverTools: {} }, {
      hostContext: { theme: "light", styles: { variables: { "--color-border-primary": "rgb(1, 2, 3)" } } },
    });
    bridge.addEventListener("sizechange", ({ height }) => {
      sizes.push(height);
      frame.style.height = `${height}px`;
    });
    const ready = new Promise((resolve) => bridge.addEventListener("initialized", resolve));
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-scripts";
    frame.style.width = "300px";
    document.body.append(frame); // its window is there from now on; it has nothing in it that could speak
    await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
    frame.src = await window.stage(text, policy(_meta?.ui?.csp ?? {}));
    await ready;
    await bridge.sendToolInput({ arguments: {} });
    await bridge.sendToolResult(result);
    return { contents, mimeType, app: bridge.getAppVersion() };
  },

  darken: () => bridge.setHostContext({ theme: "dark" }),

  close: async () => {
    const answer = await bridge.teardownResource({});
    await bridge.close();
    await client.close();
    return answer;
  },
};

// What the extension's specification lets a page load: what is in it, and from the domains that the server names.
function policy({ connectDomains = [], resourceDomains = [], frameDomains = [], baseUriDomains = [] }) {
  const from = (directive, own, domains) => `${directive} ${[...own, ...domains].join(" ") || "'none'"}`;
  return [
    "default-src 'none'",
    from("script-src", ["'unsafe-inline'"], resourceDomains),
    from("style-src", ["'unsafe-inline'"], resourceDomains),
    from("img-src", ["data:"], resourceDomains),
    from("font-src", [], resourceDomains),
    from("media-src", ["data:"], resourceDomains),
    from("connect-src", [], connectDomains),
    from("frame-src", [], frameDomains),
    from("base-uri", [], baseUriDomains),
    "object-src 'none'",
  ].join("; ");
}
