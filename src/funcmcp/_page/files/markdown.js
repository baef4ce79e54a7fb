// Markdown of a server as elements: a subset of CommonMark with the tables of GitHub, without HTML and without images.
// Emphasis never hides letters of a name such as __init__, and lines keep their breaks, as in docstrings. All of it ends
// as text nodes, and no pattern here takes more than linear time.

const MAX_MARKDOWN = 100_000;
const MAX_NESTING = 6;
const MAX_FOLDED = 600;
const MAX_FOLDED_LINES = 12;

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const TITLE = /^ {0,3}#{1,6}[ \t]+(\S.*)$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +)(?=\S)/;
const TABLE_RULE = /^[ \t]*:?-+:?[ \t]*$/;

/** Returns a text as Markdown; as plain text, if it is very long. */
function markdown(text) {
  if (text.length > MAX_MARKDOWN) return element("p", { class: "text" }, shortened(text));
  return element("div", { class: "markdown" }, blocksOf(text.split(/\r\n|\r|\n/), 0));
}

/** Returns whether a text that may be anything looks like Markdown. */
function isMarkdown(text) {
  if (text.length > MAX_MARKDOWN) return false;
  const lines = text.slice(0, 20_000).split("\n").filter((line) => line.length < 1000);
  return lines.some((line, index) =>
    FENCE.test(line) || /^#{2,6} \S/.test(line) || (index === 0 && TITLE.test(line)) || /(?<!\w)\*\*[^\s*](?:[^*]*[^\s*])?\*\*(?!\w)/.test(line) ||
    /\[[^[\]]+\]\(https?:/.test(line) || (index > 0 && isTableRule(line, lines[index - 1])));
}

const cellsOf = (line) => line.trim().replace(/^\||\|$/g, "").split("|");
const isTableRule = (line, head) => line.includes("|") && head.includes("|") && cellsOf(line).every((cell) => TABLE_RULE.test(cell));
const startsBlock = (line) => FENCE.test(line) || TITLE.test(line) || RULE.test(line) || QUOTE.test(line) ||
  /^ {0,3}(?:[-*+]|1[.)]) +\S/.test(line);

function blocksOf(lines, depth) {
  if (depth > MAX_NESTING) return [element("p", {}, lines.join("\n"))];
  const blocks = [];
  let index = 0;
  while (index < lines.length) {
    if (lines[index].trim() === "") {
      index += 1;
      continue;
    }
    const [block, next] = blockAt(lines, index, depth);
    blocks.push(block);
    index = next;
  }
  return blocks;
}

/** Returns the block that begins at a line, and the line after it. */
function blockAt(lines, index, depth) {
  const line = lines[index];
  const fence = FENCE.exec(line);
  if (fence) return fenceAt(lines, index, fence[1]);
  if (RULE.test(line)) return [element("hr"), index + 1];
  const title = TITLE.exec(line);
  if (title) return [element("p", {}, element("strong", {}, inline(title[1].trimEnd()))), index + 1];
  if (QUOTE.test(line)) {
    const end = endOf(lines, index, (next) => QUOTE.test(next));
    const inner = lines.slice(index, end).map((quoted) => quoted.replace(QUOTE, ""));
    return [element("blockquote", {}, blocksOf(inner, depth + 1)), end];
  }
  if (ITEM.test(line)) return listAt(lines, index, depth);
  if (index + 1 < lines.length && isTableRule(lines[index + 1], line)) return tableAt(lines, index);
  const end = endOf(lines, index + 1, (next, at) =>
    next.trim() !== "" && !startsBlock(next) && !(at + 1 < lines.length && isTableRule(lines[at + 1], next)));
  return [element("p", {}, inline(lines.slice(index, end).join("\n").trimEnd())), end];
}

function endOf(lines, start, belongs) {
  let end = start;
  while (end < lines.length && belongs(lines[end], end)) end += 1;
  return end;
}

function fenceAt(lines, index, mark) {
  const end = endOf(lines, index + 1, (line) => {
    const close = line.trim();
    return !(close.startsWith(mark) && close.replaceAll(mark[0], "") === "");
  });
  return [textBlock("code", lines.slice(index + 1, end).join("\n")), end + 1];
}

