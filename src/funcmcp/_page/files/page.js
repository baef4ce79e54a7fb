// The page: the lists of features, the search, and a view for each feature. The fragment of the URL names the view.

const KINDS = {
  tool: { title: "Tools", noun: "tool", list: "tools/list", member: "tools", capability: "tools", id: "name", view: toolView },
  resource: { title: "Resources", noun: "resource", list: "resources/list", member: "resources", capability: "resources", id: "uri", view: resourceView },
  template: { title: "Resource templates", noun: "resource template", list: "resources/templates/list", member: "resourceTemplates",
    capability: "resources", id: "uriTemplate", view: templateView },
  prompt: { title: "Prompts", noun: "prompt", list: "prompts/list", member: "prompts", capability: "prompts", id: "name", view: promptView },
};
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

let server = { name: "server", capabilities: {} };
let features = [];
let views = new Map();
let loadError = null;
let signInReason = null;
let isLoading = true;
let loading = new AbortController(); // of the latest start

const place = (kind, id) => `${kind}/${encodeURIComponent(id.toWellFormed())}`;
const heading = (...content) => element("h2", { tabindex: -1 }, content);

/** Loads what the server offers and shows it. A start that still runs is ended, and what it has loaded is dropped. */
async function start() {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  isLoading = true;
  views = new Map();
  features = [];
  loadError = null;
  listsChanged = false;
  useCredentials(credentials);
  showLists();
  showView();
  try {
    const discovered = await request("server/discover", {}, { signal });
    if (signal.aborted) return;
    const info = get(get(discovered, "_meta"), `${META}serverInfo`) ?? {};
    server = {
      name: brief(asText(get(info, "name")), MAX_NAME) || "server",
      title: brief(asText(get(info, "title") ?? get(info, "name")), MAX_NAME) || "MCP server",
      version: brief(asText(get(info, "version")), MAX_NAME),
      website: get(info, "websiteUrl"),
      description: asText(get(info, "description")),
      instructions: asText(get(discovered, "instructions")),
      versions: listOf(get(discovered, "supportedVersions")).slice(0, MAX_NAME).map(asText),
      capabilities: get(discovered, "capabilities") ?? {},
    };
    document.title = visible(server.title);
    byId("server-title").textContent = visible(server.title);
    byId("server-icon").replaceChildren(iconOf(info, server.title));
    byId("server-version").textContent = visible(server.version && `Version ${server.version}`);
    const lists = Object.entries(KINDS).filter(([, kind]) => get(server.capabilities, kind.capability) !== undefined);
    await Promise.all(lists.map(([kind]) => load(kind, signal)));
    if (signal.aborted) return;
  } catch (error) {
    if (signal.aborted) return;
    loadError = error;
    if (error.needsSignIn) {
      lastChallenge = error.challenge;
      signInReason = refusalOf(error) ?? "This server wants to know who you are.";
    }
  }
  isLoading = false;
  try {
    showLists();
  } catch (error) {
    loadError ??= error;
  }
  showView();
}

const MAX_FEATURES = 20_000; // of a kind

/** Loads the list of a kind of features. Long lists have many pages: each is shown when it has come. */
async function load(kind, signal) {
  const { list, member } = KINDS[kind];
  let count = 0;
  await eachPage(list, member, signal, (definitions) => {
    if (signal.aborted) return false;
    for (const definition of definitions.slice(0, MAX_FEATURES - count)) features.push(featureOf(kind, definition));
    count += definitions.length;
    listsArrived();
    return count < MAX_FEATURES;
  });
}

function featureOf(kind, definition) {
  const key = asText(get(definition, KINDS[kind].id));
  const name = asText(get(definition, "name")) || key;
  const title = brief(asText(get(definition, "title") ?? get(get(definition, "annotations"), "title")) || name, MAX_NAME);
  const description = asText(get(definition, "description"));
  return { kind, key, name, title, description, definition, text: `${title} ${name} ${key} ${description}`.toLowerCase() };
}

// The lists. A list has the first features that match the search, so that thousands of them are no burden.

const MAX_LISTED = 100;
let sections = [];
let current = null;

const listsArrived = perFrame(() => isLoading && showLists());

function showLists() {
  sections = Object.entries(KINDS).map(([kind, { title }]) => listSection(kind, title)).filter(({ members }) => members.length);
  byId("lists").replaceChildren(...sections.map(({ node }) => node));
  filter();
}

