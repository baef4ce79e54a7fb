"""200 upstreams with 50 tools each: one round of requests at the same time, and a dead one delays only itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import PATIENCE
from tests.proxy.scripted import Request, discovered, error, listening, response, result, worked
from tests.proxy.serving import proxy
from tests.proxy.wire import ERAS, Wire, over_http, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow("A list of 10,000 tools is made of 200 servers.")

UPSTREAMS, TOOLS = 200, 50
DEAD = 77
LIMIT_SECONDS = 1.0
"""How long the proxy waits for a part of an answer of the dead upstream."""


class Servers:
    """Upstreams on one port, each with a path of its own: /0, /1 and so on.

    No list is answered before all upstreams but the dead one have been asked for theirs, so that a proxy which asks one
    after the other never gets one.

    Attributes:
        lists: The numbers of requests for a list, by upstream.
        calls: The paths of calls.
    """

    def __init__(self) -> None:
        self.lists = dict.fromkeys(range(UPSTREAMS), 0)
        self.calls: list[str] = []
        self._all_asked: asyncio.Event | None = None

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Answer a request."""
        self._all_asked = self._all_asked or asyncio.Event()
        number = int(request.path.removeprefix("/"))
        if number == DEAD:
            await asyncio.Event().wait()
        method = request.message["method"]
        if method == "server/discover":
            writer.write(response(result(request, discovered())))
        elif method == "tools/list":
            writer.write(response(result(request, await self._list(number, self._all_asked))))
        elif method == "initialize":
            writer.write(response(error(request, -32601, "Method not found")))
        else:
            self.calls.append(request.path)
            writer.write(response(result(request, worked(request, f"{number} {request.message['params']['name']}"))))

    async def _list(self, number: int, all_asked: asyncio.Event) -> dict[str, Any]:
        self.lists[number] += 1
        if sum(map(bool, self.lists.values())) == UPSTREAMS - 1:
            all_asked.set()
        await all_asked.wait()
        tools = [
            {
                "name": f"tool_{tool}",
                "description": f"Tool {tool} of server {number}.",
                "inputSchema": {"type": "object", "properties": {"query": {"type": "string", "description": "What."}}},
            }
            for tool in range(TOOLS)
        ]
        return {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "public", "tools": tools}


@pytest.fixture(scope="module")
def servers() -> Servers:
    return Servers()


@pytest.fixture(scope="module")
def url(servers: Servers) -> Iterator[str]:
    with listening(servers) as port:
        rows = [
            {
                "url": f"http://127.0.0.1:{port}/{number}",
                "prefix": f"s{number}",
                "endpoint": {"silence_seconds": LIMIT_SECONDS if number == DEAD else PATIENCE},
                "options": {"optional": number == DEAD},
            }
            for number in range(UPSTREAMS)
        ]
        with proxy(*rows) as served:
            yield served.url


async def all_names(wire: Wire) -> list[str]:
    """Return the names of the tools on all pages."""
    names: list[str] = []
    params: dict[str, str] = {}
    while True:
        result = plain(await wire.ask("tools/list", params))["result"]
        names += [tool["name"] for tool in result["tools"]]
        if "nextCursor" not in result:
            return names
        params = {"cursor": result["nextCursor"]}


@pytest.mark.parametrize("era", ERAS)
async def test_all_lists_are_read_at_once_and_not_for_each_client(era: str, servers: Servers, url: str) -> None:
    alive = [number for number in range(UPSTREAMS) if number != DEAD]
    expected = [f"s{number}_tool_{tool}" for number in alive for tool in range(TOOLS)]
    async with over_http(url, era) as wire, asyncio.timeout(PATIENCE):
        # A list does not wait longer than 5 seconds for the first answers.
        while await all_names(wire) != expected:
            pass
        # Once for the features of all clients, and once for those of clients with the same capabilities.
        assert {servers.lists[number] for number in alive} == {2}


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_goes_to_its_upstream_while_another_one_is_dead(era: str, servers: Servers, url: str) -> None:
    servers.calls.clear()
    async with over_http(url, era) as wire:
        for number in (0, DEAD - 1, DEAD + 1, UPSTREAMS - 1):
            called = plain(await wire.ask("tools/call", {"name": f"s{number}_tool_7", "arguments": {}}))
            assert called["result"]["content"] == [{"type": "text", "text": f"{number} tool_7"}]
    assert servers.calls == [f"/{number}" for number in (0, DEAD - 1, DEAD + 1, UPSTREAMS - 1)]
