"""The page at the endpoint in Chromium: its forms, calls, results and lists, by mouse and by keyboard."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64decode
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit
from zoneinfo import ZoneInfo

import pytest

from funcmcp._page.mcp_clients import CLIENTS
from funcmcp_cli.install.entries import ServerDescription, entry_for
from tests.cli.forking import running
from tests.cli.processes import FUNCMCP
from tests.page.browser import Browser, serving
from tests.page.features import Features
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow("A browser goes through many pages.")

OPEN = """
    await page.goto(args.url + (args.at ?? ""));
    await page.locator("nav li").first().waitFor();
    const tool = (name) => page.goto(`${args.url}#tool/${name}`);
    const call = () => page.getByRole("button", { name: "Call", exact: true }).click();
    const ended = (how) => page.getByRole("heading", { name: how, exact: true }).waitFor();
    const result = page.locator(".result");
"""


@pytest.fixture(scope="module")
def features() -> Features:
    return Features()


@pytest.fixture(scope="module")
def url(features: Features) -> Iterator[str]:
    with serving(features.mcp) as endpoint:
        yield endpoint


def test_the_lists_and_the_overview_show_what_the_server_offers(browser: Browser, url: str) -> None:
    seen = browser.play(
        OPEN
        + """
        const texts = (selector) => page.locator(selector).allInnerTexts();
        await page.locator("nav h2").nth(3).waitFor();
        return {
            title: await page.title(),
            lists: await texts("nav h2"),
            links: await texts("nav li a"),
            main: await page.locator("main").innerText(),
        };
        """,
        {"url": url},
    )
    assert seen["title"] == "All features"
    assert seen["lists"] == ["Tools 13", "Resources 1", "Resource templates 1", "Prompts 1"]
    assert {"Fields\nfields", "Today\nnotes://today", "File\nnotes://files/{+path}{?lang}", "Greet\ngreet"} <= set(
        seen["links"]
    )
    assert "Use the tools." in seen["main"]
    assert url in seen["main"]
    assert "2026-07-28" in seen["main"]


def test_every_control_of_a_form_sends_its_value(browser: Browser, url: str, features: Features) -> None:
    features.calls.clear()
    colors = browser.play(
        OPEN
        + """
        await tool("fields");
        const colors = await page.getByLabel("color").locator("option").allInnerTexts();
        await page.getByLabel("text").fill("Hello");
        await page.getByLabel("whole").fill("9007199254740993");
        await page.getByRole("textbox", { name: "part", exact: true }).fill("-1.5e2");
        await page.getByLabel("sure").check();
        await page.getByLabel("maybe").selectOption("no");
        await page.getByLabel("color").selectOption("7");
        await page.getByLabel("size").selectOption("Small");
        await page.getByLabel("day", { exact: true }).fill("2027-03-04");
        await page.getByLabel("moment").fill("2027-07-04T12:30");
        const add = (name) => page.getByRole("button", { name, exact: true }).click();
        await add("Add item to tags");
        await page.keyboard.type("one");
        await add("Add item to tags");
        await page.keyboard.type("two");
        await add("Add item to tags");
        await page.keyboard.type("three");
        await add("Remove item 2 of tags");
        await page.getByLabel("wed").check();
        const person = page.getByRole("group", { name: "person", exact: false }).first();
        await person.getByLabel("name").fill("Ada");
        await page.getByLabel("Partner").check();
        await page.getByRole("group", { name: "Partner" }).getByLabel("name").fill("Bob");
        await page.getByRole("group", { name: "Partner" }).getByLabel("born").fill("2000-01-02");
        await add("Add entry to counts");
        await page.keyboard.type("__proto__");
        await page.getByLabel("Value").fill("4");
        await page.getByLabel("null for nothing").check();
        await page.getByLabel("Kind of either").selectOption("array");
        for (const number of ["1", "2"]) {
            await add("Add item to either");
            await page.keyboard.type(number);
        }
        await page.getByLabel("code").fill('"17"');
        await page.getByLabel("limit", { exact: true }).fill("2.5");
        await page.getByLabel("start").fill("08:30:00");
        await page.getByLabel("Hours").fill("1");
        await page.getByLabel("Seconds").fill("2");
        await page.getByLabel("File for photo").setInputFiles({
            name: "photo.bin", mimeType: "application/octet-stream", buffer: Buffer.from([0, 255, 1]),
        });
        await page.getByLabel("Kind of Payment").selectOption("bank");
        await page.getByLabel("iban").fill("DE1");
        await call();
        await ended("Done");
        return colors;
        """,
        {"url": url},
    )
    assert colors == ["(not set)", '"red"', "7", "null"]
    [arguments] = features.calls
    assert (
        arguments
        == {
            "text": "Hello",
            "whole": 9007199254740993,
            "part": -150,
            "sure": True,
            "maybe": False,
            "color": 7,
            "size": "s",
            "day": "2027-03-04",
            "moment": "2027-07-04T12:30:00+02:00",  # the browser is in Berlin
            "tags": ["one", "three"],
            "days": ["wed"],
            "person": {"name": "Ada"},
            "partner": {"name": "Bob", "born": "2000-01-02"},
            "counts": {"__proto__": 4},
            "nothing": None,
            "either": [1, 2],
            "code": "17",
            "limit": 2.5,
            "start": "08:30:00" + datetime.now(ZoneInfo("Europe/Berlin")).isoformat()[-6:],
            "length": "PT1H0M2S",
            "photo": "AP8B",
            "pay": {"kind": "bank", "iban": "DE1"},
            "note": "none",
        }
    )


def test_an_empty_form_leaves_optional_fields_out_and_names_what_is_missing(
    browser: Browser, url: str, features: Features
) -> None:
    features.calls.clear()
    problems, focused = browser.play(
        OPEN
        + """
        await tool("fields");
        await call();
        const problems = await page.locator(".problem:visible").allInnerTexts();
        const focused = await page.evaluate(() => document.activeElement.labels[0].innerText);
        await page.getByLabel("text").fill("Hello");
        await page.getByLabel("name").first().fill("Ada");
        await page.getByLabel("whole").fill("1.5");
        await call();
        problems.push(...await page.locator(".problem:visible").allInnerTexts());
        await page.getByLabel("whole").fill("0");
        await page.getByLabel("note").fill("");
        await call();
        await ended("Done");
        return [problems, focused];
        """,
        {"url": url},
    )
    text = "Enter a value. To send an empty text, use Edit as JSON."
    assert problems == [text, "Enter a value.", text, "Enter an integer."]
    assert focused.startswith("text")
    assert features.calls == [
        {"text": "Hello", "whole": 0, "sure": False, "size": "l", "tags": [], "person": {"name": "Ada"}, "note": ""}
    ]


def test_the_json_of_a_form_can_be_edited(browser: Browser, url: str, features: Features) -> None:
    features.calls.clear()
    text, refusal, tags = browser.play(
        OPEN
        + """
        await tool("fields");
        await page.getByLabel("text").fill("Hello");
        const toggle = page.getByRole("button", { name: "Edit as JSON" });
        await toggle.click();
        const json = page.getByLabel("Arguments as JSON");
        const text = await json.inputValue();
        await json.fill("{");
        await call();
        const refusal = await page.locator(".problem:visible").innerText();
        const value = { text: "Bye", whole: 3, sure: true, person: { name: "Ada" }, tags: ["a", "b"], extra: 1 };
        await json.fill(JSON.stringify(value));
        await call();
        await ended("Done");
        await toggle.click();
        const tags = await page.getByLabel("Item of tags").evaluateAll((items) => items.map((item) => item.value));
        await call();
        await page.waitForFunction(() => document.querySelector(".run.done"));
        return [text, refusal, tags];
        """,
        {"url": url},
    )
    assert json.loads(text)["text"] == "Hello"
    assert refusal.startswith("This is not JSON")
    assert tags == ["a", "b"]
    assert features.calls[0]["extra"] == 1


def test_a_call_shows_progress_and_log_messages_and_ends_with_its_result(
    browser: Browser, url: str, features: Features
) -> None:
    features.proceed.clear()
    seen = browser.play(
        OPEN
        + """
        await tool("wait");
        await call();
        await page.getByText("Halfway").first().waitFor();
        await page.getByRole("log").getByText("clock").waitFor();
        const seen = {
            badges: await page.locator(".badge").allInnerTexts(),
            value: await page.getByRole("progressbar").evaluate((bar) => [bar.value, bar.max]),
            progress: await page.locator(".progress").innerText(),
            log: await page.getByRole("log").innerText(),
            bold: await page.locator("main b").count(),
        };
        await fetch(new URL("/proceed", args.url), { method: "POST" });
        await ended("Done");
        seen.result = await result.innerText();
        seen.announced = await page.locator("#announcement").innerText();
        await page.getByText("Requests and answers as JSON").click();
        seen.exchange = await page.locator(".run .exchange").innerText();
        return seen;
        """,
        {"url": url},
    )
    assert seen["badges"] == ["destructive", "idempotent"]
    assert (seen["value"], seen["progress"], seen["bold"]) == ([2, 5], "Halfway <b>there</b> · 2 of 5", 0)
    assert seen["log"].split() == ["warning", "clock", '{"left":3}']
    assert "It was worth it." in seen["result"]
    assert seen["announced"] == "Done."
    for text in ('"MCP-Protocol-Version": "2026-07-28"', '"Mcp-Name": "wait"', "notifications/progress", '"result"'):
        assert text in seen["exchange"]


def test_cancel_ends_the_call_at_the_server(browser: Browser, url: str, features: Features) -> None:
    features.proceed.clear()
    features.cancelled.clear()
    browser.play(
        OPEN
        + """
        await tool("wait");
        await call();
        await page.getByText("Halfway").first().waitFor();
        await page.getByRole("button", { name: "Cancel", exact: true }).click();
        await ended("Cancelled");
        """,
        {"url": url},
    )
    assert features.cancelled.wait(PATIENCE)


def test_thousands_of_messages_do_not_block_the_page(browser: Browser, url: str, features: Features) -> None:
    features.proceed.clear()
    features.cancelled.clear()
    seen = browser.play(
        OPEN
        + """
        await tool("flood");
        await page.getByLabel("count").fill("2000");
        await call();
        await page.getByText("Requests and answers as JSON").click();
        await page.locator(".progress").getByText("2000 of 2000").waitFor();
        await page.getByRole("log").getByText("line 2000", { exact: true }).waitFor();
        const seen = {};
        await page.getByRole("button", { name: "Cancel", exact: true }).click();
        await ended("Cancelled");
        seen.lines = await page.getByRole("log").locator("li").count();
        seen.exchange = await page.locator(".run .exchange").innerText();
        return seen;
        """,
        {"url": url},
    )
    assert features.cancelled.wait(PATIENCE)
    assert seen["lines"] == 1000
    assert "3,500 earlier messages are not shown." in seen["exchange"]
    assert '"line 2000"' in seen["exchange"]
    assert '"line 1000"' not in seen["exchange"]


def test_names_without_a_feature_and_empty_results_are_named(browser: Browser, url: str) -> None:
    seen = browser.play(
        OPEN
        + """
        const seen = [];
        for (const kind of ["tool", "prompt", "template", "resource"]) {
            await page.goto(`${args.url}#${kind}/nosuch`);
            await page.getByText(/^This server lists no/).waitFor();
            seen.push(await page.locator("main").innerText(), await page.getByRole("main").getByRole("button").count());
        }
        await tool("nothing");
        await call();
        await ended("Done");
        return [...seen, await result.innerText()];
        """,
        {"url": url},
    )
    *views, empty = seen
    assert views[:6] == [
        *("Tools\n\nThis server lists no tool named nosuch.", 0),
        *("Prompts\n\nThis server lists no prompt named nosuch.", 0),
        *("Resource templates\n\nThis server lists no resource template named nosuch.", 0),
    ]
    assert "This server lists no resource named nosuch." in views[6]
    assert views[7] == 1
    assert empty == "The result is empty."


def test_a_question_that_the_server_has_forgotten_is_an_error_in_plain_words(browser: Browser, url: str) -> None:
    failure = browser.play(
        OPEN
        + """
        await page.route("**/mcp", (route) => {
            const message = route.request().postDataJSON();
            if (message?.params?.requestState) message.params.requestState = "of the server before its restart";
            route.continue(message ? { postData: JSON.stringify(message) } : {});
        });
        await tool("seat");
        await call();
        await page.getByRole("button", { name: "Decline" }).click();
        await ended("Failed");
        return await result.innerText();
        """,
        {"url": url},
        errors=["status of 400"],
    )
    assert failure == "The server has forgotten this question. Call the tool again."


def test_questions_of_the_server_are_answered_in_the_page(browser: Browser, url: str) -> None:
    seen = browser.play(
        OPEN
        + """
        const seen = [];
        const finish = async () => {
            await ended("Done");
            seen.push((await result.innerText()).replace("Copy", "").trim());
        };
        const press = (name) => page.getByRole("button", { name, exact: true }).click();
        await tool("seat");
        await call();
        await page.getByLabel("row").fill("12");
        await page.getByLabel("window").selectOption("yes");
        await press("Send");
        await finish();
        for (const name of ["Decline", "Dismiss"]) {
            await call();
            await press(name);
            await finish();
        }
        await tool("link");
        await page.locator(".schema-form").getByLabel("url").fill("https://pay.example/1");
        await call();
        const link = page.getByRole("link", { name: "https://pay.example/1" });
        seen.push([await link.getAttribute("href"), await link.getAttribute("rel"), await link.getAttribute("target")]);
        await press("Continue");
        await finish();
        await page.locator(".schema-form").getByLabel("url").fill("https://\u0430pple.example/ü?\u202e");
        await call();
        seen.push(await page.locator(".question a").innerText(), await page.locator(".question strong").innerText());
        await press("Decline");
        await finish();
        for (const address of ["javascript:alert(1)", "https://bank.example@other.example/"]) {
            await page.locator(".schema-form").getByLabel("url").fill(address);
            await call();
            await page.locator(".question").getByText(address).waitFor();
            seen.push(await page.locator(".question a").count());
            await press("Decline");
            await finish();
        }
        await tool("model");
        await call();
        await page.locator(".question").getByText("What is the capital of France?").waitFor();
        await page.getByLabel("Answer of the model").fill("Paris");
        await press("Send");
        await finish();
        await tool("roots");
        await call();
        await page.getByLabel("URIs").fill("file:///a\\nfile:///b\\n");
        await press("Send");
        await ended("Done");
        seen.push(JSON.parse(await result.locator("pre").first().innerText()));
        await tool("seat");
        await call();
        await page.getByLabel("row").fill("x");
        await press("Send");
        await page.getByText("Enter an integer.", { exact: true }).waitFor();
        await press("Cancel");
        await ended("Cancelled");
        return seen;
        """,
        {"url": url},
    )
    assert seen == [
        "Row 12, window True.",
        "You decline.",
        "You cancel.",
        ["https://pay.example/1", "noopener noreferrer", "_blank"],
        "You accept.",
        "https://xn--pple-43d.example/%C3%BC?%E2%80%AE",
        "xn--pple-43d.example",
        "You decline.",
        0,
        "You decline.",
        0,
        "You decline.",
        "The model said Paris.",
        {"result": ["file:///a", "file:///b"]},
    ]


def test_a_task_is_followed_asked_and_cancelled(browser: Browser, url: str, features: Features) -> None:
    features.proceed.clear()
    done = browser.play(
        OPEN
        + """
        await tool("job");
        await call();
        await page.getByLabel("row").fill("1");
        await page.getByRole("button", { name: "Send" }).click();
        await ended("Done");
        const text = await result.innerText();
        await call();
        await page.getByRole("button", { name: "Decline" }).click();
        await page.getByRole("heading", { name: "Task: working" }).waitFor();
        await page.locator(".progress").getByText("working (1 of 2)").waitFor();
        await page.getByRole("button", { name: "Cancel", exact: true }).click();
        await ended("Cancelled");
        return text;
        """,
        {"url": url},
    )
    assert "The task is over: accept." in done


def test_results_of_every_kind_are_shown(browser: Browser, url: str) -> None:
    seen = browser.play(
        OPEN
        + """
        await tool("media");
        await call();
        await ended("Done");
        await page.waitForFunction(() => document.querySelector(".result img").naturalWidth === 1);
        const seen = {
            text: await result.innerText(),
            image: await page.locator(".result img").getAttribute("src"),
            sound: await page.locator(".result audio").evaluate((audio) => audio.src.slice(0, 15)),
            italic: await page.locator(".result i").count(),
        };
        const [file] = await Promise.all([
            page.waitForEvent("download"),
            page.getByRole("button", { name: "Download notes://bytes" }).click(),
        ]);
        seen.file = file.suggestedFilename();
        await result.getByRole("link", { name: "Read" }).click();
        await page.getByRole("button", { name: "Read" }).click();
        await ended("Done");
        seen.resource = await result.innerText();
        await tool("table");
        await call();
        await ended("Done");
        seen.table = await result.locator("tr").allInnerTexts();
        await tool("fail");
        await call();
        await ended("Failed");
        seen.failure = await result.innerText();
        await tool("header");
        await page.getByLabel("region").fill("Zürich ");
        await call();
        await ended("Done");
        seen.region = await result.innerText();
        return seen;
        """,
        {"url": url},
    )
    assert "Plain <i>text</i>" in seen["text"]
    assert "The note of today" in seen["text"]
    assert '"inner": true' in seen["text"]
    assert "application/zip, 2 bytes" in seen["text"]
    assert seen["image"].startswith("data:image/png;base64,")
    assert (seen["sound"], seen["italic"], seen["file"]) == ("data:audio/wav;", 0, "bytes")
    assert '"number": 9007199254740993' in seen["resource"]
    assert seen["table"] == ["name\tprice", "soup\t4.5", "bread\t2"]
    assert "It is <em>broken</em>." in seen["failure"]
    assert "Region Zürich " in seen["region"]


def test_templates_are_expanded_and_prompts_are_completed(browser: Browser, url: str) -> None:
    file, values, prompt = browser.play(
        OPEN
        + """
        await page.locator("nav").getByRole("link", { name: "File" }).click();
        await page.getByLabel("path").fill("a b/ü.txt");
        await page.getByLabel("lang").fill("de&fr");
        await page.getByRole("button", { name: "Read" }).click();
        await ended("Done");
        const file = await result.innerText();
        await page.locator("nav").getByRole("link", { name: "Greet" }).click();
        await page.getByLabel("city").focus();
        await page.waitForFunction(() => document.querySelectorAll("datalist option").length === 2);
        await page.getByLabel("city").fill("Berl");
        await page.waitForFunction(() => document.querySelectorAll("datalist option").length === 1);
        const values = await page.locator("datalist option").evaluateAll((list) => list.map(({ value }) => value));
        await page.getByRole("button", { name: "Get the prompt" }).click();
        await ended("Done");
        return [file, values, await result.innerText()];
        """,
        {"url": url},
    )
    assert "a b/ü.txt in de&fr" in file
    assert values == ["Berlin"]
    assert "A kind greeting to Berl" in prompt


def test_a_call_is_shown_for_other_programs_and_as_a_link(browser: Browser, url: str, features: Features) -> None:
    """The texts run, and the link fills in the form."""
    features.calls.clear()
    seen = browser.play(
        OPEN
        + """
        await tool("fields");
        const form = page.locator(".schema-form");
        const fill = async (text) => {
            await form.getByLabel("text").fill(text);
            await form.getByLabel("whole").fill("7");
            await form.getByLabel("sure").check();
            await form.getByRole("group", { name: "person", exact: false }).first().getByLabel("name").fill("Ada");
            await call();
            await ended("Done");
        };
        await fill("It's\\n'one' \\"two\\"");
        await page.getByText("This call elsewhere").click();
        const texts = {};
        for (const name of ["funcmcp", "curl", "Python", "pytest", "Link to this form"]) {
            await page.getByLabel("As", { exact: true }).selectOption(name);
            texts[name] = await page.getByRole("group", { name: `call as ${name}` }).textContent();
        }
        await fill("second");
        await page.getByText("Earlier calls").click();
        await page.getByRole("button", { name: /^Use .*two/ }).click();
        const reused = await form.getByLabel("text").inputValue();
        await page.goto("about:blank");
        await page.goto(texts["Link to this form"]);
        await form.getByLabel("text").waitFor();
        return { texts, reused, linked: await form.getByLabel("text").inputValue() };
        """,
        {"url": url},
    )
    text = "It's\n'one' \"two\""
    assert (seen["reused"], seen["linked"]) == (text, text)
    assert [arguments["text"] for arguments in features.calls] == [text, "second"]
    features.calls.clear()
    texts = seen["texts"]
    for command in (texts["funcmcp"].replace("funcmcp", f"{sys.executable} -m funcmcp", 1), texts["curl"]):
        ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert (ended.returncode, "isError" in ended.stdout) == (0, False)
    subprocess.run([sys.executable, "-c", texts["Python"]], capture_output=True, timeout=PATIENCE, check=True)
    assert [arguments["text"] for arguments in features.calls] == [text] * 3
    compile(texts["pytest"], "test_fields.py", "exec")
    assert "async def test_fields():" in texts["pytest"]


def test_the_page_can_be_used_by_keyboard_only(browser: Browser, url: str) -> None:
    seen = browser.play(
        OPEN
        + """
        const focused = () => page.evaluate(() => document.activeElement.innerText ?? document.activeElement.id);
        const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
        const seen = [];
        await press("Tab");
        seen.push(await focused());
        await press("Enter");
        seen.push(await focused());
        await press("/");
        await page.keyboard.type("seat");
        await press("ArrowDown", "Enter");
        await page.waitForFunction(() => document.activeElement.tagName === "H2");
        seen.push(await focused());
        await press("Tab", "Enter");
        await page.waitForFunction(() => document.activeElement.tagName === "H4");
        seen.push(await focused());
        await press("Tab", "Tab");
        await page.keyboard.type("3");
        await press("Enter");
        await ended("Done");
        seen.push((await result.innerText()).replace("Copy", "").trim());
        await page.getByLabel("Search tools").fill("");
        await press("ArrowDown", "ArrowDown", "End", "Home", "ArrowUp");
        seen.push(await page.evaluate(() => document.activeElement.id));
        await page.keyboard.type("seat");
        await press("Enter");
        await page.waitForFunction(() => document.activeElement.tagName === "H2");
        return seen;
        """,
        {"url": url},
    )
    assert seen == ["Skip to content", "All features", "Seat", "The server asks", "Row 3, window False.", "search"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_complain_about(browser: Browser, url: str, features: Features, scheme: str) -> None:
    features.proceed.clear()
    problems, background = browser.play(
        OPEN
        + """
        const problems = [];
        const rules = args.scheme === "dark" ? ["color-contrast"] : null; // the other rules do not depend on colours
        const check = async () => problems.push(...await violations(page, rules));
        const background = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
        await check();
        await tool("fields");
        for (const name of ["tags", "counts"]) {
            await page.getByRole("button", { name: new RegExp(`^Add .* ${name}$`) }).click();
        }
        await page.getByLabel("Partner").check();
        await call();
        await page.getByText("Enter a value.").first().waitFor();
        await check();
        await tool("wait");
        await call();
        await page.getByText("Halfway").first().waitFor();
        await page.getByText("Options").click();
        await page.getByText("Definition as JSON").click();
        await check();
        await fetch(new URL("/proceed", args.url), { method: "POST" });
        await ended("Done");
        await page.getByText("Requests and answers as JSON").click();
        await check();
        await tool("seat");
        await call();
        await page.getByRole("heading", { name: "The server asks" }).waitFor();
        await check();
        await tool("media");
        await call();
        await ended("Done");
        await check();
        await tool("fail");
        await call();
        await ended("Failed");
        await check();
        for (const view of ["clients", "sign-in"]) {
            await page.goto(`${args.url}#${view}`);
            await check();
        }
        return [problems, background];
        """,
        {"url": url, "scheme": scheme},
        colorScheme=scheme,
    )
    assert problems == []
    assert background == {"light": "rgb(248, 248, 246)", "dark": "rgb(20, 23, 26)"}[scheme]


def test_the_configuration_of_clients_is_that_of_funcmcp_install(browser: Browser, url: str) -> None:
    snippets, links, commands = browser.play(
        OPEN
        + """
        await page.goto(`${args.url}#clients`);
        const snippets = {};
        const links = {};
        const commands = {};
        for (const option of await page.getByLabel("Client").locator("option").all()) {
            const id = await option.getAttribute("value");
            await page.getByLabel("Client").selectOption(id);
            snippets[id] = await page.getByRole("group", { name: /configuration/ }).innerText();
            const link = page.getByRole("link", { name: /^Add to (Visual|Cursor)/ });
            if (await link.count()) links[id] = await link.getAttribute("href");
            const command = page.getByRole("group", { name: "command", exact: true });
            if (await command.count()) commands[id] = await command.innerText();
        }
        return [snippets, links, commands];
        """,
        {"url": url},
    )
    assert snippets.keys() == CLIENTS.keys()
    for name, client in CLIENTS.items():
        if client.format == "toml":
            assert snippets[name].split() == ["[mcp_servers.features]", "url", "=", f'"{url}"']
            continue
        expected: dict[str, Any] = {"features": entry_for(client, ServerDescription("features", url=url)).members}
        for member in reversed(client.servers):
            expected = {member: expected}
        assert json.loads(snippets[name]) == expected
    vscode, cursor = links["vscode"].partition("?"), urlsplit(links["cursor"])
    assert vscode[0] == "vscode:mcp/install"
    assert json.loads(unquote(vscode[2])) == {"name": "features", "type": "http", "url": url}
    assert (cursor.scheme, cursor.netloc, cursor.path) == ("cursor", "anysphere.cursor-deeplink", "/mcp/install")
    assert parse_qs(cursor.query).keys() == {"name", "config"}
    assert json.loads(b64decode(parse_qs(cursor.query)["config"][0])) == {"url": url}
    assert commands == {"claude-code": f"claude mcp add --transport http features {url}"}


FAILING = """
from funcmcp import MCPServer

mcp = MCPServer("Failing")


@mcp.tool
def fail() -> None:
    raise KeyError("<img src=x onerror=alert(1)>")


@mcp.resource("menu://today")
def today() -> str:
    raise KeyError("no menu")
"""


def test_a_failure_shows_its_traceback_on_the_developers_machine(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    with running([*FUNCMCP, "run", "failing.py", "--port", "0"], folder=tmp_path) as process:
        seen = browser.play(
            OPEN
            + """
            await tool("fail");
            await call();
            await ended("Failed");
            await page.getByRole("heading", { name: "Traceback" }).waitFor();
            const first = await result.innerText();
            await page.goto(`${args.url}#resource/menu%3A%2F%2Ftoday`);
            await page.getByRole("button", { name: "Read", exact: true }).click();
            await page.getByRole("heading", { name: "Traceback" }).waitFor();
            return [first, await result.innerText()];
            """,
            {"url": process.endpoint()},
        )
    assert 'failing.py", line 9, in fail' in seen[0]
    assert "KeyError: '<img src=x onerror=alert(1)>'" in seen[0]
    assert "KeyError: 'no menu'" in seen[1]
