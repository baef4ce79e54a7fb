// Forms made from JSON Schemas. A field is {element, read, write, focus}. `read(problems)` returns the value, or ABSENT
// if it is to be left out. What a form can't show is a field for JSON text.

const ABSENT = Symbol("absent");
const MAX_DEPTH = 6;
const MAX_REFERENCES = 20;
const MAX_FIELDS = 300;
const MAX_FIRST_ITEMS = 5;
const ANNOTATIONS = ["title", "description", "default", "examples"];

/** Returns the schema that a reference within the document leads to, with the annotations beside the reference. */
function resolved(schema, root) {
  let node = isObject(schema) ? schema : {};
  for (let count = 0; typeof get(node, "$ref") === "string"; count += 1) {
    const target = count < MAX_REFERENCES ? targetOf(node.$ref, root) : undefined;
    if (!isObject(target)) return {};
    const { $ref: _, ...siblings } = node;
    node = { ...target, ...siblings };
  }
  const [only, ...further] = listOf(get(node, "allOf"));
  if (isObject(only) && further.length === 0) {
    const { allOf: _, ...siblings } = node;
    return { ...resolved(only, root), ...siblings };
  }
  return node;
}

function targetOf(reference, root) {
  if (!reference.startsWith("#")) return undefined;
  let node = root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    node = Array.isArray(node) ? node[Number(name)] : get(node, name);
  }
  return node;
}

/** Returns a schema without null, and whether null is allowed. */
function withoutNull(schema, root) {
  const types = get(schema, "type");
  if (Array.isArray(types) && types.includes("null")) {
    const remaining = types.filter((type) => type !== "null");
    return { schema: { ...schema, type: remaining.length === 1 ? remaining[0] : remaining }, nullable: true };
  }
  for (const keyword of ["anyOf", "oneOf"]) {
    const branches = listOf(get(schema, keyword));
    const remaining = branches.filter((branch) => get(branch, "type") !== "null");
    if (remaining.length === branches.length || branches.length === 0) continue;
    const { [keyword]: _, ...siblings } = schema;
    if (remaining.length > 1) return { schema: { ...siblings, [keyword]: remaining }, nullable: true };
    const merged = { ...resolved(remaining[0], root), ...siblings };
    for (const name of ANNOTATIONS) if (get(schema, name) !== undefined) merged[name] = schema[name];
    return { schema: merged, nullable: true };
  }
  return { schema, nullable: false };
}

/** Returns the values that a schema allows, with a label for each; null if it does not list them. */
function choicesOf(schema) {
  if (get(schema, "const") !== undefined) return labelled([schema.const], []);
  if (Array.isArray(get(schema, "enum"))) return labelled(schema.enum, listOf(get(schema, "enumNames")));
  const branches = listOf(get(schema, "oneOf") ?? get(schema, "anyOf"));
  if (branches.length === 0 || !branches.every((branch) => get(branch, "const") !== undefined)) return null;
  return labelled(branches.map((branch) => branch.const), branches.map((branch) => get(branch, "title")));
}

/** Returns values with their labels. A value without a name is shown as JSON where its text is ambiguous, as "1" and 1. */
function labelled(values, names) {
  const types = new Set(values.filter((value) => value !== null).map((value) => typeof value));
  const isMixed = types.size > 1 || (values.includes(null) && values.includes("null"));
  return values.map((value, index) => {
    const name = names[index];
    if (name !== undefined && name !== null) return { value, label: asText(name) };
    return { value, label: isMixed || value === "" ? JSON.stringify(value) : compactText(value) };
  });
}

function kindOf(schema, root, depth) {
  if (choicesOf(schema)) return "choice";
  const hasMembers = Object.keys(get(schema, "properties") ?? {}).length > 0;
  if (hasMembers && ["object", undefined].includes(get(schema, "type")) && depth < MAX_DEPTH) return "object";
  if (get(schema, "anyOf") || get(schema, "oneOf") || get(schema, "allOf") || get(schema, "not") || get(schema, "if")) {
    return "json";
  }
  const type = get(schema, "type");
  if (type === "string") return { date: "date", "date-time": "dateTime" }[get(schema, "format")] ?? "string";
  if (type === "integer" || type === "number") return "number";
  if (type === "boolean") return "boolean";
  if (depth >= MAX_DEPTH) return "json";
  if (type === "array" && isObject(get(schema, "items")) && !get(schema, "prefixItems")) {
    const items = resolved(schema.items, root);
    return get(schema, "uniqueItems") === true && choicesOf(items) ? "choices" : "list";
  }
  if (type === "array" && choicesOf(get(schema, "items") ?? {})) return "choices";
  if (get(schema, "patternProperties")) return "json";
  if (type === "object" && isObject(get(schema, "additionalProperties"))) return "map";
  return "json";
}

