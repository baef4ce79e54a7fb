// Prints the official JSON Schemas that the conformance suite has in its bundled source, as a JSON array.
// Arguments: the bundle's file.
import { readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";

const source = readFileSync(process.argv[2], "utf8");
const schemas = [];
for (const { index } of source.matchAll(/\{\$schema:`[^`]*`,(?:definitions|\$defs):\{Annotations:/g)) {
  schemas.push(runInNewContext(`(${source.slice(index, endOfObject(index))})`));
}
process.stdout.write(JSON.stringify(schemas));

/** Returns the position behind the object literal that begins at a position. */
function endOfObject(start) {
  let depth = 0;
  let quote = null;
  for (let at = start; ; at++) {
    const character = source[at];
    if (quote !== null) {
      if (character === "\\") at++;
      else if (character === quote) quote = null;
    } else if ("`'\"".includes(character)) quote = character;
    else if (character === "{") depth++;
    else if (character === "}" && --depth === 0) return at + 1;
  }
}
