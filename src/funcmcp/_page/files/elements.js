// Elements, and JSON as text. What a server sends reaches the document as text nodes and as values of a few attributes;
// nothing here interprets it as HTML.

const byId = (id) => document.getElementById(id);
/** Returns a member of an object of the server; never an inherited one. */
const get = (object, name) => (isObject(object) && Object.hasOwn(object, name) ? object[name] : undefined);
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const listOf = (value) => (Array.isArray(value) ? value : []);

let lastId = 0;
function newId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

// The characters of visible_text.py.
const HIDDEN =
  /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]|(?<![^\x00-\x7f\u200c\u200d\ufe00-\ufe0f])(?!(?<=[^\x00-\x7f\u200c\u200d\ufe00-\ufe0f]\ufe0f)\u200d)[\u200c\u200d\ufe00-\ufe0f]/gu;
const SHOWN_ATTRIBUTES = ["alt", "aria-label", "title"];

/** Returns a text with its hidden characters escaped: they change how the text looks, or what a model reads in it. */
function visible(text) {
  return text.replace(HIDDEN, (character) => {
    const code = character.codePointAt(0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
}

/**
 * Returns a new element. An attribute whose value is a function is an event listener; null and false leave it out.
 * Hidden characters in texts are escaped.
 */
function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else if (SHOWN_ATTRIBUTES.includes(name)) node.setAttribute(name, visible(String(value)));
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(typeof child === "string" ? visible(child) : child);
  }
  return node;
}

/** Returns a text without percent-encoding; the text itself, if it is not encoded rightly. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the beginning of a text that is too long for a name or a line. */
const brief = (text, length) => (text.length > length ? `${text.slice(0, length)}…` : text);

/** Returns a value of the server as a string, whatever its type is. */
function asText(value) {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : stringify(value);
}

const compactText = (value) => (typeof value === "string" ? value : JSON.stringify(value) ?? "");

/** Parses JSON. Integers that a number can't represent keep their digits, where the browser supports that. */
function parse(text) {
  return JSON.parse(text, (name, value, context) => {
    const digits = context?.source;
    if (typeof value !== "number" || digits === undefined || !/^-?\d+$/.test(digits)) return value;
    return Number.isSafeInteger(value) || !JSON.rawJSON ? value : JSON.rawJSON(digits);
  });
}

const stringify = (value) => JSON.stringify(value, null, 2) ?? "";

const JSON_TOKENS = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MAX_COLOURED = 100_000;
const MAX_SHOWN = 250_000;
const MAX_FAILURE = 10_000;

/** Returns the text of a JSON value with colours. */
function jsonCode(value) {
  const text = visible(shortened(stringify(value)));
  const code = element("code");
  if (text.length > MAX_COLOURED) {
    code.textContent = text;
    return code;
  }
  let end = 0;
  for (const token of text.matchAll(JSON_TOKENS)) {
    code.append(text.slice(end, token.index));
    let kind = "number";
    if (token[2]) kind = "name";
    else if (token[1]) kind = "string";
    else if (/^[tfn]/.test(token[0])) kind = "literal";
    code.append(element("span", { class: `json-${kind}` }, token[1] ?? token[0]), token[2] ?? "");
    end = token.index + token[0].length;
  }
  code.append(text.slice(end));
  return code;
}

function shortened(text) {
  if (text.length <= MAX_SHOWN) return text;
  return `${text.slice(0, MAX_SHOWN)}\n… ${(text.length - MAX_SHOWN).toLocaleString()} more characters are not shown`;
}

/** Returns a block of preformatted content with a button that copies it. */
function codeBlock(label, content, text) {
  const block = element("pre", { tabindex: 0, role: "group", "aria-label": label }, content);
  return element("div", { class: "code" }, copyButton(label, text), block);
}

const jsonBlock = (label, value) => codeBlock(label, jsonCode(value), () => stringify(value));
const textBlock = (label, text) => codeBlock(label, element("bdi", {}, shortened(text)), () => text);

function copyButton(label, text, caption = "Copy") {
  const button = element("button", { type: "button", class: "small copy", "aria-label": caption === "Copy" ? `Copy ${label}` : null }, caption);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
      announce("Copied.");
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => (button.textContent = caption), 2000);
  });
  return button;
}

/** Says a sentence to users of screen readers. */
function announce(sentence) {
  byId("announcement").textContent = visible(sentence);
}

/** Returns an absolute URL of HTTP without user information; null for anything else. */
function externalUrl(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    return null;
  }
  const isHttp = url.protocol === "https:" || url.protocol === "http:";
  return isHttp && url.username === "" && url.password === "" ? url : null;
}

/** Returns a link that shows the URL as the browser requests it; text, if the page refuses to link to the URL. */
function externalLink(text) {
  const url = externalUrl(text);
  if (url === null) return element("code", {}, asText(text));
  return element("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" }, url.href);
}

/** Returns a function that schedules an update for the next frame, once for all calls until then. */
function perFrame(update) {
  let frame = null;
  let timer = null;
  const runOnce = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    timer = null;
    update();
  };
  return () => {
    if (timer !== null) return;
    frame = requestAnimationFrame(runOnce);
    timer = setTimeout(runOnce, 500); // a hidden tab has no frames
  };
}

function details(summary, ...content) {
  return element("details", {}, element("summary", {}, summary), ...content);
}

function failure(sentence) {
  return element("p", { class: "failure" }, brief(asText(sentence), MAX_FAILURE));
}