function listSection(kind, title) {
  const members = features.filter((feature) => feature.kind === kind);
  const id = newId("list");
  const list = element("ul", {});
  const button = element("button", { type: "button", class: "small" });
  const node = element("section", { "data-kind": kind, "aria-labelledby": id },
    element("h2", { id }, title, " ", element("span", { class: "count" }, members.length.toLocaleString())), list, button,
    members.length === MAX_FEATURES && element("p", { class: "quiet" }, "The page loads no more of them."));
  const section = { members, node, list, button, limit: MAX_LISTED, hasIcons: members.some(({ definition }) => iconSources(definition).length > 0) };
  button.addEventListener("click", () => {
    const next = list.children.length;
    section.limit += 5 * MAX_LISTED;
    filter();
    list.children[next]?.firstChild.focus();
  });
  return section;
}

function featureItem(feature, hasIcons) {
  if (feature.item === undefined) {
    const { kind, key, title, definition } = feature;
    const id = idOf(feature);
    feature.item = element("li", {}, element("a", { href: `#${place(kind, key)}` },
      hasIcons && iconOf(definition, title), element("span", { class: "title" }, title), id !== title && element("code", {}, id)));
  }
  return feature.item;
}

/** Returns what a client calls a feature by: the name of a tool or a prompt, the URI of a resource. */
const idOf = ({ kind, key, name }) => brief(kind === "resource" || kind === "template" ? key : name, MAX_NAME);

/** Shows the features that match the search, the one of the view among them. */
function filter() {
  const terms = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const { members, node, list, button, limit, hasIcons } of sections) {
    const matches = members.filter(({ text }) => terms.every((term) => text.includes(term)));
    const listed = matches.slice(0, limit);
    if (matches.includes(current) && !listed.includes(current)) listed.push(current);
    list.replaceChildren(...listed.map((feature) => featureItem(feature, hasIcons)));
    node.hidden = matches.length === 0;
    button.hidden = listed.length === matches.length;
    button.textContent = `Show more of ${matches.length.toLocaleString()}`;
    count += matches.length;
  }
  current?.item?.firstChild.setAttribute("aria-current", "page");
  byId("matches").textContent = terms.length ? `${count.toLocaleString()} of ${features.length.toLocaleString()} match` : "";
}

const focusHeading = () => byId("main").querySelector("h2")?.focus({ preventScroll: true });
const shownLinks = () => [...byId("lists").querySelectorAll("section:not([hidden]) li > a")];

/** Opens or closes the lists, where a narrow window has no room for them beside a view. */
function openLists(isOpen) {
  byId("features").classList.toggle("closed", !isOpen);
  byId("open-lists").setAttribute("aria-expanded", String(isOpen));
}

function moveInLists(event) {
  const links = shownLinks();
  const index = links.indexOf(document.activeElement);
  const targets = { ArrowDown: index + 1, ArrowUp: index - 1, Home: index < 0 ? -1 : 0, End: index < 0 ? -1 : links.length - 1 };
  if (event.key === "Enter" && document.activeElement === byId("search")) links[0]?.click();
  else if (event.key === "ArrowUp" && index === 0) byId("search").focus();
  else if (targets[event.key] === undefined || !links[targets[event.key]]) return;
  else links[targets[event.key]].focus();
  event.preventDefault();
}

// The views

function showView() {
  const main = byId("main");
  tearDownApps();
  current?.item?.firstChild.removeAttribute("aria-current");
  current = null;
  try {
    main.replaceChildren(viewOf(location.hash.slice(1)));
  } catch (error) {
    main.replaceChildren(errorView(error));
  }
  openLists(["", "#"].includes(location.hash));
  if (current === null) return;
  filter();
  current.item?.scrollIntoView({ block: "nearest" });
}

/** Returns the view that a fragment names. */
function viewOf(fragment) {
  const [kind, encoded, values] = fragment.split("/", 3);
  if (fragment === "clients") return clientsView(server.name);
  if (fragment === "sign-in") return signInView(loadError?.needsSignIn ? signInReason : null);
  if (isLoading) return element("p", { class: "quiet" }, "Loading…");
  if (loadError !== null) return errorView(loadError);
  if (!Object.hasOwn(KINDS, kind) || !encoded) return overview();
  const key = decoded(encoded);
  current = features.find((feature) => feature.kind === kind && feature.key.toWellFormed() === key) ?? null;
  const name = `${kind}/${encoded}`;
  if (!views.has(name)) views.set(name, current ? featureView(current) : unlistedView(kind, key));
  const view = views.get(name);
  if (values) writeValues(view, decoded(values));
  return view;
}

/** Returns the view of a feature; its definition with a sentence, if this page can't show it otherwise. */
function featureView(feature) {
  const { noun, view } = KINDS[feature.kind];
  try {
    return view(feature);
  } catch (error) {
    return element("article", {}, heading(feature.title), failure(`This page can't show the ${noun}. ${error.message}`),
      jsonBlock("definition", feature.definition));
  }
}

