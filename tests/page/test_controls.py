"""Forms of functions as people write them, the pane beside the form, and dark mode, in Chromium and Firefox."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import date, datetime, time
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo

import pytest

from funcmcp import Auth, HTTPOptions, MCPServer
from funcmcp.auth import APIKeys
from tests.page.browser import running_browser, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.page.browser import Browser

pytestmark = pytest.mark.slow("A browser goes through many pages.")

OPEN = """
    await page.goto(args.url);
    await page.locator("nav li").first().waitFor();
    const tool = async (name) => {
        const list = page.getByRole("button", { name: "List", exact: true });
        if ((await list.isVisible()) && (await list.getAttribute("aria-expanded")) === "false") await list.click();
        await page.locator("nav").getByText(name, { exact: true }).click();
        await page.locator("main .subtitle").getByText(name, { exact: true }).waitFor();
    };
    const press = (name) => page.getByRole("button", { name, exact: true }).click();
    const call = async () => {
        await press("Call");
        await page.locator(".run.done").waitFor();
    };
    const pane = page.getByRole("complementary", { name: "Activity" });
"""
KEY = "0123456789abcdefKEY"


class Size(Enum):
    """A size."""

    SMALL = "small"
    LARGE = "large"


class Desk:
    """A server whose functions have the types that a form finds hard.

    Attributes:
        calls: The arguments of the calls.
    """

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.mcp = mcp = MCPServer("desk", http=HTTPOptions(page=True))
        for function in (self.take_anything, self.take_tuples, self.take_sets, self.take_times, self.take_lists):
            mcp.tool(function)
        mcp.tool(read_only=True)(self.list_rows)

    def take_anything(self, a, b: Any, c=2) -> str:  # type: ignore[no-untyped-def]
        """Take values of any type."""
        self.calls.append({"a": a, "b": b, "c": c})
        return "taken"

    def take_tuples(
        self,
        point: tuple[int, str],
        path: tuple[float, ...],
        ranges: list[tuple[int, int]],
        place: tuple[float, float] | None = None,
    ) -> str:
        """Take tuples."""
        self.calls.append({"point": point, "path": path, "ranges": ranges, "place": place})
        return "taken"

    def take_sets(self, meals: set[Literal["soup", "bread", "rice"]], sizes: list[Size], days: frozenset[Size]) -> str:
        """Take sets."""
        self.calls.append({"meals": meals, "sizes": sizes, "days": days})
        return "taken"

    def take_times(self, at: time, on: datetime, day: date, until: time = time(20, 15)) -> str:
        """Take times."""
        self.calls.append({"at": at, "on": on, "day": day, "until": until})
        return "taken"

    def take_lists(self, guests: list[str], names: dict[str, int], notes: list[str] = []) -> str:  # noqa: B006
        """Take lists."""
        self.calls.append({"guests": guests, "names": names, "notes": notes})
        return "taken"

    def list_rows(self, count: int) -> list[dict[str, Any]]:
        """Return rows."""
        return [{"name": f"row {number}", "tags": ["a", "b"], "size": {"w": 1, "h": number}} for number in range(count)]


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    with running_browser(request.param) as running:
        yield running


@pytest.fixture(scope="module")
def desk() -> Desk:
    return Desk()


class WithoutPolicy:
    """An application without a Content-Security-Policy, which keeps Playwright from evaluating code in Firefox."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_without_policy(message: Any) -> None:
            if "headers" in message:
                headers = [(name, value) for name, value in message["headers"] if name != b"content-security-policy"]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, send_without_policy)


@pytest.fixture(scope="module")
def url(browser: Browser, desk: Desk) -> Iterator[str]:
    app = desk.mcp if browser.name == "chromium" else WithoutPolicy(desk.mcp)
    with serving(app) as endpoint:
        yield endpoint


