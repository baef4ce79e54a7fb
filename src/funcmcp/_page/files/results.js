// What tools, resources and prompts return, as elements. The server puts MEDIA_TYPES before the scripts.

const AUDIO = /^audio\/[a-z0-9.+-]+$/;
const MARKDOWN = /^text\/(x-)?markdown\b/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Returns the elements for a result of tools/call. call is {definition, values}, if an app may show the result. */
function toolResult(result, call = {}) {
  const parts = [];
  if (get(result, "isError") === true) parts.push(failure("The tool reports an error."));
  const blocks = listOf(get(result, "content"));
  const structured = get(result, "structuredContent");
  const app = appOf(call.definition);
  if (app) parts.push(appCard(app, null, { ...call, result }));
  if (isEmptyResult(blocks, structured)) return [...parts, element("p", { class: "quiet" }, "The result is empty.")];
  const isRepeated = structured !== undefined && blocks.length === 1 && repeats(blocks[0], structured);
  if (!isRepeated) parts.push(...firstItems(blocks, "block", (block) => contentBlock(block, { ...call, result })));
  if (structured !== undefined) {
    parts.push(element("h4", {}, "Structured content"), jsonValue("structured content", structured));
  }
  return parts;
}

const MAX_BLOCKS = 100;
const MAX_TEXTS = 1_000_000; // characters

/** Returns the elements of the first items of a list, with a sentence if there are too many of them. */
function firstItems(items, noun, show) {
  const shown = [];
  let length = 0;
  for (const item of items.slice(0, MAX_BLOCKS)) {
    length += lengthOf(item);
    if (shown.length > 0 && length > MAX_TEXTS) break;
    shown.push(show(item));
  }
  const left = items.length - shown.length;
  if (left > 0) {
    shown.push(element("p", { class: "quiet" }, `${counted(left, `more ${noun}`)} of the result ${left === 1 ? "is" : "are"} not shown here.`));
  }
  return shown;
}

/** Returns about how many characters an item of a result shows. */
function lengthOf(item) {
  const text = get(item, "text") ?? get(get(item, "resource"), "text");
  if (typeof text === "string") return text.length;
  return MEDIA_TYPES.includes(get(item, "type")) ? 0 : stringify(item).length;
}

/** Returns whether a result has no content but empty texts, and no structured content but an empty text. */
function isEmptyResult(blocks, structured) {
  if (!blocks.every((block) => get(block, "type") === "text" && block.text === "")) return false;
  if (structured === undefined || structured === "") return true;
  return isObject(structured) && Object.keys(structured).length === 1 && get(structured, "result") === "";
}

/** Returns whether a block is the structured content, or its only member, as JSON. */
function repeats(block, structured) {
  if (get(block, "type") !== "text") return false;
  const members = isObject(structured) && Object.keys(structured).length === 1 ? Object.values(structured) : [];
  try {
    const text = stringify(parse(block.text));
    return [structured, ...members].some((value) => stringify(value) === text);
  } catch {
    return false;
  }
}

function contentBlock(block, call) {
  const type = get(block, "type");
  if (type === "text") return textContent("text", asText(get(block, "text")));
  if (MEDIA_TYPES.includes(type)) return media(get(block, "mimeType"), get(block, "data"), `${type} of the result`);
  if (type === "resource_link") return resourceLink(block);
  if (type === "resource") return resourceContents(get(block, "resource"), call);
  return jsonBlock("content", block);
}

const MAX_COLUMNS = 20;
const MAX_ROWS = 200;
const MAX_CELL = 1000;
const isScalar = (value) => value === null || typeof value !== "object" || JSON.isRawJSON?.(value) === true;
const isFlat = (value) => isScalar(value) || Object.values(value).every(isScalar);

/** Returns the rows and the columns of a list of objects; null for a value that is not one, or is nested too deep for cells. */
function tableOf(value) {
  const list = isObject(value) && Object.keys(value).length === 1 ? Object.values(value)[0] : value;
  if (!Array.isArray(list) || list.length === 0 || !list.every(isObject)) return null;
  const rows = list.slice(0, MAX_ROWS);
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const fitsCells = columns.length > 0 && columns.length <= MAX_COLUMNS && rows.every((row) => Object.values(row).every(isFlat));
  return fitsCells ? { rows, columns, left: list.length - rows.length } : null;
}

/** Returns the text of a cell: of a list its items, of an object its members. */
function cellText(value) {
  if (isScalar(value)) return asText(value);
  if (Array.isArray(value)) return value.map(compactText).join(", ");
  return Object.entries(value).map(([name, member]) => `${name}: ${compactText(member)}`).join(", ");
}

