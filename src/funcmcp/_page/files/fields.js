// Forms made from JSON Schemas. A field is {element, read, write, focus}. `read(problems)` returns the value, or ABSENT
// if it is to be left out. What a form can't show is a field for JSON text.

const ABSENT = Symbol("absent");
const MAX_DEPTH = 6;
const MAX_REFERENCES = 20;
const MAX_FIELDS = 300;
const MAX_FORM = 50_000; // what a form shows: a field counts as ten, a value of a list as one
const MAX_CHOICES = 1000; // in a list
const MAX_EXAMINED = 10_000; // values of one schema
const MAX_VARIANTS = 100;
const MAX_TUPLE = 100;
const MAX_ATTEMPTS = 100_000;
const MAX_FIRST_ITEMS = 5;
const MAX_NAME = 200;
const MAX_HELP = 5000;
const ANNOTATIONS = ["title", "description", "default", "examples"];

/** Returns the schema that a reference within the document leads to, with the annotations beside the reference. */
function resolved(schema, root) {
  let node = isObject(schema) ? schema : {};
  for (let count = 0; count <= MAX_REFERENCES; count += 1) {
    const all = listOf(get(node, "allOf"));
    if (typeof get(node, "$ref") === "string") {
      const target = targetOf(node.$ref, root);
      if (!isObject(target)) return {};
      const { $ref: _, ...siblings } = node;
      node = { ...target, ...siblings };
    } else if (all.length === 1 && isObject(all[0])) {
      const { allOf: _, ...siblings } = node;
      node = { ...all[0], ...siblings };
    } else {
      return node;
    }
  }
  return {};
}

