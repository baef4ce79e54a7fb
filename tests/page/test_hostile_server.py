"""A server whose every text is an attack: the page shows it as text, and nothing runs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from funcmcp import MCPServer
from tests.page.browser import serving

if TYPE_CHECKING:
    from tests.page.browser import Browser

pytestmark = pytest.mark.slow("A browser goes through many pages.")

FILES = Path(__file__).parents[2] / "src" / "funcmcp" / "_page" / "files"
HTML = '<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>\u202egnp.exe\u2069\u061c\u200b\U000e0041'
SHOWN = HTML.replace("\u202e", "\\u202e").replace("\u2069", "\\u2069").replace("\u061c", "\\u061c")
SHOWN = SHOWN.replace("\u200b", "\\u200b").replace("\U000e0041", "\\U000e0041")
SCRIPT_URL = "javascript:window.hacked=3"
MEMBERS = json.loads('{"__proto__": {"type": "string", "default": "polluted"}, "constructor": {"type": "integer"}}')
SCHEMA = {
    "type": "object",
    "title": HTML,
    "description": HTML,
    "properties": {
        **MEMBERS,
        HTML: {"type": "string", "title": HTML, "description": HTML, "default": HTML},
        "choice": {"enum": [HTML, {"__proto__": 1}], "title": {"not": "a string"}},
        "loop": {"$ref": "#/properties/loop"},
        "remote": {"$ref": "http://attacker.example/schema"},
        "deep": {"$ref": "#/$defs/deep"},
        "wide": {"$ref": "#/$defs/wide"},
        "broken": {"type": 7, "enum": "x", "items": [], "properties": 3, "required": "all", "anyOf": [None, 5]},
        "pattern": {"type": "string", "pattern": "(a+)+$", "minLength": "many"},
    },
    "required": ["__proto__", "deep", "wide"],
    "$defs": {
        "wide": {"type": "object", "properties": {f"p{number}": {"$ref": "#/$defs/wide"} for number in range(40)}},
        "deep": {"type": "array", "minItems": 1e9, "items": {"$ref": "#/$defs/deep"}},
    },
}
LAUGHS = "".join(f'<g id="a{level + 1}">' + f'<use href="#a{level}"/>' * 10 + "</g>" for level in range(12))
BOMB = f'<svg xmlns="http://www.w3.org/2000/svg"><g id="a0"><circle r="9"/></g>{LAUGHS}</svg>'
"""A drawing that a browser would paint for days."""
ICONS = [
    {"src": f"data:image/svg+xml,{quote(BOMB)}"},
    {"src": SCRIPT_URL},
    {"src": "data:text/html,<script>window.hacked=6</script>"},
    {"src": 'data:image/png" onerror="window.hacked=7;base64,AAAA'},
    {"src": "https://attacker.example/icon.png"},
    {"src": "//attacker.example/icon.png"},
    {"src": {"not": "text"}, "theme": HTML},
    None,
]
MARKDOWN = f"""{HTML}

# {HTML}

