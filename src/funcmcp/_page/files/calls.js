// A request that runs: its progress, log messages, questions, task and result.

const MIN_POLL = 200;
const MAX_POLL = 10_000;
const MAX_EXCHANGES = 50;
const MAX_LOG = 1000;
const MAX_LOGGED = 2000; // characters of a message
const EXCHANGES_INTERVAL = 500;

/**
 * Sends a request and shows it in a container.
 *
 * created is a task that was created before: it is followed, and no request is sent first. name and place are those of
 * the feature. render returns the elements of a result. onEnd is called at the end with {result} or {error}.
 */
async function run(container, { method, params, headers, meta, created, name, place: link, render, onEnd }) {
  const view = runView();
  container.replaceChildren(view.node);
  const controller = new AbortController();
  view.cancel.addEventListener("click", () => controller.abort());
  announce("Calling.");
  let outcome;
  try {
    let result = created ?? await answered(view, controller.signal, method, params, { headers, meta });
    if (created || get(result, "resultType") === "task") result = await taskResult(view, result, { name, place: link });
    outcome = { result };
    view.end(get(result, "isError") === true ? "failed" : "done", render(result));
  } catch (error) {
    outcome = { error: error.name === "AbortError" ? "The call was cancelled." : error.message };
    showError(view, error);
  } finally {
    onEnd?.(outcome);
  }
}

/** Sends a request until its result needs no further input. */
async function answered(view, signal, method, params, options) {
  let answers = {};
  for (;;) {
    const token = newId("progress");
    const result = await request(method, { ...params, ...answers }, {
      signal,
      headers: options.headers,
      meta: { progressToken: token, ...options.meta },
      onNotification: (notification) => view.notify(notification, token),
      onExchange: view.exchange,
    });
    if (get(result, "resultType") !== "input_required") return result;
    answers = {};
    const state = get(result, "requestState");
    if (state !== undefined) answers.requestState = state;
    const questions = get(result, "inputRequests");
    if (isObject(questions)) {
      view.state("The server waits for an answer");
      answers.inputResponses = await askUser(view.questions, questions, signal);
      view.state("Calling…");
    } else {
      await pause(MIN_POLL, signal);
    }
  }
}

/** Follows a task to its end and returns its result. The cancel button cancels the task. */
async function taskResult(view, created, feature) {
  const taskId = asText(get(created, "taskId"));
  let cancels = false;
  let task = created;
  view.onCancel(async () => {
    cancels = true;
    await request("tasks/cancel", { taskId }, { onExchange: view.exchange }).catch(() => null);
  });
  for (;;) {
    const status = get(task, "status");
    view.task(task);
    noteTask(task, feature);
    if (status === "completed") return get(task, "result");
    if (status === "failed") {
      const error = get(task, "error");
      throw new RequestError(asText(get(error, "message") ?? get(task, "statusMessage")) || "The task failed.", { code: get(error, "code") });
    }
    if (status === "cancelled") throw new DOMException("Cancelled", "AbortError");
    const questions = get(task, "inputRequests");
    if (status === "input_required" && isObject(questions) && !cancels) {
      const stop = new AbortController();
      view.onQuestionCancel = () => stop.abort();
      try {
        const inputResponses = await askUser(view.questions, questions, stop.signal);
        await request("tasks/update", { taskId, inputResponses }, { onExchange: view.exchange });
      } catch (error) {
        if (error.name !== "AbortError") throw error;
      }
      view.onQuestionCancel = null;
    }
    const interval = Number(get(task, "pollIntervalMs") ?? 1000);
    await pause(Math.min(Math.max(interval || 0, MIN_POLL), MAX_POLL));
    task = await request("tasks/get", { taskId }, { onExchange: view.exchange });
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("Cancelled", "AbortError"));
    }, { once: true });
  });
}

