"""What the page has around a call: long lists, icons, folded texts, comparisons, the activity, and narrow windows."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import Base64Bytes, BaseModel, Field

from funcmcp import Context, HTTPOptions, MCPServer, ProtocolOptions, ServerInfo
from funcmcp.content import Icon
from funcmcp.http import Request, Response
from tests.page.browser import serving
from tests.page.features import PNG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.page.browser import Browser

pytestmark = pytest.mark.slow("A browser goes through many pages.")

OPEN = """
    await page.goto(args.url + (args.at ?? ""));
    await page.locator("nav li").first().waitFor();
    const tool = (name) => page.goto(`${args.url}#tool/${name}`);
    const press = (name) => page.getByRole("button", { name, exact: true }).click();
    const ended = (how) => page.getByRole("heading", { name: how, exact: true }).waitFor();
"""
PIXEL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
LONG = "Plan a *journey* with `legs`.\n\n" + "\n".join(f"- rule {number} of the desk" for number in range(60))


class Card(BaseModel):
    """A card."""

    kind: Literal["card"] = "card"
    number: str


class Transfer(BaseModel):
    """A transfer."""

    kind: Literal["transfer"] = "transfer"
    iban: str


class Guest(BaseModel):
    """A guest."""

    name: str
    meals: list[Literal["soup", "bread"]] = []


class Leg(BaseModel):
    """A part of a journey."""

    city: str
    guests: list[Guest]


class Studio:
    """A server for what is around a call.

    Attributes:
        mcp: The server.
        plans: The arguments of the calls of `plan`.
        cookies: The Cookie headers of requests for the icon.
    """

    def __init__(self) -> None:
        self.plans: list[dict[str, Any]] = []
        self.cookies: list[str | None] = []
        self.mcp = mcp = MCPServer(
            "studio", http=HTTPOptions(page=True), info=ServerInfo(title="Studio", icons=[{"src": PIXEL}])
        )
        mcp.tool(description=LONG, icons=[Icon(PIXEL)])(self.plan)
        mcp.tool(icons=[Icon("/icon.png")])(self.count)
        mcp.tool(icons=[Icon("https://icons.example/remote.png")])(self.report)
        mcp.tool(task="required")(self.job)
        mcp.custom_route("/icon.png", methods=["GET"])(self.icon)
        mcp.custom_route("/grow", methods=["POST"])(self.grow)
        self.counter = 0

    async def icon(self, request: Request) -> Response:
        self.cookies.append(request.headers.get("cookie"))
        return Response(PNG, headers={"content-type": "image/png"})

    async def grow(self, _request: Request) -> Response:
        self.mcp.tool("added")(lambda: "new")
        return Response(None, 204)

    def plan(
        self, legs: list[Leg], pay: Annotated[Card | Transfer, Field(discriminator="kind")], ticket: Base64Bytes
    ) -> str:
        self.plans.append({"legs": [leg.model_dump() for leg in legs], "pay": pay.model_dump(), "ticket": ticket})
        return "planned"

    async def count(self, step: int, context: Context) -> dict[str, int]:
        """Count."""
        self.counter += step
        await context.info("counted")
        return {"first": 1, "counter": self.counter, "last": 9}

    def report(self) -> str:
        """Return Markdown."""
        return "# Report\n\nIt is **fine**, see [more](https://docs.example/a).\n\n![x](https://tracker.example/x.png)"

    def job(self) -> str:
        """Work as a task."""
        return "worked"


@pytest.fixture(scope="module")
def studio() -> Studio:
    return Studio()


@pytest.fixture(scope="module")
def url(studio: Studio) -> Iterator[str]:
    with serving(studio.mcp) as endpoint:
        yield endpoint


def test_thousands_of_tools_are_listed_and_found(browser: Browser) -> None:
    mcp = MCPServer("many", http=HTTPOptions(page=True), protocol=ProtocolOptions(page_size=500))
    for number in range(2000):
        mcp.tool(f"tool_{number}", description=f"Does thing {number % 10} of {number}.")(lambda: "done")
    with serving(mcp) as url:
        seen = browser.play(
            OPEN
            + """
            await page.getByText("2,000", { exact: true }).first().waitFor();
            const count = () => page.locator("nav li").count();
            const seen = { counts: [await count()] };
            await press("Show more of 2,000");
            seen.counts.push(await count());
            seen.focused = await page.evaluate(() => document.activeElement.innerText);
            await page.getByLabel("Search tools").fill("thing 7 97");
            await page.getByText(/match$/).waitFor();
            seen.names = await page.locator("nav li:visible").allInnerTexts();
            seen.matches = await page.locator("#matches").innerText();
            await page.keyboard.press("Enter");
            await page.getByRole("heading", { name: "Tool 97", exact: true }).waitFor();
            await press("Call");
            await ended("Done");
            await tool("tool_1999");
            await page.getByLabel("Search tools").fill("");
            seen.last = await page.locator("nav li a[aria-current]").innerText();
            return seen;
            """,
            {"url": url},
        )
    assert seen["counts"] == [100, 600]
    assert seen["focused"] == "Tool 100\ntool_100"
    assert len(seen["names"]) == 40
    assert seen["names"][0] == "Tool 97\ntool_97"
    assert seen["matches"] == "40 of 2,000 match"
    assert seen["last"] == "Tool 1999\ntool_1999"


def test_icons_come_from_the_server_itself_and_long_descriptions_are_folded(
    browser: Browser, url: str, studio: Studio
) -> None:
    seen = browser.play(
        OPEN
        + """
        await page.evaluate(() => (document.cookie = "secret=1"));
        await page.goto("about:blank");
        await page.goto(args.url);
        await page.locator("nav li img").nth(1).waitFor();
        const icons = await page.locator("nav section[data-kind=tool] .icon").evaluateAll((list) =>
            list.map((icon) => icon.firstChild.src?.slice(0, 15) ?? icon.textContent));
        const server = await page.locator("#server-icon img").count();
        await tool("plan");
        const text = () => page.locator(".folded").innerText();
        const folded = await text();
        await page.getByRole("button", { name: /^Show all/ }).click();
        const full = await text();
        const soft = await page.locator(".folded em").innerText();
        await press("Show less");
        return { icons, server, folded, full, soft, again: await text() };
        """,
        {"url": url},
    )
    assert seen["icons"] == ["data:image/png;", "data:image/png;", "R", "J"]
    assert (seen["server"], seen["soft"]) == (1, "journey")
    assert studio.cookies
    assert set(studio.cookies) == {None}
    assert "rule 59" not in seen["folded"]
    assert "rule 59 of the desk" in seen["full"]
    assert seen["again"] == seen["folded"]


def test_markdown_of_a_result_loads_nothing(browser: Browser, url: str) -> None:
    seen = browser.play(
        OPEN
        + """
        await tool("report");
        await press("Call");
        await ended("Done");
        const result = page.locator(".result");
        await result.getByText("As text").click();
        return { text: await result.innerText(), link: await result.locator("a").getAttribute("rel"),
            images: await result.locator("img").count() };
        """,
        {"url": url},
    )
    assert "more (docs.example)" in seen["text"]
    assert "![x](https://tracker.example/x.png)" in seen["text"]  # as text
    assert (seen["link"], seen["images"]) == ("noopener noreferrer", 0)


def test_two_calls_are_compared_line_by_line(browser: Browser, url: str) -> None:
    seen = browser.play(
        OPEN
        + """
        await tool("count");
        for (const step of ["1", "2", "2"]) {
            await page.getByRole("textbox", { name: "step" }).fill(step);
            await press("Call");
            await page.waitForFunction(() => document.querySelector(".run.done"));
        }
        await page.getByText("Earlier calls").click();
        const compare = page.getByRole("button", { name: /^Compare/ });
        const shown = () => page.locator(".earlier + .stack").innerText();
        await compare.nth(2).click();
        const first = await shown();
        await compare.nth(1).click();
        const both = await shown();
        await compare.nth(2).click();
        return { first, both, last: await shown(), problems: await violations(page) };
        """,
        {"url": url},
    )
    for line in ('-   "step": 1', '+   "step": 2', '-       "counter": 1,', '+       "counter": 5,'):
        assert line in seen["first"]
    assert '+       "counter": 3,' in seen["both"]
    assert "The arguments are the same." in seen["last"]
    assert seen["problems"] == []


def test_the_activity_has_requests_notifications_and_tasks(browser: Browser, url: str) -> None:
    seen = browser.play(
        OPEN
        + """
        await tool("count");
        await page.getByRole("textbox", { name: "step" }).fill("1");
        await press("Call");
        await ended("Done");
        await tool("job");
        await press("Call");
        await ended("Done");
        await page.reload();
        const main = page.getByRole("complementary", { name: "Activity" });
        await main.getByRole("link", { name: "job" }).waitFor();
        const seen = { tasks: await main.innerText() };
        await page.getByRole("button", { name: /^Follow/ }).click();
        await ended("Done");
        seen.result = await main.locator(".result").innerText();
        await press("Listen for notifications");
        await main.getByText("Listening.").waitFor();
        await fetch(new URL("/grow", args.url), { method: "POST" });
        await main.getByText("notifications/tools/list_changed").first().waitFor();
        await page.getByLabel("Method or name").fill("tasks/get");
        await main.getByText("tasks/get").first().click();
        await main.getByText('"Mcp-Method": "tasks/get"').waitFor();
        seen.main = await main.innerText();
        seen.problems = await violations(page);
        await press("Stop listening");
        await page.getByRole("button", { name: "Listen for notifications" }).waitFor();
        await press("Clear");
        seen.left = await main.innerText();
        await press("Load the lists again");
        await page.locator("nav").getByText("Added", { exact: true }).waitFor();
        return seen;
        """,
        {"url": url},
    )
    assert "job" in seen["tasks"]
    assert "worked" in seen["result"]
    assert "notifications/subscriptions/acknowledged" in seen["main"]
    assert '"Mcp-Method": "tasks/get"' in seen["main"]
    assert "0 of the last 0 requests" in seen["left"]
    assert seen["problems"] == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1400, "light"), (1400, "dark")])
def test_a_call_with_nested_values_a_union_and_a_file_needs_no_json(
    browser: Browser, url: str, studio: Studio, width: int, scheme: str
) -> None:
    studio.plans.clear()
    seen = browser.play(
        OPEN
        + """
        const problems = await violations(page);
        await page.locator("nav").getByRole("link", { name: "Plan" }).click();
        await press("Add item to legs");
        await page.getByLabel("city").fill("Bern");
        await press("Add item to guests");
        await page.getByRole("textbox", { name: "name" }).fill("Ada");
        await page.getByLabel("bread").check();
        await page.getByLabel("Kind of pay").selectOption("transfer");
        await page.getByLabel("iban").fill("DE1");
        await page.getByLabel("File for ticket").setInputFiles({
            name: "ticket.bin", mimeType: "application/octet-stream", buffer: Buffer.from([0, 255]),
        });
        problems.push(...await violations(page));
        await press("Call");
        await ended("Done");
        problems.push(...await violations(page));
        const narrow = await page.locator("main :is(input:not([type=checkbox]), select, textarea):visible").evaluateAll(
            (controls) => controls.map((control) => control.getBoundingClientRect())
                .filter(({ width, right }) => width < 100 || right > innerWidth).length);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        return { problems, narrow, overflow, json: await page.locator("textarea.json:visible").count() };
        """,
        {"url": url},
        viewport={"width": width, "height": 844},
        colorScheme=scheme,
        hasTouch=width < 500,
    )
    assert seen == {"problems": [], "narrow": 0, "overflow": 0, "json": 0}
    [plan] = studio.plans
    assert plan["legs"] == [{"city": "Bern", "guests": [{"name": "Ada", "meals": ["bread"]}]}]
    assert plan["pay"]["iban"] == "DE1"