- **{HTML}** [link]({SCRIPT_URL}) ![image](https://attacker.example/x.png)

| {HTML} | [a](data:text/html,x) |
|---|---|
| `{HTML}` | <a href="{SCRIPT_URL}">x</a> |
"""
TOOL = {
    "name": HTML,
    "title": HTML,
    "description": MARKDOWN,
    "inputSchema": SCHEMA,
    "annotations": {"title": HTML},
    "icons": ICONS,
    "_meta": {"ui": {"resourceUri": SCRIPT_URL, "visibility": {}}, "ui/resourceUri": {}},
}
CONTENT: list[Any] = [
    {"type": "text", "text": HTML},
    {"type": "text", "text": {"not": "text"}},
    {"type": "text", "text": MARKDOWN},
    {"type": "resource", "resource": {"uri": "ui://x", "mimeType": "text/html;profile=mcp-app", "text": HTML}},
    {"type": "image", "mimeType": "text/html", "data": "PHNjcmlwdD4="},
    {"type": "image", "mimeType": 'image/png" onerror="window.hacked=4', "data": "AAAA"},
    {
        "type": "image",
        "mimeType": "image/svg+xml",
        "data": "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0id2luZG93LmhhY2tlZD01Ii8+",
    },
    {"type": "image", "mimeType": "image/svg+xml", "data": base64.b64encode(BOMB.encode()).decode()},
    {"type": "image", "mimeType": "image/png", "data": '"><script>'},
    {"type": "resource_link", "uri": SCRIPT_URL, "name": HTML, "description": HTML},
    {"type": "resource", "resource": {"uri": SCRIPT_URL, "mimeType": "text/html", "text": HTML}},
    {"type": HTML},
    None,
    7,
]
RESULTS: dict[str, Any] = {
    "server/discover": {
        "supportedVersions": [HTML],
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
        "instructions": HTML,
        "_meta": {
            "io.modelcontextprotocol/serverInfo": {
                "name": HTML,
                "title": HTML,
                "websiteUrl": SCRIPT_URL,
                "icons": ICONS,
            }
        },
    },
    "tools/list": {"tools": [TOOL, None, 7, {}, {"name": {}}]},
    "prompts/list": {"prompts": [{"name": HTML, "arguments": [{"name": "__proto__", "required": True}, None]}]},
    "resources/list": {"resources": [{"uri": SCRIPT_URL, "name": HTML}], "nextCursor": "again"},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "{__proto__}{?constructor}", "name": HTML}]},
    "completion/complete": {"completion": {"values": [HTML, None, {}]}},
    "prompts/get": {"messages": [{"role": HTML, "content": CONTENT[0]}, None]},
    "resources/read": {"contents": [{"uri": SCRIPT_URL, "blob": "PHNjcmlwdD4=", "mimeType": "text/html"}, None]},
}
QUESTION = {
    "method": "elicitation/create",
    "params": {"message": HTML, "requestedSchema": {"type": "object", "properties": {HTML: {"type": "string"}}}},
}
LINK = {"method": "elicitation/create", "params": {"mode": "url", "message": HTML, "url": SCRIPT_URL}}


class Hostile:
    """An ASGI application with the page of a real server and made-up answers.

    Attributes:
        arguments: The arguments of the last call of a tool or a prompt, as JSON text.
    """

    def __init__(self) -> None:
        self._mcp = MCPServer("page")
        self.arguments = b""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._mcp(scope, receive, send)
            return
        body = (await receive())["body"]
        message = json.loads(body)
        messages = self._answers(message)
        data = b"".join(b"data: %b\n\n" % json.dumps(answer).encode() for answer in messages)
        headers = self._headers(message)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    def _headers(self, message: dict[str, Any]) -> list[tuple[bytes, bytes]]:
        return [(b"content-type", b"text/event-stream")]

    def _answers(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        params = message["params"]
        if message["method"] not in {"tools/call", "prompts/get"}:
            return [{"jsonrpc": "2.0", "id": message["id"], "result": RESULTS[message["method"]]}]
        self.arguments = json.dumps(params["arguments"]).encode()
        if message["method"] == "prompts/get":
            return [{"jsonrpc": "2.0", "id": message["id"], "result": RESULTS["prompts/get"]}]
        if "inputResponses" not in params:
            questions = {"__proto__": QUESTION, "link": LINK}
            result: dict[str, Any] = {"resultType": "input_required", "inputRequests": questions}
            return [{"jsonrpc": "2.0", "id": message["id"], "result": result}]
        token = params["_meta"]["progressToken"]
        structured = {"__proto__": HTML, "html": HTML}
        return [
            {"method": "notifications/progress", "params": {"progressToken": token, "progress": "x", "message": HTML}},
            {"method": "notifications/message", "params": {"level": HTML, "logger": HTML, "data": HTML}},
            {"method": HTML, "params": HTML},
            {
                "jsonrpc": "2.0",
                "id": message["id"],
                "result": {"content": CONTENT, "structuredContent": structured, "isError": HTML},
            },
        ]


def test_texts_of_a_hostile_server_are_shown_and_not_interpreted(browser: Browser) -> None:
    app = Hostile()
    with serving(app) as url:
        seen = browser.play(
            """
            await page.goto(args.url);
            await page.locator("nav li").first().waitFor();
            const seen = { title: await page.title(), overview: await page.locator("main").innerText() };
            const links = page.locator("nav li a");
            const count = await links.count();
            for (let index = 0; index < count; index += 1) await links.nth(index).click();
            await page.locator("nav section[data-kind=tool] li a").first().click();
            seen.form = await page.locator("main").innerText();
            await page.getByRole("textbox", { name: "constructor", exact: true }).fill("1");
            await page.getByRole("button", { name: "Call", exact: true }).click();
            await page.getByText("The server asks you to open a page").waitFor();
            seen.question = await page.locator(".questions").innerText();
            await page.getByRole("button", { name: "Send" }).click();
            await page.getByRole("button", { name: "Continue" }).click();
            await page.getByRole("heading", { name: "Done" }).waitFor();
            await page.getByText("Requests and answers as JSON").first().click();
            seen.result = await page.locator(".run").innerText();
            const answer = page.getByRole("group", { name: "answer to tools/call" }).last();
            await answer.getByText("structuredContent").waitFor();
            seen.activity = await page.locator("aside").innerText();
            await page.locator("nav section[data-kind=prompt] li a").click();
            await page.getByRole("combobox", { name: "__proto__" }).fill("there");
            await page.getByRole("button", { name: "Get the prompt" }).click();
            await page.getByRole("heading", { name: "Done" }).waitFor();
            await page.locator("nav section[data-kind=template] li a").click();
            await page.getByRole("button", { name: "Read" }).waitFor();
            await page.getByRole("combobox", { name: "__proto__" }).fill("a/b");
            await page.getByRole("button", { name: "Read" }).click();
            await page.getByRole("heading", { name: "Done" }).waitFor();
            seen.state = await page.evaluate(() => ({
                hacked: window.hacked ?? null,
                polluted: {}.polluted ?? {}.type ?? null,
                elements: document.querySelectorAll(
                    "main script, nav script, main img:not([src^='data:image/']), iframe, object"
                ).length,
                controls: /[\u200b\\u{e0041}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.test(
                    document.body.textContent
                ),
                links: [...document.querySelectorAll("a")].map((link) => link.protocol),
                handlers: [...document.querySelectorAll("*")].filter((node) => node.hasAttribute("onerror")).length,
            }));
            return seen;
            """,
            {"url": url},
        )
    assert seen["title"] == SHOWN
    for view in ("overview", "form", "question", "result", "activity"):
        assert SHOWN in seen[view]
    assert seen["state"]["hacked"] is None
    assert seen["state"]["polluted"] is None
    assert seen["state"]["controls"] is False
    assert (seen["state"]["elements"], seen["state"]["handlers"]) == (0, 0)
    assert set(seen["state"]["links"]) == {"http:"}
    assert json.loads(app.arguments) == {"__proto__": "there"}


def tool_of(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the definition of a tool."""
    return {"name": name, "inputSchema": {"type": "object"} | schema}


class Huge(Hostile):
    """A server whose schemas lead nowhere, and whose answers are too large for a view."""

    tools = (
        tool_of("plain", {"properties": {"text": {"type": "string"}}})
        | {"description": "# Plain tool\n\n- Sends **a text**\n  to its end. And more."},
        tool_of("broken", {"properties": {"text": {"$ref": "#/%"}}}),
        tool_of("cycle", {"allOf": [{"$ref": "#"}]}),
        tool_of("wide", {"properties": {f"p{number}": {"type": "string"} for number in range(6000)}}),
        tool_of("lines", {"properties": {"step": {"type": "string"}}}),
        tool_of("blocks", {}),
        tool_of("questions", {}),
        tool_of("half \ud800", {}),
        tool_of("cut", {}),
    )

    def _headers(self, message: dict[str, Any]) -> list[tuple[bytes, bytes]]:
        if message["params"].get("name") == "cut":  # the connection ends before the announced end of the body
            return [(b"content-type", b"application/json"), (b"content-length", b"100000000")]
        return super()._headers(message)

    def _answers(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        params = message["params"]
        if message["method"] == "tools/list":
            result: dict[str, Any] = {"tools": self.tools}
        elif message["method"] != "tools/call":
            return super()._answers(message)
        elif params["name"] == "questions":
            question = {
                "method": "elicitation/create",
                "params": {"message": "?", "requestedSchema": {"type": "object"}},
            }
            result = {"resultType": "input_required", "inputRequests": {str(key): question for key in range(2000)}}
        elif params["name"] == "blocks":
            result = {"content": [{"type": "text", "text": f"block {number}"} for number in range(5000)]}
        else:
            step = params["arguments"].get("step", "")
            result = {"content": [], "structuredContent": {"lines": [f"{step} {number}" for number in range(100_000)]}}
        return [{"jsonrpc": "2.0", "id": message["id"], "result": result}]


def test_no_schema_and_no_answer_is_too_much_for_the_page(browser: Browser) -> None:
    with serving(Huge()) as url:
        seen = browser.play(
            """
            const press = (name) => page.getByRole("button", { name, exact: true }).click();
            const text = () => page.locator("main").innerText();
            const seen = { views: {} };
            await page.goto(args.url);
            await page.getByText("Sends a text").waitFor();
            seen.overview = await text();
            for (const name of ["plain", "broken", "cycle", "wide", "half \ufffd"]) {
                await page.goto(`${args.url}#tool/${encodeURIComponent(name)}`);
                await page.locator("nav li a[aria-current]").waitFor();
                const form = await page.locator("main form").innerText();
                seen.views[name] = [await page.locator("main h2").innerText(), form];
            }
            await page.goto(`${args.url}#tool/blocks`);
            await press("Call");
            await page.getByText("4,900 more blocks of the result are not shown here.").waitFor();
            seen.blocks = await page.locator(".result .code").count();
            await page.goto(`${args.url}#tool/cut`);
            await press("Call");
            seen.cut = await page.locator(".result .failure").innerText();
            await page.goto(`${args.url}#tool/questions`);
            await press("Call");
            await page.getByText("1,990 more questions will follow.").waitFor();
            await page.getByRole("button", { name: "Decline" }).first().click();
            await page.getByText("1,989 more questions will follow.").waitFor();
            seen.questions = await page.locator(".question").count();
            await press("Cancel");
            await page.goto(`${args.url}#tool/lines`);
            for (const step of ["a", "b"]) {
                await page.getByRole("textbox", { name: "step" }).fill(step);
                await press("Call");
                await page.waitForFunction(() => document.querySelector(".run.done"));
            }
            await page.getByText("Earlier calls").click();
            await page.getByRole("button", { name: /^Compare/ }).nth(1).click();
            seen.note = await page.getByText("more lines are not shown. Copy has all of them.").innerText();
            return seen;
            """,
            {"url": url},
            errors=["Failed to load resource", "ERR_CONTENT_LENGTH_MISMATCH"],
        )
    assert seen["cut"] == "The connection ended before the answer. The server may have run the request."
    assert "\nSends a text to its end.\n" in seen["overview"]
    titles = {name: title for name, (title, _) in seen["views"].items()}
    assert titles == {name: name for name in ("plain", "broken", "cycle", "wide")} | {"half \ufffd": "half \ud800"}
    forms = {name: form for name, (_, form) in seen["views"].items()}
    assert "Edit as JSON" in forms["broken"]
    assert "This page can't make a form of the schema. It would have too many fields." in forms["wide"]
    assert "Arguments as JSON" in forms["cycle"]
    assert (seen["blocks"], seen["questions"]) == (100, 10)
    assert seen["note"].startswith("199,")


def nested(depth: int, wrap: Any) -> dict[str, Any]:
    """Return a schema that contains itself many times."""
    schema: dict[str, Any] = {"type": "string", "title": HTML}
    for _ in range(depth):
        schema = wrap(schema)
    return schema


ARRAY: dict[str, Any] = {"type": "array"}
CONTROLS: dict[str, dict[str, Any]] = {
    "pair": ARRAY
    | {
        "title": HTML,
        "prefixItems": [
            {"type": "string", "title": HTML, "description": HTML, "default": HTML},
            *(None, 7, {"$ref": "#/properties/pair"}, {"const": HTML}, {"$ref": "#/%"}),
        ],
        "items": {"title": HTML},
        "minItems": "many",
    },
    "huge": ARRAY | {"prefixItems": [{"type": "string"}] * 10_000},
    "hundred": ARRAY | {"items": [{"type": "integer"}] * 100, "maxItems": -1},
    "any": {"title": HTML, "description": HTML, "default": HTML},
    "object": {"default": {"__proto__": [HTML]}},
    "boxes": ARRAY | {"title": HTML, "items": {"enum": [HTML, {"__proto__": 1}, "b"]}, "default": [HTML, HTML]},
    "many": ARRAY | {"items": {"enum": list(range(20_000))}},
    "at": {"type": "string", "format": "time", "title": HTML, "default": HTML},
    "on": {"type": "string", "format": "date-time", "default": HTML},
    "far": {"type": "string", "format": "date-time", "default": "1850-01-01T12:00:00Z"},
    "objects": nested(200, lambda schema: {"type": "object", "properties": {HTML: schema}, "required": [HTML]}),
    "arrays": nested(200, lambda schema: ARRAY | {"items": schema, "minItems": 1}),
    "tuples": nested(200, lambda schema: ARRAY | {"prefixItems": [schema, {}], "minItems": 2}),
}
"""Schemas for the controls of the page, in texts that attack, without an end, or with too many parts."""
ROW = {HTML: [HTML, None, 1], "__proto__": {"__proto__": HTML}, "constructor": HTML, "long": []}


class HostileControls(Hostile):
    """A server with a tool for each of the controls, whose result has 10,000 rows."""

    def _answers(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        if message["method"] == "tools/list":
            tools = [tool_of(name, {"properties": {name: schema}}) for name, schema in CONTROLS.items()]
            result: dict[str, Any] = {"tools": tools}
        elif message["method"] == "tools/call":
            self.arguments = json.dumps(message["params"]["arguments"]).encode()
            result = {"content": [], "structuredContent": {"rows": [ROW | {"long": [HTML * 100]}, *[ROW] * 9_999]}}
        else:
            return super()._answers(message)
        return [{"jsonrpc": "2.0", "id": message["id"], "result": result}]


def test_no_control_and_no_table_interprets_what_a_server_sends(browser: Browser) -> None:
    app = HostileControls()
    with serving(app) as url:
        seen = browser.play(
            """
            const seen = { forms: {}, parts: {} };
            await page.goto(args.url);
            for (const name of args.names) {
                await page.goto(`${args.url}#tool/${name}`);
                await page.locator("main .subtitle").getByText(name, { exact: true }).waitFor();
                const form = page.locator("main form");
                seen.forms[name] = await form.textContent();
                seen.parts[name] = await form.locator("*").count();
                await page.getByRole("button", { name: "Edit as JSON" }).click();
                await page.getByRole("button", { name: "Call", exact: true }).click();
                await page.locator(".run.done").waitFor();
            }
            await page.goto(`${args.url}#tool/any`);
            const any = page.locator("main form textarea.line");
            await page.getByRole("button", { name: "Edit as JSON" }).click();
            seen.any = await any.inputValue();
            await any.fill('{"__proto__": {"polluted": 1}}');
            await page.getByRole("button", { name: "Call", exact: true }).click();
            await page.locator(".run.done").waitFor();
            const result = page.locator(".result");
            seen.rows = await result.locator("tr").count();
            seen.row = await result.locator("tr").nth(1).innerText();
            await page.locator("aside").getByText("9,800 more").waitFor({ state: "hidden" });
            seen.state = await page.evaluate(() => ({
                hacked: window.hacked ?? null,
                polluted: {}.polluted ?? {}.type ?? null,
                elements: document.querySelectorAll("main script, aside script, main img, aside img, iframe").length,
                controls: /[\u200b\\u{e0041}\u061c\u202a-\u202e\u2066-\u2069]/u.test(document.body.textContent),
            }));
            return seen;
            """,
            {"url": url, "names": list(CONTROLS)},
        )
    assert seen["state"] == {"hacked": None, "polluted": None, "elements": 0, "controls": False}
    for name in ("pair", "any", "boxes", "at", "objects"):
        assert SHOWN in seen["forms"][name]
    assert max(seen["parts"].values()) < 15_000
    assert "As JSON" in seen["forms"]["huge"]
    assert "Item 100" in seen["forms"]["hundred"]
    assert seen["any"] == HTML
    assert json.loads(app.arguments) == {"any": {"__proto__": {"polluted": 1}}}
    assert seen["rows"] == 201
    assert seen["row"].startswith(f"{SHOWN}, null, 1\t__proto__: {SHOWN}\t{SHOWN}")


MARKED = [
    *(
        "<h2>X</h2>",
        "<p>X</p>",
        "<ul><li>X</li></ul>",
        "<dl><dd>X</dd></dl>",
        "<div class=field><label>X</label></div>",
    ),
    *("<fieldset><legend>X</legend></fieldset>", "<table><tr><td>X</td></tr></table>"),
    *('<div class="markdown"><ul><li>X</li></ul></div>', '<div class="code"><pre>X</pre></div>'),
    '<nav><ul><li><a href="#"><span class="title">X</span></a></li></ul></nav>',
]
BETWEEN = """
nav { position: static; height: auto; padding: 0; }
i { display: block; height: 60px; }
.block { padding: 10px; }
"""


def test_marks_that_are_stacked_on_a_letter_are_not_drawn_over_other_texts(browser: Browser) -> None:
    style = (FILES / "style.css").read_text(encoding="utf-8") + BETWEEN
    play = """
    const picture = async (clip) => {
        for (;;) {
            try {
                return await page.screenshot({ clip });
            } catch (error) {  // Chromium gives a picture up after a time of its own, which a busy machine exceeds
                if (!error.message.includes("Unable to capture screenshot")) throw error;
            }
        }
    };
    const shots = async (text, style) => {
        const blocks = args.blocks.map((block) => `<i></i><div class="block">${block.replace("X", text)}</div>`);
        await page.setContent(`<style>${args.style} ${style}</style>${blocks.join("")}<i></i>`);
        const tops = await page.locator("i").evaluateAll((list) => list.map((node) => node.getBoundingClientRect().y));
        const pictures = [];
        for (const y of tops) pictures.push(await picture({ x: 0, y, width: 300, height: 60 }));
        return pictures.map((picture) => picture.toString("base64"));
    };
    const marks = "Z" + "\u0301\u0323".repeat(100);
    const plain = await shots("Z", "");
    const different = (list) => list.flatMap((picture, index) => (picture === plain[index] ? [] : [index]));
    return [different(await shots(marks, "")), different(await shots(marks, "* { overflow: visible !important; }"))];
    """
    viewport = {"width": 300, "height": 1600}
    clipped, unclipped = browser.play(play, {"blocks": MARKED, "style": style}, viewport=viewport)
    assert clipped == []
    assert len(unclipped) == len(MARKED) + 1
