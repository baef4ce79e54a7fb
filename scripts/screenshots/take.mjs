// Takes the pictures of the page. Arguments: the folder whose node_modules has playwright-core, the browser's program, the
// endpoints of travel.py and of samples/apps, the folder for the pictures.
import { createRequire } from "node:module";

const [packages, program, endpoint, apps, folder] = process.argv.slice(2);
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
  await page.getByRole("textbox", { name: "name" }).fill("Ada Lovelace");
  await page.getByLabel("born").fill("1985-12-10");
  await page.getByRole("button", { name: "Call" }).click();
  await page.getByRole("heading", { name: "The server asks" }).waitFor();
  await page.getByRole("region", { name: "Question of the server" }).scrollIntoViewIfNeeded();
  await page.mouse.wheel(0, 2000);
  await page.waitForTimeout(300); // the scrolling and the bar move
}

async function showApp(page) {
  await page.goto(`${apps}#tool/place_order`);
  for (const [table, dish] of [["4", "Lentil soup"], ["7", "Dumplings"]]) {
    await page.getByRole("textbox", { name: "table" }).fill(table);
    await page.getByRole("textbox", { name: "Item of dishes" }).fill(dish);
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.locator(".run.done").getByText(dish).first().waitFor();
  }
  await page.goto(`${apps}#tool/order_board`);
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await page.getByRole("button", { name: "Show the app" }).click();
  await page.frameLocator("iframe").getByRole("button", { name: "Start cooking" }).first().click();
  await page.getByRole("button", { name: "Refuse" }).click({ trial: true }); // its buttons work after a moment
  await page.locator("iframe").scrollIntoViewIfNeeded();
}

async function compare(page) {
  await search(page);
  await page.getByRole("textbox", { name: "destination" }).fill("Bern");
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await page.getByText("Earlier calls").click();
  await page.getByRole("button", { name: /^Compare/ }).nth(1).click();
  await page.getByText("Difference of the arguments").scrollIntoViewIfNeeded();
  await page.mouse.wheel(0, 2000);
  await page.waitForTimeout(300);
}

async function bookOnPhone(page) {
  await page.goto(`${endpoint}#tool/book_trip`);
  await page.getByRole("textbox", { name: "trip" }).fill("ICE-9558");
  await page.getByRole("button", { name: "Add item to passengers" }).click();
  await page.getByRole("textbox", { name: "name" }).fill("Ada Lovelace");
}

async function searchOnPhone(page) {
  await search(page);
  await page.getByRole("button", { name: "Activity" }).click();
  await page.getByRole("complementary").getByText("tools/call").first().waitFor();
}

const browser = await chromium.launch({ executablePath: program });
try {
  for (const [name, colorScheme, width, height, play] of [
    ["page-light", "light", 1400, 940, search],
    ["page-dark", "dark", 1400, 940, search],
    ["page-call", "light", 1400, 760, book],
    ["page-app", "light", 1100, 760, showApp],
    ["page-compare", "dark", 1100, 700, compare],
    ["page-phone", "light", 390, 844, bookOnPhone],
    ["page-phone-activity", "dark", 390, 844, searchOnPhone],
  ]) {
    const page = await browser.newPage({ colorScheme, viewport: { width, height }, timezoneId: "UTC" });
    page.setDefaultTimeout(10_000);
    await play(page);
    const pane = page.getByRole("complementary", { name: "Activity" });
    if (await pane.isVisible()) await pane.getByText("tools/call").first().waitFor();
    await page.mouse.move(5, 5);
    await page.evaluate(() => document.activeElement.blur());
    await page.screenshot({ path: `${folder}/${name}.png` });
    await page.close();
  }
} finally {
  await browser.close();
}