def test_an_argument_without_a_type_takes_text_and_json(browser: Browser, url: str, desk: Desk) -> None:
    desk.calls.clear()
    notes = browser.play(
        OPEN
        + """
        await tool("take_anything");
        const notes = [];
        for (const [a, b] of args.texts) {
            await page.getByRole("textbox", { name: "a required", exact: true }).fill(a);
            await page.getByRole("textbox", { name: "b required", exact: true }).fill(b);
            notes.push(await page.getByText(/^It is sent as/).allInnerTexts());
            await call();
            await page.reload();
        }
        return notes;
        """,
        {"url": url, "texts": [["hello", "1"], ['"1"', "[1, {}]"], ['""', "null"], ["007", "{oops"], [" x ", "true"]]},
    )
    assert [(call["a"], call["b"]) for call in desk.calls] == [
        ("hello", 1),
        ("1", [1, {}]),
        ("", None),
        ("007", "{oops"),
        (" x ", True),
    ]
    assert {call["c"] for call in desk.calls} == {2}
    assert notes[0] == ["It is sent as text.", "It is sent as a number.", "It is sent as a number."]
    assert notes[1][:2] == ["It is sent as text.", "It is sent as a list."]
    assert notes[2][:2] == ["It is sent as text.", "It is sent as null."]


def test_tuples_have_a_field_for_each_item(browser: Browser, url: str, desk: Desk) -> None:
    desk.calls.clear()
    seen = browser.play(
        OPEN
        + """
        await tool("take_tuples");
        const group = (name) => page.getByRole("group", { name });
        const item = (name, number) => group(name).getByRole("textbox", { name: `Item ${number}` });
        await item(/^point/, 1).fill("3");
        await press("Call");
        const problem = await page.locator(".problem:visible").innerText();
        await item(/^point/, 2).fill("left");
        await press("Add item to ranges");
        await item(/^Item of ranges/, 1).fill("1");
        await item(/^Item of ranges/, 2).fill("2");
        await call();
        await page.getByLabel("place").check();
        await item(/^place/, 1).fill("52.5");
        await item(/^place/, 2).fill("13.4");
        await press("Add item to path");
        await page.keyboard.type("0.5");
        await call();
        await press("Edit as JSON");
        const json = JSON.parse(await page.getByLabel("Arguments as JSON").inputValue());
        await page.getByLabel("Arguments as JSON").fill(JSON.stringify({ ...json, point: [1, "a", 2] }));
        await press("Edit as JSON");
        return { problem, refusal: await page.locator("form .failure").innerText(), json };
        """,
        {"url": url},
    )
    assert seen["problem"] == "Enter a value. To send an empty text, use Edit as JSON."
    first, second = desk.calls
    assert first == {"point": (3, "left"), "path": (), "ranges": [(1, 2)], "place": None}
    assert (second["place"], second["path"]) == ((52.5, 13.4), (0.5,))
    assert seen["json"] == {"point": [3, "left"], "path": [0.5], "ranges": [[1, 2]], "place": [52.5, 13.4]}
    assert seen["refusal"] == "The form can't show these values. A list has more items than its schema names."


def test_lists_of_a_few_values_have_boxes_and_an_order(browser: Browser, url: str, desk: Desk) -> None:
    desk.calls.clear()
    browser.play(
        OPEN
        + """
        await tool("take_sets");
        const group = (name) => page.getByRole("group", { name });
        await group(/^meals/).getByLabel("rice").check();
        await group(/^meals/).getByLabel("soup").check();
        await group(/^sizes/).getByLabel("large").check();
        await call();
        await press("Set an order of sizes");
        await press("Add item to sizes");
        await page.getByLabel("Item of sizes").nth(1).selectOption("small");
        await press("Add item to sizes");
        await page.getByLabel("Item of sizes").nth(2).selectOption("large");
        await call();
        await press("Edit as JSON");
        await press("Edit as JSON");
        await call();
        await press("Show as boxes of sizes");
        await call();
        """,
        {"url": url},
    )
    assert {frozenset(call["meals"]) for call in desk.calls} == {frozenset({"rice", "soup"})}
    assert {call["days"] for call in desk.calls} == {frozenset()}
    ordered = [Size.LARGE, Size.SMALL, Size.LARGE]
    assert [call["sizes"] for call in desk.calls] == [[Size.LARGE], ordered, ordered, [Size.SMALL, Size.LARGE]]