function targetOf(reference, root) {
  if (!reference.startsWith("#")) return undefined;
  let node = root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    const name = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
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

/** Returns the first of the values that a schema allows, with a label for each; null if it does not list them. */
function choicesOf(schema) {
  if (get(schema, "const") !== undefined) return labelled([schema.const], []);
  if (Array.isArray(get(schema, "enum"))) return labelled(schema.enum.slice(0, MAX_EXAMINED), listOf(get(schema, "enumNames")));
  const branches = listOf(get(schema, "oneOf") ?? get(schema, "anyOf")).slice(0, MAX_EXAMINED);
  if (branches.length === 0 || !branches.every((branch) => get(branch, "const") !== undefined)) return null;
  return labelled(branches.map((branch) => branch.const), branches.map((branch) => get(branch, "title")));
}

/** Returns values with their labels. A value without a name is shown as JSON where its text is ambiguous, as "1" and 1. */
function labelled(values, names) {
  const types = new Set(values.filter((value) => value !== null).map((value) => typeof value));
  const isMixed = types.size > 1 || (values.includes(null) && values.includes("null"));
  return values.map((value, index) => {
    const name = names[index];
    if (name !== undefined && name !== null) return { value, label: brief(asText(name), MAX_NAME) };
    return { value, label: brief(isMixed || value === "" ? JSON.stringify(value) : compactText(value), MAX_NAME) };
  });
}

const SCALARS = ["string", "integer", "number"];

/** Returns the schemas of which a value has to fit one, and not many more than a form shows; none if there is no such union. */
function variantsOf(schema, root) {
  const types = get(schema, "type");
  if (Array.isArray(types)) return types.slice(0, MAX_VARIANTS + 1).map((type) => ({ ...schema, type }));
  if (get(schema, "allOf") || get(schema, "not") || get(schema, "if") || get(schema, "properties")) return [];
  const branches = listOf(get(schema, "oneOf") ?? get(schema, "anyOf"));
  return branches.length > 1 ? branches.slice(0, MAX_VARIANTS + 1).map((branch) => resolved(branch, root)) : [];
}

/** Returns whether one text field can be for all variants: they are texts and numbers without further rules. */
const isOneText = (variants) => variants.every((variant) => SCALARS.includes(get(variant, "type")) && !choicesOf(variant));

function kindOf(schema, root, depth) {
  if (choicesOf(schema)) return "choice";
  const variants = variantsOf(schema, root);
  if (variants.length > MAX_VARIANTS) return "json";
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
  if (type === undefined && COMPOUND.every((keyword) => get(schema, keyword) === undefined)) return "any";
  if (depth >= MAX_DEPTH) return "json";
  if (type === "array" && prefixOf(schema).length > 0) return prefixOf(schema).length > MAX_TUPLE ? "json" : "tuple";
  if (type === "array" && isObject(get(schema, "items"))) return choicesOf(resolved(schema.items, root)) ? "choices" : "list";
  if (get(schema, "patternProperties")) return "json";
  if (type === "object" && isObject(get(schema, "additionalProperties"))) return "map";
  return "json";
}

const COMPOUND = ["items", "prefixItems", "properties", "additionalProperties", "patternProperties"];

/** Returns the schemas of the first items of an array, each of which has its own. */
function prefixOf(schema) {
  const items = get(schema, "prefixItems") ?? get(schema, "items");
  return listOf(items);
}

/** Returns the schema of the items after those of prefixOf; null if there may be none, or anything. */
function furtherItemsOf(schema) {
  const items = get(schema, Array.isArray(get(schema, "prefixItems")) ? "items" : "additionalItems");
  return isObject(items) && (get(schema, "maxItems") ?? Infinity) > prefixOf(schema).length ? items : null;
}

const FORMATS = { date: "date", "date-time": "dateTime", time: "time", duration: "duration" };

/**
 * Returns the number of fields that a form, or an item of a list in it, may still have before the others are JSON text, and
 * what the form may still show in total. So no schema and no default makes an endless form.
 */
const newBudget = (total = { left: MAX_FORM, zoneId: null }) => ({ left: MAX_FIELDS, total });

/** Counts what a form shows. Throws an error if that is too much. */
function spend(budget, count) {
  budget.total.left -= count;
  if (budget.total.left < 0) throw new Error("It would have too many fields.");
}

/** Makes a change of a form for which a person asks. Where the form would become too large, a sentence takes its place. */
function change(budget, node, make) {
  budget.total.left = MAX_FORM;
  node.replaceChildren();
  try {
    make();
  } catch (error) {
    node.replaceChildren(failure(`This can't be shown as a form. ${error.message} Use Edit as JSON.`));
  }
}

/**
 * Returns the field for a schema. place is {name, label, root, required, depth, budget}. The label is by default the
 * title or the name. A field whose name is null does not show it.
 */
function makeField(rawSchema, place) {
  const { schema, nullable } = withoutNull(resolved(rawSchema, place.root), place.root);
  const context = { ...place, schema, nullable, label: labelOf(schema, place.name, place.label) };
  place.budget.left -= 1;
  spend(place.budget, 10);
  const kind = place.budget.left < 0 ? "json" : kindOf(schema, place.root, place.depth);
  const field = FIELDS[kind](context);
  const initial = get(schema, "default");
  if (initial === undefined || (initial === null && !place.required)) return field;
  field.write(initial);
  return { ...field, write: (value) => field.write(value === ABSENT ? initial : value) };
}

function labelOf(schema, name, label) {
  const title = typeof get(schema, "title") === "string" ? schema.title : "";
  return brief(label || title || name || "Value", MAX_NAME);
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
  tuple: tupleField,
  any: anyField,
  json: jsonField,
};

// One control with a label

const counted = (count, noun) => `${count.toLocaleString()} ${noun}${count === 1 ? "" : "s"}`;
const FORMAT_NAMES = { uri: "a URL", email: "an email address", uuid: "a UUID", ipv4: "an IPv4 address", ipv6: "an IPv6 address" };
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
  const isTuple = prefixOf(schema).length > 0; // its fields show how many items it has
  const limits = constraints.filter(([name]) => ["number", "string"].includes(typeof get(schema, name)) && !(isTuple && name.endsWith("Items")))
    .map(([name, describe]) => describe(schema[name]));
  if (get(schema, "type") === "integer") limits.unshift("an integer");
  const format = get(schema, "format");
  if (typeof format === "string" && schema.type === "string" && !Object.hasOwn(FORMATS, format)) {
    limits.unshift(Object.hasOwn(FORMAT_NAMES, format) ? FORMAT_NAMES[format] : `in the format ${format}`);
  }
  const sentence = limits.join(", ");
  const parts = [asText(get(schema, "description")), sentence && sentence[0].toUpperCase() + sentence.slice(1), note];
  return brief(parts.filter(Boolean).map((part) => part.replace(/([^.!?:…])$/, "$1.")).join(" "), MAX_HELP);
}