/** Returns a JSON value as a block; a list of objects as a table, too. */
function jsonValue(label, value) {
  const content = tableOf(value);
  if (content === null) return jsonBlock(label, value);
  const { rows, columns, left } = content;
  const cell = (row, column) => {
    const member = get(row, column);
    return element("td", { class: typeof member === "number" ? "number" : null }, brief(cellText(member), MAX_CELL));
  };
  const table = element("table", {},
    element("caption", { class: "hidden" }, label),
    element("thead", {}, element("tr", {}, columns.map((column) => element("th", { scope: "col" }, column)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, columns.map((column) => cell(row, column))))));
  return element("div", { class: "stack" },
    element("div", { class: "table", tabindex: 0, role: "group", "aria-label": label }, table),
    left > 0 && element("p", { class: "quiet" }, `${counted(left, "more row")} ${left === 1 ? "is" : "are"} not shown here. Open As JSON to copy all of them.`),
    details("As JSON", jsonBlock(label, value)));
}

/** Returns a text: JSON with its structure, Markdown with its form, anything else as it is. */
function textContent(label, text, type = "") {
  if (/^\s*[[{]/.test(text) && text.length <= MAX_COLOURED) {
    try {
      return jsonValue(label, parse(text));
    } catch {
      // It is text.
    }
  }
  if (MARKDOWN.test(type) || (["", "text/plain"].includes(type) && isMarkdown(text))) {
    return element("div", { class: "stack" }, markdown(text), details("As text", textBlock(label, text)));
  }
  return textBlock(label, text);
}

function resourceLink(block) {
  const uri = asText(get(block, "uri"));
  const title = brief(asText(get(block, "title") ?? get(block, "name") ?? uri), MAX_NAME);
  const read = element("a", { class: "button small", href: `#${place("resource", uri)}` }, "Read");
  return element("div", { class: "link-card" },
    element("p", {}, element("strong", {}, title), " ", element("code", {}, brief(uri, MAX_HELP))),
    get(block, "description") && element("p", { class: "quiet" }, inline(brief(asText(block.description), MAX_HELP))),
    read,
  );
}

/** Returns the element for one of the contents of a resource. */
function resourceContents(contents, call = {}) {
  const uri = asText(get(contents, "uri"));
  const type = asText(get(contents, "mimeType"));
  const caption = element("p", { class: "quiet" }, element("code", {}, uri), type && ` ${type}`);
  const body = typeof get(contents, "text") === "string"
    ? textContent(`text of ${uri}`, contents.text, type)
    : media(type, get(contents, "blob"), uri);
  return element("div", { class: "contents" }, caption, isApp(contents) && appCard(uri, contents, call), body);
}

function media(type, data, label) {
  const mediaType = asText(type).toLowerCase().split(";")[0].trim();
  if (typeof data !== "string" || !BASE64.test(data)) return failure(`The ${label} is not Base64.`);
  const source = `data:${mediaType};base64,${data}`;
  const bytes = Math.floor((data.replaceAll("=", "").length * 3) / 4);
  const caption = element("figcaption", {}, `${mediaType || "unknown type"}, ${bytes.toLocaleString()} bytes `, download(data, label));
  if (IMAGES.test(mediaType)) return element("figure", {}, picture(source, label), caption);
  if (AUDIO.test(mediaType)) {
    return element("figure", {}, element("audio", { src: source, controls: true, "aria-label": label }), caption);
  }
  return element("figure", {}, caption);
}

function download(data, label) {
  const button = element("button", { type: "button", class: "small", "aria-label": `Download ${label}` }, "Download");
  button.addEventListener("click", () => {
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    element("a", { href: url, download: label.split("/").pop() || "file" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  });
  return button;
}

function promptMessages(result) {
  const messages = firstItems(listOf(get(result, "messages")), "message", (message) =>
    element("div", { class: "message" },
      element("h4", {}, get(message, "role") === "assistant" ? "Assistant" : "User"),
      firstItems(listOf(Array.isArray(get(message, "content")) ? message.content : [get(message, "content")]), "block", (block) => contentBlock(block, {})),
    ));
  return messages.length ? messages : [element("p", { class: "quiet" }, "The prompt has no messages.")];
}

function readContents(result) {
  const contents = firstItems(listOf(get(result, "contents")), "part", (part) => resourceContents(part));
  return contents.length ? contents : [element("p", { class: "quiet" }, "The resource is empty.")];
}