/** The number of fields that a form may still have, so that no schema can make an endless form. */
const newBudget = () => ({ left: MAX_FIELDS });

/**
 * Returns the field for a schema. place is {name, label, root, required, depth, budget}. The label is by default the
 * title or the name. A field whose name is null does not show it.
 */
function makeField(rawSchema, place) {
  const { schema, nullable } = withoutNull(resolved(rawSchema, place.root), place.root);
  const context = { ...place, schema, nullable, label: labelOf(schema, place.name, place.label) };
  place.budget.left -= 1;
  const kind = place.budget.left < 0 ? "json" : kindOf(schema, place.root, place.depth);
  const field = FIELDS[kind](context);
  const initial = get(schema, "default");
  if (initial !== undefined && !(initial === null && !place.required)) field.write(initial);
  return field;
}

function labelOf(schema, name, label) {
  if (label) return label;
  return (typeof get(schema, "title") === "string" && schema.title) || name || "Value";
}

const FIELDS = {
  string: stringField,
  date: (context) => inputField(context, { type: "date" }, {}),
  dateTime: dateTimeField,
  number: numberField,
  boolean: (context) => (context.required && !context.nullable ? checkboxField(context) : choiceField(context, [
    { value: true, label: "yes" }, { value: false, label: "no" },
  ])),
  choice: (context) => choiceField(context, choicesOf(context.schema)),
  choices: choicesField,
  list: listField,
  map: mapField,
  object: objectField,
  json: jsonField,
};

// One control with a label

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const constraints = [
  ["minLength", (value) => `at least ${counted(value, "character")}`],
  ["maxLength", (value) => `at most ${counted(value, "character")}`],
  ["pattern", (value) => `matches ${value}`],
  ["minimum", (value) => `at least ${value}`],
  ["exclusiveMinimum", (value) => `more than ${value}`],
  ["maximum", (value) => `at most ${value}`],
  ["exclusiveMaximum", (value) => `less than ${value}`],
  ["multipleOf", (value) => `a multiple of ${value}`],
  ["minItems", (value) => `at least ${counted(value, "item")}`],
  ["maxItems", (value) => `at most ${counted(value, "item")}`],
];

function helpOf(schema, note) {
  const limits = constraints.filter(([name]) => ["number", "string"].includes(typeof get(schema, name)))
    .map(([name, describe]) => describe(schema[name]));
  if (get(schema, "type") === "integer") limits.unshift("an integer");
  if (typeof get(schema, "format") === "string" && schema.type === "string" && !schema.format.startsWith("date")) {
    limits.unshift(`format ${schema.format}`);
  }
  const sentence = limits.join(", ");
  const parts = [asText(get(schema, "description")), sentence && sentence[0].toUpperCase() + sentence.slice(1), note];
  return parts.filter(Boolean).map((part) => part.replace(/([^.!?:…])$/, "$1.")).join(" ");
}

function labelContent({ label, name, required, nullable }) {
  const content = [label];
  if (name && name !== label) content.push(" ", element("code", {}, name));
  if (required && !nullable) content.push(" ", element("span", { class: "required" }, "required"));
  return content;
}

/** Returns the frame of a control: label, help, the control, a box for null, and the place for a problem. */
function frame(context, control, { note, before } = {}) {
  const id = control.id;
  const help = helpOf(context.schema, note);
  const problem = element("p", { class: "problem", id: `${id}-problem`, hidden: true });
  const descriptions = [help && `${id}-help`, `${id}-problem`].filter(Boolean).join(" ");
  control.setAttribute("aria-describedby", descriptions);
  if (context.required && !context.nullable && control.type !== "checkbox") control.setAttribute("aria-required", "true");
  let nothing = null;
  let nullBox = null;
  if (context.nullable) {
    nothing = element("input", { type: "checkbox", change: () => (control.disabled = nothing.checked) });
    nullBox = element("label", { class: "null" }, nothing, " null", element("span", { class: "hidden" }, ` for ${context.label}`));
  }
  const label = element("label", { for: id, class: context.name === null ? "hidden" : null }, labelContent(context));
  const node = element("div", { class: "field" },
    before ? element("div", { class: "check" }, control, label) : label,
    help && element("p", { class: "help", id: `${id}-help` }, help),
    before ? null : element("div", { class: "control" }, control, nullBox),
    problem,
  );
  return {
    node,
    isNull: () => nothing?.checked === true,
    setNull: (value) => {
      if (nothing) {
        nothing.checked = value;
        control.disabled = value;
      }
    },
    report: (problems, sentence) => {
      problem.textContent = visible(sentence);
      problem.hidden = false;
      control.setAttribute("aria-invalid", "true");
      problems.push({ label: context.label, sentence, focus: () => control.focus() });
      return ABSENT;
    },
    clear: () => {
      problem.hidden = true;
      control.removeAttribute("aria-invalid");
    },
  };
}