function labelContent({ label, name, required, nullable, isOfUnion }) {
  const content = [label];
  if (name && brief(name, MAX_NAME) !== label) content.push(" ", element("code", {}, brief(name, MAX_NAME)));
  if (required && !nullable && !isOfUnion) content.push(" ", element("span", { class: "required" }, "required"));
  return content;
}

/** Returns the frame of a control: label, help, the control, a box for null, and the place for a problem. */
function frame(context, control, { note, before } = {}) {
  const id = control.id;
  const help = helpOf(context.schema, note);
  const problem = element("p", { class: "problem", id: `${id}-problem`, hidden: true });
  const zoneId = TIMES.includes(control.type) && context.budget.total.zoneId;
  const descriptions = [help && `${id}-help`, zoneId, `${id}-problem`].filter(Boolean).join(" ");
  control.setAttribute("aria-describedby", descriptions);
  if (context.required && !context.nullable && !context.isOfUnion && control.type !== "checkbox") control.setAttribute("aria-required", "true");
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

const TIMES = ["time", "datetime-local"]; // types of controls
const NO_TEXT = "Enter a value. To send an empty text, use Edit as JSON.";

/**
 * Returns a field around one control. read and write convert its text; empty is what an empty control means. A control that
 * takesEmpty sends an empty text again that was written into it, as a default or by Edit as JSON.
 */
function controlField(context, control, { read, write, empty, note, takesEmpty = false }) {
  const outer = frame(context, control, { note });
  const isDefault = !context.required && get(context.schema, "default") === "";
  let written = ABSENT;
  return {
    element: outer.node,
    focus: () => control.focus(),
    read(problems) {
      outer.clear();
      if (outer.isNull()) return null;
      if (control.value === "") {
        if (takesEmpty && written === "" && !isDefault) return "";
        const value = empty?.() ?? ABSENT;
        if (value !== ABSENT || !context.required) return value;
        return context.nullable ? null : outer.report(problems, takesEmpty ? NO_TEXT : "Enter a value.");
      }
      try {
        return read(control.value);
      } catch (error) {
        return outer.report(problems, error.message);
      }
    },
    write(value) {
      written = value;
      outer.setNull(value === null);
      control.value = value === ABSENT || (value === null && context.nullable) ? "" : write(value);
    },
  };
}

function inputField(context, attributes, { read = (text) => text, write = asText, ...options } = {}) {
  const control = element("input", { id: newId("field"), autocomplete: "off", spellcheck: "false", ...attributes });
  return controlField(context, control, { read, write, ...options });
}

function stringField(context) {
  const { schema } = context;
  const hasDefault = typeof get(schema, "default") === "string" && schema.default !== "";
  const empty = () => (hasDefault ? "" : ABSENT);
  const types = { email: "email", uri: "url", password: "password" };
  const isLong = get(schema, "maxLength") > 200 || /\n/.test(get(schema, "default")) || get(schema, "contentMediaType");
  const type = get(schema, "writeOnly") === true ? "password" : types[get(schema, "format")] ?? "text";
  if (!isLong && type !== "text") return inputField(context, { type }, { empty, takesEmpty: true });
  const control = isLong ? element("textarea", { id: newId("field"), rows: 4, spellcheck: "false", class: "line" }) : lineControl();
  return controlField(context, control, { read: (text) => text, write: asText, empty, takesEmpty: true });
}

/** Returns a control for one line, or for several. Enter sends the form. */
function lineControl() {
  const control = element("textarea", { id: newId("field"), rows: 1, spellcheck: "false", class: "line" });
  control.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !control.form) return;
    event.preventDefault();
    control.form.requestSubmit();
  });
  return control;
}

