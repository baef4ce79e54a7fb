// Reads a JSON array of pairs from the standard input, each with a schema and an array of values, validates the values
// with ajv in strict mode and with formats, and prints for each pair the errors of its values, without valid ones.
import { readFileSync } from "node:fs";
import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";

const options = { strict: true, strictTypes: false, unicodeRegExp: true };

const errors = JSON.parse(readFileSync(0, "utf8")).map(([schema, values]) => {
  const ajv = new Ajv2020(options);
  addFormats.default(ajv);
  const validate = ajv.compile(schema);
  return values.flatMap((value) => (validate(value) ? [] : [[value, ajv.errorsText(validate.errors)]]));
});
process.stdout.write(JSON.stringify(errors));
