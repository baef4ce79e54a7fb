"""Schemas and results of tools as FastMCP's clients see them."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
import uuid
from collections.abc import AsyncIterator, Iterator  # noqa: TC003 - read at run time
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from funcmcp.compat import Context, Depends, FastMCP, Image, MCPServer, NotFoundError, Tool, ToolError, ToolResult
from funcmcp.testing import Client

MARK = {"fastmcp": {"wrap_result": True}}


@dataclass
class Point:
    x: int
    y: int = 0


class Named(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)
    value: int = Field(serialization_alias="namedValue")


def returning(hint: Any, value: Any) -> FastMCP:
    def answer() -> Any:
        return value

    answer.__annotations__["return"] = hint
    mcp = FastMCP("answers")
    mcp.tool(answer)
    return mcp


@pytest.mark.parametrize(
    ("hint", "value", "schema", "structured"),
    [
        (str, "text", {"type": "string"}, "text"),
        (int | None, None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None),
        (Literal["a", "b"], "a", {"enum": ["a", "b"], "type": "string"}, "a"),
        (dt.date, dt.date(2026, 1, 2), {"format": "date", "type": "string"}, "2026-01-02"),
        (list[int], [1], {"items": {"type": "integer"}, "type": "array"}, [1]),
    ],
)
async def test_a_result_that_is_not_an_object_is_wrapped_and_marked(
    hint: Any, value: Any, schema: dict[str, Any], structured: Any
) -> None:
    async with Client(returning(hint, value)) as client:
        (tool,) = await client.list_tools()
        result = await client.call_tool("answer")
    assert tool.output_schema == {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
        "x-fastmcp-wrap-result": True,
    }
    assert result.structured_content == {"result": structured}
    assert result.meta["fastmcp"] == {"wrap_result": True}


@pytest.mark.parametrize(
    ("hint", "value", "properties", "structured"),
    [
        (Point, Point(1), {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}}, {"x": 1, "y": 0}),
        (Named, Named(value=1), {"namedValue": {"type": "integer"}}, {"namedValue": 1}),
    ],
)
async def test_an_object_is_neither_wrapped_nor_marked(
    hint: Any, value: Any, properties: dict[str, Any], structured: Any
) -> None:
    async with Client(returning(hint, value)) as client:
        (tool,) = await client.list_tools()
        result = await client.call_tool("answer")
    assert tool.output_schema is not None
    assert tool.output_schema["properties"] == properties
    assert result.structured_content == structured
    assert "fastmcp" not in result.meta


@pytest.mark.parametrize(
    ("hint", "value", "content"),
    [
        (list, [Image(data=b"a"), {"b": 1}], ["image", "text"]),
        (bytes, b"a", ["text"]),
        (Image | str, "text", ["text"]),
        (ToolResult, ToolResult("text"), ["text"]),
        (Any, [], []),
        (None, None, []),
    ],
)
async def test_content_has_no_output_schema(hint: Any, value: Any, content: list[str]) -> None:
    async with Client(returning(hint, value)) as client:
        (tool,) = await client.list_tools()
        result = await client.call_tool("answer")
    assert tool.output_schema is None
    assert [block.type for block in result.content] == content
    assert result.structured_content is None


async def test_no_text_of_pydantic_reaches_a_client() -> None:
    mcp = FastMCP("answers")

    @mcp.tool
    def nothing() -> dict[str, int]:
        return None  # type: ignore[return-value] # what people write

    @mcp.tool
    def infinite() -> list[float]:
        return [1.0, float("inf")]

    @mcp.tool
    def lock() -> object:
        return threading.Lock()

    async with Client(mcp) as client:
        assert (await client.call_tool("nothing"))["content"] == []
        assert "non-finite float (inf) at $[1]" in (await client.call_tool("infinite", raise_on_error=False)).text
        failed = await client.call_tool("lock", raise_on_error=False)
    assert failed.is_error
    assert "pydantic" not in failed.text


async def test_the_schema_of_arguments_is_that_of_fastmcp() -> None:
    mcp = FastMCP("shop")

    @mcp.tool(tags={"b", "a"})
    def order(
        ctx: Context, point: Point, count: int | None = None, note: Annotated[str, "What to write on it"] = ""
    ) -> str:
        """Order something.

        Args:
            count: How many.
        """
        return f"{point.x} {count}"

    async with Client(mcp) as client:
        (tool,) = await client.list_tools()
        assert (await client.call_tool("order", {"point": {"x": 1}, "count": "2"})).text == "1 2"
    assert tool.description == "Order something."
    assert tool.input_schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["point"],
        "properties": {
            "point": {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                "required": ["x"],
            },
            "count": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "description": "How many."},
            "note": {"type": "string", "default": "", "description": "What to write on it"},
        },
    }
    assert tool.meta == {"fastmcp": {"tags": ["a", "b"]}}


async def test_the_official_server_does_not_mark_results() -> None:
    mcp = MCPServer("answers")

    @mcp.tool()
    def number() -> int:
        return 1

    async with Client(mcp) as client:
        (tool,) = await client.list_tools()
        result = await client.call_tool("number")
    assert tool.output_schema is not None
    assert "x-fastmcp-wrap-result" not in tool.output_schema
    assert result.structured_content == {"result": 1}
    assert "fastmcp" not in result.meta


async def test_items_of_generators_are_read_where_the_function_runs() -> None:
    mcp = FastMCP("numbers")
    steps: list[str] = []

    @mcp.tool
    def plain(value: str = Depends(lambda: "session")) -> Iterator[bool]:
        steps.append(value)
        yield threading.current_thread() is threading.main_thread()

    @mcp.tool(run_in_thread=False)
    def inline() -> Iterator[bool]:
        yield threading.current_thread() is threading.main_thread()

    @mcp.tool
    async def asynchronous() -> AsyncIterator[int]:
        for number in range(2):
            await asyncio.sleep(0)
            yield number

    async with Client(mcp) as client:
        assert (await client.call_tool("plain")).text == "[false]"
        assert (await client.call_tool("inline")).text == "[true]"
        assert (await client.call_tool("asynchronous")).text == "[0,1]"
    assert steps == ["session"]


async def test_calls_in_the_process_return_and_raise_what_fastmcp_does() -> None:
    mcp = FastMCP("shop")

    @mcp.tool
    def later(day: dt.date, by: dt.timedelta, order: uuid.UUID) -> str:
        return f"{day + by} {order}"

    @mcp.tool(timeout=0.01)
    async def slow() -> str:
        await asyncio.Event().wait()
        return "never"

    order = uuid.uuid4()
    arguments = {"day": dt.date(2026, 1, 1), "by": dt.timedelta(days=1), "order": order}
    result = await mcp.call_tool("later", arguments)
    assert (result.content[0].text, result.meta) == (f"2026-01-02 {order}", MARK)
    with pytest.raises(NotFoundError):
        await mcp.call_tool("unknown")
    with pytest.raises(ToolError, match=r"^Tool 'slow' execution timed out after 0.01s$"):
        await mcp.call_tool("slow")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"output_schema": {"type": "array"}}, "must represent object types"),
        ({"timeout": 1, "run_in_thread": False}, "timeout cannot be enforced"),
    ],
)
def test_options_without_an_effect_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Tool.from_function(lambda: 1, name="number", **options)


async def test_a_tool_is_dumped_converts_values_and_runs_without_a_server() -> None:
    def double(x: int) -> int:
        """Double it."""
        return 2 * x

    tool = Tool.from_function(double)
    dumped = tool.model_dump(exclude_none=True, exclude={"fn", "task_config"})
    assert dumped == {
        "name": "double",
        "description": "Double it.",
        "tags": set(),
        "parameters": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"x": {"type": "integer"}},
            "required": ["x"],
        },
        "output_schema": {
            "type": "object",
            "properties": {"result": {"type": "integer"}},
            "required": ["result"],
            "x-fastmcp-wrap-result": True,
        },
        "run_in_thread": True,
    }
    assert tool.convert_result(3).structured_content == {"result": 3}
    assert (await tool.run({"x": 2})).structured_content == {"result": 4}
    copied = ToolResult("a", {"b": 1}).model_copy(update={"meta": {"c": 2}})
    assert (copied.structured_content, copied.meta) == ({"b": 1}, {"c": 2})