/** Puts the values of a link into the form of a view. Nothing is sent before a person says so. */
function writeValues(view, text) {
  try {
    const values = parse(text);
    if (isObject(values)) view.write?.(values);
  } catch {
    announce("The link has no values that can be read.");
  }
}

/** Returns the view of a feature that no list contains. A resource has its form, because results link to unlisted ones. */
function unlistedView(kind, key) {
  const sentence = `This server lists no ${KINDS[kind].noun} named ${key}.`;
  if (kind !== "resource") return element("div", {}, heading(KINDS[kind].title), failure(sentence + signInHint()));
  const view = resourceView({ kind, key, name: key, title: key, description: "", definition: { uri: key } });
  view.firstElementChild.after(element("p", { class: "quiet" }, sentence));
  return view;
}

function errorView(error) {
  if (error.needsSignIn) return signInView(signInReason);
  return element("div", {}, heading("The server did not answer as expected"), failure(error.message),
    get(error.data, "supported") && element("p", {}, `It supports the revisions ${listOf(error.data.supported).join(", ")}; this page needs ${VERSION}.`),
    element("p", {}, element("button", { type: "button", click: start }, "Try again")));
}

function overview() {
  const counts = Object.entries(KINDS).map(([kind, { title }]) => [title, features.filter((feature) => feature.kind === kind).length]);
  return element("div", {},
    heading(server.title),
    server.description && described(server.description),
    element("section", { class: "card" },
      element("dl", { class: "facts" },
        fact("Endpoint", element("code", {}, location.origin + location.pathname)),
        fact("Protocol revisions", server.versions.join(", ")),
        server.website && fact("Website", externalLink(server.website)),
        counts.filter(([, count]) => count).map(([title, count]) => fact(title, count.toLocaleString())))),
    server.instructions && element("section", { class: "card" },
      element("h3", {}, "Instructions for models"), described(server.instructions)),
    upstreamsSection(),
    Object.entries(KINDS).map(([kind, { title }]) => featureList(title, features.filter((feature) => feature.kind === kind))),
    features.length === 0 && element("p", {}, `The server offers nothing${credentials === null ? "" : " to you"}.${signInHint()}`));
}

/** Returns the features of a kind with the first sentence of each description; null if there are none. */
function featureList(title, members) {
  if (members.length === 0) return null;
  const shown = members.slice(0, MAX_LISTED).map((feature) => [
    element("dt", {}, element("a", { href: `#${place(feature.kind, feature.key)}` }, feature.title),
      idOf(feature) !== feature.title && element("code", {}, idOf(feature))),
    element("dd", {}, inline(firstSentence(feature.description))),
  ]);
  const left = members.length - shown.length;
  return element("section", { class: "card" }, element("h3", {}, title), element("dl", { class: "facts" }, shown),
    left > 0 && element("p", { class: "quiet" }, `${left.toLocaleString()} more are in the list.`));
}

