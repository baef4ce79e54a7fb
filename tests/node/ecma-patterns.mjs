// Reads a JSON array of [pattern, texts] from the standard input, and prints for each which texts the pattern matches
// with the flag "u", or the error.
import { readFileSync } from "node:fs";

const matches = JSON.parse(readFileSync(0, "utf8")).map(([pattern, texts]) => {
  try {
    const expression = new RegExp(pattern, "u");
    return texts.map((text) => expression.test(text));
  } catch (error) {
    return String(error);
  }
});
process.stdout.write(JSON.stringify(matches));
