// Questions of the server while a request runs: elicitation as a form or at a URL, a message for a language model, roots.

const MAX_QUESTIONS = 10; // at once

/** Shows the questions, some at once, and returns the answers by key, once there is one to each. */
async function askUser(container, requests, signal) {
  const answers = Object.create(null);
  const questions = Object.entries(requests);
  const note = element("p", { class: "quiet" });
  const { promise: allAnswered, resolve: finish } = Promise.withResolvers();
  let shown = 0;
  let answered = 0;
  const showNext = () => {
    const [key, question] = questions[shown];
    shown += 1;
    const { promise, resolve } = Promise.withResolvers();
    const card = questionCard(question, resolve);
    note.before(card);
    promise.then((answer) => {
      answers[key] = answer;
      answered += 1;
      card.remove();
      showQuestions();
      (container.querySelector("h4") ?? container.closest(".run").querySelector("h3")).focus();
    });
  };
  const showQuestions = () => {
    while (shown < questions.length && shown - answered < MAX_QUESTIONS) showNext();
    const left = questions.length - shown;
    note.textContent = left > 0 ? `${counted(left, "more question")} will follow. The server gets all answers together.` : "";
    if (answered === questions.length) finish();
  };
  container.append(note);
  showQuestions();
  announce("The server asks a question.");
  container.querySelector("h4")?.focus();
  const stopped = new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new DOMException("Cancelled", "AbortError")), { once: true });
  });
  try {
    await Promise.race([allAnswered, stopped]);
  } finally {
    container.replaceChildren();
  }
  return answers;
}

function questionCard(question, resolve) {
  const params = get(question, "params") ?? {};
  const method = get(question, "method");
  const card = element("section", { class: "question", "aria-label": "Question of the server" });
  if (method === "elicitation/create" && get(params, "mode") === "url") card.append(...urlQuestion(params, resolve));
  else if (method === "elicitation/create") card.append(...formQuestion(params, resolve));
  else if (method === "sampling/createMessage") card.append(...modelQuestion(params, resolve));
  else if (method === "roots/list") card.append(...rootsQuestion(resolve));
  else card.append(questionTitle("The server asks for something that this page does not support"), jsonBlock("question", question));
  return card;
}

const questionTitle = (text) => element("h4", { tabindex: -1 }, text);
const message = (text) => element("p", { class: "text" }, shortened(asText(text)));

function actions(accept, resolve) {
  return element("p", { class: "buttons" },
    accept,
    element("button", { type: "button", click: () => resolve({ action: "decline" }) }, "Decline"),
    element("button", { type: "button", class: "plain", click: () => resolve({ action: "cancel" }) }, "Dismiss"),
  );
}

function formQuestion(params, resolve) {
  const form = schemaForm(get(params, "requestedSchema"), "Answer");
  const submit = (event) => {
    event.preventDefault();
    const content = form.read();
    if (content !== null) resolve({ action: "accept", content });
  };
  return [
    questionTitle("The server asks"),
    message(get(params, "message")),
    element("form", { submit, novalidate: true },
      form.element, actions(element("button", { class: "primary" }, "Send"), resolve)),
  ];
}

function urlQuestion(params, resolve) {
  const url = asText(get(params, "url"));
  const host = externalUrl(url)?.host;
  const accept = element("button", { type: "button", class: "primary", click: () => resolve({ action: "accept" }) }, "Continue");
  return [
    questionTitle("The server asks you to open a page"),
    message(get(params, "message")),
    element("p", { class: "text" }, externalLink(url)),
    host === undefined
      ? failure("This page does not link to this address. It links to http and https addresses without user information.")
      : element("p", { class: "quiet" }, "The address is at ", element("strong", {}, host),
        ". Check that you trust it. The page opens in a new tab; come back and continue."),
    actions(accept, resolve),
  ];
}

function modelQuestion(params, resolve) {
  const reply = element("textarea", { id: newId("reply"), rows: 3 });
  const submit = (event) => {
    event.preventDefault();
    const content = { type: "text", text: reply.value };
    resolve({ role: "assistant", content, model: "person", stopReason: "endTurn" });
  };
  return [
    questionTitle("The server asks a language model"),
    element("p", { class: "quiet" }, "There is none here. Write its answer, or cancel the call."),
    get(params, "systemPrompt") && textBlock("system prompt", asText(params.systemPrompt)),
    ...promptMessages(params),
    element("form", { submit },
      plainField("Answer of the model", reply),
      element("p", { class: "buttons" }, element("button", { class: "primary" }, "Send"))),
  ].filter(Boolean);
}

function rootsQuestion(resolve) {
  const folders = element("textarea", { id: newId("roots"), rows: 3, spellcheck: "false" });
  const submit = (event) => {
    event.preventDefault();
    const uris = folders.value.split("\n").map((line) => line.trim()).filter(Boolean);
    resolve({ roots: uris.map((uri) => ({ uri })) });
  };
  return [
    questionTitle("The server asks for your folders"),
    element("form", { submit },
      plainField("URIs", folders, "One on a line, such as file:///srv/orders."),
      element("p", { class: "buttons" }, element("button", { class: "primary" }, "Send"))),
  ];
}
