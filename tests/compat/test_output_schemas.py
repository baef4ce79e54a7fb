"""Output schemas of tools, and the results that they describe."""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

import pytest

from funcmcp.testing import Client
from tests.compat.answers import Named, Point, returning


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
