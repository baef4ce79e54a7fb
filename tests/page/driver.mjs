// A headless Chromium or Firefox for tests. Arguments: the folder whose node_modules has the packages, "chromium" or
// "firefox", the browser's program, and the seconds after which a script gives up what has to come.
// Each line on stdin is {script, args, options}: the body of an async function of `page`, `args` and `violations`, which
// runs in a new context with these options. The answer is one line: {value, failure, errors, requests}.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import readline from "node:readline";

const [packages, name, program, patience] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
// The Playwright that knows the commands of Firefox ESR. The newest one needs a newer Firefox.
const browsers = {
  chromium: () => require("playwright-core").chromium,
  firefox: () => require("playwright-firefox")._bidiFirefox,
};
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf-8");
const AsyncFunction = (async () => {}).constructor;

// What is not on this machine can't be reached: other names than those of *.example.test do not resolve, or belong to a
// proxy that does not exist. Firefox is the one of the machine, which WebDriver BiDi drives.
const options = {
  chromium: {
    args: ["--host-resolver-rules=MAP *.example.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"],
  },
  firefox: {
    channel: "moz-firefox",
    firefoxUserPrefs: {
      "network.dns.localDomains": "orders.example.test,evil.example.test",
      "network.proxy.type": 1,
      "network.proxy.http": "127.0.0.1",
      "network.proxy.http_port": 1,
      "network.proxy.ssl": "127.0.0.1",
      "network.proxy.ssl_port": 1,
      "network.proxy.no_proxies_on": "127.0.0.1, localhost, .example.test",
    },
  },
};
const browser = await browsers[name]().launch({ executablePath: program, ...options[name] });

/** Returns what axe-core finds wrong with the document, or which of some rules it breaks. */
async function violations(page, rules = null) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  const options = rules === null ? {} : { runOnly: { type: "rule", values: rules } };
  const report = await page.evaluate((chosen) => window.axe.run(chosen), { resultTypes: ["violations"], iframes: false, ...options });
  return report.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`);
}

async function play({ script, args, options }) {
  const seen = { value: null, failure: null, errors: [], requests: [] };
  const context = await browser.newContext({ timezoneId: "Europe/Berlin", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(1000 * patience);
  page.on("pageerror", (error) => seen.errors.push(`page: ${error.message}`));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) seen.errors.push(message.text());
  });
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("dialog", (dialog) => {
    seen.errors.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  try {
    seen.value = (await new AsyncFunction("page", "args", "violations", script)(page, args, violations)) ?? null;
  } catch (error) {
    const main = await page.locator("main").innerText({ timeout: 1000 }).catch(() => "");
    seen.failure = `${error.stack}\nmain:\n${main.slice(0, 3000)}`;
  }
  await context.close();
  return seen;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await play(JSON.parse(line))));
}
await browser.close();
