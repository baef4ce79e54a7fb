"""Forms of the official SDK, compared with those of the SDK itself."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import pytest
from mcp.server.elicitation import render_elicitation_schema
from pydantic import BaseModel, Field

from funcmcp.compat import Context, MCPServer
from funcmcp.testing import Client


class Size(Enum):
    BIG = "big"


class Order(BaseModel):
    item: str = Field(description="What", min_length=2)
    count: int | None = Field(default=None, description="How many")
    gift: bool | None = False
    colour: Literal["red", "blue"] = "red"


class Nested(BaseModel):
    order: Order


class Sized(BaseModel):
    size: Size


def asking(model: type[BaseModel]) -> MCPServer:
    mcp = MCPServer("Shop")

    @mcp.tool()
    async def ask(ctx: Context) -> str:
        try:
            answer = await ctx.elicit("Your order?", model)
        except TypeError as error:
            return f"TypeError: {error}"
        return repr(answer.data)

    return mcp


async def test_a_form_has_the_schema_of_the_sdk() -> None:
    schemas: list[Any] = []

    async def answer(params: dict[str, Any]) -> dict[str, Any]:
        schemas.append(params["requestedSchema"])
        return {"action": "accept", "content": {"item": "tea"}}

    async with Client(asking(Order), elicit=answer) as client:
        assert (await client.call_tool("ask")).text == "Order(item='tea', count=None, gift=False, colour='red')"
    assert schemas[0] == render_elicitation_schema(Order)


@pytest.mark.parametrize(("model", "text"), [(Nested, "TypeError: "), (Sized, "Sized(size=<Size.BIG: 'big'>)")])
async def test_what_a_form_cannot_show_is_a_type_error(model: type[BaseModel], text: str) -> None:
    async def answer(_: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"size": "big"}}

    async with Client(asking(model), elicit=answer) as client:
        assert (await client.call_tool("ask")).text.startswith(text)
