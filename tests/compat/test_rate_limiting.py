"""FastMCP's middleware that limits how many requests clients send."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPError
from funcmcp.compat import (
    FastMCP,
    MiddlewareContext,
    RateLimitingMiddleware,
    SlidingWindowRateLimitingMiddleware,
)
from funcmcp.testing import Client


def client_of(context: MiddlewareContext) -> str:
    return str((getattr(context.message, "arguments", None) or {}).get("client"))


async def async_client_of(context: MiddlewareContext) -> str:
    return client_of(context)


@pytest.mark.parametrize(
    ("middleware", "text"),
    [
        (RateLimitingMiddleware(0.001, 2, client_of), "Rate limit exceeded for client: a"),
        (
            SlidingWindowRateLimitingMiddleware(2, 1, async_client_of),
            "Rate limit exceeded: 2 requests per 1 minutes for client: a",
        ),
    ],
)
async def test_each_client_has_a_limit_of_its_own(middleware: Any, text: str) -> None:
    mcp = FastMCP("limits", middleware=[middleware])

    @mcp.tool
    def work(client: str) -> str:
        return client

    async with Client(mcp) as client:
        for name in ("a", "a", "b"):
            assert (await client.call_tool("work", {"client": name})).text == name
        with pytest.raises(MCPError) as failure:
            await client.call_tool("work", {"client": "a"})
        assert (failure.value.code, failure.value.message) == (-32000, text)
        assert (await client.call_tool("work", {"client": "b"})).text == "b"


async def test_all_clients_share_one_limit() -> None:
    limit = RateLimitingMiddleware(0.001, 3, client_of, global_limit=True)
    mcp = FastMCP("limits", middleware=[limit])
    for _ in range(3):
        await mcp.list_prompts()
    mcp.tool(lambda: "x", name="x")
    with pytest.raises(MCPError, match="Global rate limit exceeded"):
        await mcp.call_tool("x")


async def test_limits_of_idle_clients_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("funcmcp._compat.rate_limiting.time.monotonic", lambda: now[0])
    limit = RateLimitingMiddleware(1, 2, client_of)
    for number in range(100):
        await limit.limiters.of(str(number)).consume()
    now[0] = 10
    for _ in range(2):
        await limit.limiters.of("new").consume()
    assert set(limit.limiters) == {"new"}


def test_a_burst_below_one_is_named() -> None:
    with pytest.warns(DeprecationWarning, match="burst_capacity=0 of RateLimitingMiddleware is below 1"):
        assert RateLimitingMiddleware(10, 0).burst_capacity == 20


@pytest.mark.parametrize(
    "middleware", [RateLimitingMiddleware(0.001, 2, client_of), SlidingWindowRateLimitingMiddleware(2, 1, client_of)]
)
async def test_the_number_of_counted_clients_is_bounded(middleware: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._compat.rate_limiting._MAX_CLIENTS", 3)
    mcp = FastMCP("limits", middleware=[middleware])
    mcp.tool(answer)
    async with Client(mcp) as client:
        for name in ("a", "b", "a", "c", "d"):  # b leaves, because it was counted longest ago
            await client.call_tool("answer", {"client": name})
        with pytest.raises(MCPError, match="Rate limit exceeded"):
            await client.call_tool("answer", {"client": "a"})


def answer(client: str) -> str:
    return client
