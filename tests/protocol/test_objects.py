"""Results and definitions as typed objects."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPServer, content
from funcmcp._protocol.errors import ToolError
from funcmcp._protocol.objects import ContentBlock, ResourceTemplate, objects_of
from funcmcp.client import (
    CallToolResult,
    Client,
    InvalidResponseError,
    Prompt,
    ReadResourceResult,
    Resource,
    Tool,
)
from tests import schemas

pytestmark = pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas.")

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)


def gallery() -> MCPServer:
    mcp = MCPServer("gallery")

    @mcp.tool
    def everything() -> list[str | content.Content]:
        """Return a block of each kind."""
        return [
            "first",
            content.Image(b"png", mime_type="image/png"),
            content.EmbeddedResource("note://1", text="a note", mime_type="text/plain"),
            content.EmbeddedResource("data://1", blob=b"\x00\xff"),
            content.Text("last", annotations={"priority": 1}),
        ]

    @mcp.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @mcp.tool
    def fail() -> str:
        """Fail."""
        raise ToolError("That did not work.")

    @mcp.resource("menu://today", mime_type="text/plain")
    def today() -> str:
        return "Soup"

    @mcp.resource("menu://logo")
    def logo() -> bytes:
        return b"\x00\xff"

    @mcp.resource("menu://days/{day}")
    def menu(day: str) -> str:
        return day

    @mcp.prompt
    def praise(dish: str, style: str = "short") -> list[str | content.Message]:
        """Praise a dish."""
        return [f"Praise the {dish}: {style}.", content.Message("Gladly.", role="assistant")]

    return mcp


@EVERY_REVISION
async def test_content_blocks_have_typed_members(revision: str) -> None:
    async with Client(gallery(), revision=revision) as client:
        result = await client.call_tool("everything")
    first, image, note, data, last = result.content
    assert (first.type, first.text, first.data) == ("text", "first", None)
    assert (image.type, image.data, image.mime_type, image.text) == ("image", b"png", "image/png", None)
    assert note.resource is not None
    assert (note.resource.uri, note.resource.text, note.resource.mime_type) == ("note://1", "a note", "text/plain")
    assert data.resource is not None
    assert (data.resource.text, data.resource.data) == (None, b"\x00\xff")
    assert last.annotations == {"priority": 1}
    assert result.text == "first\nlast"
    assert result.is_error is False


async def test_a_result_is_also_the_object_of_the_wire() -> None:
    async with Client(gallery(), revision="2025-11-25") as client:
        result = await client.call_tool("add", {"a": 1, "b": 2})
    assert result == {"content": [{"type": "text", "text": "3"}], "structuredContent": {"result": 3}}
    assert result.structured_content == {"result": 3}


async def test_a_failed_tool_raises_only_if_the_caller_wants_it() -> None:
    async with Client(gallery()) as client:
        result = await client.call_tool("fail")
        assert (result.is_error, result.text) == (True, "That did not work.")
        with pytest.raises(ToolError, match="That did not work"):
            result.raise_for_error()
        with pytest.raises(ToolError, match="That did not work"):
            await client.call_tool("fail", raise_on_error=True)
        assert (await client.call_tool("add", {"a": 1, "b": 2}, raise_on_error=True)).text == "3"


@EVERY_REVISION
async def test_definitions_have_typed_members(revision: str) -> None:
    async with Client(gallery(), revision=revision) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        resources = {resource.uri: resource for resource in await client.list_resources()}
        [template] = await client.list_resource_templates()
        [prompt] = await client.list_prompts()
    assert tools["add"].description == "Add two numbers."
    assert list(tools["add"].input_schema["properties"]) == ["a", "b"]
    assert resources["menu://today"].mime_type == "text/plain"
    assert template.uri_template == "menu://days/{day}"
    assert prompt.description == "Praise a dish."
    assert [(argument.name, argument.required) for argument in prompt.arguments] == [("dish", True), ("style", False)]


@EVERY_REVISION
async def test_resources_and_prompts_have_typed_results(revision: str) -> None:
    async with Client(gallery(), revision=revision) as client:
        text = await client.read_resource("menu://today")
        data = await client.read_resource("menu://logo")
        prompt = await client.get_prompt("praise", {"dish": "soup"})
    assert (text.text, text.contents[0].uri, text.contents[0].data) == ("Soup", "menu://today", None)
    assert (data.text, data.contents[0].data) == ("", b"\x00\xff")
    messages = [(message.role, message.content.text) for message in prompt.messages]
    assert messages == [("user", "Praise the soup: short."), ("assistant", "Gladly.")]


def test_optional_members_are_the_wires_or_none() -> None:
    link = ContentBlock({"type": "resource_link", "uri": "note://1", "name": "note"})
    assert (link.uri, link.name) == ("note://1", "note")
    text = ContentBlock({"type": "text", "text": "a"})
    assert (text.uri, text.name) == (None, None)
    tool = Tool({"name": "add", "title": "Add", "inputSchema": {}, "annotations": {"readOnlyHint": True}})
    assert (tool.title, tool.annotations) == ("Add", {"readOnlyHint": True})
    bare = Tool({"name": "add", "inputSchema": {}})
    assert (bare.title, bare.annotations) == (None, {})
    template = ResourceTemplate({"name": "days", "uriTemplate": "menu://{day}", "mimeType": "text/plain"})
    assert template.mime_type == "text/plain"


@pytest.mark.parametrize(
    ("wire", "member"),
    [
        (CallToolResult({"content": 5}), "content"),
        (CallToolResult({"content": [5]}), "content"),
        (CallToolResult({"content": [{"type": 5}]}), "text"),
        (CallToolResult({"content": [{"text": "a"}]}), "text"),
        (CallToolResult({"isError": "no"}), "is_error"),
        (CallToolResult({"_meta": []}), "meta"),
        (ReadResourceResult({"contents": {}}), "contents"),
        (Tool({"name": 5}), "name"),
        (Tool({}), "name"),
        (Tool({"name": "a", "inputSchema": None}), "input_schema"),
        (Resource({"size": "5"}), "size"),
        (Prompt({"arguments": ["a"]}), "arguments"),
    ],
)
def test_a_member_of_another_type_is_an_error_of_the_client(wire: Any, member: str) -> None:
    with pytest.raises(InvalidResponseError):
        getattr(wire, member)


def test_bytes_that_are_not_base64_are_an_error_of_the_client() -> None:
    [block] = CallToolResult({"content": [{"type": "image", "data": "a b"}]}).content
    with pytest.raises(InvalidResponseError, match="'data' of ContentBlock is not base64"):
        _ = block.data


def test_a_list_holds_only_objects() -> None:
    with pytest.raises(InvalidResponseError, match="a Tool that is not an object"):
        objects_of([{"name": "a"}, "b"], Tool)