function listAt(lines, index, depth) {
  const isOrdered = /\d/.test(ITEM.exec(lines[index])[2]);
  const list = element(isOrdered ? "ol" : "ul", isOrdered ? { start: parseInt(lines[index], 10) } : {});
  let at = index;
  for (;;) {
    const item = at < lines.length ? ITEM.exec(lines[at]) : null;
    if (item === null || /\d/.test(item[2]) !== isOrdered || RULE.test(lines[at])) return [list, at];
    const width = item[0].length;
    const indent = " ".repeat(Math.min(width, 2));
    let isAfterBlank = false;
    let end = endOf(lines, at + 1, (line) => {
      const belongs = line.trim() === "" || line.startsWith(indent) || (!isAfterBlank && !startsBlock(line) && !ITEM.test(line));
      isAfterBlank = line.trim() === "";
      return belongs;
    });
    const content = [lines[at].slice(width), ...lines.slice(at + 1, end).map((line) => line.replace(new RegExp(`^ {0,${width}}`), ""))];
    const blocks = blocksOf(content, depth + 1);
    list.append(element("li", {}, blocks.length === 1 && blocks[0].tagName === "P" ? [...blocks[0].childNodes] : blocks));
    while (end < lines.length && lines[end].trim() === "") end += 1;
    at = end;
  }
}

function tableAt(lines, index) {
  const end = endOf(lines, index + 2, (line) => line.includes("|"));
  const row = (line, tag) => element("tr", {}, cellsOf(line).map((cell) => element(tag, tag === "th" ? { scope: "col" } : {}, inline(cell.trim()))));
  const table = element("table", {}, element("thead", {}, row(lines[index], "th")),
    element("tbody", {}, lines.slice(index + 2, end).map((line) => row(line, "td"))));
  return [element("div", { class: "table", tabindex: 0, role: "group", "aria-label": "Table" }, table), end];
}