def test_all_times_are_in_the_zone_of_the_browser(browser: Browser, url: str, desk: Desk) -> None:
    desk.calls.clear()
    text = browser.play(
        OPEN
        + """
        await tool("take_times");
        await page.getByLabel("at required").fill("12:30");
        await page.getByLabel("on required").fill("2027-07-04T12:30");
        await page.getByLabel("day required").fill("2027-07-04");
        await call();
        return await page.locator("main form").innerText();
        """,
        {"url": url},
    )
    [seen] = desk.calls
    [name] = re.findall(r"Times are in the time zone of this browser, (\S+)\.", text)
    zone = ZoneInfo(name)
    assert name == "Europe/Berlin" or browser.name == "firefox"  # which has the zone of the machine
    today = datetime.now(zone).utcoffset()
    assert (seen["at"].replace(tzinfo=None), seen["at"].utcoffset()) == (time(12, 30), today)
    assert seen["on"].replace(tzinfo=None) == datetime(2027, 7, 4, 12, 30)  # noqa: DTZ001 - the clock on the wall
    assert seen["on"] == datetime(2027, 7, 4, 12, 30, tzinfo=zone)
    assert (seen["day"], seen["until"]) == (date(2027, 7, 4), time(20, 15))
    assert text.count(name) == 1
    assert "ormat" not in text


def test_an_empty_list_says_whether_it_is_sent(browser: Browser, url: str, desk: Desk) -> None:
    desk.calls.clear()
    notes = browser.play(
        OPEN
        + """
        await tool("take_lists");
        const notes = await page.getByText(/^It is empty/).allInnerTexts();
        await press("Add item to guests");
        await page.keyboard.type("Ada");
        await page.getByText("It is empty, and sent as an empty list.").waitFor({ state: "hidden" });
        await press("Remove item 1 of guests");
        await page.getByText("It is empty, and sent as an empty list.").waitFor();
        await call();
        return notes;
        """,
        {"url": url},
    )
    assert notes == [
        "It is empty, and sent as an empty list.",
        "It is empty, and sent as an empty object.",
        "It is empty, and not sent.",
    ]
    assert desk.calls == [{"guests": [], "names": {}, "notes": []}]


def test_rows_with_lists_in_their_cells_are_a_table(browser: Browser, url: str) -> None:
    seen = browser.play(
        OPEN
        + """
        await tool("list_rows");
        const seen = [];
        for (const count of [2, 10000]) {
            await page.getByRole("textbox", { name: "count" }).fill(String(count));
            await call();
            const result = page.locator(".result");
            const rows = result.locator("tr");
            const first = await rows.nth(1).innerText();
            seen.push([await rows.count(), first, await result.locator(".quiet").allInnerTexts()]);
        }
        return seen;
        """,
        {"url": url},
    )
    cells = "row 0\ta, b\tw: 1, h: 0"
    sentence = "9,800 more rows are not shown here. Open As JSON to copy all of them."
    assert seen == [[3, cells, []], [201, cells, [sentence]]]


def test_the_names_of_features_are_below_their_titles(browser: Browser, url: str) -> None:
    links, overview = browser.play(
        OPEN
        + 'return [await page.locator("nav li a").allInnerTexts(), await page.locator("main dt").allInnerTexts()];',
        {"url": url},
    )
    assert "Take Anything\ntake_anything" in links
    assert "Take Anything\ntake_anything" in overview


def test_the_theme_that_a_person_chooses_is_remembered(browser: Browser, url: str) -> None:
    seen = browser.play(
        OPEN
        + """
        const dark = page.getByRole("button", { name: "Dark", exact: true });
        const opened = async () => {
            await page.reload();
            await page.locator("nav li").first().waitFor();
        };
        const look = () => page.evaluate(() => ({
            theme: document.documentElement.dataset.theme,
            background: getComputedStyle(document.documentElement).backgroundColor,
            pressed: document.getElementById("dark").getAttribute("aria-pressed"),
            stored: localStorage.getItem("funcmcp theme"),
        }));
        const seen = [await look()];
        await dark.click();
        seen.push(await look());
        await opened();
        seen.push(await look());
        await dark.click();
        seen.push(await look());
        await page.evaluate(() => localStorage.setItem("funcmcp theme", "<script>"));
        await opened();
        seen.push(await look());
        return seen;
        """,
        {"url": url},
    )
    themes = {
        "light": {"theme": "light", "background": "rgb(248, 248, 246)", "pressed": "false"},
        "dark": {"theme": "dark", "background": "rgb(20, 23, 26)", "pressed": "true"},
    }
    system = seen[0]["theme"]
    other = {"light": "dark", "dark": "light"}[system]
    assert seen == [
        themes[system] | {"stored": None},
        themes[other] | {"stored": other},
        themes[other] | {"stored": other},
        themes[system] | {"stored": None},
        themes[system] | {"stored": "<script>"},
    ]