/** Returns the value that a person has typed for a schema without a type: JSON, or else text. */
function anyValueOf(text) {
  try {
    return parse(text);
  } catch {
    return text;
  }
}

/** Returns how a sentence names the type of a value. */
function typeNameOf(value) {
  if (value === null) return "null";
  if (typeof value === "string") return "text";
  if (typeof value === "boolean") return "a boolean";
  if (Array.isArray(value)) return "a list";
  return typeof value === "number" || JSON.isRawJSON?.(value) ? "a number" : "an object";
}

/** Returns a field for a value of any type. It says what the text is sent as. */
function anyField(context) {
  const control = lineControl();
  const note = 'Text or JSON. 1 is sent as a number, "1" in quotes as text';
  const write = (value) => (typeof value !== "string" || value === "" || anyValueOf(value) !== value ? stringify(value) : value);
  const field = controlField(context, control, { read: anyValueOf, write, note });
  const sentAs = element("p", { class: "help" });
  const show = () => (sentAs.textContent = control.value === "" ? "" : `It is sent as ${typeNameOf(anyValueOf(control.value))}.`);
  control.addEventListener("input", show);
  field.element.append(sentAs);
  return {
    ...field,
    write: (value) => {
      field.write(value);
      show();
    },
  };
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

// Times are shown and sent in the time zone of the browser. The form says so once (schemaForm).

/** Returns a field for a time. A value that was written is sent again as it was, unless a person changes it. */
function timeControl(context, type, { read, write }) {
  let written = null;
  let shown = null;
  const field = inputField(context, { type, step: 1 }, {
    read: (text) => (text === shown ? written : read(text)),
    write: (value) => write(asText(value)),
  });
  return {
    ...field,
    write: (value) => {
      field.write(value);
      written = value;
      shown = field.element.querySelector("input").value; // browsers leave out seconds that are zero
    },
  };
}

function dateTimeField(context) {
  const read = (text) => {
    const offset = Date.parse(`${text}Z`) - Date.parse(text);
    if (Number.isNaN(offset)) throw new Error("Enter a date and a time.");
    // RFC 3339 has no seconds in an offset, which zones had in the 19th century.
    return offset % 60_000 === 0 ? withSeconds(text) + offsetText(offset / 60_000) : new Date(text).toISOString().replace(".000Z", "Z");
  };
  const write = (value) => {
    const moment = new Date(value);
    if (Number.isNaN(moment.getTime())) return "";
    return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  };
  return timeControl(context, "datetime-local", { read, write });
}

const TIME = /^(\d\d):(\d\d)(:\d\d)?(?:\.\d+)?(Z|[+-]\d\d:\d\d)?$/i;
const MINUTES_OF_DAY = 24 * 60;

/** Returns a field for a time of day. Its schema requires an offset (RFC 3339), which is that of today. */
function timeField(context) {
  const today = -new Date().getTimezoneOffset();
  const read = (text) => withSeconds(text) + offsetText(today);
  const write = (value) => {
    const [, hours, minutes, seconds, offset] = TIME.exec(value) ?? [];
    if (hours === undefined) return "";
    const shift = offset === undefined ? 0 : today - minutesOf(offset);
    const local = (Number(hours) * 60 + Number(minutes) + shift + 2 * MINUTES_OF_DAY) % MINUTES_OF_DAY;
    return `${hoursAndMinutes(local)}${seconds ?? ":00"}`;
  };
  return timeControl(context, "time", { read, write });
}

const withSeconds = (text) => (/:\d\d:\d\d/.test(text) ? text : `${text}:00`);
const hoursAndMinutes = (minutes) => [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, "0")).join(":");
const offsetText = (minutes) => `${minutes < 0 ? "-" : "+"}${hoursAndMinutes(Math.abs(minutes))}`;