function showError(view, error) {
  if (error.name === "AbortError") {
    view.end("cancelled", []);
    return;
  }
  if (error.code === INVALID_PARAMS && error.message.includes("requestState")) {
    view.end("failed", [failure("The server has forgotten this question. Call the tool again.")]);
    return;
  }
  const parts = [failure(error.message)];
  if (error.needsSignIn) {
    lastChallenge = error.challenge;
    const refusal = refusalOf(error);
    if (refusal) parts.unshift(failure(refusal));
    const scopes = asText(error.challenge.scope);
    if (error.status === 403 && scopes) parts.push(element("p", {}, "It needs the scopes ", element("code", {}, scopes), "."));
    parts.push(element("p", {}, element("a", { class: "button primary", href: "#sign-in" }, "Sign in")));
  }
  if (error.code !== undefined) parts.push(element("p", { class: "quiet" }, `JSON-RPC error ${asText(error.code)}`));
  if (error.data !== undefined) parts.push(jsonBlock("data of the error", error.data));
  view.end("failed", parts);
}

const INVALID_PARAMS = -32602;
const ENDS = { done: "Done", failed: "Failed", cancelled: "Cancelled" };

/** Returns the view of a running request. */
function runView() {
  const begin = performance.now();
  const state = element("h3", { tabindex: -1 }, "Calling…");
  const clock = element("span", { class: "clock", "aria-hidden": "true" }, "0.0 s");
  const cancel = element("button", { type: "button" }, "Cancel");
  const bar = element("progress", { "aria-label": "Progress" });
  const progressText = element("p", { class: "quiet" });
  const progress = element("div", { class: "progress", hidden: true }, bar, progressText);
  const questions = element("div", { class: "questions" });
  const lines = element("ol", {});
  const log = element("div", { class: "log", role: "log", "aria-label": "Log messages", tabindex: 0, hidden: true }, lines);
  const result = element("div", { class: "result" });
  const exchanges = element("div", {});
  const json = details("Requests and answers as JSON", exchanges);
  const node = element("section", { class: "card run running", "aria-label": "Result" },
    element("div", { class: "run-head" }, state, clock, cancel), progress, questions, log, result,
    json);
  const seconds = () => `${((performance.now() - begin) / 1000).toFixed(performance.now() - begin < 1000 ? 2 : 1)} s`;
  const timer = setInterval(() => (clock.textContent = seconds()), 100);
  const blocks = new Map();
  const changed = new Set();
  let cancelTask = null;
  let lastProgress = null;
  let newMessages = [];
  let exchangesTimer = null;

  // A server may send thousands of messages in a second: they are shown once in a frame.
  const showMessages = () => {
    if (lastProgress !== null) showProgress(lastProgress);
    lastProgress = null;
    if (newMessages.length === 0) return;
    log.hidden = false;
    lines.append(...newMessages.slice(-MAX_LOG).map(logLine));
    newMessages = [];
    while (lines.childElementCount > MAX_LOG) lines.firstChild.remove();
    log.scrollTop = log.scrollHeight;
  };
  const scheduleMessages = perFrame(showMessages);

  const showProgress = (params) => {
    progress.hidden = false;
    const total = get(params, "total");
    if (typeof total === "number" && total > 0) {
      bar.max = total;
      bar.value = Number(get(params, "progress")) || 0;
    } else {
      bar.removeAttribute("value");
    }
    const numbers = total === undefined ? asText(get(params, "progress")) : `${asText(get(params, "progress"))} of ${asText(total)}`;
    progressText.textContent = visible(brief([asText(get(params, "message")), numbers].filter(Boolean).join(" · "), MAX_LOGGED));
  };

  // The JSON of the messages is made while it can be seen.
  const showExchanges = () => {
    clearTimeout(exchangesTimer);
    exchangesTimer = null;
    if (!json.open) return;
    for (const exchange of changed) {
      const block = blocks.get(exchange);
      block.replaceChildren(...exchangeParts(exchange));
      if (!block.isConnected) exchanges.append(block);
    }
    changed.clear();
  };
  json.addEventListener("toggle", showExchanges);

  const view = {
    node, questions, onQuestionCancel: null,
    cancel: { addEventListener: (type, listener) => cancel.addEventListener(type, () => {
      cancel.disabled = true;
      if (cancelTask === null) listener();
      else {
        view.onQuestionCancel?.();
        cancelTask();
      }
    }) },
    onCancel: (listener) => (cancelTask = listener),
    state: (text) => (state.textContent = text),
    notify(notification, token) {
      const params = get(notification, "params");
      if (notification.method === "notifications/progress" && get(params, "progressToken") === token) lastProgress = params;
      if (notification.method === "notifications/message") newMessages.push(params);
      if (newMessages.length > 2 * MAX_LOG) newMessages = newMessages.slice(-MAX_LOG);
      scheduleMessages();
    },
    task(task) {
      showMessages();
      const text = brief(asText(get(task, "statusMessage")), MAX_LOGGED);
      state.textContent = visible(`Task: ${brief(asText(get(task, "status")), MAX_NAME).replaceAll("_", " ")}`);
      progress.hidden = false;
      progressText.textContent = visible([text, asText(get(task, "taskId"))].filter(Boolean).join(" · "));
      const [, at, total] = /(\d+(?:\.\d+)?) of (\d+(?:\.\d+)?)/.exec(text) ?? [];
      if (Number(total) > 0) {
        bar.max = Number(total);
        bar.value = Number(at);
      }
    },
    exchange(exchange) {
      if (!blocks.has(exchange)) blocks.set(exchange, element("div", { class: "exchange" }));
      changed.add(exchange);
      if (blocks.size > MAX_EXCHANGES) {
        const [oldest] = blocks.keys();
        blocks.get(oldest).remove();
        blocks.delete(oldest);
        changed.delete(oldest);
      }
      if (json.open) exchangesTimer ??= setTimeout(showExchanges, EXCHANGES_INTERVAL);
    },
    end(kind, parts) {
      clearInterval(timer);
      showMessages();
      showExchanges();
      clock.textContent = seconds();
      state.textContent = ENDS[kind];
      node.classList.remove("running");
      node.classList.add(kind);
      const hadFocus = document.activeElement === cancel || document.activeElement === document.body;
      cancel.remove();
      if (kind === "done") progress.hidden = true;
      result.replaceChildren(...parts);
      if (kind === "failed") showTraceback(result);
      if (hadFocus) state.focus({ preventScroll: true });
      announce(`${ENDS[kind]}.`);
    },
  };
  return view;
}

