// How to add the server to clients. CLIENTS is the table of `funcmcp install`, which the server puts before the scripts.

/** Returns the entry of the server in the configuration of a client. */
function entryOf(client, url) {
  if (client.url !== null) return { ...client.members, [client.url]: url };
  const isRemoteHttp = url.startsWith("http://") && !/^http:\/\/(localhost|127\.0\.0\.1|\[::1\])([:/]|$)/.test(url);
  return { command: "npx", args: ["-y", "mcp-remote", url, ...(isRemoteHttp ? ["--allow-http"] : [])] };
}

/** Returns the text that the configuration of a client needs. */
function snippet(client, name, url) {
  if (client.format === "toml") return `[${client.servers[0]}.${name}]\nurl = ${JSON.stringify(url)}\n`;
  let value = { [name]: entryOf(client, url) };
  for (const member of client.servers.toReversed()) value = { [member]: value };
  return stringify(value);
}

/** Returns a text of the table with the values for its `{names}`. */
const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** Returns the link that adds the server to a client. */
function linkOf(client, name, url) {
  const entry = entryOf(client, url);
  const values = { name, entry: btoa(JSON.stringify(entry)), named_entry: JSON.stringify({ name, ...entry }) };
  return filled(client.link, Object.fromEntries(Object.entries(values).map(([key, value]) => [key, encodeURIComponent(value)])));
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
    parts.push(element("p", {}, element("a", { class: "button primary", href: linkOf(client, name, url) }, `Add to ${client.title}`)));
  }
  if (client.command) {
    parts.push(element("h3", {}, "In a terminal"), textBlock("command", filled(client.command, { name, url })));
  }
  parts.push(
    element("h3", {}, "In ", element("code", {}, client.file)),
    codeBlock(`configuration of ${client.title}`, client.format === "toml" ? snippet(client, name, url) : jsonCode(parse(snippet(client, name, url))),
      () => snippet(client, name, url)),
    element("h3", {}, "With funcmcp"),
    textBlock("funcmcp command", `funcmcp install ${client.id} ${url} --name ${name} --write`),
  );
  return parts;
}
