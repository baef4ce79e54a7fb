"""Connections of the client: which ones are used again, how responses end, and what a server may make it keep."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp._client.errors import ConnectionFailedError
from funcmcp._client.http_connections import (
    HTTPConnections,
    ResponseLimits,
    _Connection,
    _Response,
    encoded_request,
    goes_directly,
)
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from funcmcp._transports.http.messages import HttpResponse

    Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\n"
TWO = OK + b"content-length: 2\r\n\r\nok"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
STREAM = OK + b"content-type: text/event-stream\r\n"
MEBIBYTE = 1024 * 1024


class Server:
    """Answers each request on a connection with the next of some bytes.

    Args:
        answers: What a connection sends, one for each request. After the last one the connection is closed.

    Attributes:
        connections: The number of connections so far.
        requests: The requests, as bytes.
        closed: Set when the client has closed a connection.
    """

    def __init__(self, *answers: bytes) -> None:
        self.answers = answers
        self.connections = 0
        self.requests: list[bytes] = []
        self.closed = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for answer in self.answers:
            try:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            except (asyncio.IncompleteReadError, ConnectionError):
                self.closed.set()
                break
            writer.write(answer)


@asynccontextmanager
async def connected(serve: Serve, **options: Any) -> AsyncIterator[Client]:
    """Serve connections, and yield what sends requests to them."""
    served: set[asyncio.Future[None]] = set()

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended = asyncio.get_running_loop().create_future()
        served.add(ended)
        try:
            await serve(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            ended.set_result(None)

    async with await asyncio.start_server(serve_one, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = Client(httpx2.URL(f"http://127.0.0.1:{port}/mcp"), **options)
        yield client
        client.connections.aclose()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*served)


class Client:
    """Sends requests to one URL."""

    def __init__(self, url: httpx2.URL, *, keep_alive: float = 60.0, silence: float = PATIENCE) -> None:
        self.url = url
        self.connections = HTTPConnections(url, None, connect_seconds=PATIENCE, keep_alive_seconds=keep_alive)
        self.sizes: list[int] = []
        self.limits = ResponseLimits(silence, silence, lambda part, size: self.sizes.append(size))

    async def send(self) -> HttpResponse:
        request = encoded_request("POST", self.url, [(b"host", b"elsewhere"), (b"x-field", b"1")], b"")
        return await self.connections.send(request, self.limits)


class Recorded(asyncio.Transport):
    """A connection without a network, to which parts of any size are delivered."""

    is_aborted = False

    def is_closing(self) -> bool:
        return self.is_aborted

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send nothing."""

    def abort(self) -> None:
        self.is_aborted = True


