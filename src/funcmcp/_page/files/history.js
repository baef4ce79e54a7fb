// The calls of a form so far: their values go back into the form, and two of them are compared line by line.

const MAX_EARLIER = 20;
const MAX_COMPARED = 2_000_000; // cells of the table below
const MAX_EQUAL_LINES = 3;
const MAX_LINE = 500;
const MAX_DIFFERENT_LINES = 1000;

/**
 * Returns the list of the calls of a form: {node, add}. `add(values)` returns the entry; its `outcome` is set at the end
 * of the call.
 */
function earlierCalls(write) {
  const list = element("ul", { class: "earlier" });
  const comparison = element("div", { class: "stack" });
  const node = element("div", { hidden: true }, details("Earlier calls", list, comparison));
  const entries = [];
  let chosen = [];

  const compare = (entry) => {
    chosen = chosen.includes(entry) ? chosen.filter((other) => other !== entry) : [...chosen.slice(-1), entry];
    for (const { button } of entries) button.setAttribute("aria-pressed", String(chosen.some((other) => other.button === button)));
    const pair = chosen.length === 1 && chosen[0] !== entries[0] ? [chosen[0], entries[0]] : chosen;
    pair.sort((first, second) => entries.indexOf(second) - entries.indexOf(first));
    comparison.replaceChildren(...(pair.length === 2 ? differences(...pair) : []));
  };

  return {
    node,
    add(values) {
      const text = JSON.stringify(values);
      const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text;
      const time = new Date().toLocaleTimeString();
      const entry = { values, time, outcome: null };
      entry.button = element("button", { type: "button", class: "small", "aria-pressed": "false", "aria-label": `Compare ${time} ${shown}`,
        click: () => compare(entry) }, "Compare");
      const use = element("button", { type: "button", class: "small", "aria-label": `Use ${shown}`, click: () => write(values) }, "Use");
      entries.unshift(entry);
      list.prepend(element("li", {}, use, " ", entry.button, " ", element("span", { class: "quiet" }, time), " ", element("code", {}, shown)));
      if (entries.length > MAX_EARLIER) {
        chosen = chosen.filter((other) => other !== entries.at(-1));
        entries.pop();
        list.lastElementChild.remove();
      }
      node.hidden = entries.length < 2;
      return entry;
    },
  };
}

/** Returns how two calls differ. */
function differences(before, after) {
  return [
    element("h4", {}, `From ${before.time} to ${after.time}`),
    ...difference("arguments", before.values, after.values),
    ...difference("result", before.outcome, after.outcome),
  ].filter(Boolean);
}

function difference(name, before, after) {
  const [first, second] = [before, after].map((value) => (value === null ? "No result yet." : stringify(value)));
  if (first === second) return [element("p", { class: "quiet" }, `The ${name} ${name === "arguments" ? "are" : "is"} the same.`)];
  const lines = shortenedLines(lineDifference(first.split("\n"), second.split("\n")));
  const content = lines.slice(0, MAX_DIFFERENT_LINES).map(([mark, line]) => {
    const text = `${mark} ${line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}…` : line}\n`;
    return mark === " " ? text : element(mark === "+" ? "ins" : "del", {}, text);
  });
  const text = () => lines.map(([mark, line]) => `${mark} ${line}\n`).join("");
  const left = lines.length - content.length;
  const sentence = left > 0 && element("p", { class: "quiet" }, `${left.toLocaleString()} more lines are not shown. Copy has all of them.`);
  return [element("h4", {}, `Difference of the ${name}`), sentence, codeBlock(`difference of the ${name}`, element("code", {}, content), text)];
}

/** Returns the lines of two texts as [mark, line]; the mark is "-" for the first, "+" for the second, " " for both. */
function lineDifference(first, second) {
  let start = 0;
  while (start < Math.min(first.length, second.length) && first[start] === second[start]) start += 1;
  let end = 0;
  const longest = Math.min(first.length, second.length) - start;
  while (end < longest && first.at(-1 - end) === second.at(-1 - end)) end += 1;
  const both = (lines) => lines.map((line) => [" ", line]);
  const middle = changedLines(first.slice(start, first.length - end), second.slice(start, second.length - end));
  return [...both(first.slice(0, start)), ...middle, ...both(first.slice(first.length - end))];
}

/** Returns the difference with the longest common part; all lines as changed, if there are too many. */
function changedLines(first, second) {
  const width = second.length + 1;
  if ((first.length + 1) * width > MAX_COMPARED) return [...first.map((line) => ["-", line]), ...second.map((line) => ["+", line])];
  const lengths = new Uint16Array((first.length + 1) * width); // of the common part of what follows two lines
  for (let row = first.length - 1; row >= 0; row -= 1) {
    for (let column = second.length - 1; column >= 0; column -= 1) {
      const at = row * width + column;
      lengths[at] = first[row] === second[column] ? lengths[at + width + 1] + 1 : Math.max(lengths[at + width], lengths[at + 1]);
    }
  }
  const lines = [];
  let [row, column] = [0, 0];
  while (row < first.length || column < second.length) {
    const at = row * width + column;
    if (row < first.length && column < second.length && first[row] === second[column]) {
      lines.push([" ", first[row]]);
      row += 1;
      column += 1;
    } else if (column === second.length || (row < first.length && lengths[at + width] >= lengths[at + 1])) {
      lines.push(["-", first[row]]);
      row += 1;
    } else {
      lines.push(["+", second[column]]);
      column += 1;
    }
  }
  return lines;
}

/** Returns a difference without the middle of long equal parts. */
function shortenedLines(lines) {
  const isNear = lines.map(() => false);
  lines.forEach(([mark], index) => {
    if (mark !== " ") isNear.fill(true, Math.max(index - MAX_EQUAL_LINES, 0), index + MAX_EQUAL_LINES + 1);
  });
  const shown = [];
  let omitted = 0;
  lines.forEach((line, index) => {
    if (!isNear[index]) {
      omitted += 1;
      return;
    }
    if (omitted) shown.push([" ", `… ${counted(omitted, "equal line")}`]);
    omitted = 0;
    shown.push(line);
  });
  if (omitted) shown.push([" ", `… ${counted(omitted, "equal line")}`]);
  return shown;
}