/** Returns the first sentence of a description, without a title before it and without the mark of a list or a quote. */
function firstSentence(text) {
  const lines = text.slice(0, MAX_HELP).split("\n");
  const isParagraph = (line) => line.trim() !== "" && !TITLE.test(line) && !RULE.test(line) && !FENCE.test(line);
  const start = Math.max(lines.findIndex(isParagraph), 0);
  const end = endOf(lines, start + 1, (line) => line.trim() !== "" && !startsBlock(line));
  const paragraph = lines.slice(start, end).map((line) => line.trim()).join(" ");
  const sentence = paragraph.replace(/^(?:#{1,6}[ \t]+|> ?|[-*+] +|\d{1,9}[.)] +)*/, "");
  return /^.{0,500}?[.!?](?=\s|$)/.exec(sentence)?.[0] ?? brief(sentence, 500);
}

const fact = (name, value) => [element("dt", {}, name), element("dd", {}, value)];

function featureHead(feature, badges = []) {
  const title = iconSources(feature.definition).length ? [iconOf(feature.definition, feature.title), " ", feature.title] : feature.title;
  return [
    heading(title),
    element("p", { class: "subtitle" }, element("code", {}, brief(feature.key, MAX_HELP)), " ", badges),
    feature.description && described(feature.description),
  ];
}

const BADGES = [
  ["readOnlyHint", true, "read-only", "The tool changes nothing."],
  ["destructiveHint", true, "destructive", "The tool may delete or overwrite something."],
  ["idempotentHint", true, "idempotent", "A second call with the same arguments has no further effect."],
  ["openWorldHint", true, "open world", "The tool reaches things outside of the server."],
  ["openWorldHint", false, "closed world", "The tool reaches nothing outside of the server."],
];

function toolView(feature) {
  const { definition } = feature;
  const annotations = get(definition, "annotations");
  const badges = BADGES.filter(([name, value]) => get(annotations, name) === value && !(name === "destructiveHint" && get(annotations, "readOnlyHint")))
    .map(([, , label, title]) => element("span", { class: `badge ${label.replaceAll(" ", "-")}`, title }, label));
  if (appOf(definition)) badges.push(element("span", { class: "badge", title: "An app of the server shows the result." }, "app"));
  const schema = get(definition, "inputSchema");
  const level = element("select", { id: newId("level") }, element("option", { value: "" }, "none"),
    LEVELS.map((name) => element("option", { value: name, selected: name === "debug" }, name)));
  const form = schemaForm(schema, "Arguments");
  return requestView(feature, featureHead(feature, badges), form, "Call", (values) => ({
    method: "tools/call",
    params: { name: feature.key, arguments: values },
    headers: mirroredHeaders(schema, values),
    meta: level.value ? { [`${META}logLevel`]: level.value } : {},
    render: (result) => toolResult(result, { definition, values }),
  }), [
    details("Options", plainField("Log messages from level", level)),
    details("Definition as JSON", jsonBlock("definition", definition)),
  ]);
}

function promptView(feature) {
  const args = listOf(get(feature.definition, "arguments")).filter(isObject);
  const form = textForm(args.map((argument) => ({
    name: asText(get(argument, "name")),
    schema: { type: "string", title: get(argument, "title"), description: get(argument, "description") },
    required: get(argument, "required") === true,
  })), { type: "ref/prompt", name: feature.key });
  return requestView(feature, featureHead(feature), form, "Get the prompt", (values) => ({
    method: "prompts/get", params: { name: feature.key, arguments: values }, render: promptMessages,
  }), [details("Definition as JSON", jsonBlock("definition", feature.definition))]);
}

function resourceView(feature) {
  const type = asText(get(feature.definition, "mimeType"));
  const badges = type ? [element("span", { class: "badge" }, type)] : [];
  const form = { element: null, read: () => ({}), write() {} };
  return requestView(feature, featureHead(feature, badges), form, "Read", () => ({
    method: "resources/read", params: { uri: feature.key }, render: readContents,
  }), [details("Definition as JSON", jsonBlock("definition", feature.definition))]);
}

function templateView(feature) {
  const form = textForm(variablesOf(feature.key).map(({ name, required }) => ({ name, schema: { type: "string" }, required })), {
    type: "ref/resource", uri: feature.key,
  });
  return requestView(feature, featureHead(feature), form, "Read", (values) => ({
    method: "resources/read", params: { uri: expanded(feature.key, values) }, render: readContents,
  }), [details("Definition as JSON", jsonBlock("definition", feature.definition))]);
}

/** Returns a view with a form that sends a request. Its function `write` puts values into the form. */
function requestView(feature, head, form, label, requestOf, after) {
  const output = element("div", {});
  const elsewhere = element("div", {});
  const earlier = earlierCalls(form.write);
  const button = element("button", { class: "primary" }, label);
  const submit = (event) => {
    event.preventDefault();
    if (button.disabled) return;
    const values = form.read();
    if (values === null) return;
    const sent = requestOf(values);
    button.disabled = true;
    const link = place(feature.kind, feature.key);
    elsewhere.replaceChildren(snippetsOf(link, values, sent));
    const entry = earlier.add(values);
    const onEnd = (outcome) => {
      button.disabled = false;
      entry.outcome = outcome;
    };
    run(output, { ...sent, name: feature.name, place: link, onEnd });
    output.scrollIntoView({ block: "nearest" });
  };
  const node = element("form", { class: "card", submit, novalidate: true }, form.element, element("p", { class: "buttons" }, button));
  return Object.assign(element("article", {}, head, node, output, elsewhere, earlier.node, after), { write: form.write });
}

/** Returns a form of strings, with completions if the server has them. */
function textForm(fields, reference) {
  const left = fields.length - MAX_FIELDS;
  const members = fields.slice(0, MAX_FIELDS).map(({ name, schema, required }) => {
    const field = inputField({ schema, name, required, nullable: false, label: labelOf(schema, name) }, { type: "text" });
    return { name, field, input: field.element.querySelector("input") };
  });
  const read = (problems) => {
    const values = Object.create(null);
    for (const { name, field } of members) {
      const value = field.read(problems);
      if (value !== ABSENT) values[name] = value;
    }
    return values;
  };
  if (get(server.capabilities, "completions") !== undefined) {
    for (const member of members) complete(member, members.filter((other) => other !== member), reference);
  }
  return {
    element: members.length ? element("div", {}, members.map(({ field }) => field.element),
      left > 0 && failure(`This page can't show all fields: ${left.toLocaleString()} are left out.`)) : null,
    read: () => checked(read),
    write: (values) => members.forEach(({ name, field }) => field.write(get(values, name) ?? ABSENT)),
  };
}

const MAX_COMPLETIONS = 100; // as in the specification

/** Lets a field of a form suggest values of the server, which may depend on the values of the other fields. */
function complete({ name, input }, siblings, reference) {
  const list = element("datalist", { id: `${input.id}-values` });
  input.setAttribute("list", list.id);
  input.after(list);
  let timer;
  let completed = null;
  const ask = async () => {
    if (input.value === completed) return;
    completed = input.value;
    const values = Object.create(null);
    for (const sibling of siblings) if (sibling.input.value !== "") values[sibling.name] = sibling.input.value;
    try {
      const result = await request("completion/complete", {
        ref: reference, argument: { name, value: input.value }, context: { arguments: values },
      });
      const suggestions = listOf(get(get(result, "completion"), "values")).slice(0, MAX_COMPLETIONS);
      list.replaceChildren(...suggestions.map((value) => element("option", { value: asText(value) })));
    } catch {
      // A form without completions works, too.
    }
  };
  input.addEventListener("focus", ask);
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 200);
  });
}

