"""Objects that middleware returns, and structured content for an output schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError, MCPServer
from funcmcp._server.middleware import place_of
from funcmcp.content import Contents, Message, PromptResult, Text, ToolResult
from funcmcp.middleware import on_tool_call
from funcmcp.testing import Client
from tests import schemas

if TYPE_CHECKING:
    from funcmcp.middleware import CallNext, RequestContext

pytestmark = pytest.mark.branches("Middleware returns objects in place of results.")

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)


def answering(value: Any) -> MCPServer:
    """Return a server whose middleware answers each use of a feature with one value."""

    async def answer(context: RequestContext, call_next: CallNext) -> Any:
        if context.request.method in {"tools/call", "resources/read", "prompts/get"}:
            return value
        return await call_next(context)

    mcp = MCPServer("shop", middleware=[answer])

    @mcp.tool
    def count() -> dict[str, int]:
        """Count."""
        return {"n": 1}

    @mcp.tool
    def names() -> list[str]:
        """Return names."""
        return ["a"]

    @mcp.resource("menu://today", mime_type="text/markdown")
    def menu() -> str:
        """Today's menu."""
        return "soup"

    @mcp.prompt
    def hello() -> str:
        """Say hello."""
        return "Hello"

    return mcp


@EVERY_REVISION
@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        (ToolResult("ok", structured_content={"n": 2}), "ok", {"n": 2}),
        (ToolResult(structured_content={"n": 2}), '{"n":2}', {"n": 2}),
        ({"structuredContent": {"n": 3}}, '{"n":3}', {"n": 3}),
        (ToolResult("closed", is_error=True), "closed", None),
        ({"content": [{"type": "text", "text": "closed"}], "isError": True, "structuredContent": 5}, "closed", None),
    ],
)
async def test_a_tool_result_is_accepted(value: Any, text: str, structured: Any, revision: str) -> None:
    async with Client(answering(value), revision=revision) as client:
        result = await client.call_tool("count", raise_on_error=False)
    has_structured_content = revision >= "2025-06-18"
    assert (result.text, result.structured_content) == (text, structured if has_structured_content else None)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (ToolResult(structured_content={"n": "two"}), "structuredContent does not fit the output schema of count: n "),
        ({"content": []}, "structuredContent is missing, and count has an output schema."),
    ],
)
async def test_structured_content_must_fit_the_output_schema(
    value: Any, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(answering(value)) as client:
        for _ in range(2):
            with pytest.raises(MCPError, match="Internal error"):
                await client.call_tool("count")
        if isinstance(value, ToolResult):  # another schema
            with pytest.raises(MCPError, match="Internal error"):
                await client.call_tool("names")
    assert error in caplog.text
    assert "answering.<locals>.answer (tests/authoring/results/test_middleware_values.py, line " in caplog.text


async def test_a_revision_without_output_schemas_needs_no_structured_content() -> None:
    async with Client(answering({"content": []}), revision="2025-03-26") as client:
        assert (await client.call_tool("count")).text == ""


@EVERY_REVISION
@pytest.mark.parametrize("value", [Contents("closed"), [Contents("closed")]])
async def test_contents_of_a_resource_are_accepted(value: Any, revision: str) -> None:
    async with Client(answering(value), revision=revision) as client:
        [contents] = (await client.read_resource("menu://today")).contents
    assert (contents["uri"], contents["text"], contents["mimeType"]) == ("menu://today", "closed", "text/markdown")


@EVERY_REVISION
@pytest.mark.parametrize("value", [Message("closed"), [Message(Text("closed"))], PromptResult("closed")])
async def test_messages_of_a_prompt_are_accepted(value: Any, revision: str) -> None:
    async with Client(answering(value), revision=revision) as client:
        result = await client.get_prompt("hello")
    assert (result.description, result.messages[0]["content"]["text"]) == ("Say hello.", "closed")


async def test_features_that_the_server_does_not_have_can_be_answered() -> None:
    async with Client(answering(ToolResult("ok"))) as client:
        assert (await client.call_tool("other")).text == "ok"
    async with Client(answering(Contents("ok"))) as client:
        assert (await client.read_resource("menu://never")).contents[0]["mimeType"] == "text/plain"
    async with Client(answering(Message("ok"))) as client:
        assert (await client.get_prompt("other")).description is None


@pytest.mark.parametrize("value", [ToolResult("ok"), Contents("ok"), Message("ok"), [], "ok", None])
async def test_an_object_of_another_feature_is_refused(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with Client(answering(value)) as client:
        for use, kind in (
            (client.call_tool("names"), ToolResult),
            (client.read_resource("menu://today"), Contents),
            (client.get_prompt("hello"), Message),
        ):
            if isinstance(value, kind):
                use.close()
                continue
            with pytest.raises(MCPError, match="Internal error"):
                await use
    assert f"{type(value).__name__} is not a result." in caplog.text


async def test_a_decorated_function_returns_an_object() -> None:
    @on_tool_call
    async def close(_context: RequestContext, _call_next: CallNext) -> Any:
        return ToolResult("closed", structured_content={"n": 0})

    mcp = MCPServer("shop", middleware=[close])

    @mcp.tool
    def count() -> dict[str, int]:
        """Count."""
        return {"n": 1}

    async with Client(mcp) as client:
        assert (await client.call_tool("count")).structured_content == {"n": 0}
    assert place_of(close).startswith(f"{test_a_decorated_function_returns_an_object.__name__}.<locals>.close (")
