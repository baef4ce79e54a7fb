"""FastMCP's helpers that serve a server over HTTP in tests."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.compat import FastMCP
from funcmcp.compat.fastmcp.utilities.lifespan import combine_lifespans
from funcmcp.compat.fastmcp.utilities.tests import run_server_async, run_server_in_process
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def shop(**options: Any) -> FastMCP:
    mcp = FastMCP("shop", **options)

    @mcp.tool
    def buy(item: str) -> str:
        return f"{item} bought"

    return mcp


def serve(host: str, port: int) -> None:
    shop().run("http", host=host, port=port, show_banner=False)


async def test_a_server_is_reached_over_http_in_the_block() -> None:
    async with run_server_async(shop(), path="/orders") as url:
        assert url.endswith("/orders")
        async with Client(url) as client:
            assert (await client.call_tool("buy", {"item": "tea"})).text == "tea bought"


async def test_a_server_that_does_not_start_is_an_error() -> None:
    @asynccontextmanager
    async def broken(_: Any) -> AsyncIterator[None]:
        if options:
            raise RuntimeError("no database")
        yield

    options: dict[str, Any] = {"path": "/mcp"}
    with pytest.raises(RuntimeError, match="no database"):
        async with run_server_async(shop(lifespan=broken), **options):
            pass


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_function_serves_in_a_process_of_its_own() -> None:
    with run_server_in_process(serve) as origin:
        async with Client(f"{origin}/mcp") as client:
            assert [tool.name for tool in await client.list_tools()] == ["buy"]


async def test_lifespans_are_combined() -> None:
    events = []

    def named(name: str, state: dict[str, Any] | None) -> Any:
        @asynccontextmanager
        async def lifespan(application: Any) -> AsyncIterator[dict[str, Any] | None]:
            events.append(f"{name} of {application} starts")
            yield state
            events.append(f"{name} stops")

        return lifespan

    combined = combine_lifespans(named("first", {"a": 1, "b": 1}), named("second", None), named("third", {"b": 2}))
    async with combined("app") as state:
        assert state == {"a": 1, "b": 2}
    starts = [f"{name} of app starts" for name in ("first", "second", "third")]
    assert events == [*starts, "third stops", "second stops", "first stops"]
