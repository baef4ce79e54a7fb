"""Schemas and results of tools as FastMCP's clients see them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator  # noqa: TC003 - read at run time
from typing import Any

import pytest
from pydantic import BaseModel

from funcmcp import MCPError
from funcmcp.compat import Depends, FastMCP, Image, MCPServer, ToolResult
from funcmcp.testing import Client
from tests.compat.answers import returning

MARK = {"fastmcp": {"wrap_result": True}}


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

    class Order(BaseModel):
        number: int

    @mcp.tool
    def invalid() -> str:
        return str(Order(number="private"))  # type: ignore[arg-type] # what is tested

    mcp.prompt(name="invalid")(invalid)
    mcp.resource("order://invalid")(invalid)

    @mcp.tool
    def lock() -> object:
        return threading.Lock()

    async with Client(mcp) as client:
        assert (await client.call_tool("nothing"))["content"] == []
        assert "non-finite float (inf) at $[1]" in (await client.call_tool("infinite", raise_on_error=False)).text
        failed = await client.call_tool("lock", raise_on_error=False)
        body = await client.call_tool("invalid", raise_on_error=False)
        assert (
            body.text
            == "Error calling tool 'invalid': There is a validation error in Order:\nnumber: must be an integer"
        )
        for read in (client.get_prompt("invalid"), client.read_resource("order://invalid")):
            with pytest.raises(MCPError) as error:
                await read
            assert "pydantic" not in error.value.message
            assert "private" not in error.value.message
    assert failed.is_error
    assert "pydantic" not in failed.text


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


@pytest.mark.parametrize("kind", ["circular", "deep", "surrogate"])
async def test_a_value_that_json_can_not_carry_is_one_sentence_and_one_traceback(
    caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    mcp = FastMCP("answers")

    @mcp.tool
    def answer():  # type: ignore[no-untyped-def]
        value: list[Any] = []
        if kind == "circular":
            value.append(value)
        for _ in range(2000 if kind == "deep" else 0):
            value = [value]
        return {"value": ["\ud800" if kind == "surrogate" else value]}

    async with Client(mcp) as client:
        result = await client.call_tool("answer")
    assert result.is_error
    assert result.content[0].text == (
        "Error calling tool 'answer': The function returned a value that can't be written as JSON: it contains itself, "
        "is nested too deep, or has text that is not valid Unicode."
    )
    (record,) = (record for record in caplog.records if record.name == "funcmcp")
    text = logging.Formatter().format(record)
    assert text.count("Traceback (most recent call last)") == 1
    assert "pydantic" not in text.lower()
