// MCP Apps: pages of the server (`ui://` resources) that show the result of a tool. Source: SEP-1865, 2026-01-26.
//
// How it works: nothing runs before a person presses the button. The app then runs in a frame with the sandbox
// `allow-scripts` alone: its origin is opaque, so it can't read or navigate this page, and it has no storage, cookies,
// windows, forms and dialogs. The frame's document comes from the endpoint (app_frame.py), because a document that this
// page makes would inherit its policy. That document has a policy of its own, which forbids every connection but those to
// the origins that the person has allowed. It posts its query when it is ready, gets the HTML of the app, and writes it. From
// then on the app sends requests of MCP Apps; what it asks of the server or of the browser needs an answer of the person. An
// app can navigate its frame, also to this document with a looser query, so the HTML is sent once, and only to the query of
// the person. A frame that was out of the document loads again, and all of this begins anew.

const APP_VERSION = "2026-01-26";
const APP_SCHEME = "ui://";
const APP_ORIGIN = /^(?:https|wss):\/\/(?:\*\.)?[a-z0-9.-]{1,253}(?::\d+)?$|^(?:http|ws):\/\/(?:localhost|127\.0\.0\.1)(?::\d+)?$/i;
const APP_DOMAINS = { connectDomains: "connect to", resourceDomains: "load scripts, styles and images from",
  frameDomains: "show pages of", baseUriDomains: "resolve addresses at" };
const MAX_APP = 5_000_000;
const MAX_APP_MESSAGE = 1_000_000;
const MAX_APP_DOMAINS = 20;
const MAX_APP_HEIGHT = 800;
const MAX_APP_LOG = 200;
const MAX_WAITING = 10;
const MAX_APP_MESSAGES = 500; // in a second
const MAX_APP_TRAFFIC = 5_000_000; // characters in a second
const TEARDOWN_TIME = 500;
const ANSWER_DELAY = 600; // an app must not move a button under a finger that is about to press
const APP_ERROR = -32000;
const METHOD_NOT_FOUND = -32601;

const openApps = new Set();

const uiOf = (object) => get(get(object, "_meta"), "ui");

/** Returns the URI of the app that a tool's definition refers to; null without one. */
function appOf(definition) {
  const uri = get(uiOf(definition), "resourceUri") ?? get(get(definition, "_meta"), "ui/resourceUri");
  return typeof uri === "string" && uri.startsWith(APP_SCHEME) ? uri : null;
}

const isApp = (contents) => asText(get(contents, "uri")).startsWith(APP_SCHEME) && get(contents, "mimeType") === APP_TYPE;

/** Returns whether an app may call a tool: its visibility contains "app", which is the default. */
function isForApps(definition) {
  const visibility = get(uiOf(definition), "visibility");
  return !Array.isArray(visibility) || visibility.includes("app");
}

/** Returns the HTML of an app. */
function htmlOf(contents) {
  const text = get(contents, "text");
  if (typeof text === "string") return text;
  const bytes = Uint8Array.from(atob(asText(get(contents, "blob"))), (character) => character.charCodeAt(0));
  return new TextDecoder().decode(bytes);
}

/** Returns the origins that an app asks for, by purpose; without those that no policy may contain. */
function domainsOf(contents) {
  const csp = get(uiOf(contents), "csp");
  const lists = Object.keys(APP_DOMAINS).map((name) =>
    [name, listOf(get(csp, name)).filter((origin) => typeof origin === "string" && APP_ORIGIN.test(origin)).slice(0, MAX_APP_DOMAINS)]);
  return Object.fromEntries(lists.filter(([, origins]) => origins.length));
}

/** Returns a card that shows an app on request. call is {definition, values, result}; contents are read if they are null. */
function appCard(uri, contents, call) {
  const body = element("div", { class: "stack" });
  const begin = element("button", { type: "button", class: "primary" }, "Show the app");
  const actions = element("p", { class: "buttons" }, begin);
  const showFrame = (page, domains) => {
    const app = openApp(uri, htmlOf(page), domains, call, (reason) => body.replaceChildren(...[reason && failure(reason), actions].filter(Boolean)));
    body.replaceChildren(app);
  };
  const read = async () => {
    begin.disabled = true;
    try {
      const page = contents ?? listOf(get(await request("resources/read", { uri }), "contents")).find(isApp);
      if (page === undefined) throw new Error(`The contents of ${uri} are not of the type ${APP_TYPE}.`);
      if (asText(get(page, "text") ?? get(page, "blob")).length > MAX_APP) throw new Error("The app is too large.");
      const domains = domainsOf(page);
      if (Object.keys(domains).length) body.replaceChildren(...domainsQuestion(domains, (allowed) => showFrame(page, allowed)));
      else showFrame(page, {});
    } catch (error) {
      body.replaceChildren(failure(error.message), actions);
    }
    begin.disabled = false;
  };
  begin.addEventListener("click", read);
  body.append(actions);
  return element("section", { class: "app-card stack", "aria-label": "App of the server" },
    element("p", {}, element("strong", {}, "App "), element("code", {}, uri)),
    element("p", { class: "quiet" }, "A page with scripts of the server. It runs in a sandbox, apart from this page."), body);
}