def test_the_theme_follows_the_system_until_a_person_chooses(browser: Browser, url: str) -> None:
    if browser.name == "firefox":
        pytest.skip("Playwright does not set the color scheme of this Firefox.")
    seen = browser.play(
        OPEN
        + """
        const seen = [];
        const look = async () => seen.push(await page.evaluate(() => document.documentElement.dataset.theme));
        const system = async (colorScheme) => {
            await page.emulateMedia({ colorScheme });
            const isSet = (theme) => matchMedia(`(prefers-color-scheme: ${theme})`).matches;
            await page.waitForFunction(isSet, colorScheme);
        };
        await look();
        await system("dark");
        await page.locator("html[data-theme=dark]").waitFor();
        await press("Dark");
        await look();
        await system("light");
        await look();
        await system("dark");
        await look();
        await press("Dark");
        await system("light");
        await page.locator("html[data-theme=light]").waitFor();
        return seen;
        """,
        {"url": url},
        colorScheme="light",
    )
    assert seen == ["light"] * 4


def test_the_protocol_is_beside_the_form(browser: Browser, url: str) -> None:
    seen = browser.play(
        OPEN
        + """
        await tool("list_rows");
        await page.getByRole("textbox", { name: "count" }).fill("1");
        await call();
        const answer = pane.getByRole("group", { name: "answer to tools/call" });
        await answer.getByText('"row 0"').first().waitFor();
        const boxes = [await page.locator("main form").boundingBox(), await pane.boundingBox()];
        await page.getByRole("textbox", { name: "count" }).fill("2");
        await call();
        await answer.getByText('"row 1"').first().waitFor();
        const [form, beside] = boxes;
        const seen = { isBeside: form.x + form.width <= beside.x };
        seen.open = await pane.locator("details[open]").count();
        await press("Activity");
        await page.reload();
        await page.locator("nav li").first().waitFor();
        seen.closed = await pane.isVisible();
        await press("Activity");
        await page.reload();
        await page.getByRole("heading", { name: "List Rows" }).waitFor();
        await pane.waitFor();
        await page.setViewportSize({ width: 390, height: 844 });
        await pane.waitFor({ state: "hidden" });
        seen.main = await page.getByRole("heading", { name: "List Rows" }).isVisible();
        await press("Activity");
        await pane.getByText("server/discover").first().waitFor();
        seen.mainBehind = await page.getByRole("heading", { name: "List Rows" }).isVisible();
        await tool("take_lists");
        await page.getByRole("heading", { name: "Take Lists" }).waitFor();
        seen.left = await pane.isVisible();
        return seen;
        """,
        {"url": url},
        viewport={"width": 1400, "height": 844},
    )
    assert seen == {"isBeside": True, "open": 1, "closed": False, "main": True, "mainBehind": False, "left": False}


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1400, "light"), (1400, "dark")])
def test_axe_finds_nothing_in_the_controls_and_the_pane(browser: Browser, url: str, width: int, scheme: str) -> None:
    """Where Playwright can set it, the system has the other theme."""
    seen = browser.play(
        OPEN
        + """
        const isOther = await page.locator(`html:not([data-theme=${args.scheme}])`).count();
        if (isOther) await press("Dark");
        const problems = [];
        const overflow = [];
        const check = async () => {
            problems.push(...await violations(page));
            const widths = ({ scrollWidth, clientWidth }) => scrollWidth - clientWidth;
            overflow.push(await page.locator("html").evaluate(widths));
        };
        await check();
        await tool("take_anything");
        await page.getByRole("textbox", { name: "a required", exact: true }).fill("x");
        await check();
        await tool("take_tuples");
        await press("Add item to ranges");
        await page.getByLabel("place").check();
        await press("Call");
        await check();
        await tool("take_sets");
        await press("Set an order of sizes");
        await press("Add item to sizes");
        await check();
        await tool("take_times");
        await check();
        await tool("list_rows");
        await page.getByRole("textbox", { name: "count" }).fill("3");
        await call();
        await check();
        if (args.width < 1000) await press("Activity");
        await pane.getByText("tools/call").first().waitFor();
        await check();
        const background = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
        return { problems, overflow: Math.max(...overflow), background };
        """,
        {"url": url, "width": width, "scheme": scheme},
        viewport={"width": width, "height": 844},
        colorScheme="light" if scheme == "dark" else "dark",
    )
    background = {"light": "rgb(248, 248, 246)", "dark": "rgb(20, 23, 26)"}[scheme]
    assert seen == {"problems": [], "overflow": 0, "background": background}


