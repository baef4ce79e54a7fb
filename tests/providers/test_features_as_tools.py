"""Resources and prompts as tools."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pytest

from funcmcp import Context, MCPError, MCPServer, Principal, ProtocolOptions
from funcmcp.auth import APIKeys, Auth
from funcmcp.testing import Client, accept
from funcmcp.transforms import PromptsAsTools, ResourcesAsTools
from tests import schemas

if TYPE_CHECKING:
    from funcmcp.middleware import CallNext, RequestContext

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)


def shop(**options: Any) -> MCPServer:
    mcp = MCPServer("shop", **options)

    @mcp.resource("data://info", mime_type="text/plain")
    def info() -> str:
        """Say who we are."""
        return "info"

    @mcp.resource("data://logo", mime_type="image/png")
    def logo() -> bytes:
        return b"png"

    @mcp.resource("data://raw")
    def raw() -> bytes:
        return b"raw"

    @mcp.resource("data://invoices/{year}/{path*}{?state,paid}")
    def invoice(year: int, path: str, state: Literal["open", "sent"] = "open", paid: bool = False) -> str:
        """Return an invoice."""
        return f"{year} {path} {state} {paid}"

    @mcp.prompt
    def greet(name: str, times: int = 1, tags: list[str] | None = None) -> str:
        """Greet somebody."""
        return f"Greet {name} {times} {tags}."

    mcp.add_transform(ResourcesAsTools(mcp))
    mcp.add_transform(PromptsAsTools(mcp))
    return mcp


@EVERY_REVISION
async def test_a_template_is_a_tool_with_typed_arguments(revision: str) -> None:
    async with Client(shop(), revision=revision) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        for tool in tools.values():
            schemas.validate_as(tool, revision, "Tool")
        assert tools["read_invoice"].input_schema == {
            "type": "object",
            "properties": {
                "year": {"type": "integer"},
                "path": {"type": "string"},
                "state": {"type": "string", "enum": ["open", "sent"], "default": "open"},
                "paid": {"type": "boolean", "default": False},
            },
            "required": ["year", "path"],
        }
        result = await client.call_tool("read_invoice", {"year": 2026, "path": "a/b c", "paid": True, "state": "sent"})
        assert result.text == "2026 a/b c sent True"
        assert (await client.call_tool("read_invoice", {"year": 2026, "path": "x"})).text == "2026 x open False"


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("read_invoice", {"year": 1}, "path: is required"),
        ("read_invoice", {"year": 1, "path": "a", "yeer": 2}, "yeer: is not an argument"),
        ("read_invoice", {"year": "x", "path": "a"}, "year: must be an integer"),
        ("read_invoice", {"year": 1, "path": "../secret"}, "The URI has a value that is not allowed"),
        ("read_resource", {}, "uri: is required"),
        ("read_resource", {"uri": 1}, "uri: must be a string"),
        ("read_resource", {"uri": "data://none"}, "Resource not found"),
        ("prompt_greet", {}, "name: is required"),
        ("prompt_greet", {"name": "Ada", "times": "often"}, "times: must be an integer"),
        ("get_prompt", {"name": "none"}, "Unknown prompt: none"),
        ("get_prompt", {"name": "greet", "arguments": 1}, "arguments: must be an object"),
        ("get_prompt", {"name": 1}, '"name" must be a string'),
        ("list_prompts", {"page": 1}, "page: is not an argument"),
    ],
)
async def test_wrong_arguments_are_errors_for_the_model(name: str, arguments: dict[str, Any], text: str) -> None:
    result = await shop().call_tool(name, arguments)
    assert result.is_error
    assert text in result.text


@EVERY_REVISION
async def test_contents_become_content_blocks(revision: str) -> None:
    async with Client(shop(), revision=revision) as client:
        assert (await client.call_tool("read_resource", {"uri": "data://info"})).text == "info"
        [image] = (await client.call_tool("read_resource", {"uri": "data://logo"})).content
        assert (image.type, image["mimeType"]) == ("image", "image/png")
        [file] = (await client.call_tool("read_resource", {"uri": "data://raw"})).content
        assert (file.type, file["resource"]["uri"]) == ("resource", "data://raw")


@EVERY_REVISION
async def test_a_text_has_the_media_type_of_its_resource(revision: str) -> None:
    mcp = shop()
    mcp.resource("data://prices", name="prices", mime_type="text/csv")(lambda: "tea,3")
    async with Client(mcp, revision=revision) as client:
        result = await client.call_tool("read_resource", {"uri": "data://prices"})
        schemas.validate_as(result, revision, "CallToolResult")
        assert result.content == [
            {"type": "text", "text": "tea,3", "_meta": {"io.funcmcp/mimeType": "text/csv"}},
        ]
        assert (await client.call_tool("read_resource", {"uri": "data://info"})).content == [
            {"type": "text", "text": "info"}
        ]


async def test_all_pages_are_listed() -> None:
    mcp = shop(protocol=ProtocolOptions(page_size=1))
    listed = json.loads((await mcp.call_tool("list_resources")).text)
    assert [item.get("uri") or item["uri_template"] for item in listed] == [
        "data://info",
        "data://logo",
        "data://raw",
        "data://invoices/{year}/{path*}{?state,paid}",
    ]
    assert listed[0] == {
        "name": "info",
        "description": "Say who we are.",
        "uri": "data://info",
        "mime_type": "text/plain",
    }
    [prompt] = json.loads((await mcp.call_tool("list_prompts")).text)
    assert [argument["name"] for argument in prompt["arguments"]] == ["name", "times", "tags"]


async def test_a_prompt_is_a_tool_with_typed_arguments() -> None:
    mcp = shop()
    tools = {tool.name: tool for tool in await mcp.list_tools()}
    assert tools["prompt_greet"].input_schema["properties"]["times"] == {"type": "integer", "default": 1}
    assert tools["prompt_greet"].description == "Greet somebody."
    text = (await mcp.call_tool("prompt_greet", {"name": "Ada", "times": 2, "tags": ["a"]})).text
    assert json.loads(text) == {"messages": [{"role": "user", "content": "Greet Ada 2 ['a']."}]}
    named = {"name": "greet", "arguments": {"name": "Ada", "times": 2, "tags": ["a"]}}
    assert (await mcp.call_tool("get_prompt", named)).text == text


async def test_templates_and_prompts_can_be_left_without_tools_of_their_own() -> None:
    mcp = MCPServer("shop")
    mcp.resource("data://days/{day}", name="day")(lambda day: day)
    mcp.prompt("greet")(lambda: "Hello.")
    mcp.add_transform(ResourcesAsTools(mcp, templates=False))
    mcp.add_transform(PromptsAsTools(mcp, prompts=False))
    names = [tool.name for tool in await mcp.list_tools()]
    assert names == ["list_resources", "read_resource", "list_prompts", "get_prompt"]


async def test_features_without_types_have_texts_as_arguments() -> None:
    mcp = shop()
    [template], [prompt] = list(mcp._server.catalog.templates), list(mcp._server.catalog.prompts)
    other = MCPServer("other")
    other.add_transform(ResourcesAsTools(other))
    other.add_transform(PromptsAsTools(other))
    other._server.catalog.add(replace(template, input_schema=None))
    other._server.catalog.add(replace(prompt, input_schema=None))
    tools = {tool.name: tool for tool in await other.list_tools()}
    assert tools["read_invoice"].input_schema["properties"]["year"] == {"type": "string"}
    assert tools["read_invoice"].input_schema["required"] == ["year", "path"]
    assert tools["prompt_greet"].input_schema["required"] == ["name"]
    assert (await other.call_tool("read_invoice", {"year": "1", "path": "a"})).text == "1 a open False"


@EVERY_REVISION
async def test_a_resource_asks_the_user_through_its_tool(revision: str) -> None:
    if revision < "2025-11-25":
        pytest.skip("Questions with URLs are newer.")
    mcp = MCPServer("shop")

    @mcp.resource("data://pages/{page}")
    async def page(page: str, context: Context) -> str:
        answer = await context.elicit_url("Pay", "https://example.com/pay")
        return f"{answer.action} {page}"

    mcp.add_transform(ResourcesAsTools(mcp))
    async with Client(mcp, revision=revision, elicit=accept({})) as client:
        assert (await client.call_tool("read_page", {"page": "a"})).text == "accept a"
    async with Client(mcp, revision=revision, elicit=accept({})) as client:
        assert (await client.call_tool("read_resource", {"uri": "data://pages/b"})).text == "accept b"
    async with Client(mcp, revision="2026-07-28") as client:
        with pytest.raises(MCPError, match="elicitation"):
            await client.call_tool("read_page", {"page": "a"})


async def test_reads_pass_the_middleware_twice() -> None:
    notes: list[str] = []

    async def note(context: RequestContext, call_next: CallNext) -> Any:
        notes.append(context.request.method)
        return await call_next(context)

    mcp = shop(middleware=[note])
    await mcp.call_tool("read_resource", {"uri": "data://info"})
    assert notes == ["tools/call", "resources/read"]


def secured(mounted: bool) -> MCPServer:
    keys = Auth(APIKeys({"ada": "a-key-of-16-characters"}))
    mcp = MCPServer("shop") if mounted else MCPServer("shop", auth=keys)
    mcp.resource("data://open", name="open")(lambda: "open")
    mcp.resource("data://secret", name="secret", scopes=["admin"])(lambda: "secret")
    mcp.resource("data://files/{name}", name="file", scopes=["admin"])(lambda name: name)
    mcp.add_transform(ResourcesAsTools(mcp))
    if not mounted:
        return mcp
    above = MCPServer("above", auth=keys)
    above.mount(mcp)
    return above


@pytest.mark.parametrize("mounted", [False, True])
async def test_a_tool_reads_only_what_its_caller_may_read(mounted: bool) -> None:
    mcp = secured(mounted)
    reader, admin = Principal("ada", scopes=frozenset({"read"})), Principal("eve", scopes=frozenset({"admin"}))
    assert (await mcp.call_tool("read_resource", {"uri": "data://open"}, principal=reader)).text == "open"
    for uri in ("data://secret", "data://files/a"):
        result = await mcp.call_tool("read_resource", {"uri": uri}, principal=reader)
        assert (result.is_error, result.text) == (True, "More scopes are needed.")
        assert not (await mcp.call_tool("read_resource", {"uri": uri}, principal=admin)).is_error
    with pytest.raises(MCPError, match="More scopes are needed"):
        await mcp.call_tool("read_file", {"name": "a"}, principal=reader)
    assert (await mcp.call_tool("read_file", {"name": "a"}, principal=admin)).text == "a"


def test_only_a_server_is_accepted() -> None:
    with pytest.raises(TypeError, match=r"ResourcesAsTools takes the server that it is added to, not str"):
        ResourcesAsTools("shop")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"PromptsAsTools\(mcp\)"):
        PromptsAsTools(None)  # type: ignore[arg-type]
