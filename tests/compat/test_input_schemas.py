"""Input schemas of tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from funcmcp._compat.input_schemas import dereferenced
from funcmcp.compat import Context, FastMCP
from funcmcp.testing import Client


@dataclass
class Point:
    x: int
    y: int = 0


async def test_the_schema_of_arguments_is_that_of_fastmcp() -> None:
    mcp = FastMCP("shop")

    @mcp.tool
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


def test_a_schema_that_refers_to_itself_keeps_its_references() -> None:
    node: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = {"type": "object", "properties": {"first": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    assert dereferenced(schema) == schema
    leaf = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Leaf", "title": "A"}}}
    assert dereferenced({**leaf, "$defs": {"Leaf": {"type": "null"}}}) == {
        "type": "object",
        "properties": {"a": {"type": "null", "title": "A"}},
    }
