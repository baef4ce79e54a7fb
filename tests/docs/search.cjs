// Reads {script, passages, queries} from stdin and writes the pages of the first results for each query.
"use strict";
const input = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const { createSearch } = require(input.script);
const search = createSearch(input.passages);
process.stdout.write(JSON.stringify(input.queries.map((query) => search(query).slice(0, input.results).map(({ page }) => page))));
