"""The types of the protocol under their names in ``mcp.types``."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp.compat import FastMCP
from funcmcp.compat.mcp import types
from funcmcp.testing import Client


def test_types_can_be_made_and_read_with_both_forms_of_names() -> None:
    image = types.ImageContent(data="", mime_type="image/png")
    assert image == types.ImageContent.model_validate({"type": "image", "data": "", "mimeType": "image/png"})
    assert (getattr(image, "mimeType"), image.mime_type) == ("image/png", "image/png")  # noqa: B009 - hidden from types
    members: dict[str, Any] = {"structuredContent": {"a": 1}, "isError": True, "_meta": {"b": 2}}
    result = types.CallToolResult(content=[image], **members)
    assert (result.structured_content, result.is_error, result.meta) == ({"a": 1}, True, {"b": 2})
    assert not hasattr(image, "colour")


CONTENTS = types.TextResourceContents(uri="data://a", text="a", mime_type="text/plain")
LINK = types.ResourceLink(name="a", uri="data://a")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (types.TextContent(text="a"), {"content": [{"type": "text", "text": "a"}]}),
        (LINK, {"content": [{"type": "resource_link", "name": "a", "uri": "data://a"}]}),
        (
            [types.EmbeddedResource(resource=CONTENTS)],
            {
                "content": [
                    {"type": "resource", "resource": {"uri": "data://a", "text": "a", "mimeType": "text/plain"}},
                ],
            },
        ),
        (
            types.CallToolResult(content=[], structured_content={"a": 1}, is_error=True),
            {"structuredContent": {"a": 1}, "isError": True},
        ),
    ],
)
async def test_a_tool_may_return_them(value: Any, expected: dict[str, Any]) -> None:
    mcp = FastMCP("shop")

    @mcp.tool
    def look() -> Any:
        return value

    async with Client(mcp) as client:
        result = await client.call_tool("look", {})
    assert {name: result[name] for name in expected} == expected


async def test_a_prompt_and_a_resource_may_return_them() -> None:
    mcp = FastMCP("shop")

    @mcp.prompt
    def ask() -> types.GetPromptResult:
        message = types.PromptMessage(role="assistant", content=types.TextContent(text="a"))
        return types.GetPromptResult(description="b", messages=[message])

    @mcp.resource("data://a")
    def read() -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[CONTENTS])

    async with Client(mcp) as client:
        prompt = await client.get_prompt("ask", {})
        assert prompt["messages"] == [{"role": "assistant", "content": {"type": "text", "text": "a"}}]
        resource = await client.read_resource("data://a")
        assert resource["contents"] == [{"uri": "data://a", "mimeType": "text/plain", "text": "a"}]
