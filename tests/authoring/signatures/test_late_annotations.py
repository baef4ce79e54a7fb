"""Annotations with names that are defined later: Python 3.14 evaluates annotations when they are read."""

# No `from __future__ import annotations`, which makes strings of all annotations.

import inspect
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from funcmcp._authoring.signatures.late_annotations import annotations_of, read_signature

if TYPE_CHECKING:
    from funcmcp import MCPServer

pytestmark = pytest.mark.every_python("Python 3.14 reads annotations late.")
late = pytest.mark.skipif(sys.version_info < (3, 14), reason="Python 3.14 evaluates annotations when they are read.")

CODE = """
from funcmcp import MCPServer

mcp = MCPServer("Shop")


@mcp.tool
async def order(of: Order) -> str:
    return of.dish


@mcp.custom_route("/status")
async def status(request: Request) -> str:
    return "open"
"""


def later() -> dict[str, Any]:
    """Return the names of a module whose functions name what it does not have yet."""
    module: dict[str, Any] = {"__name__": "later"}
    exec(compile(CODE, "later.py", "exec", dont_inherit=True), module)
    return module


class Order(BaseModel):
    dish: str


def order(of: Order, amount: "int" = 1) -> str:
    return of.dish * amount


def test_signatures_and_annotations_with_known_names_are_those_of_python() -> None:
    assert read_signature(order) == inspect.signature(order)
    assert annotations_of(order) == order.__annotations__
    assert annotations_of(1) == {}


@late
def test_annotations_with_unknown_names_are_strings() -> None:
    function = later()["order"]
    assert annotations_of(function) == {"of": "Order", "return": "str"}
    assert str(read_signature(function)) == "(of: 'Order') -> 'str'"


@late
async def test_a_tool_may_name_a_class_that_is_defined_later() -> None:
    module = later()
    module["Order"] = Order
    mcp: MCPServer = module["mcp"]
    result = await mcp.call_tool("order", {"of": {"dish": "soup"}})
    assert result["content"] == [{"type": "text", "text": "soup"}]