function domainsQuestion(domains, answer) {
  const rows = Object.entries(domains).map(([name, origins]) => fact(APP_DOMAINS[name], origins.join(", ")));
  return [
    element("p", {}, "The app asks to reach other servers:"),
    element("dl", { class: "facts" }, rows),
    element("p", { class: "buttons" },
      element("button", { type: "button", class: "primary", click: () => answer({}) }, "Show it without them"),
      element("button", { type: "button", click: () => answer(domains) }, "Allow and show")),
  ];
}

/** Returns the frame of an app with its questions, its calls and its messages. */
function openApp(uri, html, domains, call, onClose) {
  const query = new URLSearchParams({ app: APP_VERSION });
  for (const [name, origins] of Object.entries(domains)) for (const origin of origins) query.append(name, origin);
  const frame = element("iframe", { sandbox: "allow-scripts", referrerpolicy: "no-referrer", title: `App ${uri}`, class: "app", height: 300,
    src: `${location.pathname}?${query}` });
  const questions = element("div", { class: "stack" });
  const calls = element("div", {});
  const log = element("ol", {});
  const close = element("button", { type: "button", class: "small", click: () => closeApp() }, "Close the app");
  let isInitialized = false;
  let isAwaited = true; // the frame's document has not got the HTML
  let received = 0; // messages in this second
  let allowance = MAX_APP_TRAFFIC;
  let waiting = 0;
  let isTrusted = false;
  let onTornDown = null;
  let lastQuestion = Promise.resolve();

  const note = (mark, message) => {
    const text = compactText(get(message, "method") ?? "answer");
    const data = compactText(get(message, "params") ?? get(message, "result") ?? get(message, "error") ?? {});
    log.prepend(element("li", {}, mark, " ", element("strong", {}, text.slice(0, 100)), " ", element("code", {}, data.slice(0, 300))));
    if (log.childElementCount > MAX_APP_LOG) log.lastElementChild.remove();
  };
  const post = (message) => {
    note("→", message);
    frame.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*"); // an opaque origin has no name
  };
  const context = () => ({
    ...(call.definition && { toolInfo: { tool: call.definition } }),
    theme: theme(), displayMode: "inline", availableDisplayModes: ["inline"],
    containerDimensions: { width: frame.clientWidth, maxHeight: MAX_APP_HEIGHT }, locale: navigator.language, platform: "web",
  });

  /** Asks the person, one question after the other. Returns whether the answer is yes. */
  const ask = async (sentence, content, allow) => {
    if (waiting >= MAX_WAITING) throw new Error("Too many questions are open.");
    waiting += 1;
    const previous = lastQuestion;
    const { promise, resolve } = Promise.withResolvers();
    lastQuestion = promise;
    await previous;
    const card = appQuestion(sentence, content, allow, resolve);
    questions.replaceChildren(card);
    announce(sentence);
    const answer = await promise;
    waiting -= 1;
    card.remove();
    return answer;
  };

  const forward = async (method, params) => {
    const { name, uri: resource } = params;
    const feature = method === "tools/call" ? features.find(({ kind, key }) => kind === "tool" && key === name) : null;
    if (feature === undefined || (feature && !isForApps(feature.definition))) throw new Error("Apps can't call this tool.");
    const values = isObject(params.arguments) ? params.arguments : {};
    const isAllowed = isTrusted || (await ask(
      feature ? `The app wants to call ${name}.` : `The app wants to read ${asText(resource).slice(0, MAX_LINE)}.`,
      feature ? jsonBlock("arguments", values) : null,
      { Allow: true, "Allow everything of this app": "always" }));
    if (!isAllowed) throw new Error("The user has refused this.");
    isTrusted ||= isAllowed === "always";
    const sent = feature
      ? { params: { name: asText(name), arguments: values }, headers: mirroredHeaders(get(feature.definition, "inputSchema"), values), render: toolResult }
      : { params: { uri: asText(resource) }, render: readContents };
    return new Promise((resolve, reject) => {
      const onEnd = ({ result, error }) => (result === undefined ? reject(new Error(error)) : resolve(result));
      run(calls, { method, ...sent, name: asText(name ?? resource), place: location.hash.slice(1), onEnd });
    });
  };

  const methods = {
    ping: () => ({}),
    "ui/initialize": () => ({
      protocolVersion: APP_VERSION, hostInfo: { name: "funcmcp page", version: "1" }, hostContext: context(),
      hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, sandbox: { csp: domains, permissions: {} } },
    }),
    "ui/request-display-mode": () => ({ mode: "inline" }),
    "ui/message": () => ({}), // there is no conversation: the messages are in the log
    "ui/update-model-context": () => ({}),
    "tools/call": (params) => forward("tools/call", params),
    "resources/read": (params) => forward("resources/read", params),
    "ui/open-link": async (params) => {
      const url = externalUrl(asText(params.url));
      if (url === null) throw new Error("This address can't be opened.");
      if (!(await ask("The app wants to open an address. The link opens a new tab.", element("p", {}, externalLink(url.href)), { "I have opened it": true }))) {
        throw new Error("The user has refused this.");
      }
      return {};
    },
  };
  const onNotification = (method, params) => {
    if (method === "ui/notifications/initialized" && !isInitialized) {
      isInitialized = true;
      if (call.result) {
        post({ method: "ui/notifications/tool-input", params: { arguments: call.values } });
        post({ method: "ui/notifications/tool-result", params: call.result });
      }
    }
    const height = get(params, "height");
    if (method === "ui/notifications/size-changed" && Number.isFinite(height)) frame.height = Math.min(Math.max(Math.ceil(height), 60), MAX_APP_HEIGHT);
  };
  const onRequest = async (id, method, params) => {
    try {
      if (!Object.hasOwn(methods, method)) throw Object.assign(new Error("This page does not have this method."), { code: METHOD_NOT_FOUND });
      post({ id, result: await methods[method](params) });
    } catch (error) {
      post({ id, error: { code: error.code ?? APP_ERROR, message: error.message } });
    }
  };
  const receive = (event) => {
    const { source, origin } = event;
    if (source !== frame.contentWindow || source === null || origin !== "null") return;
    if (received === 0) {
      setTimeout(() => {
        received = 0;
        allowance = MAX_APP_TRAFFIC;
      }, 1000);
    }
    received += 1;
    if (received > MAX_APP_MESSAGES) {
      endApp(`The app has sent more than ${MAX_APP_MESSAGES} messages in a second. The page has closed it.`);
      return;
    }
    const { data } = event; // the browser decodes it here
    const budget = { left: Math.min(MAX_APP_MESSAGE, allowance) };
    const isPlain = isWithin(data, budget);
    allowance -= MAX_APP_MESSAGE - budget.left;
    if (budget.left < 0) endApp("The app has sent a message that is too large, or too many large ones. The page has closed it.");
    if (!isPlain) return;
    if (isAwaited) {
      if (get(data, "ready") !== `?${query}`) return;
      isAwaited = false;
      source.postMessage({ html }, "*");
      return;
    }
    const message = plainMessage(data);
    if (message === null) return;
    note("←", message);
    const { id, method } = message;
    const params = isObject(message.params) ? message.params : {};
    if (typeof method !== "string") onTornDown?.();
    else if (id === undefined) onNotification(method, params);
    else onRequest(id, method, params);
  };
  const tearDown = (reason) => isInitialized && post({ id: "teardown", method: "ui/resource-teardown", params: { reason } });
  const leave = () => {
    tearDown("The user has left the view.");
    isInitialized = false;
    isAwaited = true;
  };
  const closeApp = async () => {
    const isTornDown = new Promise((resolve) => (onTornDown = resolve));
    if (tearDown("The user has closed the app.")) await Promise.race([isTornDown, pause(TEARDOWN_TIME)]);
    endApp();
  };
  const endApp = (reason) => {
    removeEventListener("message", receive);
    openApps.delete(app);
    onClose(reason);
  };
  const app = { isShown: () => frame.isConnected, leave,
    changeTheme: () => isInitialized && post({ method: "ui/notifications/host-context-changed", params: { theme: context().theme } }) };
  openApps.add(app);
  addEventListener("message", receive);
  return element("div", { class: "stack" }, questions, frame, element("p", {}, close), calls, details("Messages of the app", scrolled("Messages of the app", log)));
}

