"""Objects of the official SDK's types, returned from tools, prompts and resources."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import types
from mcp.server.mcpserver.utilities.types import Image
from pydantic import BaseModel, Field

from funcmcp import MCPServer
from funcmcp._serving.composition import runtime_of
from tests.authoring.tool_calls import call
from tests.server.parts import answer, context

TEXT = {"type": "text", "text": "no such table"}
PNG = {"type": "image", "data": "AAE=", "mimeType": "image/png"}


class OldText(BaseModel):
    """A text as version 1 of the SDK defines it."""

    type: str = "text"
    text: str
    annotations: None = None


class OldResult(BaseModel):
    """A result as version 1 of the SDK defines it."""

    meta: dict[str, Any] | None = Field(alias="_meta", default=None)
    content: list[OldText]
    structuredContent: dict[str, Any] | None = None  # noqa: N815 - the name of version 1
    isError: bool = False  # noqa: N815 - as above


OldText.__module__ = OldResult.__module__ = "mcp.types"


class FastMCPResult:
    """A result as FastMCP defines it."""

    def __init__(self) -> None:
        self.content = [types.TextContent(text="no such table")]
        self.structured_content = {"a": None}
        self.meta = {"k": 1}


FastMCPResult.__module__ = "fastmcp.tools.tool"


def returning(value: Any, annotation: Any = None) -> Any:
    def tool() -> Any:
        return value

    if annotation is None:
        del tool.__annotations__["return"]
    else:
        tool.__annotations__["return"] = annotation
    return tool


RESULT = types.CallToolResult(
    content=[types.TextContent(text="no such table")], structured_content={"a": None}, is_error=True, _meta={"k": 1}
)
BLOCKS = [
    (types.TextContent(text="no such table"), TEXT),
    (types.ImageContent(data="AAE=", mime_type="image/png"), PNG),
    (types.AudioContent(data="AAE=", mime_type="audio/wav"), {**PNG, "type": "audio", "mimeType": "audio/wav"}),
    (
        types.ResourceLink(name="menu", uri="menu://today"),
        {"type": "resource_link", "name": "menu", "uri": "menu://today"},
    ),
    (
        types.EmbeddedResource(resource=types.TextResourceContents(uri="menu://today", text="soup")),
        {"type": "resource", "resource": {"uri": "menu://today", "text": "soup"}},
    ),
    (Image(data=b"\0\1", format="png"), PNG),
    (OldText(text="no such table"), TEXT),
]


@pytest.mark.parametrize("annotation", [None, Any, types.CallToolResult])
async def test_a_whole_result_means_what_it_says(annotation: Any) -> None:
    expected = {"content": [TEXT], "structuredContent": {"a": None}, "isError": True, "_meta": {"k": 1}}
    assert await call(returning(RESULT, annotation)) == expected


async def test_results_of_version_1_and_of_fastmcp_mean_what_they_say() -> None:
    old = OldResult(content=[OldText(text="no such table")], isError=True, structuredContent={"a": 1}, _meta={"k": 1})
    expected = {"content": [TEXT], "structuredContent": {"a": 1}, "isError": True, "_meta": {"k": 1}}
    assert await call(returning(old)) == expected
    fast = {"content": [TEXT], "structuredContent": {"a": None}, "_meta": {"k": 1}}
    assert await call(returning(FastMCPResult())) == fast


async def test_a_result_is_checked_against_a_hand_written_schema_unless_it_is_an_error() -> None:
    schema = {"type": "object", "required": ["b"]}
    assert (await call(returning(RESULT), output_schema=schema))["isError"] is True


@pytest.mark.parametrize(("block", "wire"), BLOCKS)
async def test_a_block_and_lists_of_blocks_are_content(block: Any, wire: dict[str, Any]) -> None:
    assert await call(returning(block)) == {"content": [wire]}
    assert await call(returning(block, type(block))) == {"content": [wire]}
    assert await call(returning([block, "and text"])) == {"content": [wire, {"type": "text", "text": "and text"}]}
    assert await call(returning([block], list[type(block)])) == {"content": [wire]}  # type: ignore[misc]


async def test_other_objects_of_the_sdk_are_structured_content() -> None:
    tool = types.Tool(name="a", input_schema={"type": "object"})
    result = await call(returning(tool))
    assert result["structuredContent"]["name"] == "a"


async def test_prompts_may_return_the_types_of_the_sdk() -> None:
    mcp = MCPServer("prompts")
    message = types.PromptMessage(role="assistant", content=types.TextContent(text="no such table"))

    @mcp.prompt
    def whole() -> types.GetPromptResult:
        return types.GetPromptResult(messages=[message], description="A prompt.")

    @mcp.prompt
    def listed() -> list[types.PromptMessage]:
        return [message]

    expected = [{"role": "assistant", "content": TEXT}]
    result = (await answer(runtime_of(mcp).server, context("prompts/get", {"name": "whole"})))["result"]
    assert (result["messages"], result["description"]) == (expected, "A prompt.")
    assert (await answer(runtime_of(mcp).server, context("prompts/get", {"name": "listed"})))["result"][
        "messages"
    ] == expected


async def test_resources_may_return_the_types_of_the_sdk() -> None:
    mcp = MCPServer("resources")
    text = types.TextResourceContents(uri="menu://other", text="soup", mime_type="text/markdown")
    blob = types.BlobResourceContents(uri="menu://logo", blob="AAE=")

    @mcp.resource("menu://whole")
    def whole() -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[text, blob])

    @mcp.resource("menu://list")
    def listed() -> list[types.TextResourceContents]:
        return [text]

    @mcp.resource("menu://one")
    def one() -> types.TextResourceContents:
        return text

    soup = {"uri": "menu://other", "mimeType": "text/markdown", "text": "soup"}
    logo = {"uri": "menu://logo", "mimeType": "application/octet-stream", "blob": "AAE="}
    for uri, expected in (("menu://whole", [soup, logo]), ("menu://list", [soup]), ("menu://one", [soup])):
        assert (await answer(runtime_of(mcp).server, context("resources/read", {"uri": uri})))["result"][
            "contents"
        ] == expected
    definitions = (await answer(runtime_of(mcp).server, context("resources/list")))["result"]["resources"]
    assert not any("mimeType" in definition for definition in definitions)
