// The client of MCP 2026-07-28 over Streamable HTTP: each request is one POST, whose response is JSON or an event stream.

const VERSION = "2026-07-28";
const META = "io.modelcontextprotocol/";
const TASKS = `${META}tasks`;
const APP_TYPE = "text/html;profile=mcp-app";
const CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: {},
  roots: {},
  extensions: { [TASKS]: {}, [`${META}ui`]: { mimeTypes: [APP_TYPE] } },
};
const NAMES = { "tools/call": "name", "prompts/get": "name", "resources/read": "uri",
  "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId" };

const MAX_MESSAGES = 500;
const LOST_CONNECTION = "The connection ended before the answer. The server may have run the request.";

let lastRequest = 0;

/** The server, or something in front of it, refused a request. */
class RequestError extends Error {
  constructor(message, { status, code, data, challenge } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.data = data;
    this.challenge = challenge ?? {};
  }

  get needsSignIn() {
    return this.status === 401 || (this.status === 403 && this.challenge.error === "insufficient_scope");
  }
}

/**
 * Sends a request and returns its result.
 *
 * signal cancels it. onNotification gets the messages before the answer. onExchange gets what is sent and received.
 * meta and headers are added to the request.
 */
async function request(method, params = {}, { signal, onNotification, onExchange, meta, headers } = {}) {
  lastRequest += 1;
  const id = lastRequest;
  const message = messageOf(id, method, params, meta);
  const fields = headerFields(method, params, headers);
  const masked = Object.fromEntries(Object.keys(credentialFields()).map((name) => [name, "…"]));
  const name = NAMES[method] ? asText(params[NAMES[method]]) : "";
  const exchange = { method, name, headers: { ...fields, ...masked }, body: message, status: null, messages: [], omitted: 0,
    started: Date.now(), ended: null, error: null };
  noteExchange(exchange);
  onExchange?.(exchange);
  try {
    return await answerOf(exchange, fields, { signal, onNotification, onExchange });
  } catch (error) {
    exchange.error = error.message;
    if (error.needsSignIn) offerSignIn();
    throw error;
  } finally {
    exchange.ended = Date.now();
    activityChanged();
  }
}

/** Sends the request of an exchange and returns its result. */
async function answerOf(exchange, fields, { signal, onNotification, onExchange }) {
  const message = exchange.body;
  let response = await send(fields, message, signal);
  if (response.status === 401 && (await refreshToken())) response = await send(fields, message, signal);
  exchange.status = response.status;
  const type = (response.headers.get("Content-Type") ?? "").split(";")[0].trim();
  const messages = type === "text/event-stream" ? eventMessages(response.body) : [await jsonMessage(response, type)];
  for await (const received of messages) {
    exchange.messages.push(received);
    if (exchange.messages.length > MAX_MESSAGES) {
      exchange.messages.shift();
      exchange.omitted += 1;
    }
    onExchange?.(exchange);
    if (get(received, "error") !== undefined) throw errorOf(received.error, response);
    if (get(received, "result") !== undefined) return received.result;
    if (typeof get(received, "method") !== "string") continue;
    noteNotification(exchange.method, received);
    onNotification?.(received);
  }
  throw new RequestError(LOST_CONNECTION, { status: response.status });
}

/** Returns the JSON-RPC message of a request. */
function messageOf(id, method, params, meta) {
  const described = {
    [`${META}protocolVersion`]: VERSION,
    [`${META}clientInfo`]: { name: "funcmcp page", version: "1" },
    [`${META}clientCapabilities`]: CAPABILITIES,
  };
  return { jsonrpc: "2.0", id, method, params: { ...params, _meta: { ...described, ...meta } } };
}

/** Returns the header fields of a request, without credentials. */
function headerFields(method, params, headers) {
  const fields = {
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": VERSION,
    "Mcp-Method": method,
    ...headers,
  };
  if (NAMES[method]) fields["Mcp-Name"] = headerValue(params[NAMES[method]]);
  return fields;
}

