// What was sent and received, the notifications, and the tasks, whichever view they came from. They are in a pane beside the
// view; in a narrow window the pane takes the place of the view.

const MAX_ACTIVITY = 200;
const MAX_NOTIFICATIONS = 500;
const MAX_TASKS = 20;
const MAX_TEXT_OF_NOTIFICATION = 300;
const STORED_TASKS = `funcmcp tasks ${endpoint}`;
const ENDED_TASKS = ["completed", "failed", "cancelled"];
const CALLS = ["tools/call", "prompts/get", "resources/read"];
const ACTIVITY = "funcmcp activity";
const ACTIVITY_INTERVAL = 200;
const isNarrow = matchMedia("(max-width: 72rem)");

const exchanges = []; // the newest is the last
const notifications = [];
let tasks = storedTasks();
let listener = null;
let listeningError = "";
let listsChanged = false;
let showActivity = () => {};
let activityTimer = null;

/** Updates the pane, once for all changes within an interval: a server may send thousands of messages in a second. */
function activityChanged() {
  activityTimer ??= setTimeout(() => {
    activityTimer = null;
    showActivity();
  }, ACTIVITY_INTERVAL);
}

/** Opens or closes the pane. */
function openActivity(isOpen) {
  byId("activity").hidden = !isOpen;
  byId("open-activity").setAttribute("aria-expanded", String(isOpen));
  if (isOpen) showActivity();
}

/** Opens the pane where there is room for it beside the view, unless a person has closed it. */
function placeActivity() {
  openActivity(!isNarrow.matches && remembered(ACTIVITY) !== "closed");
}

/** Opens or closes the pane for a person. In a wide window that lasts for the next visit. */
function chooseActivity() {
  const isOpen = byId("activity").hidden;
  openActivity(isOpen);
  if (!isNarrow.matches) remember(ACTIVITY, isOpen ? "open" : "closed");
  else if (isOpen) byId("activity").querySelector("h2").focus();
}

/** Returns the tasks that this tab knows from before it was loaded. */
function storedTasks() {
  const texts = (task) => ["taskId", "name", "place", "status"].every((member) => typeof get(task, member) === "string");
  return listOf(stored(STORED_TASKS)).filter(texts);
}

function noteExchange(exchange) {
  exchanges.push(exchange);
  if (exchanges.length > MAX_ACTIVITY) exchanges.shift();
  activityChanged();
}

function noteNotification(method, notification) {
  const params = brief(compactText(get(notification, "params") ?? {}), MAX_TEXT_OF_NOTIFICATION);
  notifications.push({ time: new Date(), source: method, name: asText(get(notification, "method")), params });
  if (notifications.length > MAX_NOTIFICATIONS) notifications.shift();
  const name = asText(get(notification, "method"));
  if (name.endsWith("/list_changed")) listsChanged = true;
  const task = get(notification, "params");
  if (name === "notifications/tasks" && tasks.some(({ taskId }) => taskId === get(task, "taskId"))) noteTask(task, {});
  activityChanged();
}

/** Notes the state of a task. Its id stays in the tab, so that it can be followed after the page was loaded again. */
function noteTask(task, { name, place: link }) {
  const taskId = asText(get(task, "taskId"));
  const existing = tasks.find((other) => other.taskId === taskId);
  const state = { status: brief(asText(get(task, "status")), MAX_NAME) || "working", message: brief(asText(get(task, "statusMessage")), MAX_HELP) };
  if (existing) Object.assign(existing, state);
  else tasks = [...tasks.slice(1 - MAX_TASKS), { taskId, name, place: link, ...state }];
  store(STORED_TASKS, tasks.map(({ message: _, ...members }) => members));
  activityChanged();
}

/** Returns the elements of the pane. */
function activityParts() {
  const taskList = element("ul", { class: "stack" });
  const followed = element("div", {});
  const taskPart = element("section", {}, element("h3", {}, "Tasks"), taskList, followed);
  const notificationList = element("ol", {});
  const notificationPart = scrolled("Notifications", notificationList);
  const listen = element("button", { type: "button", class: "small" });
  const state = element("p", { class: "quiet", role: "status" });
  const reload = element("p", {}, "The server's lists have changed. ",
    element("button", { type: "button", class: "small", click: start }, "Load the lists again"));
  const count = element("p", { class: "quiet" });
  const messageList = element("ol", {});
  const filterInput = element("input", { id: newId("filter"), type: "search", autocomplete: "off", spellcheck: "false" });
  const entries = new Map();
  let latest = null; // the exchange of the latest call, which the pane has opened

  const entryOf = (exchange) => {
    if (!entries.has(exchange)) entries.set(exchange, exchangeEntry(exchange));
    const entry = entries.get(exchange);
    if (CALLS.includes(exchange.method) && exchange.body.id > (latest?.body.id ?? 0)) {
      entries.get(latest)?.open(false);
      entry.open(true);
      latest = exchange;
    }
    return entry;
  };
  const show = () => {
    taskPart.hidden = tasks.length === 0;
    taskList.replaceChildren(...tasks.toReversed().map((task) => taskItem(task, followed)));
    listen.textContent = listener === null ? "Listen for notifications" : "Stop listening";
    state.textContent = visible(listener === null ? listeningError : listener.state);
    reload.hidden = !listsChanged;
    notificationPart.hidden = notifications.length === 0;
    notificationList.replaceChildren(...notifications.slice(-MAX_ACTIVITY).toReversed().map(notificationItem));
    const terms = filterInput.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = exchanges.filter(({ method, name }) => terms.every((term) => `${method} ${name}`.toLowerCase().includes(term)));
    for (const exchange of entries.keys()) if (!exchanges.includes(exchange)) entries.delete(exchange);
    const items = matches.toReversed().map((exchange) => {
      const entry = entryOf(exchange);
      entry.update();
      return entry.node;
    });
    showItems(messageList, items);
    count.textContent = `${matches.length.toLocaleString()} of the last ${counted(exchanges.length, "request")}, newest first.`;
  };
  listen.addEventListener("click", () => (listener === null ? startListening() : listener.controller.abort()));
  filterInput.addEventListener("input", show);
  showActivity = () => byId("activity").hidden || show();
  const clear = element("button", { type: "button", class: "small", click: () => {
    exchanges.length = 0;
    notifications.length = 0;
    tasks = tasks.filter(({ status }) => !ENDED_TASKS.includes(status));
    store(STORED_TASKS, tasks);
    show();
  } }, "Clear");
  return [
    heading("Activity"),
    element("p", { class: "subtitle" }, "What this page and the server have sent each other, without credentials. ", clear),
    taskPart,
    element("section", {}, element("h3", {}, "Requests and answers"), plainField("Method or name", filterInput), count,
      element("div", { class: "exchanges" }, messageList), copyAll()),
    element("section", {}, element("h3", {}, "Notifications"), element("p", {}, listen), state, reload, notificationPart),
  ];
}

