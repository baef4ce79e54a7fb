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

/** Returns the value of a schema that allows only one; undefined otherwise. */
function onlyValueOf(schema) {
  const choices = get(schema, "enum");
  return Array.isArray(choices) && choices.length === 1 ? choices[0] : get(schema, "const");
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

const SCALARS = ["string", "integer", "number"];

/** Returns the schemas of which a value has to fit one; none if the schema is not such a union. */
function variantsOf(schema, root) {
  const types = get(schema, "type");
  if (Array.isArray(types)) return types.map((type) => ({ ...schema, type }));
  if (get(schema, "allOf") || get(schema, "not") || get(schema, "if") || get(schema, "properties")) return [];
  const branches = listOf(get(schema, "oneOf") ?? get(schema, "anyOf"));
  return branches.length > 1 ? branches.map((branch) => resolved(branch, root)) : [];
}

/** Returns whether one text field can be for all variants: they are texts and numbers without further rules. */
const isOneText = (variants) => variants.every((variant) => SCALARS.includes(get(variant, "type")) && !choicesOf(variant));

function kindOf(schema, root, depth) {
  if (choicesOf(schema)) return "choice";
  const variants = variantsOf(schema, root);
  if (variants.length > 0 && depth < MAX_DEPTH) return isOneText(variants) ? "scalar" : "variant";
  const hasMembers = Object.keys(get(schema, "properties") ?? {}).length > 0;
  if (hasMembers && ["object", undefined].includes(get(schema, "type")) && depth < MAX_DEPTH) return "object";
  if (get(schema, "anyOf") || get(schema, "oneOf") || get(schema, "allOf") || get(schema, "not") || get(schema, "if")) {
    return "json";
  }
  const type = get(schema, "type");
  if (type === "string" && get(schema, "contentEncoding") === "base64") return "file";
  if (type === "string") return FORMATS[get(schema, "format")] ?? "string";
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

const FORMATS = { date: "date", "date-time": "dateTime", time: "time", duration: "duration" };

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
  if (initial === undefined || (initial === null && !place.required)) return field;
  field.write(initial);
  return { ...field, write: (value) => field.write(value === ABSENT ? initial : value) };
}

function labelOf(schema, name, label) {
  if (label) return label;
  return (typeof get(schema, "title") === "string" && schema.title) || name || "Value";
}

const FIELDS = {
  string: stringField,
  date: (context) => inputField(context, { type: "date" }, {}),
  dateTime: dateTimeField,
  time: timeField,
  duration: durationField,
  file: fileField,
  scalar: scalarField,
  variant: variantField,
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
    help && element("p", { class: "help", id: `${id}-help` }, inline(help)),
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
      control.value = value === ABSENT || (value === null && context.nullable) ? "" : write(value);
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

const INTEGER = /^[+-]?\d+$/;

/** Returns the number in a text; an integer that a number can't represent keeps its digits. */
function numberOf(text) {
  const value = Number(text);
  if (text === "" || !Number.isFinite(value)) throw new Error("Enter a number, such as 1.5.");
  if (!INTEGER.test(text) || Number.isSafeInteger(value)) return value;
  if (!JSON.rawJSON) throw new Error("This browser can't send an integer of this size.");
  return JSON.rawJSON(text.replace("+", "").replace(/^(-?)0+(?=\d)/, "$1"));
}

function numberField(context) {
  const isInteger = get(context.schema, "type") === "integer";
  const read = (text) => {
    const trimmed = text.trim();
    if (isInteger && !INTEGER.test(trimmed)) throw new Error("Enter an integer.");
    return numberOf(trimmed);
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

/** Returns a field for a time of day. Its schema requires a time zone (RFC 3339). */
function timeField(context) {
  const read = (text) => `${text.length === 5 ? `${text}:00` : text}Z`;
  const write = (value) => /^\d\d:\d\d(:\d\d)?/.exec(asText(value))?.[0] ?? "";
  return inputField(context, { type: "time", step: 1 }, { read, write, note: "In UTC" });
}

const DURATION = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/;
const DURATION_PARTS = [["Days", "D"], ["Hours", "H"], ["Minutes", "M"], ["Seconds", "S"]];

/** Returns four fields for a duration, whose value is text such as P1DT2H. */
function durationField(context) {
  const schema = { type: "integer", minimum: 0 };
  const fields = DURATION_PARTS.map(([name]) => numberField({ ...context, schema, name, label: name, required: false, nullable: false }));
  const parts = element("div", { class: "parts" }, fields.map((field) => field.element));
  const outer = group({ ...context, isPlain: true }, parts);
  return {
    element: outer.node,
    focus: () => fields[0].focus(),
    read(problems) {
      const values = fields.map((field) => field.read(problems));
      const [, hours, minutes, seconds] = values;
      if (hours !== ABSENT && seconds !== ABSENT && minutes === ABSENT) values[2] = 0; // RFC 3339 leaves no part out
      const texts = values.map((value, index) => (value === ABSENT ? "" : `${value}${DURATION_PARTS[index][1]}`));
      const time = texts.slice(1).join("");
      if (texts[0] || time) return `P${texts[0]}${time && `T${time}`}`;
      if (!context.required) return ABSENT;
      if (context.nullable) return null;
      problems.push({ label: context.label, sentence: "Enter a duration.", focus: () => fields[0].focus() });
      return ABSENT;
    },
    write(value) {
      const match = DURATION.exec(asText(value));
      fields.forEach((field, index) => field.write(match?.[index + 1] ?? ABSENT));
    },
  };
}

/** Returns a field for bytes: its text is base64, and a file can be chosen for it. */
function fileField(context) {
  const control = element("textarea", { id: newId("field"), rows: 1, spellcheck: "false", class: "line" });
  const field = controlField(context, control, { read: (text) => text.trim(), write: asText, note: "A file, or base64" });
  const chooser = element("input", { type: "file", "aria-label": `File for ${context.label}` });
  chooser.addEventListener("change", async () => {
    if (chooser.files.length) control.value = base64Of(new Uint8Array(await chooser.files[0].arrayBuffer()));
  });
  control.after(chooser);
  return field;
}

function base64Of(bytes) {
  let text = "";
  for (let start = 0; start < bytes.length; start += 32_768) {
    text += String.fromCharCode(...bytes.subarray(start, start + 32_768));
  }
  return btoa(text);
}

/** Returns a text field for texts and numbers. A number in quotes is text. */
function scalarField(context) {
  const types = variantsOf(context.schema, context.root).map((variant) => variant.type);
  const takesText = types.includes("string");
  const number = types.includes("number") ? /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i : /^[+-]?\d+$/;
  const read = (text) => {
    const trimmed = text.trim();
    const isNumber = types.length > types.filter((type) => type === "string").length && number.test(trimmed);
    if (isNumber) return numberOf(trimmed);
    if (!takesText) throw new Error("Enter a number, such as 1.5.");
    const quoted = /^"([^"]*)"$/.exec(trimmed);
    return quoted && number.test(quoted[1]) ? quoted[1] : text;
  };
  const write = (value) => (typeof value === "string" && number.test(value) ? `"${value}"` : asText(value));
  const note = takesText ? "A number is sent as a number; in quotes it is text" : null;
  return inputField(context, { type: "text" }, { read, write, note });
}

/** Returns a list of the variants of a union, and the field for the chosen one. */
function variantField(context) {
  const { schema, root, depth, required, nullable, budget } = context;
  const variants = variantsOf(schema, root);
  const control = element("select", { id: newId("field"), "aria-label": `Kind of ${context.label}` });
  const body = element("div", { class: "variant" });
  if (!required) control.append(element("option", { value: "unset" }, "(not set)"));
  if (nullable) control.append(element("option", { value: "null" }, "null"));
  variants.forEach((variant, index) => control.append(element("option", { value: index }, nameOfVariant(variant))));
  let field = null;
  const choose = (value) => {
    control.value = value;
    const variant = variants[Number(value)];
    const place = { name: null, label: context.label, root, required: true, depth: depth + 1, budget };
    field = variant === undefined ? null : makeField(variant, place);
    body.replaceChildren(...(field ? [field.element] : []));
  };
  control.addEventListener("change", () => choose(control.value));
  const outer = group({ ...context, isPlain: true }, control, body);
  choose(control.options[0].value);
  return {
    element: outer.node,
    focus: () => control.focus(),
    read: (problems) => (field ? field.read(problems) : control.value === "null" ? null : ABSENT),
    write(value) {
      if (value === ABSENT || (value === null && nullable)) {
        choose(value === null ? "null" : control.options[0].value);
        return;
      }
      const index = variants.findIndex((variant) => fits(value, withoutNull(variant, root).schema, root, depth));
      choose(String(Math.max(index, 0)));
      field.write(value);
    },
  };
}

/** Returns the name of a variant: its title, the constants that identify it, or its type. */
function nameOfVariant(variant) {
  if (typeof get(variant, "title") === "string" && variant.title) return variant.title;
  const constants = Object.values(get(variant, "properties") ?? {}).map(onlyValueOf);
  const names = constants.filter((value) => value !== undefined).map(compactText);
  if (names.length) return names.join(", ");
  const format = typeof get(variant, "format") === "string" ? ` (${variant.format})` : "";
  const type = get(variant, "const") === undefined ? asText(get(variant, "type")) : compactText(variant.const);
  return `${type || "any value"}${format}`;
}

/** Returns whether a value can be of a variant, as far as its type, its constants and its required members say. */
function fits(value, schema, root, depth) {
  const choices = choicesOf(schema);
  if (choices) return choices.some((choice) => stringify(choice.value) === stringify(value));
  const inner = variantsOf(schema, root);
  if (inner.length && depth < MAX_DEPTH) return inner.some((variant) => fits(value, variant, root, depth + 1));
  const type = get(schema, "type");
  if (isObject(value)) {
    const members = Object.entries(get(schema, "properties") ?? {});
    const constants = members.filter(([name, member]) => get(value, name) !== undefined && onlyValueOf(member) !== undefined);
    if (constants.some(([name, member]) => stringify(value[name]) !== stringify(onlyValueOf(member)))) return false;
    if (get(schema, "additionalProperties") === false && !Object.keys(value).every((name) => members.some(([member]) => member === name))) return false;
    return [undefined, "object"].includes(type) && listOf(get(schema, "required")).every((name) => Object.hasOwn(value, name));
  }
  if (Array.isArray(value)) return [undefined, "array"].includes(type);
  if (typeof value === "number") return [undefined, "number", ...(Number.isInteger(value) ? ["integer"] : [])].includes(type);
  return type === undefined || type === typeof value || (type === "null" && value === null);
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
    legend, help && element("p", { class: "help", id: helpId }, inline(help)), body);
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

/** Returns the field of a member that has one possible value: nobody has to see it. */
const constantField = (value) => ({ element: null, focus() {}, read: () => value, write() {} });

function objectField(context) {
  const { schema, root, depth, budget } = context;
  const required = listOf(get(schema, "required"));
  const members = Object.entries(schema.properties).map(([name, property]) => {
    const isRequired = required.includes(name);
    const member = resolved(property, root);
    const value = onlyValueOf(member);
    const isDefault = stringify(get(member, "default")) === stringify(value);
    if (value !== undefined && (isRequired || isDefault)) return { name, field: constantField(value) };
    return { name, field: makeField(property, { name, root, required: isRequired, depth: depth + 1, budget }) };
  });
  const nodes = members.map(({ field }) => field.element).filter(Boolean);
  const outer = depth === 0 ? { node: element("div", {}, nodes), isIncluded: () => true, include() {} } : group(context, nodes);
  return {
    element: outer.node,
    focus: () => members.find(({ field }) => field.element)?.field.focus(),
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
    write: (values) => (showsText ? text : form).write(values),
  };
}
