// Opens the kitchen's board in a host in headless Chromium, uses it as a cook would, and prints what was to be seen as
// one JSON object. Arguments: the folder whose node_modules has the packages, the browser's program, the server's
// origin, the orders to place (arguments of place_order), the protocol revision.
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const [packages, program, origin, orders, revision] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const { chromium } = require("playwright-core");
const esbuild = require("esbuild");

const SECONDS = 15_000;
const bundle = await esbuild.build({
  entryPoints: [fileURLToPath(new URL("host.mjs", import.meta.url))],
  nodePaths: [`${packages}/node_modules`],
  bundle: true, format: "esm", write: false, logLevel: "error",
});

// Names do not resolve: what is not on this machine can't be reached, whatever the page tries.
const browser = await chromium.launch({
  executablePath: program,
  args: ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"],
});
const seen = { requests: [], calls: [], errors: [] };
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(SECONDS);
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => {
    // A 405 to the client's GET is no error but the server's word that it has no stream of its own.
    const declined = message.location().url === `${origin}/mcp` && message.text().includes("405");
    if (message.type() === "error" && !declined) seen.errors.push(message.text());
  });
  page.on("request", (request) => {
    seen.requests.push(request.url());
    const message = request.url() === `${origin}/mcp` ? JSON.parse(request.postData() ?? "{}") : {};
    if (message.method === "tools/call") seen.calls.push({ name: message.params.name, arguments: message.params.arguments });
  });

  // The host's page has the server's origin, so that no CORS is needed; the app's page is of another site.
  const view = `${origin.replace("127.0.0.1", "localhost")}/view`;
  await page.route(`${origin}/host`, (route) => route.fulfill({
    contentType: "text/html",
    body: '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/host.js"></script>',
  }));
  await page.route(`${origin}/host.js`, (route) => route.fulfill({
    contentType: "text/javascript", body: bundle.outputFiles[0].text,
  }));
  await page.exposeFunction("stage", async (html, policy) => {
    await page.route(view, (route) => route.fulfill({
      contentType: "text/html", headers: { "Content-Security-Policy": policy }, body: html,
    }));
    return view;
  });

  await page.goto(`${origin}/host`);
  await page.waitForFunction(() => window.host);
  const host = (method, ...args) => page.evaluate(([name, given]) => window.host[name](...given), [method, args]);
  const mode = revision < "2026" ? "legacy" : { pin: revision };
  Object.assign(seen, await host("connect", mode));
  for (const order of JSON.parse(orders)) await host("call", "place_order", order);

  seen.shown = await host("show", "order_board");
  const app = page.frameLocator("iframe");
  const cards = app.locator("#orders > li");
  const card = (index) => cards.nth(index);
  const stepOf = (index, step) => card(index).locator(".step", { hasText: step }).waitFor();
  const board = () => cards.evaluateAll((found) => found.map((item) => ({
    title: item.querySelector("h2").textContent,
    dishes: [...item.querySelectorAll("ul > li")].map((dish) => dish.textContent),
    note: item.querySelector(".note")?.textContent ?? null,
    step: item.querySelector(".step").textContent,
    action: item.querySelector("button")?.textContent ?? null,
  })));
  await cards.first().waitFor();
  seen.atFirst = await board();
  seen.foreignElements = await app.locator("body").evaluate((body) => body.querySelectorAll("img, b, iframe").length);
  seen.scriptRan = await app.locator("body").evaluate(() => "hacked" in window);
  seen.border = await card(0).evaluate((item) => getComputedStyle(item).borderTopColor);

  const background = () => app.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);
  seen.light = await background();
  await host("darken");
  await app.locator(":root[style*='dark']").waitFor({ state: "attached" });
  seen.dark = await background();

  seen.calls.length = 0;
  await card(0).getByRole("button", { name: "Start cooking" }).click();
  await stepOf(0, "cooking");
  seen.callsOfTheClick = [...seen.calls];
  seen.afterClick = await board();

  // Another cook was faster: what this page shows is old.
  await host("call", "advance_order", { number: 2, shown: "waiting" });
  await card(1).getByRole("button").click();
  await app.locator("#status", { hasText: /./ }).waitFor();
  seen.complaint = await app.locator("#status").textContent();

  await host("call", "place_order", { table: 9, dishes: ["Lemon tart"] });
  await app.getByRole("button", { name: "Refresh" }).click();
  await stepOf(1, "cooking");
  seen.refreshed = await board();
  const height = await app.locator("body").evaluate((body) => Math.ceil(body.getBoundingClientRect().height));
  await page.waitForFunction((wanted) => window.host.sizes.at(-1) === wanted, height);
  seen.sizes = await page.evaluate(() => window.host.sizes);
  seen.frameHeight = await page.locator("iframe").evaluate((frame) => frame.clientHeight);
  seen.overflow = await app.locator(":root").evaluate((root) => root.scrollHeight - root.clientHeight);
  seen.farewell = await host("close");
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