/** Returns the minutes of an offset such as +01:00. */
function minutesOf(offset) {
  if (offset.toUpperCase() === "Z") return 0;
  const [hours, minutes] = offset.slice(1).split(":").map(Number);
  return (offset[0] === "-" ? -1 : 1) * (hours * 60 + minutes);
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
  const field = controlField(context, control, { read: (text) => text.trim(), write: asText, note: "A file, or base64", takesEmpty: true });
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
  return inputField(context, { type: "text" }, { read, write, note, takesEmpty: takesText });
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
    const place = { name: null, label: context.label, root, required: true, isOfUnion: !required, depth: depth + 1, budget };
    field = variant === undefined ? null : makeField(variant, place);
    body.replaceChildren(...(field ? [field.element] : []));
  };
  control.addEventListener("change", () => change(budget, body, () => choose(control.value)));
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
      const attempts = { left: MAX_ATTEMPTS };
      const index = variants.findIndex((variant) => fits(value, withoutNull(variant, root).schema, root, depth, attempts));
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
function fits(value, schema, root, depth, attempts) {
  attempts.left -= 1;
  if (attempts.left < 0) return false;
  const choices = choicesOf(schema);
  if (choices) {
    attempts.left -= choices.length;
    const text = stringify(value);
    return choices.some((choice) => stringify(choice.value) === text);
  }
  const inner = variantsOf(schema, root);
  if (inner.length && depth < MAX_DEPTH) return inner.some((variant) => fits(value, variant, root, depth + 1, attempts));
  const type = get(schema, "type");
  if (isObject(value)) {
    const members = Object.entries(get(schema, "properties") ?? {});
    const constants = members.filter(([name, member]) => get(value, name) !== undefined && onlyValueOf(member) !== undefined);
    if (constants.some(([name, member]) => stringify(value[name]) !== stringify(onlyValueOf(member)))) return false;
    const names = new Set(members.map(([name]) => name));
    if (get(schema, "additionalProperties") === false && !Object.keys(value).every((name) => names.has(name))) return false;
    return [undefined, "object"].includes(type) && listOf(get(schema, "required")).every((name) => Object.hasOwn(value, name));
  }
  if (Array.isArray(value)) return [undefined, "array"].includes(type) && fitsPrefix(value, schema);
  if (typeof value === "number") return [undefined, "number", ...(Number.isInteger(value) ? ["integer"] : [])].includes(type);
  return type === undefined || type === typeof value || (type === "null" && value === null);
}

/** Returns whether an array has no more items than the fields of a tuple, and not too few. */
function fitsPrefix(value, schema) {
  const prefix = prefixOf(schema);
  if (prefix.length === 0) return true;
  return value.length >= (get(schema, "minItems") ?? 0) && (value.length <= prefix.length || furtherItemsOf(schema) !== null);
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
  const shown = shownChoices(choices, context.budget);
  const option = (index) => element("option", { value: index }, choices[index].label);
  control.append(...shown.map((_, index) => option(index)));
  const hasNull = choices.some((choice) => choice.value === null);
  return controlField({ ...context, nullable: context.nullable && !hasNull }, control, {
    read: (index) => choices[Number(index)].value,
    write: (value) => {
      const text = stringify(value);
      const index = choices.findIndex((choice) => stringify(choice.value) === text);
      if (index < 0 && value !== null && choices.length === MAX_EXAMINED) throw new Error("A value is not in its list.");
      if (index >= shown.length && ![...control.options].some((other) => other.value === String(index))) control.append(option(index));
      return index < 0 ? "" : String(index);
    },
    note: choices.length > shown.length ? NOT_LISTED : null,
  });
}

/** Returns the first of the values that a list offers. */
function shownChoices(choices, budget) {
  const shown = choices.slice(0, MAX_CHOICES);
  spend(budget, shown.length);
  return shown;
}