async function send(fields, message, signal) {
  const options = { method: "POST", body: JSON.stringify(message), signal, cache: "no-store", credentials: "same-origin" };
  try {
    return await fetch(endpoint, { ...options, headers: { ...fields, ...credentialFields() } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError(`The server can't be reached, or has ended before it answered (${error.message}).`);
  }
}

async function jsonMessage(response, type) {
  const text = await response.text().catch((error) => {
    throw error.name === "AbortError" ? error : new RequestError(LOST_CONNECTION);
  });
  try {
    const message = parse(text);
    if (isObject(message)) return message;
  } catch {
    // The error below describes it.
  }
  throw errorOf({ message: `HTTP status ${response.status}, ${type || "no content"}: ${text.slice(0, 500)}` }, response);
}

function errorOf(error, response) {
  const message = asText(get(error, "message")) || `HTTP status ${response.status}`;
  const challenge = challengeOf(response.headers.get("WWW-Authenticate"));
  return new RequestError(message, {
    status: response.status, code: get(error, "code"), data: get(error, "data"), challenge,
  });
}

/** Yields the messages of an event stream. */
async function* eventMessages(body) {
  let pieces = []; // of a line that is not complete; they are joined once, because a line may have megabytes
  let held = ""; // a CR at the end of what has come, which may be the half of an end of line
  let data = [];
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      throw error.name === "AbortError" ? error : new RequestError(LOST_CONNECTION);
    });
    if (done) return;
    const text = held + value;
    held = text.endsWith("\r") ? "\r" : "";
    const [first, ...following] = text.slice(0, text.length - held.length).split(/\r\n|\n|\r/);
    pieces.push(first);
    if (following.length === 0) continue;
    const lines = [pieces.join(""), ...following];
    pieces = [lines.pop()];
    for (const line of lines) {
      if (line === "" && data.length) {
        yield parse(data.join("\n"));
        data = [];
      } else if (line.startsWith("data:")) {
        data.push(line.slice(line[5] === " " ? 6 : 5));
      }
    }
  }
}

/** Returns the parameters of a Bearer challenge. */
function challengeOf(header) {
  const parameters = {};
  if (!/^Bearer\b/i.test(header ?? "")) return parameters;
  for (const [, name, quoted, token] of header.matchAll(/([a-z_]+)=(?:"((?:\\.|[^"\\])*)"|([^\s,"]+))/gi)) {
    parameters[name.toLowerCase()] = quoted === undefined ? token : quoted.replace(/\\(.)/g, "$1");
  }
  return parameters;
}

/** Returns a value of a message as a header field; in Base64 where the header can't contain its text. */
function headerValue(value) {
  const text = String(value);
  if (/^[!-~]([ -~]*[!-~])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)) return text;
  return `=?base64?${base64(new TextEncoder().encode(text))}?=`;
}

function base64(bytes) {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** Returns the header fields that repeat arguments, as the schema asks with x-mcp-header. */
function mirroredHeaders(schema, values, headers = {}) {
  for (const [name, property] of Object.entries(get(schema, "properties") ?? {})) {
    const value = get(values, name);
    const header = get(property, "x-mcp-header");
    if (typeof header === "string" && value !== undefined && value !== null) {
      headers[`Mcp-Param-${header}`] = headerValue(value);
    }
    if (isObject(value)) mirroredHeaders(property, value, headers);
  }
  return headers;
}

/** Calls a function with the items of each page of a list, until it returns false. signal ends it. */
async function eachPage(method, member, signal, onItems) {
  let cursor;
  const seen = new Set();
  do {
    const result = await request(method, cursor === undefined ? {} : { cursor }, { signal });
    if (onItems(listOf(get(result, member)).filter(isObject)) === false) break;
    cursor = get(result, "nextCursor");
    if (seen.has(cursor)) break;
    seen.add(cursor);
  } while (typeof cursor === "string");
}
