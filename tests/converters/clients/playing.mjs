// What a client library does with servers, for the scripts of this folder; playing.py is the same for Python.
// Arguments: the folder whose node_modules has the library. The plans are on stdin, and what happened on stdout.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const MESSAGE_LENGTH = 500;

export class CallError extends Error {}

export const require = createRequire(`${process.argv[2]}/package.json`);

// `connect(url)` returns a connection with `declarations()`, `call(name, args)`, `read(uri, name)`, `prompt(name, args)`
// and `close()`, as in playing.py.
export async function main(connect) {
  const played = [];
  for (const plan of JSON.parse(readFileSync(0, "utf8"))) played.push(await play(connect, plan));
  process.stdout.write(`${JSON.stringify(played)}\n`, () => process.exit(0));
}

async function play(connect, plan) {
  const played = { declared: {}, calls: {} };
  let connection;
  try {
    connection = await connect(plan.url);
    for (const [api, made] of Object.entries(await connection.declarations())) {
      played.declared[api] = Object.fromEntries(
        Object.entries(made).map(([name, value]) => [name, value instanceof Error ? fault(value) : { declaration: value }]),
      );
    }
    for (const [name, args] of Object.entries(plan.calls)) {
      played.calls[name] = await outcome(() => connection.call(name, args));
    }
    if (plan.resource) played.resource = await outcome(() => connection.read(plan.resource.uri, plan.resource.name));
    if (plan.prompt) played.prompt = await outcome(() => connection.prompt(plan.prompt.name, plan.prompt.arguments));
  } catch (error) {
    Object.assign(played, fault(error));
  } finally {
    await connection?.close();
  }
  return played;
}

async function outcome(action) {
  try {
    return { text: await action() };
  } catch (error) {
    return fault(error);
  }
}

// The text of an error, and the line of a package that it comes from.
function fault(error) {
  const text = `${error.name}: ${error.message}`.replace(/\s+/g, " ").slice(0, MESSAGE_LENGTH);
  const frames = (error.stack ?? "").match(/node_modules\/[^\s)]+?:\d+/g) ?? [];
  return { fault: text, line: (frames[0] ?? "").replace(/^.*node_modules\//, "") };
}

// What a conversion makes of each tool, or its error.
export async function each(convert, tools) {
  const converted = {};
  for (const [name, tool] of tools) {
    try {
      converted[name] = await convert(tool, name);
    } catch (error) {
      converted[name] = error;
    }
  }
  return converted;
}

// Runs a request to a model's API, and returns the body that it would have sent.
export async function sent(request) {
  let body;
  const capture = async (_url, options) => {
    body = JSON.parse(options.body);
    throw new Error("No request is sent.");
  };
  try {
    await request(capture);
  } catch (error) {
    if (body === undefined) throw error;
  }
  return body;
}