/** Returns a field around one control. read and write convert its text; empty is what an empty control means. */
function controlField(context, control, { read, write, empty, note }) {
  const outer = frame(context, control, { note });
  return {
    element: outer.node,
    focus: () => control.focus(),
    read(problems) {
      outer.clear();
      if (outer.isNull()) return null;
      if (control.value === "") {
        const value = empty?.() ?? ABSENT;
        if (value !== ABSENT || !context.required) return value;
        return context.nullable ? null : outer.report(problems, "Enter a value.");
      }
      try {
        return read(control.value);
      } catch (error) {
        return outer.report(problems, error.message);
      }
    },
    write(value) {
      outer.setNull(value === null);
      control.value = value === ABSENT || value === null ? "" : write(value);
    },
  };
}

function inputField(context, attributes, { read = (text) => text, write = asText, empty, note } = {}) {
  const control = element("input", { id: newId("field"), autocomplete: "off", spellcheck: "false", ...attributes });
  return controlField(context, control, { read, write, empty, note });
}

function stringField(context) {
  const { schema } = context;
  const hasDefault = typeof get(schema, "default") === "string" && schema.default !== "";
  const empty = () => (hasDefault ? "" : ABSENT);
  const types = { email: "email", uri: "url", password: "password" };
  const isLong = get(schema, "maxLength") > 200 || /\n/.test(get(schema, "default")) || get(schema, "contentMediaType");
  const type = get(schema, "writeOnly") === true ? "password" : types[get(schema, "format")] ?? "text";
  if (!isLong && type !== "text") return inputField(context, { type }, { empty });
  const control = element("textarea", { id: newId("field"), rows: isLong ? 4 : 1, spellcheck: "false", class: "line" });
  control.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || isLong || event.isComposing || !control.form) return;
    event.preventDefault();
    control.form.requestSubmit();
  });
  return controlField(context, control, { read: (text) => text, write: asText, empty });
}

function numberField(context) {
  const isInteger = get(context.schema, "type") === "integer";
  const read = (text) => {
    const trimmed = text.trim();
    if (isInteger && !/^[+-]?\d+$/.test(trimmed)) throw new Error("Enter an integer.");
    const value = Number(trimmed);
    if (trimmed === "" || !Number.isFinite(value)) throw new Error("Enter a number, such as 1.5.");
    if (!isInteger || Number.isSafeInteger(value)) return value;
    if (!JSON.rawJSON) throw new Error("This browser can't send an integer of this size.");
    return JSON.rawJSON(trimmed.replace("+", "").replace(/^(-?)0+(?=\d)/, "$1"));
  };
  return inputField(context, { type: "text", inputmode: isInteger ? "numeric" : "decimal", class: "short" }, { read });
}

function dateTimeField(context) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const read = (text) => {
    const moment = new Date(text);
    if (Number.isNaN(moment.getTime())) throw new Error("Enter a date and a time.");
    return moment.toISOString().replace(".000Z", "Z");
  };
  const write = (value) => {
    const moment = new Date(asText(value));
    if (Number.isNaN(moment.getTime())) return "";
    return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  };
  return inputField(context, { type: "datetime-local", step: 1 }, { read, write, note: `In the time zone ${zone}` });
}

function checkboxField(context) {
  const control = element("input", { type: "checkbox", id: newId("field") });
  const outer = frame({ ...context, required: false }, control, { before: true });
  return {
    element: outer.node,
    focus: () => control.focus(),
    read: () => control.checked,
    write: (value) => (control.checked = value === true),
  };
}

function choiceField(context, choices) {
  const control = element("select", { id: newId("field") });
  if (!context.required) control.append(element("option", { value: "" }, "(not set)"));
  choices.forEach((choice, index) => control.append(element("option", { value: index }, choice.label)));
  const hasNull = choices.some((choice) => choice.value === null);
  const field = controlField({ ...context, nullable: context.nullable && !hasNull }, control, {
    read: (index) => choices[Number(index)].value,
    write: (value) => {
      const index = choices.findIndex((choice) => stringify(choice.value) === stringify(value));
      return index < 0 ? "" : String(index);
    },
  });
  return field;
}

