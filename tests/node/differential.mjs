// Validates values with ajv in strict mode and with formats. Each line of the standard input is a JSON object with a
// schema and a value. Each line of the output is the verdict, or the error of the schema.
import { createInterface } from "node:readline";
import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";

const options = { strict: true, strictTypes: false, unicodeRegExp: true, logger: { log: fail, warn: fail, error: fail } };
const compiled = new Map();

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`);
}

function answer({ schema, value }) {
  const text = JSON.stringify(schema);
  if (!compiled.has(text)) {
    compiled.set(text, compile(schema));
  }
  const validate = compiled.get(text);
  return typeof validate === "string" ? validate : validate(value);
}

function compile(schema) {
  try {
    const ajv = new Ajv2020(options);
    addFormats.default(ajv);
    return ajv.compile(schema);
  } catch (error) {
    return String(error);
  }
}

function fail(message) {
  throw new Error(message);
}