// URI templates, RFC 6570

const OPERATORS = {
  "": { first: "", separator: "," },
  "+": { first: "", separator: ",", reserved: true },
  "#": { first: "#", separator: ",", reserved: true },
  ".": { first: ".", separator: "." },
  "/": { first: "/", separator: "/" },
  ";": { first: ";", separator: ";", named: true, emptySign: "" },
  "?": { first: "?", separator: "&", named: true, emptySign: "=" },
  "&": { first: "&", separator: "&", named: true, emptySign: "=" },
};
const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;

const specifications = (list) => list.split(",").map((text) => /^([^:*]+)(?::(\d+))?/.exec(text) ?? [text, text]);

/** Returns the variables of a template. Those of a query may be left out. */
function variablesOf(template) {
  const required = new Map();
  for (const [, operator, list] of template.matchAll(EXPRESSION)) {
    for (const [, name] of specifications(list)) required.set(name, required.get(name) || !OPERATORS[operator].named);
  }
  return [...required].map(([name, isRequired]) => ({ name, required: isRequired }));
}

function expanded(template, values) {
  return template.replace(EXPRESSION, (_, operator, list) => {
    const { first, separator, reserved, named, emptySign } = OPERATORS[operator];
    const parts = specifications(list).filter(([, name]) => values[name] !== undefined).map(([, name, length]) => {
      const value = length ? [...values[name]].slice(0, Number(length)).join("") : values[name];
      const encoded = reserved ? encodeURI(value.toWellFormed()).replace(/%25([0-9A-F]{2})/gi, "%$1") : encodeStrictly(value);
      if (!named) return encoded;
      return encoded === "" ? name + emptySign : `${name}=${encoded}`;
    });
    return parts.length ? first + parts.join(separator) : "";
  });
}

const encodeStrictly = (text) =>
  encodeURIComponent(text.toWellFormed()).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);

// Start

byId("search").addEventListener("input", () => {
  openLists(true);
  filter();
});
byId("open-lists").addEventListener("click", () => openLists(byId("open-lists").getAttribute("aria-expanded") === "false"));
byId("features").addEventListener("keydown", moveInLists);
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  (byId("main").querySelector("h2") ?? byId("main")).focus();
});
addEventListener("hashchange", () => {
  if (isNarrow.matches) openActivity(false);
  showView();
  scrollTo(0, 0);
  focusHeading();
});
byId("lists").addEventListener("click", (event) => {
  if (event.target.closest("a")?.hash === location.hash) focusHeading();
});
document.addEventListener("keydown", (event) => {
  const isText = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !isText && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    byId("search").focus();
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) document.activeElement?.form?.requestSubmit();
});

byId("activity").append(...activityParts());
byId("open-activity").addEventListener("click", chooseActivity);
isNarrow.addEventListener("change", placeActivity);
placeActivity();

let signInError = null;
try {
  await completeSignIn();
} catch (error) {
  signInError = error;
}
if (signInError === null) {
  await start();
} else {
  isLoading = false;
  byId("main").replaceChildren(signInView(signInError.message));
}