function jsonField(context) {
  const control = element("textarea", { id: newId("field"), rows: 3, spellcheck: "false", class: "json" });
  return controlField(context, control, {
    read: (text) => {
      try {
        return parse(text);
      } catch (error) {
        throw new Error(`This is not JSON: ${error.message}`);
      }
    },
    write: stringify,
    note: "As JSON",
  });
}

// Fields in a group

/** Returns a group of fields. An optional group has a box that includes it, unless it is plain. */
function group(context, ...content) {
  const isOptional = !context.isPlain && context.name !== null && (!context.required || context.nullable);
  const help = helpOf(context.schema);
  const helpId = newId("help");
  const body = element("div", { class: "group" }, content);
  const legend = element("legend", { class: context.name === null ? "hidden" : null });
  let box = null;
  if (isOptional && context.depth > 0) {
    box = element("input", { type: "checkbox", change: () => (body.hidden = !box.checked) });
    legend.append(element("label", {}, box, " ", labelContent(context)));
    body.hidden = true;
  } else {
    legend.append(...labelContent(context).flat());
  }
  const node = element("fieldset", { class: context.name === null ? "unnamed" : null, "aria-describedby": help ? helpId : null },
    legend, help && element("p", { class: "help", id: helpId }, help), body);
  return {
    node,
    isIncluded: () => box === null || box.checked,
    include: (value) => {
      if (box) {
        box.checked = value;
        body.hidden = !value;
      }
    },
  };
}

function objectField(context) {
  const { schema, root, depth, budget } = context;
  const required = listOf(get(schema, "required"));
  const members = Object.entries(schema.properties).map(([name, property]) => ({
    name, field: makeField(property, { name, root, required: required.includes(name), depth: depth + 1, budget }),
  }));
  const nodes = members.map(({ field }) => field.element);
  const outer = depth === 0 ? { node: element("div", {}, nodes), isIncluded: () => true, include() {} } : group(context, nodes);
  return {
    element: outer.node,
    focus: () => members[0]?.field.focus(),
    read(problems) {
      if (!outer.isIncluded()) return context.required ? null : ABSENT;
      const value = Object.create(null);
      for (const { name, field } of members) {
        const member = field.read(problems);
        if (member !== ABSENT) value[name] = member;
      }
      return value;
    },
    write(value) {
      outer.include(isObject(value));
      for (const { name, field } of members) {
        const member = get(value, name);
        field.write(member === undefined ? ABSENT : member);
      }
    },
  };
}

/** Returns a list of items that grows and shrinks. */
function rows(context, makeRow, noun) {
  const items = [];
  const container = element("div", { class: "items" });
  const limit = get(context.schema, "maxItems") ?? get(context.schema, "maxProperties") ?? Infinity;
  const isFirst = context.required && context.depth <= 1;
  const least = isFirst ? Math.min(get(context.schema, "minItems") ?? 0, MAX_FIRST_ITEMS) : 0;
  const add = element("button", { type: "button", class: "small", "aria-label": `Add ${noun} to ${context.label}` }, "Add");
  const outer = group(context, container, add);
  const number = () => {
    add.disabled = items.length >= limit;
    items.forEach((item, index) => {
      item.remove.setAttribute("aria-label", `Remove ${noun} ${index + 1} of ${context.label}`);
    });
  };
  const append = () => {
    const row = makeRow();
    const remove = element("button", { type: "button", class: "small" }, "Remove");
    const item = { ...row, remove };
    item.node = element("div", { class: "item" }, element("div", { class: "content" }, row.elements), remove);
    remove.addEventListener("click", () => {
      const index = items.indexOf(item);
      items.splice(index, 1);
      item.node.remove();
      number();
      (items[Math.min(index, items.length - 1)]?.remove ?? add).focus();
    });
    items.push(item);
    container.append(item.node);
    number();
    return item;
  };
  add.addEventListener("click", () => append().focus());
  const clear = () => items.splice(0).forEach((item) => item.node.remove());
  for (let count = 0; count < least; count += 1) append();
  number();
  return { outer, items, append, clear };
}

const isEmptied = (schema, name) => stringify(get(schema, "default") ?? name) !== stringify(name);

