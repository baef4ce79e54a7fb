"""Lists that the client keeps for as long as the server allows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer
from funcmcp._client.list_cache import ListCache
from funcmcp._transports.http.messages import HttpResponse
from funcmcp.client import Client

if TYPE_CHECKING:
    from funcmcp.testing import MemoryRequest

JSON = ("content-type", "application/json")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def page(ttl: Any = 1000, scope: str = "private") -> dict[str, Any]:
    return {"ttlMs": ttl, "cacheScope": scope}


def cached(pages: list[dict[str, Any]], credentials: str | None = "a") -> tuple[ListCache, Clock]:
    clock = Clock()
    cache = ListCache(clock)
    cache.put("tools/list", [{"name": "a", "tags": [1]}], pages, cache.begin(), credentials)
    return cache, clock


def test_a_list_is_cached_for_the_shortest_time_of_its_pages() -> None:
    cache, clock = cached([page(5000), page(2000), page(9000)])
    clock.now += 1.9
    assert cache.get("tools/list", "a") == [{"name": "a", "tags": [1]}]
    assert cache.get("prompts/list", "a") is None
    clock.now += 0.1
    assert cache.get("tools/list", "a") is None


@pytest.mark.parametrize("ttl", [0, -1, None, "1000", True])
def test_a_list_without_a_time_is_not_cached(ttl: Any) -> None:
    cache, _ = cached([page(1000), page(ttl)])
    assert cache.get("tools/list", "a") is None


def test_a_time_of_years_is_a_day() -> None:
    cache, clock = cached([page(1e15)])
    clock.now += 24 * 3600
    assert cache.get("tools/list", "a") is None


@pytest.mark.parametrize(("scopes", "is_shared"), [(["public", "public"], True), (["public", "private"], False)])
def test_a_private_list_is_for_the_same_credentials(scopes: list[str], is_shared: bool) -> None:
    cache, _ = cached([page(1000, scope) for scope in scopes])
    assert (cache.get("tools/list", "b") is not None) is is_shared
    assert cache.get("tools/list", "a") is not None


def test_a_change_drops_a_list_and_one_that_is_on_its_way() -> None:
    cache, _ = cached([page()])
    begun = cache.begin()
    cache.drop("prompts")
    assert cache.get("tools/list", "a") is not None
    cache.drop("tools")
    assert cache.get("tools/list", "a") is None
    cache.put("tools/list", [], [page()], begun, "a")
    assert cache.get("tools/list", "a") is None


def test_what_a_caller_changes_stays_with_the_caller() -> None:
    cache, _ = cached([page()])
    for _ in range(2):
        items = cache.get("tools/list", "a")
        assert items == [{"name": "a", "tags": [1]}]
        items[0]["tags"].append(2)


class Lists:
    """A server of 2026-07-28 with lists that may be cached."""

    def __init__(self, revision: str = "2026-07-28") -> None:
        self.revision = revision
        self.received: list[str] = []

    async def exchange(self, request: MemoryRequest) -> HttpResponse:
        message = json.loads(await request.read(100_000))
        method = message["method"]
        self.received.append(method)
        if "id" not in message:
            return HttpResponse(202, (), b"")
        result: dict[str, Any] = {"ttlMs": 60_000, "cacheScope": "private", "tools": [{"name": "a"}], "prompts": []}
        if method in ("server/discover", "initialize"):
            result = {"supportedVersions": [self.revision], "protocolVersion": self.revision, "capabilities": {}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        return HttpResponse(200, (JSON,), body)

    def count(self, method: str) -> int:
        return self.received.count(method)


async def test_a_list_is_requested_once() -> None:
    server = Lists()
    async with Client(server.exchange) as client:  # type: ignore[arg-type]
        lists = [await client.list_tools() for _ in range(3)]
        assert lists == [[{"name": "a"}]] * 3
        assert server.count("tools/list") == 1
        await client.list_tools(refresh=True)
        await client.list_tools(meta={"x": 1})
        assert server.count("tools/list") == 3
        await client.list_prompts()
        await client.list_items("tools/list", "tools")  # as the server sends it
        assert (server.count("prompts/list"), server.count("tools/list")) == (1, 4)
    async with client:  # a new connection
        await client.list_tools()
        assert server.count("tools/list") == 5


@pytest.mark.parametrize(("revision", "options"), [("2026-07-28", {"cache": False}), ("2025-11-25", {})])
async def test_a_list_is_requested_each_time_if_it_may_not_be_cached(revision: str, options: dict[str, Any]) -> None:
    server = Lists(revision)
    async with Client(server.exchange, revision=revision, **options) as client:  # type: ignore[arg-type]
        for _ in range(2):
            await client.list_tools()
        assert server.count("tools/list") == 2


async def test_a_server_in_memory_is_asked_each_time() -> None:
    mcp = MCPServer("Memory")
    async with Client(mcp) as client:
        assert await client.list_tools() == []

        @mcp.tool
        def added() -> None:
            """Do nothing."""

        assert [tool.name for tool in await client.list_tools()] == ["added"]