/** Puts the items into a list in their order. Those that are in it already stay where they are, with their focus. */
function showItems(list, items) {
  items.forEach((item, index) => {
    if (list.children[index] !== item) list.insertBefore(item, list.children[index] ?? null);
  });
  while (list.children.length > items.length) list.lastElementChild.remove();
}

function copyAll() {
  const text = () => stringify(exchanges.map(({ method, headers, body, status, messages }) => ({ method, headers, request: body, status, answer: messages })));
  return element("p", { class: "code" }, copyButton("all requests and answers", text, "Copy all as JSON"));
}

const scrolled = (label, list) => element("div", { class: "entries", tabindex: 0, role: "group", "aria-label": label }, list);

/** Returns an item of the list of requests; its JSON is made while it is open. */
function exchangeEntry(exchange) {
  const summary = element("summary", {});
  const body = element("div", { class: "exchange" });
  const fold = element("details", { toggle: () => update() }, summary, body);
  const node = element("li", {}, fold);
  let shown = null;
  function update() {
    const { started, ended, method, name, status, error } = exchange;
    const version = `${status} ${ended} ${fold.open}`;
    if (version === shown) return;
    shown = version;
    const took = ended === null ? "…" : `${Math.round(ended - started).toLocaleString()} ms`;
    const outcome = error ?? (status === null ? "" : `HTTP ${status}`);
    summary.replaceChildren(timeOf(started), " ", element("strong", {}, method), " ",
      ...(name ? [element("code", {}, name), " "] : []), element("span", { class: error ? "problem-text" : "quiet" }, `${outcome} ${took}`));
    // An answer that has not ended may be long, and has notifications, which the pane shows by themselves.
    body.replaceChildren(...(fold.open ? exchangeParts(ended === null ? { ...exchange, status: null } : exchange) : []));
  }
  return { node, update, open: (isOpen) => (fold.open = isOpen) };
}

const timeOf = (time) => element("span", { class: "quiet" }, new Date(time).toLocaleTimeString());

function notificationItem({ time, source, name, params }) {
  return element("li", {}, timeOf(time), " ", element("strong", {}, brief(name, MAX_NAME)), " ",
    element("span", { class: "quiet" }, source), " ", element("code", {}, params));
}

function taskItem(task, container) {
  const follow = element("button", { type: "button", class: "small", click: () => followTask(container, task),
    "aria-label": `Follow ${task.taskId}` }, "Follow");
  return element("li", {}, element("a", { href: `#${task.place}` }, task.name), " ", element("code", {}, task.taskId), " ",
    element("span", { class: "badge" }, task.status.replaceAll("_", " ")), " ",
    task.message && element("span", { class: "quiet" }, `${task.message} `), follow);
}

/** Shows a task with its questions and its result, as after the call that created it. */
function followTask(container, task) {
  run(container, { created: { taskId: task.taskId, status: "working", pollIntervalMs: MIN_POLL }, name: task.name, place: task.place, render: toolResult });
}

/** Subscribes to the changes of lists, of the tasks and of the resources that the server lists. */
async function startListening() {
  const controller = new AbortController();
  listener = { controller, state: "Connecting…" };
  activityChanged();
  const uris = features.filter(({ kind }) => kind === "resource").slice(0, MAX_ACTIVITY).map(({ key }) => key);
  const taskIds = tasks.filter(({ status }) => !ENDED_TASKS.includes(status)).map(({ taskId }) => taskId);
  const changes = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
  if (uris.length) changes.resourceSubscriptions = uris;
  if (taskIds.length) changes.taskIds = taskIds;
  const onNotification = () => (listener.state = "Listening. Changes of lists, of resources and of tasks appear here.");
  try {
    await request("subscriptions/listen", { notifications: changes }, { signal: controller.signal, onNotification });
    listeningError = "The server has ended the stream.";
  } catch (error) {
    listeningError = error.name === "AbortError" ? "" : error.message;
  }
  listener = null;
  if (listeningError) announce(listeningError);
  activityChanged();
}