onThemeChange = () => openApps.forEach((app) => app.changeTheme());

/** Tells the apps of a view that it is about to be replaced. */
function tearDownApps() {
  for (const app of openApps) if (app.isShown()) app.leave();
}

/** Returns what an app has posted as a JSON-RPC message; null if it is not one. */
function plainMessage(data) {
  try {
    const message = parse(JSON.stringify(data));
    return get(message, "jsonrpc") === "2.0" ? message : null;
  } catch {
    return null;
  }
}

const MAX_APP_DEPTH = 200;

/**
 * Returns whether a value that was posted is JSON and has about as many characters as the budget has left. It ends where the
 * budget ends, so that neither a cycle nor a list of four billion empty places takes long.
 */
function isWithin(value, budget, depth = 0) {
  budget.left -= typeof value === "string" ? value.length + 3 : 3;
  if (budget.left < 0 || depth > MAX_APP_DEPTH) return false;
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) {
    budget.left -= value.length;
    return budget.left >= 0 && value.every((item) => isWithin(item, budget, depth + 1));
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return false;
  for (const name in value) {
    budget.left -= name.length;
    if (!isWithin(value[name], budget, depth + 1)) return false;
  }
  return true;
}

/** Returns the card of a question of an app. Its buttons work after a moment, and it does not take the focus. */
function appQuestion(sentence, content, allow, resolve) {
  const button = (caption, answer) => element("button", { type: "button", disabled: true, click: () => resolve(answer) }, caption);
  const buttons = [...Object.entries(allow).map(([caption, answer]) => button(caption, answer)), button("Refuse", false)];
  setTimeout(() => buttons.forEach((node) => (node.disabled = false)), ANSWER_DELAY);
  return element("section", { class: "question", "aria-label": "Question of the app" },
    element("h4", {}, sentence), content, element("p", { class: "buttons" }, buttons));
}
