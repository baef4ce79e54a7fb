"""Upstreams that send too much, or what they must not: the proxy reads a bounded part, and serves all else as before.

An upstream counts the bytes and requests that the proxy takes of it.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer
from funcmcp.client import Client
from funcmcp.upstreams import Upstream as UpstreamServer
from tests.patience import PATIENCE
from tests.proxy.scripted import TOOL, Request, Upstream, event, listening, response, result, stream_head, worked
from tests.proxy.serving import proxy
from tests.proxy.wire import ERAS, HANDSHAKE, over_http, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow("Much data is sent.")

MEBIBYTE = 1024 * 1024
GIBIBYTE = 1024 * MEBIBYTE
BOUND = 256 * MEBIBYTE
"""Bytes that the proxy may take of one answer: its limit of 64 MiB, and what the buffers of two sockets hold."""

NOTE = b'data: {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "%s"}}\n\n'
PART = NOTE % (b"x" * 65536)
DEPTH = 200_000


class Hostile:
    """An upstream that answers rightly until an attack begins.

    Args:
        era: The revision that it speaks.

    Attributes:
        sent: Bytes that the proxy has taken of the attack.
        lists: Requests for the list of tools.
        ended: Set when the connection of the attack has ended.
    """

    def __init__(self, era: str) -> None:
        self.upstream = Upstream(era, self.work)
        self.attack = ""
        self.sent = 0
        self.lists = 0

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Serve a request."""
        if request.body and request.message.get("method") == "tools/list":
            self.lists += 1
            if self.attack in LISTS:
                writer.write(response(result(request, {**self._hints(), **LISTS[self.attack](request)})))
                return
        await self.upstream(request, writer)

    async def work(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Answer a call."""
        if request.message["params"]["arguments"].get("attack"):
            await self._attack(request, writer)
        else:
            writer.write(response(result(request, worked(request))))

    def _hints(self) -> dict[str, Any]:
        if self.upstream.era == HANDSHAKE:
            return {}
        return {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}

    async def _attack(self, request: Request, writer: asyncio.StreamWriter) -> None:
        for part in CALLS[self.attack](request):
            writer.write(part)
            await writer.drain()
            self.sent += len(part)
        writer.close()


def huge_answer(request: Request) -> Iterator[bytes]:
    """Send a text of one gibibyte."""
    yield f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {GIBIBYTE + 200}\r\n\r\n".encode()
    yield result(request, worked(request, "?")).partition("?")[0].encode()
    yield from itertools.repeat(b"x" * MEBIBYTE, 1024)


def chunks(request: Request) -> Iterator[bytes]:
    """Send each byte as a chunk of its own, for ever."""
    yield b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    yield from itertools.repeat(b"1\r\nx\r\n" * 10_000, 100_000)


def notifications(request: Request) -> Iterator[bytes]:
    """Send log messages without end."""
    yield stream_head()
    yield from itertools.repeat(PART, 100_000)


def progress(request: Request) -> Iterator[bytes]:
    """Report progress without end, for a token that nobody has chosen."""
    params = {"progressToken": "unknown", "progress": 1, "message": "x" * 65536}
    yield stream_head()
    yield from itertools.repeat(
        event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}), 100_000
    )


def questions(request: Request) -> Iterator[bytes]:
    """Ask without end what the client has not declared."""
    yield stream_head()
    for number in range(100_000):
        params = {"messages": [], "maxTokens": 1, "_meta": {"filler": "x" * 16384}}
        yield event({"jsonrpc": "2.0", "id": number, "method": "sampling/createMessage", "params": params})


def endless_line(request: Request) -> Iterator[bytes]:
    """Send an event that never ends."""
    yield stream_head() + b"data: "
    yield from itertools.repeat(b"x" * MEBIBYTE, 1024)


def comments(request: Request) -> Iterator[bytes]:
    """Send comments without end."""
    yield stream_head()
    yield from itertools.repeat(b": still here\n" * 10_000, 100_000)


def endless_header(request: Request) -> Iterator[bytes]:
    """Send a header that never ends."""
    yield b"HTTP/1.1 200 OK\r\n"
    yield from itertools.repeat(b"x-filler: %s\r\n" % (b"x" * 65536), 10_000)


def deep(request: Request) -> Iterator[bytes]:
    """Send arrays in arrays."""
    nested = "[" * DEPTH + "]" * DEPTH
    text = result(request, {**worked(request), "structuredContent": "?"})
    yield response(text.replace('"?"', f'{{"a": {nested}}}'))


def wrong_ids(request: Request) -> Iterator[bytes]:
    """Answer requests that nobody has sent."""
    yield stream_head()
    for number in range(100_000, 200_000):
        yield event({"jsonrpc": "2.0", "id": number, "result": worked(request, "x" * 4096)})


def surrogates(request: Request) -> Iterator[bytes]:
    """Send half of a character, and a number that no float holds."""
    text = result(request, worked(request, "?"))
    yield response(
        text.replace('"?"', '"\\ud800"').replace('"isError": false', '"isError": false, "_meta": {"a": 1e999}')
    )


CALLS: dict[str, Callable[[Request], Iterator[bytes]]] = {
    function.__name__: function
    for function in (
        huge_answer,
        chunks,
        notifications,
        progress,
        questions,
        endless_line,
        comments,
        endless_header,
        deep,
        wrong_ids,
        surrogates,
    )
}


def many(count: int) -> list[dict[str, Any]]:
    return [{**TOOL, "name": f"tool_{number}"} for number in range(count)]


def schema_of(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


LISTS: dict[str, Callable[[Request], dict[str, Any]]] = {
    "the same cursor again": lambda request: {"tools": [TOOL], "nextCursor": "again"},
    "another cursor each time": lambda request: {
        "tools": [{**TOOL, "name": f"tool_{request.message['id']}"}],
        "nextCursor": str(request.message["id"]),
    },
    "pages without tools": lambda request: {"tools": [], "nextCursor": str(request.message["id"])},
    "100,000 tools": lambda request: {"tools": many(100_000)},
    "no list": lambda request: {"tools": "many"},
    "no tools": lambda request: {
        "tools": [7, None, "x", [], {}, {"name": 7}, {"name": ""}, {"name": "a", "inputSchema": 7}]
    },
    "one name twice": lambda request: {"tools": [TOOL, {**TOOL, "description": "Another."}]},
    "a name with control characters": lambda request: {"tools": [{**TOOL, "name": "a\u0000\u202e\n\u001b[31mb"}]},
    "a name of a mebibyte": lambda request: {"tools": [{**TOOL, "name": "x" * MEBIBYTE}]},
    "a deep schema": lambda request: {"tools": [{**TOOL, "inputSchema": schema_of(300)}]},
}
MAX_LISTS = 2_000
"""Requests for pages that one list may take."""


@pytest.fixture(scope="module", params=ERAS, ids=lambda era: f"upstream of {era}")
def hostile(request: pytest.FixtureRequest) -> Hostile:
    return Hostile(request.param)


@pytest.fixture(scope="module")
def ports(hostile: Hostile) -> Iterator[tuple[int, int]]:
    """The ports of the hostile upstream and of one that behaves."""
    friendly = Hostile(hostile.upstream.era)
    with listening(hostile) as bad, listening(friendly) as good:
        yield bad, good


@pytest.fixture(scope="module")
def url(ports: tuple[int, int]) -> Iterator[str]:
    """The endpoint of a proxy of the two upstreams, in a process of its own."""
    bad, good = ports
    rows: list[dict[str, Any]] = [
        {"url": f"http://127.0.0.1:{bad}/mcp", "prefix": "bad", "options": {"optional": True}},
        {"url": f"http://127.0.0.1:{good}/mcp", "prefix": "good"},
    ]
    with proxy(*rows) as served:
        yield served.url


async def ask(url: str, era: str, method: str, **params: Any) -> Any:
    async with over_http(url, era) as wire, asyncio.timeout(PATIENCE):
        return plain(await wire.ask(method, params))


@pytest.mark.parametrize("attack", CALLS)
async def test_a_call_of_a_hostile_upstream_takes_a_bounded_number_of_bytes(
    attack: str, url: str, hostile: Hostile
) -> None:
    hostile.attack, hostile.sent = attack, 0
    era = hostile.upstream.era
    attacked = asyncio.create_task(ask(url, era, "tools/call", name="bad_work", arguments={"attack": True}))
    friendly = await ask(url, era, "tools/call", name="good_work", arguments={})
    assert friendly["result"]["content"][0]["text"] == "done"
    answer = await attacked
    assert "error" in answer or answer["result"]["isError"] is True or attack == "surrogates"
    assert hostile.sent < BOUND
    for name in ("good_work", "bad_work"):
        again = await ask(url, era, "tools/call", name=name, arguments={})
        assert again["result"]["content"][0]["text"] == "done"


@pytest.mark.parametrize("attack", LISTS)
async def test_a_hostile_list_takes_a_bounded_number_of_requests_and_hides_no_other_tool(
    attack: str, ports: tuple[int, int], hostile: Hostile
) -> None:
    hostile.attack, hostile.lists = attack, 0
    server = MCPServer("Proxy")
    for prefix, port in zip(("bad", "good"), ports, strict=True):
        server.mount(UpstreamServer(f"http://127.0.0.1:{port}/mcp", optional=prefix == "bad"), prefix=prefix)
    async with asyncio.timeout(PATIENCE), Client(server, revision=hostile.upstream.era) as client:
        names = {tool.name for tool in await client.list_tools()}
        assert "good_work" in names
        assert hostile.lists <= MAX_LISTS
        assert len(names) < 20_000
        assert all(len(name) <= 128 and name.isprintable() for name in names)
        assert (await client.call_tool("good_work")).text == "done"