function listField(context) {
  const { schema, root, depth } = context;
  const { outer, items, append, clear } = rows({ ...context, isPlain: true }, () => {
    const label = `Item of ${context.label}`;
    const field = makeField(schema.items, { name: null, label, root, required: true, depth: depth + 1, budget: newBudget() });
    return { elements: [field.element], field, focus: field.focus };
  }, "item");
  return {
    element: outer.node,
    focus: () => outer.node.querySelector("button").focus(),
    read(problems) {
      const values = items.map(({ field }) => field.read(problems)).map((value) => (value === ABSENT ? null : value));
      return values.length || context.required || isEmptied(schema, []) ? values : ABSENT;
    },
    write(value) {
      clear();
      for (const member of listOf(value)) append().field.write(member);
    },
  };
}

function mapField(context) {
  const { schema, root, depth } = context;
  const { outer, items, append, clear } = rows({ ...context, isPlain: true }, () => {
    const place = { root, required: true, depth: depth + 1, budget: newBudget() };
    const key = makeField({ type: "string" }, { ...place, name: "Name" });
    const field = makeField(schema.additionalProperties, { ...place, name: "Value" });
    return { elements: [key.element, field.element], key, field, focus: key.focus };
  }, "entry");
  return {
    element: outer.node,
    focus: () => outer.node.querySelector("button").focus(),
    read(problems) {
      const value = Object.create(null);
      for (const { key, field } of items) {
        const name = key.read(problems);
        const member = field.read(problems);
        if (name !== ABSENT && member !== ABSENT) value[name] = member;
      }
      return items.length || context.required || isEmptied(schema, {}) ? value : ABSENT;
    },
    write(value) {
      clear();
      for (const [name, member] of Object.entries(isObject(value) ? value : {})) {
        const item = append();
        item.key.write(name);
        item.field.write(member);
      }
    },
  };
}

function choicesField(context) {
  const choices = choicesOf(resolved(context.schema.items, context.root));
  const boxes = choices.map((choice) => ({ choice, box: element("input", { type: "checkbox" }) }));
  const labels = boxes.map(({ choice, box }) => element("label", { class: "choice" }, box, " ", choice.label));
  const outer = group({ ...context, isPlain: true }, labels);
  return {
    element: outer.node,
    focus: () => boxes[0]?.box.focus(),
    read() {
      const values = boxes.filter(({ box }) => box.checked).map(({ choice }) => choice.value);
      return values.length || context.required || isEmptied(context.schema, []) ? values : ABSENT;
    },
    write(value) {
      const texts = new Set(listOf(value).map(stringify));
      for (const { choice, box } of boxes) box.checked = texts.has(stringify(choice.value));
    },
  };
}

/** Returns the value of a form; null if there are problems, the first of which gets the focus. */
function checked(read) {
  const problems = [];
  const value = read(problems);
  if (problems.length === 0) return value === ABSENT ? {} : value;
  problems[0].focus();
  announce(`${problems[0].label}: ${problems[0].sentence}`);
  return null;
}

// A form with its JSON

/** Returns a form for an object schema that can be changed to JSON text: {element, read}. */
function schemaForm(schema, label) {
  const root = isObject(schema) ? schema : {};
  const isPlain = kindOf(resolved(root, root), root, 0) === "object";
  const isEmpty = !isPlain && !Object.keys(get(root, "properties") ?? {}).length &&
    (get(root, "additionalProperties") === false || Object.keys(root).every((name) => ["type", "title", "$schema", "properties"].includes(name)));
  const form = isPlain ? objectField({ schema: resolved(root, root), root, required: true, depth: 0, name: null, label, budget: newBudget() }) : null;
  const text = jsonField({ schema: {}, name: null, required: false, label: `${label} as JSON` });
  text.write({});
  if (form === null) text.element.hidden = isEmpty;
  let showsText = form === null;
  const problem = element("div", {});
  const toggle = element("button", { type: "button", class: "small", "aria-pressed": "false" }, "Edit as JSON");
  toggle.addEventListener("click", () => {
    problem.replaceChildren();
    if (showsText) {
      const problems = [];
      const value = text.read(problems);
      if (problems.length) return;
      form.write(value);
    } else {
      text.write(form.read([]));
    }
    showsText = !showsText;
    toggle.setAttribute("aria-pressed", String(showsText));
    form.element.hidden = showsText;
    text.element.hidden = !showsText;
    (showsText ? text : form).focus();
  });
  if (form) text.element.hidden = true;
  return {
    element: element("div", { class: "schema-form" },
      form && element("div", { class: "toggle" }, toggle),
      form?.element, text.element, problem,
      isEmpty && element("p", { class: "quiet" }, "No arguments."),
    ),
    read: () => checked((problems) => (showsText ? text : form).read(problems)),
  };
}
