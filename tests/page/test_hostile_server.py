"""A server whose every text is an attack: the page shows it as text, and nothing runs."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from funcmcp import MCPServer
from tests.page.browser import serving

if TYPE_CHECKING:
    from tests.page.browser import Browser

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
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": data})

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
            await page.getByRole("link", { name: "Activity" }).click();
            seen.activity = await page.locator("main").innerText();
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