const DELIMITERS = { "**": "strong", "~~": "s", "*": "em", _: "em" };
const TOKEN = /\\[!-/:-@[-`{-~]|`+|!?\[|<https?:|https?:\/\/|\*\*|~~|\*+|_+/g;
const LINK = /!?\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]\([ \n]?<?([^\s<>()]{0,2000}(?:\([^\s<>()]{0,2000}\)[^\s<>()]{0,2000})?)>?(?:[ \n]"[^"]*")?[ \n]?\)/y;
const URL_IN_TEXT = /<?(https?:\/\/[^\s<>"'`|*\\]{1,2000})/y;
const isWord = (character) => /[\p{L}\p{N}]/u.test(character ?? "");

/** Returns the texts and elements of a line, or of several. */
function inline(text, depth = 0, inLink = false) {
  if (depth > MAX_NESTING) return [text];
  const parts = [];
  const missing = new Set(); // marks without a second one in the text that is left
  let end = 0;
  TOKEN.lastIndex = 0;
  const pattern = new RegExp(TOKEN);
  for (let token = pattern.exec(text); token !== null; token = pattern.exec(text)) {
    const [part, next] = partAt(text, token.index, token[0], { depth, inLink, missing });
    if (part === null) continue;
    parts.push(text.slice(end, token.index), part);
    end = next;
    pattern.lastIndex = end;
  }
  parts.push(text.slice(end));
  return parts;
}

const NO_PART = [null, 0];

/** Returns what a mark in a text begins, and where that ends; NO_PART if the mark is text. */
function partAt(text, index, mark, { depth, inLink, missing }) {
  if (mark[0] === "\\") return [mark[1], index + 2];
  if (mark[0] === "`") return codeAt(text, index, mark, missing);
  if (mark === "[" || mark === "![") return linkAt(text, index, depth, inLink);
  if (mark.includes("http")) return inLink ? NO_PART : addressAt(text, index);
  return emphasisAt(text, index, mark, { depth, inLink, missing });
}

function codeAt(text, index, mark, missing) {
  if (missing.has(mark)) return NO_PART;
  const start = index + mark.length;
  for (let close = text.indexOf(mark, start); close !== -1;) {
    let after = close + mark.length;
    while (text[after] === "`") after += 1;
    if (after === close + mark.length) return [element("code", {}, withoutPadding(text.slice(start, close))), after];
    close = text.indexOf(mark, after);
  }
  missing.add(mark);
  return NO_PART;
}

const withoutPadding = (text) => (text.startsWith(" ") && text.endsWith(" ") && text.trim() !== "" ? text.slice(1, -1) : text);

/** Returns a link with the host that it leads to; of an image, whose address is not loaded, its text. */
function linkAt(text, index, depth, inLink) {
  LINK.lastIndex = index;
  const match = LINK.exec(text);
  if (match === null) return NO_PART;
  const [all, label, address] = match;
  const end = index + all.length;
  if (all[0] === "!") return [[element("span", { class: "quiet" }, "image "), inline(label, depth + 1, true)], end];
  const url = externalUrl(address);
  if (url === null || inLink) return NO_PART;
  const link = element("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" }, inline(label, depth + 1, true));
  if (link.textContent.trim() === "") link.append(url.href);
  return [[link, " ", element("span", { class: "quiet" }, `(${url.host})`)], end];
}

function addressAt(text, index) {
  URL_IN_TEXT.lastIndex = index;
  const match = URL_IN_TEXT.exec(text);
  if (match === null) return NO_PART;
  const isClosed = match[0][0] === "<" && text[index + match[0].length] === ">";
  if (match[0][0] === "<" && !isClosed) return NO_PART;
  let address = match[1];
  if (!isClosed) {
    const isClosing = () => ".,;:!?]}".includes(address.at(-1)) || (address.endsWith(")") && !address.includes("("));
    while (isClosing()) address = address.slice(0, -1);
  }
  if (externalUrl(address) === null) return NO_PART;
  return [externalLink(address), index + (isClosed ? match[0].length + 1 : address.length)];
}

function emphasisAt(text, index, mark, { depth, inLink, missing }) {
  const start = index + mark.length;
  const tag = Object.hasOwn(DELIMITERS, mark) ? DELIMITERS[mark] : null;
  const opens = tag !== null && !missing.has(mark) && !isWord(text[index - 1]) && /\S/.test(text[start] ?? " ");
  if (!opens) return NO_PART;
  for (let close = text.indexOf(mark, start); close !== -1; close = text.indexOf(mark, close + mark.length)) {
    const after = close + mark.length;
    const isPart = mark.length === 1 && (text[close - 1] === mark || text[after] === mark);
    if (close === start || isPart || /\s/.test(text[close - 1]) || isWord(text[after])) continue;
    return [element(tag, {}, inline(text.slice(start, close), depth + 1, inLink)), after];
  }
  missing.add(mark);
  return NO_PART;
}

/** Returns a description. A long one shows its beginning, and a button that shows the rest. */
function described(text) {
  const cut = cutOf(text);
  if (cut === text.length) return markdown(text);
  const body = element("div", {});
  const button = element("button", { type: "button", class: "small", "aria-expanded": "false" });
  const show = (isOpen) => {
    body.replaceChildren(markdown(isOpen ? text : `${text.slice(0, cut).trimEnd()} …`));
    button.textContent = isOpen ? "Show less" : `Show all ${text.length.toLocaleString()} characters`;
    button.setAttribute("aria-expanded", String(isOpen));
  };
  button.addEventListener("click", () => show(button.getAttribute("aria-expanded") === "false"));
  show(false);
  return element("div", { class: "folded" }, body, element("p", {}, button));
}

/** Returns where the beginning of a text ends that is worth showing by itself; its length, if it is short. */
function cutOf(text) {
  const lines = text.split("\n");
  if (text.length <= 1.5 * MAX_FOLDED && lines.length <= 1.5 * MAX_FOLDED_LINES) return text.length;
  const limit = Math.min(MAX_FOLDED, lines.slice(0, MAX_FOLDED_LINES).join("\n").length);
  const start = text.slice(0, limit);
  const at = Math.max(start.lastIndexOf("\n"), start.lastIndexOf(" "));
  return at > limit / 2 ? at : limit;
}