const ERROR_ID = /\berror(?: id |Id":\s*")([0-9a-f]{16})\b/;

/** Adds the traceback of the error id in a result, if the server has it and gives it to this browser. */
async function showTraceback(result) {
  const id = ERROR_ID.exec(result.textContent)?.[1];
  if (id === undefined || !("tracebacks" in document.body.dataset)) return;
  try {
    const options = { headers: { Accept: "text/plain" }, cache: "no-store", credentials: "same-origin" };
    const response = await fetch(`${location.pathname}?error_id=${id}`, options);
    if (response.status !== 200) return;
    const text = await response.text();
    result.append(element("h4", {}, "Traceback"), textBlock("traceback", text));
  } catch {
    // The server has ended. The error itself is shown.
  }
}

/** Returns the line of the log for the parameters of notifications/message. */
function logLine(params) {
  const level = brief(asText(get(params, "level")), MAX_NAME);
  const logger = brief(asText(get(params, "logger")), MAX_NAME);
  return element("li", {},
    element("span", { class: `level level-${/^[a-z]+$/.test(level) ? level : "info"}` }, level), " ",
    logger && element("code", {}, logger), logger && " ", element("bdi", {}, brief(compactText(get(params, "data")), MAX_LOGGED)));
}

function exchangeParts({ method, headers, body, status, messages, omitted }) {
  const answer = messages.length === 1 ? messages[0] : messages;
  const parts = [
    element("h4", {}, "Request ", element("code", {}, method)),
    jsonBlock(`header of the request ${method}`, headers),
    jsonBlock(`request ${method}`, body),
  ];
  if (status === null) return [...parts, element("p", { class: "quiet" }, "No answer yet.")];
  parts.push(element("h4", {}, `Answer, HTTP status ${status}`));
  if (omitted > 0) parts.push(element("p", { class: "quiet" }, `${omitted.toLocaleString()} earlier messages are not shown.`));
  return [...parts, jsonBlock(`answer to ${method}`, answer)];
}
