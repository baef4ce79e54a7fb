// Takes the pictures of the page at an endpoint. Arguments: the folder whose node_modules has playwright-core, the
// browser's program, the endpoint, the folder for the pictures.
import { createRequire } from "node:module";

const [packages, program, endpoint, folder] = process.argv.slice(2);
const { chromium } = createRequire(`${packages}/package.json`)("playwright-core");

async function search(page) {
  await page.goto(`${endpoint}#tool/search_trips`);
  await page.getByLabel("origin").fill("Berlin");
  await page.getByLabel("destination").fill("Paris");
  await page.getByLabel("day").fill("2027-03-04");
  await page.getByRole("button", { name: "Call" }).click();
  await page.getByRole("heading", { name: "Done" }).waitFor();
}

async function book(page) {
  await page.goto(`${endpoint}#tool/book_trip`);
  await page.getByLabel("trip").fill("ICE-9558");
  await page.getByLabel("departs").fill("2027-03-04T06:29");
  await page.getByRole("button", { name: "Add item to passengers" }).click();
  await page.getByLabel("name").fill("Ada Lovelace");
  await page.getByLabel("born").fill("1985-12-10");
  await page.getByRole("button", { name: "Call" }).click();
  await page.getByRole("heading", { name: "The server asks" }).waitFor();
  await page.getByRole("region", { name: "Question of the server" }).scrollIntoViewIfNeeded();
  await page.mouse.wheel(0, 2000);
  await page.waitForTimeout(300); // the scrolling and the bar move
}

const browser = await chromium.launch({ executablePath: program });
try {
  for (const [name, colorScheme, height, play] of [
    ["page-light", "light", 940, search],
    ["page-dark", "dark", 940, search],
    ["page-call", "light", 760, book],
  ]) {
    const page = await browser.newPage({ colorScheme, viewport: { width: 1180, height }, timezoneId: "UTC" });
    page.setDefaultTimeout(10_000);
    await play(page);
    await page.mouse.move(700, 5);
    await page.evaluate(() => document.activeElement.blur());
    await page.screenshot({ path: `${folder}/${name}.png` });
    await page.close();
  }
} finally {
  await browser.close();
}
