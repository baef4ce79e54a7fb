// How to add the server to clients. The data are those of `funcmcp install`; a test compares them.

const CLIENTS = [
  { id: "claude-code", title: "Claude Code", file: ".mcp.json", members: { type: "http" },
    command: (name, url) => `claude mcp add --transport http ${name} ${url}` },
  { id: "claude-desktop", title: "Claude Desktop", file: "claude_desktop_config.json", bridge: true },
  { id: "vscode", title: "Visual Studio Code", file: ".vscode/mcp.json", servers: ["servers"], members: { type: "http" },
    link: (name, url) => `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, type: "http", url }))}` },
  { id: "cursor", title: "Cursor", file: ".cursor/mcp.json",
    link: (name, url) => "cursor://anysphere.cursor-deeplink/mcp/install?" +
      new URLSearchParams({ name, config: btoa(JSON.stringify({ url })) }) },
  { id: "codex", title: "Codex", file: "~/.codex/config.toml", toml: true },
  { id: "gemini-cli", title: "Gemini CLI", file: ".gemini/settings.json", url: "httpUrl" },
  { id: "copilot-cli", title: "GitHub Copilot CLI", file: ".github/mcp.json", members: { type: "http", tools: ["*"] } },
  { id: "windsurf", title: "Windsurf", file: "~/.codeium/windsurf/mcp_config.json", url: "serverUrl" },
  { id: "devin", title: "Devin Desktop", file: ".devin/mcp_config.json" },
  { id: "zed", title: "Zed", file: ".zed/settings.json", servers: ["context_servers"] },
  { id: "opencode", title: "OpenCode", file: "opencode.json", servers: ["mcp", "servers"], members: { type: "remote" } },
  { id: "cline", title: "Cline", file: "cline_mcp_settings.json", members: { type: "streamableHttp" } },
  { id: "antigravity", title: "Antigravity", file: ".agents/mcp_config.json", url: "serverUrl" },
];

/** Returns the text that the configuration of a client needs. */
function snippet(client, name, url) {
  if (client.toml) return `[mcp_servers.${name}]\nurl = ${JSON.stringify(url)}\n`;
  let value = { [name]: { ...client.members, [client.url ?? "url"]: url } };
  if (client.bridge) {
    const isRemoteHttp = url.startsWith("http://") && !/^http:\/\/(localhost|127\.0\.0\.1|\[::1\])([:/]|$)/.test(url);
    const args = ["-y", "mcp-remote", url, ...(isRemoteHttp ? ["--allow-http"] : [])];
    value = { [name]: { command: "npx", args } };
  }
  for (const member of (client.servers ?? ["mcpServers"]).toReversed()) value = { [member]: value };
  return stringify(value);
}

function clientsView(serverName) {
  const url = location.origin + location.pathname;
  const name = serverName.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "") || "server";
  const select = element("select", { id: newId("client") }, CLIENTS.map(({ id, title }) => element("option", { value: id }, title)));
  const body = element("div", { class: "stack" });
  const show = () => {
    const client = CLIENTS.find(({ id }) => id === select.value);
    body.replaceChildren(...clientParts(client, name, url));
  };
  select.addEventListener("change", show);
  show();
  return element("div", {}, heading("Add to a client"),
    element("section", { class: "card" },
      element("p", {}, "The URL of this server: ", element("code", {}, url)),
      plainField("Client", select), body));
}

function clientParts(client, name, url) {
  const parts = [];
  if (client.link) {
    parts.push(element("p", {}, element("a", { class: "button primary", href: client.link(name, url) }, `Add to ${client.title}`)));
  }
  if (client.command) {
    parts.push(element("h3", {}, "In a terminal"), textBlock("command", client.command(name, url)));
  }
  parts.push(
    element("h3", {}, "In ", element("code", {}, client.file)),
    codeBlock(`configuration of ${client.title}`, client.toml ? snippet(client, name, url) : jsonCode(parse(snippet(client, name, url))),
      () => snippet(client, name, url)),
    element("h3", {}, "With funcmcp"),
    textBlock("funcmcp command", `funcmcp install ${client.id} ${url} --name ${name} --write`),
  );
  return parts;
}