class HeldList:
    """An application that holds its first answer to tools/list back until the second one is sent.

    It answers tools/call after both of them.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._lists = 0
        self._second = asyncio.Event()
        self._first = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        request = await receive()
        method = json.loads(request["body"])["method"]
        if method == "tools/call":
            await self._first.wait()
        is_list = method == "tools/list"
        self._lists += is_list
        is_first = is_list and self._lists == 1
        if is_first:
            await self._second.wait()
        messages = iter([request])

        async def replay() -> Any:
            return next(messages, None) or await receive()

        try:
            await self._app(scope, replay, send)
        finally:
            if is_list:
                (self._first if is_first else self._second).set()


def test_a_second_start_drops_the_lists_of_the_first(browser: Browser) -> None:
    """The first answer to tools/list comes after a sign-in has loaded the lists again."""
    mcp = MCPServer("keys", auth=Auth(APIKeys({"ada": KEY}), lists="open"))
    for name in ("a", "b", "c"):
        mcp.tool(name)(lambda: "done")
    with serving(WithoutPolicy(HeldList(mcp))) as url:
        names = browser.play(
            """
            const pane = page.getByRole("complementary", { name: "Activity" });
            await page.goto(args.url);
            await pane.getByText("tools/list").first().waitFor();
            await page.getByRole("link", { name: "Sign in", exact: true }).click();
            await page.getByLabel("Token or key").fill(args.key);
            await page.getByRole("button", { name: "Use" }).click();
            await page.locator("nav li").nth(2).click();
            await page.getByRole("button", { name: "Call", exact: true }).click();
            await page.locator(".run.done").waitFor();
            return page.locator("nav li").allInnerTexts();
            """,
            {"url": url, "key": KEY},
        )
    assert [name.split("\n")[0] for name in names] == ["A", "B", "C"]


def test_sign_in_is_offered_where_it_can_change_something(browser: Browser, url: str) -> None:
    mcp = MCPServer("keys", auth=Auth(APIKeys({"ada": KEY}), lists="open"))
    mcp.tool("a")(lambda: "done")
    look = """
        await page.goto(args.url + "#tool/nosuch");
        const text = await page.getByText("lists no tool").innerText();
        return [await page.getByRole("link", { name: "Sign in", exact: true }).isVisible(), text];
    """
    sentence = "This server lists no tool named nosuch."
    assert browser.play(look, {"url": url}) == [False, sentence]
    with serving(WithoutPolicy(mcp)) as with_keys:
        assert browser.play(look, {"url": with_keys}) == [True, f"{sentence} You may have to sign in."]


def test_a_call_needs_nothing_that_the_policy_forbids(browser: Browser, desk: Desk) -> None:
    """The other tests of Firefox are without the policy. Violations of it would be on the console."""
    desk.calls.clear()
    with serving(desk.mcp) as url:
        browser.play(
            OPEN
            + """
            await tool("take_lists");
            await press("Dark");
            await call();
            await pane.getByRole("group", { name: "answer to tools/call" }).waitFor();
            await press("Activity");
            await pane.waitFor({ state: "hidden" });
            """,
            {"url": url},
        )
    assert desk.calls == [{"guests": [], "names": {}, "notes": []}]
