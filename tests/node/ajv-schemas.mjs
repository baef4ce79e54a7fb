// Reads a JSON array of schemas from the standard input, compiles each with ajv in strict mode and with formats, and
// prints for each the error, or null.
import { readFileSync } from "node:fs";
import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";

const options = { strict: true, strictTypes: false, unicodeRegExp: true, logger: { log: fail, warn: fail, error: fail } };

const errors = JSON.parse(readFileSync(0, "utf8")).map((schema) => {
  try {
    const ajv = new Ajv2020(options);
    addFormats.default(ajv);
    ajv.addVocabulary(["x-mcp-header"]);
    ajv.compile(schema);
    return null;
  } catch (error) {
    return String(error);
  }
});
process.stdout.write(JSON.stringify(errors));

function fail(message) {
  throw new Error(message);
}
