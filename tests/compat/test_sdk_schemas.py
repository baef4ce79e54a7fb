"""Schemas and results of tools as the official SDK has them, compared with those of the SDK itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pandas as pd  # type: ignore[import-untyped]
import pytest
from mcp import Client as SDKClient
from mcp import types
from mcp.server import MCPServer as SDKServer
from pydantic import BaseModel, Field

from funcmcp.compat import InvalidSignature, MCPServer
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import Callable


class Order(BaseModel):
    item: str = Field(description="What")
    count: int = 1


class Means(BaseModel):
    values: list[float | None]


def server_of(kind: Any, *functions: Callable[..., Any]) -> Any:
    """Return a server of a class with functions as tools."""
    server = kind("Shop")
    for function in functions:
        server.tool()(function)
    return server


class Price(TypedDict):
    amount: float


@dataclass
class Shelf:
    name: str
    items: list[str]


class Plain:
    size: int

    def __init__(self, size: int) -> None:
        self.size = size

    def __str__(self) -> str:
        return f"size {self.size}"


def text(order: Order, note: str | None = None, dict: int = 1) -> str:
    return f"{order.item} {note} {dict}"


def model(order: Order) -> Order:
    return order


def typed(item: Annotated[str, Field(max_length=3)]) -> Price:
    return {"amount": float(len(item))}


def shelf(untyped) -> Shelf:  # type: ignore[no-untyped-def] # the SDK takes it for a text
    return Shelf(untyped, ["tea"])


def plain() -> Plain:
    return Plain(3)


def many() -> list[int]:
    return [1, 2]


def mapping() -> dict[str, int]:
    return {"a": 1}


def nothing() -> None:
    return


def blocks() -> list[types.TextContent]:
    return [types.TextContent(type="text", text="a"), types.TextContent(type="text", text="b")]


def open_value():  # type: ignore[no-untyped-def] # without annotation
    return {"a": [1, "b"]}


def complete() -> Annotated[types.CallToolResult, Price]:
    return types.CallToolResult(content=[], structured_content={"amount": 1.0})


CASES: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (text, {"order": {"item": "tea"}, "dict": 2}),
    (model, {"order": {"item": "tea", "count": 2}}),
    (typed, {"item": "tea"}),
    (shelf, {"untyped": "top"}),
    (plain, {}),
    (many, {}),
    (mapping, {}),
    (nothing, {}),
    (blocks, {}),
    (open_value, {}),
    (complete, {}),
]


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=lambda case: getattr(case, "__name__", ""))
async def test_a_tool_has_the_schemas_and_the_result_of_the_sdk(
    function: Callable[..., Any], arguments: dict[str, Any]
) -> None:
    sdk, ours = SDKServer("Shop"), MCPServer("Shop")
    sdk.tool()(function)
    ours.tool()(function)
    async with SDKClient(sdk) as client:
        expected = (await client.list_tools()).tools[0].model_dump(mode="json", by_alias=True, exclude_none=True)
        answer = await client.call_tool(function.__name__, arguments)
    async with Client(ours) as client:
        assert dict((await client.list_tools())[0]) == expected
        result = await client.call_tool(function.__name__, arguments)
    assert [block["text"] for block in result["content"]] == [getattr(block, "text", "") for block in answer.content]
    assert result.structured_content == answer.structured_content


async def test_a_value_that_does_not_match_its_annotation_is_a_crash() -> None:
    mcp = MCPServer("Shop")

    @mcp.tool()
    def wrong() -> int:
        return "x"  # type: ignore[return-value] # what is tested

    async with Client(mcp) as client:
        result = await client.call_tool("wrong", raise_on_error=False)
        assert (result.is_error, result.text) == (True, "Error executing tool wrong")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")], ids=str)
async def test_a_number_that_json_lacks_is_null_in_structured_content(number: float) -> None:
    def mean() -> float | None:
        return number

    def means() -> Means:
        return Means(values=[number, 1.5])

    async with Client(server_of(MCPServer, mean, means)) as client, SDKClient(server_of(SDKServer, mean, means)) as sdk:
        for name, structured in (("mean", {"result": None}), ("means", {"values": [None, 1.5]})):
            expected, result = await sdk.call_tool(name, {}), await client.call_tool(name)
            assert result.structured_content == structured
            assert result.text == getattr(expected.content[0], "text", None)


async def test_a_table_with_two_columns_of_one_name_is_its_text() -> None:
    table = pd.DataFrame([[1, 2]], columns=["a", "a"])

    def report():  # type: ignore[no-untyped-def] # without annotation
        return table

    async with Client(server_of(MCPServer, report)) as client:
        assert json.loads((await client.call_tool("report")).text) == str(table)


def test_structured_output_needs_an_annotation_that_has_a_schema() -> None:
    class Hidden:
        pass

    def hidden() -> Hidden:
        return Hidden()

    def union() -> types.CallToolResult | Order:
        return Order(item="tea")

    hidden.__annotations__["return"] = Hidden
    mcp = MCPServer("Shop")
    for function, text_of_error in ((open_value, "return annotation required"), (hidden, "not serializable")):
        with pytest.raises(InvalidSignature, match=text_of_error):
            mcp.tool(structured_output=True)(function)
    with pytest.raises(InvalidSignature, match="CallToolResult cannot be used in Union"):
        mcp.tool()(union)


def test_a_header_is_repeated_for_simple_arguments_only() -> None:
    def listed(regions: Annotated[list[str], Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
        return regions[0]

    with pytest.raises(InvalidSignature, match="Tool 'listed' has an invalid x-mcp-header annotation"):
        MCPServer("Shop").add_tool(listed)