async def until_idle() -> None:
    """Let the event loop read what has arrived on connections of this process."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_connection_is_used_for_the_next_request() -> None:
    server = Server(TWO, TWO, TWO)
    async with connected(server) as client:
        bodies = [(await client.send()).body for _ in range(3)]
        assert (bodies, server.connections) == ([b"ok"] * 3, 1)
    host = client.url.netloc
    assert server.requests[0] == b"POST /mcp HTTP/1.1\r\nhost: " + host + b"\r\nx-field: 1\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"connection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        TWO + TWO,  # the second one answers no request
        TWO + b"x",
    ],
)
async def test_a_connection_that_the_server_does_not_keep_is_not_used_again(answer: bytes) -> None:
    server = Server(answer, TWO)
    async with connected(server) as client:
        for _ in range(2):
            assert (await client.send()).body == b"ok"
            await until_idle()
        assert server.connections == 2


async def test_a_connection_that_has_been_idle_for_too_long_is_closed() -> None:
    server = Server(TWO, TWO)
    async with connected(server, keep_alive=-1.0) as client:
        await client.send()
        await client.send()
        await server.closed.wait()
        assert server.connections == 2


async def test_a_connection_that_the_server_has_closed_is_not_used() -> None:
    server = Server(TWO)
    async with connected(server) as client:
        for number in range(1, 4):
            assert (await client.send()).body == b"ok"
            async with asyncio.timeout(PATIENCE):
                while client.connections._idle:  # noqa: ASYNC110 - the connection has no event
                    await asyncio.sleep(0)
            assert server.connections == number


async def test_bytes_that_belong_to_no_request_end_an_idle_connection() -> None:
    sent = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(TWO)
        await sent.wait()
        writer.write(TWO.replace(b"ok", b"no"))
        assert await reader.read() == b""

    async with connected(serve) as client:
        assert (await client.send()).body == b"ok"
        sent.set()
        async with asyncio.timeout(PATIENCE):
            while client.connections._idle:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (OK + b"\r\nto the end", 200, b"to the end"),
        (OK + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\ntrailer: 1\r\n\r\n", 200, b"abcd"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n" + TWO, 200, b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 404, b""),
    ],
)
async def test_a_response_ends_in_each_way_that_http_has(answer: bytes, status: int, body: bytes) -> None:
    async with connected(Server(answer)) as client:
        response = await client.send()
    assert (response.status, response.body) == (status, body)
    assert {name for name, _ in response.headers} <= {"content-length", "transfer-encoding"}


async def test_each_part_of_a_body_is_counted_with_its_frame() -> None:
    async with connected(Server(OK + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n")) as client:
        await client.send()
    assert client.sizes == [257, 514]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "closed it before its response was complete"),
        (OK, "closed it before its response was complete"),
        (OK + b"content-length: 3\r\n\r\nok", "closed it before its response was complete"),
        (OK + b"transfer-encoding: chunked\r\n\r\n3\r\nab", "closed it before its response was complete"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not valid HTTP"),
        (OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nok", "not valid HTTP"),
        (OK + b"x: " + b"x" * MEBIBYTE, "more than 256 KiB"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000, "header .* more than 256 KiB"),
        (CHUNKED + b"2\r\nok\r\n0\r\nx: " + b"x" * MEBIBYTE, "trailer .* more than 256 KiB"),
        (CHUNKED + b"2;x" + b"x" * MEBIBYTE, "more than 256 KiB"),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n" + TWO, "not valid HTTP"),
    ],
)
async def test_a_response_that_is_not_complete_http_is_a_clear_error(answer: bytes, message: str) -> None:
    async with connected(Server(answer)) as client:
        with pytest.raises(ConnectionFailedError, match=message):
            await client.send()


@pytest.mark.parametrize(("answer", "has_advice"), [(b"", True), (OK, False)], ids=["nothing", "a header"])
async def test_a_server_that_closes_a_plain_connection_without_a_byte_may_serve_https(
    answer: bytes, has_advice: bool
) -> None:
    async with connected(Server(answer)) as client:
        with pytest.raises(ConnectionFailedError) as caught:
            await client.send()
    assert ("Write https:// if it serves HTTPS." in str(caught.value)) is has_advice


async def test_a_body_that_comes_with_the_end_of_its_header_does_not_count_as_header() -> None:
    async with connected(Server()) as client:
        transport = Recorded()
        connection = _Connection(client.connections)
        connection.connection_made(transport)
        response = _Response(connection, client.limits, "http://127.0.0.1")
        connection.begin(response, b"")
        connection.data_received(OK)
        connection.data_received(b"content-length: 262100\r\n\r\n" + b"x" * 262_100)
        assert (len(response.body), response.is_complete, transport.is_aborted) == (262_100, True, False)


async def test_a_trailer_without_end_breaks_an_event_stream() -> None:
    answer = STREAM + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: " + b"x" * MEBIBYTE
    async with connected(Server(answer)) as client:
        body = (await client.send()).body
        assert not isinstance(body, bytes)
        with pytest.raises(ConnectionFailedError, match="trailer"):
            assert [part async for part in body] == [b"ok"]


async def test_a_limit_that_is_exceeded_fails_the_request_and_closes_the_connection() -> None:
    server = Server(TWO, TWO)

    def refuse(part: int, size: int) -> None:
        raise ConnectionFailedError("too much")

    async with connected(server) as client:
        client.limits = client.limits._replace(on_part=refuse)
        with pytest.raises(ConnectionFailedError, match="too much"):
            await client.send()
        await server.closed.wait()


async def test_a_response_that_does_not_come_in_time_is_a_clear_error_and_closes_the_connection() -> None:
    server = Server(b"HTTP/1.1", TWO)
    async with connected(server, silence=0.05) as client:
        with pytest.raises(ConnectionFailedError, match=r"takes more than 0\.05 seconds to answer"):
            await client.send()
        await server.closed.wait()


async def test_a_caller_that_stops_waiting_closes_the_connection() -> None:
    server = Server(b"HTTP/1.1", TWO)
    async with connected(server) as client:
        call = asyncio.create_task(client.send())
        async with asyncio.timeout(PATIENCE):
            while not server.requests:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await server.closed.wait()


async def test_the_parts_of_an_event_stream_are_read_as_they_come() -> None:
    more = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM + b"transfer-encoding: chunked\r\n\r\n2\r\non\r\n")
        await more.wait()
        writer.write(b"1\r\ne\r\n0\r\n\r\n")
        await reader.read()

    async with connected(serve) as client:
        response = await client.send()
        assert not isinstance(response.body, bytes)
        parts = aiter(response.body)
        assert await anext(parts) == b"on"
        more.set()
        assert [part async for part in parts] == [b"e"]
        assert client.connections._idle


@pytest.mark.parametrize("reads", [False, True])
async def test_leaving_an_event_stream_closes_its_connection(reads: bool) -> None:
    server = Server(STREAM + b"\r\ndata: 1\n\n", TWO)
    async with connected(server) as client:
        body: Any = (await client.send()).body
        if reads:
            assert await anext(body) == b"data: 1\n\n"
        await body.aclose()
        await server.closed.wait()
        with pytest.raises(StopAsyncIteration):
            await anext(body)


async def test_an_event_stream_that_breaks_or_stays_silent_is_a_clear_error() -> None:
    chunked = STREAM + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n"
    async with connected(Server(chunked)) as client:
        body: Any = (await client.send()).body
        assert await anext(body) == b"a"
        with pytest.raises(ConnectionFailedError, match="closed it before its response was complete"):
            await anext(body)
    async with connected(Server(chunked, TWO), silence=0.05) as client:
        body = (await client.send()).body
        assert await anext(body) == b"a"
        with pytest.raises(ConnectionFailedError, match=r"takes more than 0\.05 seconds to answer"):
            await anext(body)


async def test_an_event_stream_that_nobody_reads_is_not_read_from_the_network() -> None:
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM + b"content-length: %d\r\n\r\n" % (256 * MEBIBYTE))
        for _ in range(256):
            writer.write(b"x" * MEBIBYTE)
            await writer.drain()
            sent += 1
        await reader.read()

    async with connected(serve) as client:
        body: Any = (await client.send()).body
        while sum(client.sizes[-1:]) <= MEBIBYTE // 4:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
        read_before = client.sizes[-1]
        await until_idle()
        assert client.sizes[-1] == read_before < 2 * MEBIBYTE
        assert sum([len(part) async for part in body]) == 256 * MEBIBYTE
        assert sent == 256


async def test_closing_ends_all_connections() -> None:
    server = Server(STREAM + b"\r\ndata: 1\n\n", TWO)
    async with connected(server) as client:
        body: Any = (await client.send()).body
        client.connections.aclose()
        await server.closed.wait()
        await body.aclose()


@pytest.mark.parametrize("value", [b"a\r\nx: 1", b"a\nx", b"a\rx", b"a\0"])
def test_a_header_field_cannot_contain_another_one(value: bytes) -> None:
    with pytest.raises(ValueError, match="line break"):
        encoded_request("POST", httpx2.URL("http://127.0.0.1/mcp"), [(b"name", value)], b"")


@pytest.mark.parametrize(
    ("variables", "is_direct"),
    [
        ({}, True),
        ({"http_proxy": "http://proxy:1"}, False),
        ({"all_proxy": "http://proxy:1"}, False),
        ({"https_proxy": "http://proxy:1"}, True),
        ({"http_proxy": "http://proxy:1", "no_proxy": "api.example.com"}, True),
        ({"http_proxy": "http://proxy:1", "no_proxy": "example.org"}, False),
    ],
)
def test_a_forward_proxy_of_the_environment_is_respected(
    variables: dict[str, str], is_direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert goes_directly(httpx2.URL("http://api.example.com/mcp")) is is_direct
