// A request that was sent, as text for other programs, and as a link to the page. None of them has credentials.

const MAX_LINK = 8000;

const shellWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Returns a JSON value as a Python expression. */
function pythonOf(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (!isObject(value) || JSON.isRawJSON?.(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${pythonOf(member)}`);
  return `{${members.join(", ")}}`;
}

const COMMANDS = { "tools/call": "call", "resources/read": "read", "prompts/get": "prompt" };
const METHODS_IN_PYTHON = { "tools/call": "call_tool", "resources/read": "read_resource", "prompts/get": "get_prompt" };

function commandOf(url, method, params) {
  const words = ["funcmcp", COMMANDS[method], url, params.name ?? params.uri];
  const values = params.arguments ?? {};
  if (method === "prompts/get") words.push(...Object.entries(values).map(([name, value]) => `${name}=${value}`));
  else if (Object.keys(values).length) words.push("--input-json", JSON.stringify(values));
  return words.map(shellWord).join(" ");
}

function curlOf(url, method, params, headers) {
  const fields = Object.entries(headerFields(method, params, headers)).map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`);
  return ["curl -N", ...fields, `--data ${shellWord(JSON.stringify(messageOf(1, method, params)))}`, shellWord(url)].join(" \\\n  ");
}

function callInPython(method, params) {
  const values = Object.keys(params.arguments ?? {}).length ? `, ${pythonOf(params.arguments)}` : "";
  return `await client.${METHODS_IN_PYTHON[method]}(${pythonOf(params.name ?? params.uri)}${values})`;
}

const pythonProgram = (url, method, params) => `import asyncio

from funcmcp.client import Client


async def main():
    async with Client(${pythonOf(url)}) as client:
        print(${callInPython(method, params)})


asyncio.run(main())
`;

const pytestProgram = (method, params) => `from funcmcp.testing import Client

from server import mcp  # the file with your server


async def test_${(params.name ?? "resource").replace(/\W+/g, "_")}():
    async with Client(mcp) as client:
        result = ${callInPython(method, params)}
    ${method === "tools/call" ? "assert not result.is_error, result.text" : "assert result"}
`;

/** Returns what there is to do with a request that was sent: its text for other programs, and a link with its values. */
function snippetsOf(fragment, values, { method, params, headers }) {
  const url = location.origin + location.pathname;
  const texts = {
    "funcmcp": () => commandOf(url, method, params),
    "curl": () => curlOf(url, method, params, headers),
    "Python": () => pythonProgram(url, method, params),
    "pytest": () => pytestProgram(method, params),
  };
  const link = `${url}#${fragment}/${encodeURIComponent(JSON.stringify(values))}`;
  if (link.length <= MAX_LINK) texts["Link to this form"] = () => link;
  const select = element("select", { id: newId("format") }, Object.keys(texts).map((name) => element("option", {}, name)));
  const body = element("div", {});
  const show = () => body.replaceChildren(textBlock(`call as ${select.value}`, texts[select.value]()));
  select.addEventListener("change", show);
  show();
  return details("This call elsewhere", plainField("As", select), body);
}
