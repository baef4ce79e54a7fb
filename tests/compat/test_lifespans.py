"""Lifespans that are written with the decorator of FastMCP."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.compat import Context, ContextManagerLifespan, FastMCP, lifespan
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")

steps: list[str] = []


@lifespan
async def database(server: FastMCP) -> AsyncIterator[dict[str, Any]]:
    steps.append(f"open {server.name}")
    yield {"database": "orders", "shared": 1}
    steps.append("close")


@lifespan
async def silent(_: FastMCP) -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def cache(_: FastMCP) -> AsyncIterator[dict[str, Any]]:
    steps.append("cache")
    yield {"cache": True, "shared": 2}
    steps.append("clear")


async def context_of(chosen: Any) -> dict[str, Any]:
    """Return the lifespan's value in a tool."""
    mcp = FastMCP("shop", lifespan=chosen)

    @mcp.tool
    def value(ctx: Context) -> dict[str, Any]:
        return dict(ctx.lifespan_context)

    async with Client(mcp) as client:
        result: dict[str, Any] = (await client.call_tool("value")).structured_content
        return result


async def test_lifespans_are_joined_and_stop_in_reverse_order() -> None:
    steps.clear()
    value = await context_of(database | ContextManagerLifespan(cache) | silent)
    assert value == {"database": "orders", "cache": True, "shared": 2}
    assert steps == ["open shop", "cache", "clear", "close"]


async def test_a_lifespan_alone_may_yield_nothing() -> None:
    assert await context_of(silent) == {}
    assert await context_of(database) == {"database": "orders", "shared": 1}


def test_another_function_is_joined_only_by_the_class_for_it() -> None:
    with pytest.raises(TypeError, match="pass a function with @asynccontextmanager to ContextManagerLifespan"):
        database | cache  # type: ignore[operator]