const NOT_LISTED = `The first ${MAX_CHOICES.toLocaleString()} values are listed. Use Edit as JSON to send another one.`;

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
  const required = new Set(listOf(get(schema, "required")));
  const members = Object.entries(schema.properties).map(([name, property]) => {
    const isRequired = required.has(name);
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

/** Returns the fields of a tuple: one for each of its first items, and a list of the others. */
function tupleField(context) {
  const { schema, root, depth, budget } = context;
  const least = get(schema, "minItems") ?? 0;
  const fields = prefixOf(schema).map((item, index) => {
    const isRequired = index < least;
    const value = onlyValueOf(resolved(item, root));
    if (value !== undefined && isRequired) return constantField(value);
    return makeField(item, { name: `Item ${index + 1}`, root, required: isRequired, depth: depth + 1, budget });
  });
  const further = furtherItemsOf(schema);
  const list = further && listField({ schema: { type: "array", items: further }, name: "Further items", label: `Further items of ${context.label}`,
    root, required: false, nullable: false, depth: depth + 1, budget });
  const outer = group(context, element("div", { class: "tuple" }, fields.map((field) => field.element), list?.element));
  return {
    element: outer.node,
    focus: () => (fields.find((field) => field.element) ?? list)?.focus(),
    read(problems) {
      if (!outer.isIncluded()) return context.required ? null : ABSENT;
      const values = fields.map((field) => field.read(problems));
      const others = list === null ? ABSENT : list.read(problems);
      if (others !== ABSENT) values.push(...others);
      const end = values.findLastIndex((value) => value !== ABSENT) + 1;
      const missing = values.slice(0, end).indexOf(ABSENT);
      if (missing >= least) {
        problems.push({ label: context.label, sentence: `Enter item ${missing + 1}, or empty the items after it.`, focus: fields[missing].focus });
      }
      return values.slice(0, end);
    },
    write(value) {
      outer.include(Array.isArray(value));
      const values = listOf(value);
      if (values.length > fields.length && list === null) throw new Error("A list has more items than its schema names.");
      fields.forEach((field, index) => field.write(index < values.length ? values[index] : ABSENT));
      list?.write(values.slice(fields.length));
    },
  };
}

/** Returns a sentence for an empty list or object of a form, which says whether it is sent. */
function emptyNote(context, empty, noun) {
  const isSent = context.required || isEmptied(context.schema, empty);
  return element("p", { class: "help" }, isSent ? `It is empty, and sent as an empty ${noun}.` : "It is empty, and not sent.");
}

/** Returns a list of items that grows and shrinks. */
function rows(context, makeRow, noun, note) {
  const items = [];
  const container = element("div", { class: "items" });
  const limit = get(context.schema, "maxItems") ?? get(context.schema, "maxProperties") ?? Infinity;
  const isFirst = context.required && context.depth <= 1;
  const least = isFirst ? Math.min(get(context.schema, "minItems") ?? 0, MAX_FIRST_ITEMS) : 0;
  const add = element("button", { type: "button", class: "small", "aria-label": `Add ${noun} to ${context.label}` }, "Add");
  const outer = group(context, container, note, add);
  const number = () => {
    add.disabled = items.length >= limit;
    note.hidden = items.length > 0;
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
  const sentence = element("div", {});
  add.after(sentence);
  add.addEventListener("click", () => change(context.budget, sentence, () => append().focus()));
  const clear = () => {
    items.splice(0).forEach((item) => item.node.remove());
    number();
  };
  for (let count = 0; count < least; count += 1) append();
  number();
  return { outer, items, append, clear };
}

const isEmptied = (schema, name) => stringify(get(schema, "default") ?? name) !== stringify(name);

function listField(context) {
  const { schema, root, depth } = context;
  const { outer, items, append, clear } = rows({ ...context, isPlain: true }, () => {
    const label = `Item of ${context.label}`;
    const field = makeField(schema.items, { name: null, label, root, required: true, depth: depth + 1, budget: newBudget(context.budget.total) });
    return { elements: [field.element], field, focus: field.focus };
  }, "item", emptyNote(context, [], "list"));
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
    const place = { root, required: true, depth: depth + 1, budget: newBudget(context.budget.total) };
    const key = makeField({ type: "string" }, { ...place, name: "Name" });
    const field = makeField(schema.additionalProperties, { ...place, name: "Value" });
    return { elements: [key.element, field.element], key, field, focus: key.focus };
  }, "entry", emptyNote(context, {}, "object"));
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

/**
 * Returns a field for a list of values of which a schema names each. It has boxes. If a value may come twice, and the order may
 * matter, a button changes them to a list.
 */
function choicesField(context) {
  const boxes = boxesField(context);
  if (get(context.schema, "uniqueItems") === true) return boxes;
  const list = listField(context);
  const toggle = element("button", { type: "button", class: "small" });
  const problem = element("div", {});
  let shown = boxes;
  const show = (field) => {
    shown = field;
    boxes.element.hidden = field !== boxes;
    list.element.hidden = field !== list;
    const caption = field === boxes ? "Set an order" : "Show as boxes";
    toggle.textContent = caption;
    toggle.setAttribute("aria-label", visible(`${caption} of ${context.label}`));
  };
  const write = (field, value) => {
    field.write(value);
    show(field);
  };
  toggle.addEventListener("click", () => change(context.budget, problem, () => write(shown === boxes ? list : boxes, shown.read([]))));
  show(boxes);
  return {
    element: element("div", { class: "field" }, boxes.element, list.element, toggle, problem),
    focus: () => shown.focus(),
    read: (problems) => shown.read(problems),
    write: (value) => write(boxes.canShow(value) ? boxes : list, value),
  };
}

function boxesField(context) {
  const choices = choicesOf(resolved(context.schema.items, context.root));
  const places = new Map(choices.map((choice, index) => [stringify(choice.value), index]));
  const shown = shownChoices(choices, context.budget);
  const unlisted = new Map(choices.slice(shown.length).map((choice) => [stringify(choice.value), choice]));
  const note = emptyNote(context, [], "list");
  const list = element("div", { change: () => showNote() });
  const boxes = [];
  const addBox = (choice) => {
    const box = element("input", { type: "checkbox" });
    boxes.push({ choice, box });
    list.append(element("label", { class: "choice" }, box, " ", choice.label));
  };
  const showNote = () => (note.hidden = boxes.some(({ box }) => box.checked));
  shown.forEach(addBox);
  const outer = group({ ...context, isPlain: true }, list, note, unlisted.size > 0 && element("p", { class: "help" }, NOT_LISTED));
  return {
    element: outer.node,
    focus: () => boxes[0]?.box.focus(),
    /** Returns whether the boxes show a value: it has the order of the choices, and nothing twice. */
    canShow(value) {
      const indexes = listOf(value).map((item) => places.get(stringify(item)) ?? Infinity);
      return indexes.every((place, index) => index === 0 || place > indexes[index - 1]);
    },
    read() {
      const values = boxes.filter(({ box }) => box.checked).map(({ choice }) => choice.value);
      return values.length || context.required || isEmptied(context.schema, []) ? values : ABSENT;
    },
    write(value) {
      const texts = new Set(listOf(value).map(stringify));
      for (const text of texts) {
        if (unlisted.has(text)) {
          spend(context.budget, 10);
          addBox(unlisted.get(text));
          unlisted.delete(text);
        } else if (choices.length === MAX_EXAMINED && !boxes.some(({ choice }) => stringify(choice.value) === text)) {
          throw new Error("A value is not in its list.");
        }
      }
      for (const { choice, box } of boxes) box.checked = texts.has(stringify(choice.value));
      showNote();
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

/**
 * Returns a form for an object schema that can be changed to JSON text: {element, read, write}. If there can't be a form, there
 * is the JSON text with a sentence.
 */
function schemaForm(schema, label) {
  const root = isObject(schema) ? schema : {};
  const budget = newBudget({ left: MAX_FORM, zoneId: newId("zone") });
  const text = jsonField({ schema: {}, name: null, required: false, label: `${label} as JSON` });
  text.write({});
  let form = null;
  let reason = null;
  try {
    form = objectForm(root, label, budget);
    form?.element.prepend(zoneNote(budget.total.zoneId));
  } catch (error) {
    reason = failure(`This page can't make a form of the schema. ${error.message} Edit the values as JSON.`);
  }
  const isEmpty = form === null && reason === null && hasNoMembers(root);
  let showsText = form === null;
  const problem = element("div", {});
  const toggle = element("button", { type: "button", class: "small", "aria-pressed": "false" }, "Edit as JSON");
  const show = (isText) => {
    showsText = isText;
    toggle.setAttribute("aria-pressed", String(isText));
    if (form) form.element.hidden = isText;
    text.element.hidden = !isText || isEmpty;
  };
  /** Writes values into the form; into the text, if they are too many for a form. Returns whether the form shows them. */
  const write = (values) => {
    problem.replaceChildren();
    try {
      budget.total.left = MAX_FORM;
      form.write(values);
      show(false);
      return true;
    } catch (error) {
      text.write(values);
      show(true);
      problem.replaceChildren(failure(`The form can't show these values. ${error.message}`));
      return false;
    }
  };
  toggle.addEventListener("click", () => {
    if (!showsText) {
      text.write(form.read([]));
      show(true);
      text.focus();
      return;
    }
    const problems = [];
    const values = text.read(problems);
    if (problems.length === 0 && write(values)) form.focus();
  });
  show(showsText);
  return {
    element: element("div", { class: "schema-form" },
      form && element("div", { class: "toggle" }, toggle), reason,
      form?.element, text.element, problem,
      isEmpty && element("p", { class: "quiet" }, "No arguments."),
    ),
    read: () => checked((problems) => (showsText ? text : form).read(problems)),
    write: (values) => (showsText ? text.write(values) : write(values)),
  };
}

/** Returns the sentence about the times of a form, which shows it if it has a field for a time. */
function zoneNote(id) {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  return element("p", { class: "help zone", id }, `Times are in the time zone of this browser, ${timeZone}.`);
}

/** Returns the fields of an object schema; null if the schema does not name its members. */
function objectForm(root, label, budget) {
  const schema = resolved(root, root);
  const place = { root, required: true, depth: 0, name: null, label, budget };
  const branches = objectBranches(schema, root);
  if (branches.length > MAX_VARIANTS) return null;
  if (branches.length > 0) {
    const field = variantField({ ...place, schema: { oneOf: branches } });
    return { ...field, element: element("div", {}, field.element) };
  }
  if (kindOf(schema, root, 0) !== "object") return null;
  return objectField({ ...place, schema });
}

/** Returns the branches of a union of objects, each with the members that the schema has for all; none if there is no such union. */
function objectBranches(schema, root) {
  const { properties, required, oneOf, anyOf } = schema;
  if (get(schema, "allOf") || get(schema, "not") || get(schema, "if")) return [];
  const branches = listOf(oneOf ?? anyOf).slice(0, MAX_VARIANTS + 1).map((branch) => resolved(branch, root));
  if (branches.length < 2 || !branches.every((branch) => kindOf(branch, root, 0) === "object")) return [];
  return branches.map((branch) => ({
    ...branch,
    type: "object",
    properties: { ...properties, ...branch.properties },
    required: [...listOf(required), ...listOf(branch.required)],
  }));
}

/** Returns whether a schema allows no member, or says nothing about members. */
function hasNoMembers(root) {
  if (Object.keys(get(root, "properties") ?? {}).length) return false;
  return get(root, "additionalProperties") === false || Object.keys(root).every((name) => ["type", "title", "$schema", "properties"].includes(name));
}
