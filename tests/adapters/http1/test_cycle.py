"""Requests that go to the exchange without ASGI, beside the same bytes through ASGI."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import tracemalloc
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pytest
import uvicorn
from hypothesis import example, given, settings
from hypothesis import strategies as st
from uvicorn.server import ServerState

from funcmcp._adapters.asgi.application import ASGIApplication, HTTPRuntime
from funcmcp._adapters.http1.direct_path import direct_path
from funcmcp._adapters.uvicorn.protocols import http_protocol
from funcmcp._processes.uvicorn_server import UvicornServer
from funcmcp._server.limits import Limits
from funcmcp._transports.http.messages import BodyTooLargeError, HttpResponse
from fuzz.http_bytes import Transport, check_timer
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from funcmcp._transports.http.messages import HttpRequest

pytestmark = pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP.")
_SLOW = pytest.mark.slow("Many requests are sent in two ways, and compared.")

LIMITS = Limits(header_bytes=3000, message_bytes=5000)
JSON = (("content-type", "application/json"),)
DATE = [(b"date", b"Sun, 22 Nov 2026 21:00:00 GMT"), (b"server", b"test")]
TURNS = 200
RESPONSES = {
    b"a": HttpResponse(202, ()),
    b"b": HttpResponse(200, JSON, b"x" * 3000),
    b"c": HttpResponse(400, (*JSON, ("connection", "close")), b"closed"),
    b"h": HttpResponse(200, (("x-Name", "Value\u00e9"), ("x-empty", ""), ("X-Upper", "1")), b"fields"),
    b"i": HttpResponse(200, (("x-invalid", "a\r\nb"),), b"invalid"),
    b"n": HttpResponse(204, ()),
    b"t": HttpResponse(299, JSON, b"a status without a name"),
    b"u": HttpResponse(200, (("x-name", "\u20ac"),), b"not Latin-1"),
    b"v": HttpResponse(600, JSON, b"no status"),
}
"""Responses by the first byte of the request's body."""


class Exchange:
    """Records requests; the first byte of a body, or else the path, chooses the response.

    Attributes:
        requests: What the requests were, with their bodies if they were read.
        go_on: Ends the responses that wait.
        disconnects: The number of requests whose client disconnected before the response.
        closed: The number of streams that were closed.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[object, ...]] = []
        self.go_on = asyncio.Event()
        self.disconnects = 0
        self.closed = 0

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        line: tuple[object, ...] = (request.method, request.path, request.query_string, request.url)
        facts = (*line, request.pairs[:], request.fields, request.server, request.peer, request.scheme, request.mount)
        number = len(self.requests)
        self.requests.append(facts)
        try:
            body = await request.read(LIMITS.message_bytes)
        except BodyTooLargeError:
            return HttpResponse(413, JSON, b"too large")
        self.requests[number] = (*facts, body)
        return await self._respond(request, body, b"%d %b" % (number, body[:50]))

    async def _respond(self, request: HttpRequest, body: bytes, text: bytes) -> HttpResponse:
        match body[:1]:
            case b"w":
                await self.go_on.wait()
            case b"l":
                await request.disconnected()
                self.disconnects += 1
            case b"p":
                await self.go_on.wait()
                return HttpResponse(200, JSON, self._stream(text))
            case b"s":
                return HttpResponse(200, JSON, self._stream(text))
            case b"y":
                return await self._respond_early(request, body, text)
            case b"e":
                raise RuntimeError("a fault")
            case b"2":
                return HttpResponse(200, (("content-length", str(len(text))),), text)
        return RESPONSES.get(body[:1]) or HttpResponse(200, JSON, text)

    async def _respond_early(self, request: HttpRequest, body: bytes, text: bytes) -> HttpResponse:
        """Begin the response before it is known."""
        await request.send_early(JSON, b"early ")
        await request.send_early(JSON, b"x" * 1000)
        if body == b"yw":
            await self.go_on.wait()
        elif body == b"yf":
            raise RuntimeError("a fault")
        return HttpResponse(400, (("x-lost", "1"),), text)

    async def _stream(self, text: bytes) -> AsyncIterator[bytes]:
        try:
            yield b"data: "
            await asyncio.sleep(0)
            yield text
            if text.endswith(b"w"):
                await self.go_on.wait()
            elif text.endswith(b"f"):
                raise RuntimeError("a fault of a stream")
            while text.endswith(b"l"):
                yield b"x" * 1000
                await asyncio.sleep(0)
        finally:
            self.closed += 1


class OneEndpoint(HTTPRuntime):
    """Serves an exchange at one path."""

    @property
    def endpoint(self) -> str:
        """The path."""
        return "/mcp"


@dataclass
class Outcome:
    """What came of the bytes of one connection."""

    written: bytes
    closing: bool
    requests: list[tuple[object, ...]]
    responses: int
    disconnects: int
    closed: int
    log: list[str] = field(default_factory=list)


class Connection:
    """The server's end of a connection in memory.

    Args:
        direct: Whether requests may go without ASGI.
        reads: Whether the client reads what it is sent.
        parser: The parser.
        options: Options of uvicorn.
    """

    def __init__(
        self,
        *,
        direct: bool,
        reads: bool = True,
        limits: Limits = LIMITS,
        parser: Literal["httptools", "h11"] = "httptools",
        **options: Any,
    ) -> None:
        self.exchange = Exchange()
        self.app = ASGIApplication(OneEndpoint(self.exchange, limits))
        protocol_class: Any = http_protocol(limits, parser, direct=direct_path(self.app) if direct else None)
        options = {"ws": "none", "lifespan": "off", "log_config": None, "proxy_headers": False, **options}
        config = uvicorn.Config(self.app, http=protocol_class, **options)
        config.load()
        self.state = ServerState()
        self.state.default_headers = DATE
        self.transport = Transport(reads=reads)
        self.protocol: Any = protocol_class(config, self.state, {}, asyncio.get_running_loop())
        self.transport.protocol = self.protocol
        self.protocol.connection_made(self.transport)

    def receive(self, data: bytes) -> None:
        """Receive bytes, unless the connection is closed."""
        if not self.transport.closing:
            self.protocol.data_received(data)
            check_timer(self.protocol)

    async def quiet(self) -> None:
        """Wait until nothing happens any more."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
            check_timer(self.protocol)

    async def until_lost(self) -> None:
        """Wait until a timer has closed the connection, and nothing happens any more."""
        async with asyncio.timeout(PATIENCE):
            while not self.transport.lost:  # noqa: ASYNC110 - the transport has no event
                await asyncio.sleep(0.005)
        await self.quiet()

    async def end(self) -> Outcome:
        """Let responses go on, close the connection, and fail if something of it is left."""
        await self.quiet()
        self.exchange.go_on.set()
        await self.quiet()
        outcome = Outcome(
            bytes(self.transport.written),
            self.transport.closing,
            self.exchange.requests,
            self.state.total_requests,
            0,
            0,
        )
        self.transport.abort()
        await self.quiet()
        outcome.disconnects, outcome.closed = self.exchange.disconnects, self.exchange.closed
        assert not self.state.tasks
        assert not self.state.connections
        assert not self.protocol.timers
        return outcome


async def play(
    segments: list[bytes], pauses: list[bool], *, direct: bool, reads: bool, parser: Literal["httptools", "h11"]
) -> Outcome:
    """Send segments on one connection; after some of them, wait until nothing happens any more."""
    connection = Connection(direct=direct, reads=reads, parser=parser)
    for index, segment in enumerate(segments):
        connection.receive(segment)
        if pauses[index % len(pauses)]:
            await connection.quiet()
    return await connection.end()


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    with contextlib.closing(made):
        yield made


@pytest.fixture
def silent() -> Iterator[None]:
    """No log: uvicorn reports invalid requests and faults of the exchange."""
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "uvicorn.access")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def post(body: bytes = b"{}", *fields: bytes, target: bytes = b"/mcp", version: bytes = b"1.1") -> bytes:
    """Return a POST with a Content-Length."""
    lines = [b"POST %b HTTP/%b" % (target, version), b"Host: here:8000", b"Content-Length: %d" % len(body), *fields]
    return b"\r\n".join([*lines, b"", body])


def chunked(body: bytes, *trailers: bytes) -> bytes:
    """Return a POST in one chunk."""
    head = b"POST /mcp HTTP/1.1\r\nhost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n" % (len(body), body) + b"".join(line + b"\r\n" for line in trailers) + b"\r\n"


BODIES = st.sampled_from(
    [
        b"",
        b"{}",
        b"w",
        b"l",
        b"s",
        b"sw",
        b"y",
        b"yw",
        b"yf",
        b"e",
        b"c",
        b"h",
        b"i",
        b"n",
        b"a",
        b"2",
        b"b",
        b"t",
        b"u",
        b"v",
        b"x" * 2500,
        b"x" * 6000,
    ]
)
FIELDS = st.sampled_from(
    [
        b"Accept: application/json",
        b"x-twice: 1\r\nX-Twice: 2",
        b"cookie: a=1\r\ncookie: b=2",
        b"Connection: close",
        b"Connection: keep-alive",
        b"Expect: 100-continue",
        b"Expect: something",
        b"Connection: upgrade\r\nUpgrade: h2c",
        b"Connection: upgrade\r\nUpgrade: websocket",
        b"Upgrade: h2c",
        b"Transfer-Encoding: chunked",
        b"Content-Length: 2",
        b"x-long: " + b"y" * 2900,
        b"x-folded: a\r\n b",
        b"bad field",
        b"x-null: \x00",
    ]
)
TARGETS = st.sampled_from([b"/mcp", b"/mcp?x=1", b"/mcp/", b"/MCP", b"/%6dcp", b"http://here/mcp", b"/other", b"*"])
POSTS = st.builds(
    lambda body, fields, target, version: post(body, *fields, target=target, version=version),
    BODIES,
    st.lists(FIELDS, max_size=2),
    st.one_of(st.just(b"/mcp"), TARGETS),
    st.sampled_from([b"1.1", b"1.1", b"1.1", b"1.0"]),
)
PIECES = st.one_of(
    POSTS,
    POSTS,
    st.builds(chunked, BODIES.filter(bool), st.sampled_from([b"x-trailer: 1", b"content-length: 5"])),
    st.builds(lambda data, size: data[:size], POSTS, st.integers(1, 120)),
    st.sampled_from(
        [
            b"GET /mcp HTTP/1.1\r\nhost: here\r\n\r\n",
            b"HEAD /mcp HTTP/1.1\r\nhost: here\r\n\r\n",
            b"POST /mcp HTTP/1.1\r\nhost: here\r\n\r\n",
            b"OPTIONS * HTTP/1.1\r\nhost: here\r\n\r\n",
            b"\r\n",
            b"nonsense\r\n\r\n",
            b"a:\r\n" * 600,
        ]
    ),
)


CHANGES = (b"", b"", b"", b"0", b" ", b"\r\n", b"\n", b"a", b":", b"\x00", b"Content-Length: 1\r\n")


@st.composite
def connections(draw: st.DrawFn) -> tuple[list[bytes], list[bool], bool]:
    """Return segments, where a client pauses between them, and whether it reads."""
    data = b"".join(draw(st.lists(PIECES, min_size=1, max_size=4)))
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=4)))
    segments = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if start < end]
    return segments, draw(st.lists(st.booleans(), min_size=1, max_size=3)), draw(st.booleans())


@st.composite
def repetitions(draw: st.DrawFn) -> list[bytes]:
    """Return requests with the same header, except for Content-Length, some of which have a small change."""
    fields = draw(st.lists(FIELDS, max_size=2))
    version = draw(st.sampled_from([b"1.1", b"1.1", b"1.1", b"1.0"]))
    requests = []
    for body in draw(st.lists(st.one_of(BODIES, st.just(b"\r\n\r\n{}")), min_size=2, max_size=4)):
        data = post(body, *fields, version=version)
        position, change = draw(st.integers(0, len(data) - 1)), draw(st.sampled_from(CHANGES))
        requests.append(data[:position] + change + data[position + draw(st.integers(0, 1)) :] if change else data)
    return requests


@_SLOW
@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("parser", ["httptools", "h11"])
@given(requests=repetitions())
@example(requests=[post(b"1"), post(b"22"), post(b"1" * 10), post(b"333")])
@example(requests=[post(b"1"), post(b"1") + b"\r\n", post(b"1"), post(b"1") + post(b"2")])
@example(
    requests=[
        post(b"1"),
        post(b"1").replace(b"Length: 1", b"Length: 01"),
        post(b"1").replace(b"Length: 1", b"Length: +1"),
    ]
)
@settings(max_examples=200, deadline=None)
def test_repeated_headers_have_the_same_outcome_as_through_asgi(
    loop: asyncio.AbstractEventLoop, parser: Literal["httptools", "h11"], requests: list[bytes]
) -> None:
    direct = loop.run_until_complete(play(requests, [True], direct=True, reads=True, parser=parser))
    through_asgi = loop.run_until_complete(play(requests, [True], direct=False, reads=True, parser=parser))
    assert direct == through_asgi


@_SLOW
@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("parser", ["httptools", "h11"])
@given(case=connections())
@example(case=([post(b"1"), post(b"2")], [True], True))
@example(case=([post(b"w"), post(b"2") + post(b"e")], [False], True))
@example(case=([post(b"b"), post(b"s"), post(b"3")], [True], False))
@settings(max_examples=200, deadline=None)
def test_each_byte_sequence_has_the_same_outcome_as_through_asgi(
    loop: asyncio.AbstractEventLoop,
    parser: Literal["httptools", "h11"],
    case: tuple[list[bytes], list[bool], bool],
) -> None:
    segments, pauses, reads = case
    direct = loop.run_until_complete(play(segments, pauses, direct=True, reads=reads, parser=parser))
    through_asgi = loop.run_until_complete(play(segments, pauses, direct=False, reads=reads, parser=parser))
    assert direct == through_asgi


def is_direct(connection: Connection) -> bool:
    """Return whether the last request of a connection goes without ASGI."""
    protocol = connection.protocol
    latest = protocol.waiting[-1] if protocol.waiting else protocol.cycle
    return bool(latest is protocol.cycle and protocol.is_direct(latest))


@pytest.mark.parametrize(
    ("data", "direct"),
    [
        (post(b"w"), True),
        (post(b"w", b"accept: */*", b"connection: close"), True),
        (post(b"w" * 4000), True),
        (post(b"w", version=b"1.0"), False),
        (post(b"w", b"Expect: 100-continue"), False),
        (post(b"w", b"Upgrade: h2c"), False),
        (post(b"w", target=b"/mcp?a=b"), False),
        (post(b"w", target=b"/other"), False),
        (chunked(b"w"), False),
        (b"GET /mcp HTTP/1.1\r\nhost: here\r\n\r\n", False),
        (post(b"w") + post(b"2"), False),  # the second one
    ],
)
async def test_only_a_complete_and_usual_post_to_the_endpoint_goes_without_asgi(data: bytes, direct: bool) -> None:
    connection = Connection(direct=True)
    connection.receive(data)
    assert is_direct(connection) == direct
    await connection.end()


async def test_a_body_that_arrives_after_its_header_goes_without_asgi() -> None:
    connection = Connection(direct=True)
    for body in (b"w", b"x" * 4000, b"2"):
        data = post(body)
        header, first = data[: -len(body)], data[-len(body) :][:1]
        connection.receive(header[:40])
        await connection.quiet()
        connection.receive(header[40:])
        connection.receive(first)
        connection.receive(body[1:])
        assert is_direct(connection)
        connection.exchange.go_on.set()
        await connection.quiet()
    outcome = await connection.end()
    assert [request[-1] for request in outcome.requests] == [b"w", b"x" * 4000, b"2"]


@pytest.mark.parametrize("size", [4000, 70_000])
async def test_a_body_is_read_while_it_arrives(size: int) -> None:
    connection = Connection(direct=True, limits=Limits(message_bytes=100_000))
    data = post(b"x" * size)
    connection.receive(data[:500])
    await connection.quiet()
    assert is_direct(connection)
    assert len(connection.exchange.requests) == 1
    connection.receive(data[500:])
    outcome = await connection.end()
    assert outcome.written.startswith(b"HTTP/1.1 413 " if size > LIMITS.message_bytes else b"HTTP/1.1 200 OK\r\n")


async def test_a_length_may_have_thousands_of_zeros() -> None:
    connection = Connection(direct=True, limits=Limits())
    header, body = post(b"222")[:-3].replace(b"Length: 3", b"Length: " + b"0" * 5000 + b"3"), b"222"
    connection.receive(header)
    await connection.quiet()
    connection.receive(body)
    outcome = await connection.end()
    assert [request[-1] for request in outcome.requests] == [body]


async def test_a_client_that_disconnects_before_its_body_leaves_nothing() -> None:
    connection = Connection(direct=True)
    connection.receive(post(b"22")[:-1])
    await connection.quiet()
    assert connection.protocol.timers == 1
    connection.transport.lose()
    await connection.quiet()
    assert [b"22" in request or b"2" in request for request in connection.exchange.requests] == [False]
    assert not connection.protocol.timers
    assert not connection.state.tasks


@pytest.mark.parametrize("direct", [True, False])
async def test_a_shutdown_waits_for_the_rest_of_a_body(direct: bool) -> None:
    connection = Connection(direct=direct)
    connection.receive(post(b"22")[:-1])
    connection.protocol.shutdown()
    await connection.quiet()
    assert not connection.transport.closing
    connection.receive(b"2")
    await connection.quiet()
    assert b"connection: close\r\n\r\n0 22" in connection.transport.written
    assert connection.transport.lost
    assert not connection.state.tasks


@pytest.mark.parametrize("options", [{"proxy_headers": True}, {"root_path": "/below"}, {"limit_concurrency": 3}])
async def test_no_request_goes_without_asgi_if_uvicorn_has_to_do_more(options: dict[str, Any]) -> None:
    connection = Connection(direct=True, **options)
    connection.receive(post(b"w"))
    assert not is_direct(connection)
    outcome = await connection.end()
    assert outcome.written.startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_response_has_the_default_headers_and_is_one_write() -> None:
    connection = Connection(direct=True)
    writes: list[bytes] = []
    connection.transport.write = writes.append  # type: ignore[method-assign, assignment]
    connection.receive(post(b"{}"))
    await connection.quiet()
    connection.state.default_headers = [(b"date", b"later")]
    connection.receive(post(b"{}", b"connection: close"))
    await connection.quiet()
    rest = b"content-type: application/json\r\ncontent-length: 4\r\n"
    assert writes == [
        b"HTTP/1.1 200 OK\r\ndate: Sun, 22 Nov 2026 21:00:00 GMT\r\nserver: test\r\n" + rest + b"\r\n0 {}",
        b"HTTP/1.1 200 OK\r\ndate: later\r\n" + rest + b"connection: close\r\n\r\n1 {}",
    ]
    assert connection.transport.closing
    assert connection.state.total_requests == 2
    connection.transport.lose()


@pytest.mark.parametrize("direct", [True, False])
async def test_a_client_that_disconnects_ends_the_wait_and_gets_no_response(direct: bool) -> None:
    connection = Connection(direct=direct)
    connection.receive(post(b"l"))
    await connection.quiet()
    assert connection.exchange.disconnects == 0
    connection.transport.lose()
    await connection.quiet()
    assert connection.exchange.disconnects == 1
    assert connection.transport.written == b""
    assert not connection.state.tasks
    assert connection.state.total_requests == 0


@pytest.mark.parametrize("turns", [1, 2, 3, TURNS])
async def test_a_stream_to_a_client_that_has_disconnected_is_closed(
    turns: int, caplog: pytest.LogCaptureFixture
) -> None:
    connection = Connection(direct=True)
    connection.receive(post(b"sw"))
    for _ in range(turns):
        await asyncio.sleep(0)
    connection.transport.lose()
    await connection.quiet()
    assert connection.exchange.closed == 1
    assert not connection.state.tasks
    assert not caplog.records


@pytest.mark.parametrize("direct", [True, False])
async def test_a_stream_that_begins_after_the_client_has_disconnected_is_closed(direct: bool) -> None:
    connection = Connection(direct=direct)
    connection.receive(post(b"pw"))
    await connection.quiet()
    connection.transport.lose()
    await connection.quiet()
    connection.exchange.go_on.set()
    await connection.quiet()
    assert connection.exchange.closed == 1
    assert connection.transport.written == b""
    assert not connection.state.tasks


async def test_a_stream_on_a_connection_that_closes_is_closed() -> None:
    """With TLS a connection closes in several steps, and asyncio logs each write in the meantime."""
    connection = Connection(direct=True)
    connection.receive(post(b"sl"))
    await connection.quiet()
    assert connection.exchange.closed == 0
    connection.transport.closing = True
    await connection.quiet()
    assert connection.exchange.closed == 1
    assert not connection.state.tasks


async def open_stream(connection: Connection, body: bytes, cut: int | None) -> None:
    data = post(body)
    connection.receive(data[:cut])
    await connection.quiet()
    if cut is not None:
        connection.receive(data[cut:])
    await connection.quiet()
    connection.exchange.requests.clear()


@_SLOW
@pytest.mark.parametrize("cut", [None, -4000])
async def test_an_open_stream_keeps_nothing_of_the_body_of_its_request(cut: int | None) -> None:
    async def memory(size: int) -> int:
        """Return the bytes of memory of 40 streams whose requests have bodies of this size."""
        connections = [Connection(direct=True) for _ in range(40)]
        tracemalloc.start()
        try:
            for connection in connections:
                await open_stream(connection, b"s" + b" " * 48 + b"w" + b" " * size, cut)
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        for connection in connections:
            assert connection.transport.written.endswith(b"w\r\n")
            await connection.end()
        return held

    await memory(4000)
    assert abs(await memory(4900) - await memory(4000)) < 40 * 400


async def test_a_stream_goes_without_asgi_in_chunks() -> None:
    connection = Connection(direct=True)
    connection.receive(post(b"sw"))
    await connection.quiet()
    cycle = connection.protocol.cycle
    assert cycle.stream is not None
    assert len(connection.state.tasks) == 1
    assert connection.transport.written.endswith(
        b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n6\r\ndata: \r\n4\r\n0 sw\r\n"
    )
    connection.exchange.go_on.set()
    await connection.quiet()
    assert connection.transport.written.endswith(b"0 sw\r\n0\r\n\r\n")
    connection.receive(post(b"2", b"connection: close"))
    outcome = await connection.end()
    assert outcome.responses == 2
    assert outcome.closed == 1


@pytest.mark.parametrize("direct", [True, False])
async def test_a_stream_that_fails_closes_the_connection(direct: bool, caplog: pytest.LogCaptureFixture) -> None:
    connection = Connection(direct=direct)
    connection.receive(post(b"sf"))
    await connection.quiet()
    assert connection.transport.written.endswith(b"4\r\n0 sf\r\n")
    assert connection.transport.lost
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "a fault of a stream"
    assert connection.exchange.closed == 1
    assert not connection.state.tasks


@pytest.mark.parametrize("direct", [True, False])
async def test_a_stream_that_nobody_reads_is_closed(direct: bool) -> None:
    connection = Connection(direct=direct, reads=False, limits=Limits(write_seconds=0.05))
    connection.receive(post(b"sl"))
    await connection.until_lost()
    assert connection.exchange.closed == 1
    assert not connection.state.tasks
    assert not connection.protocol.timers


@pytest.mark.parametrize("direct", [True, False])
async def test_a_response_that_begins_early_ends_with_what_the_exchange_returns(direct: bool) -> None:
    connection = Connection(direct=direct)
    connection.receive(post(b"yw"))
    await connection.quiet()
    head, _, body = bytes(connection.transport.written).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert head.endswith(b"\r\ncontent-type: application/json\r\ntransfer-encoding: chunked")
    assert body == b"6\r\nearly \r\n3e8\r\n%b\r\n" % (b"x" * 1000)
    connection.exchange.go_on.set()
    await connection.quiet()
    assert connection.transport.written.endswith(b"\r\n4\r\n0 yw\r\n0\r\n\r\n")
    connection.receive(post(b"2"))
    assert (await connection.end()).responses == 2


@pytest.mark.parametrize("direct", [True, False])
async def test_a_fault_after_a_response_has_begun_early_closes_the_connection(
    direct: bool, caplog: pytest.LogCaptureFixture
) -> None:
    connection = Connection(direct=direct)
    connection.receive(post(b"yf"))
    await connection.quiet()
    assert connection.transport.lost
    assert not connection.transport.written.endswith(b"0\r\n\r\n")
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["a fault"]


@pytest.mark.parametrize("direct", [True, False])
async def test_a_client_that_does_not_read_an_early_part_loses_its_connection(direct: bool) -> None:
    connection = Connection(direct=direct, reads=False, limits=Limits(write_seconds=0.05))
    connection.receive(post(b"yw"))
    await asyncio.sleep(0.1)
    connection.exchange.go_on.set()
    await connection.until_lost()
    assert not connection.state.tasks


@pytest.mark.parametrize("direct", [True, False])
async def test_a_client_that_disconnects_after_a_response_has_begun_early_gets_nothing_more(direct: bool) -> None:
    connection = Connection(direct=direct)
    connection.receive(post(b"yw"))
    await connection.quiet()
    connection.transport.lose()
    written = len(connection.transport.written)
    connection.exchange.go_on.set()
    await connection.quiet()
    assert len(connection.transport.written) == written
    assert not connection.state.tasks


@pytest.mark.parametrize("direct", [True, False])
async def test_invalid_bytes_behind_a_request_end_its_stream(direct: bool) -> None:
    connection = Connection(direct=direct)
    connection.receive(post(b"sw"))
    await connection.quiet()
    connection.receive(b"nonsense\r\n\r\n")
    connection.exchange.go_on.set()
    await connection.quiet()
    assert connection.transport.lost
    assert connection.exchange.closed == 1
    assert not connection.state.tasks


@pytest.mark.parametrize("direct", [True, False])
async def test_the_timers_of_a_connection_run_as_through_asgi(direct: bool) -> None:
    """After the time for idle connections it is closed, and after `message_seconds` an incomplete request is 408."""
    connection = Connection(direct=direct, timeout_keep_alive=0.05)
    connection.receive(post(b"{}"))
    await connection.quiet()
    connection.receive(post(b"w"))
    await asyncio.sleep(0.1)
    assert not connection.transport.closing
    connection.exchange.go_on.set()
    await connection.quiet()
    assert not connection.transport.closing
    await connection.until_lost()
    assert connection.transport.written.count(b"HTTP/1.1 200 OK") == 2

    late = Connection(direct=direct, limits=Limits(message_seconds=0.05))
    late.receive(post(b"{}"))
    await late.quiet()
    late.receive(post(b"{}")[:30])
    await late.until_lost()
    assert late.transport.written.count(b"HTTP/1.1 408 Request Timeout") == 1


@pytest.mark.parametrize("last", [b"{}", b"s"], ids=["direct", "stream"])
async def test_an_idle_connection_is_closed_after_the_time_since_its_last_response(last: bytes) -> None:
    """The last response may have come with or without ASGI."""
    connection = Connection(direct=True, timeout_keep_alive=0.2)
    start = asyncio.get_running_loop().time()
    for body in (b"s", b"{}", b"{}"):
        connection.receive(post(body))
        await connection.quiet()
        await asyncio.sleep(0.04)
    connection.receive(post(last))
    await connection.quiet()
    last_response = asyncio.get_running_loop().time()
    await connection.until_lost()
    assert asyncio.get_running_loop().time() >= last_response + 0.2 - 0.03
    assert last_response > start + 0.1
    assert not connection.protocol.timers


@pytest.mark.parametrize("direct", [True, False])
async def test_a_client_that_does_not_read_loses_its_connection(direct: bool) -> None:
    connection = Connection(direct=direct, reads=False, limits=Limits(write_seconds=0.05))
    connection.receive(post(b"b"))
    await connection.quiet()
    connection.receive(post(b"b"))  # its response waits for the client
    await connection.until_lost()
    assert connection.transport.written.count(b"HTTP/1.1 200 OK") == 1
    assert not connection.state.tasks


@pytest.mark.parametrize("direct", [True, False])
async def test_a_shutdown_waits_for_the_response_and_closes_the_connection(direct: bool) -> None:
    connection, idle = Connection(direct=direct), Connection(direct=direct)
    connection.receive(post(b"w"))
    idle.receive(post(b"{}"))
    await connection.quiet()
    connection.protocol.shutdown()
    idle.protocol.shutdown()
    assert len(connection.state.tasks) == 1
    connection.exchange.go_on.set()
    await connection.quiet()
    assert b"content-length: 3\r\nconnection: close\r\n\r\n0 w" in connection.transport.written
    assert connection.transport.lost
    assert idle.transport.lost
    assert not connection.state.tasks


@pytest.mark.parametrize("direct", [True, False])
async def test_a_shutdown_waits_for_the_first_request_of_a_connection(direct: bool) -> None:
    connection, unused = Connection(direct=direct), Connection(direct=direct)
    for each in (connection, unused):
        each.protocol.shutdown()
    assert not connection.transport.closing
    connection.receive(post(b"22"))
    await connection.quiet()
    assert b"connection: close\r\n\r\n0 22" in connection.transport.written
    assert connection.transport.lost
    await unused.until_lost()
    assert not unused.transport.written


@_SLOW
@pytest.mark.parametrize("direct", [True, False])
async def test_a_shutdown_waits_for_the_rest_of_a_header(direct: bool) -> None:
    connection, incomplete = Connection(direct=direct), Connection(direct=direct)
    for each in (connection, incomplete):
        each.receive(post(b"{}"))
        await each.quiet()
        each.receive(post(b"22")[:20])
    for each in (connection, incomplete):
        each.protocol.shutdown()
    connection.receive(post(b"22")[20:-1])
    await incomplete.until_lost()
    assert not connection.transport.closing
    connection.receive(b"2")
    await connection.quiet()
    assert connection.transport.written.count(b"connection: close\r\n\r\n1 22") == 1
    assert connection.transport.lost


@pytest.mark.parametrize("direct", [True, False])
async def test_an_access_log_has_a_line_for_each_response(direct: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "uvicorn.access")
    connection = Connection(direct=direct)
    for body in (b"{}", b"a", b"s"):
        connection.receive(post(body))
        await connection.quiet()
    await connection.end()
    assert [record.getMessage() for record in caplog.records] == [
        ' - "POST /mcp HTTP/1.1" 200',
        ' - "POST /mcp HTTP/1.1" 202',
        ' - "POST /mcp HTTP/1.1" 200',
    ]


@pytest.mark.parametrize("direct", [True, False])
async def test_a_fault_of_the_exchange_is_500_and_in_the_log(direct: bool, caplog: pytest.LogCaptureFixture) -> None:
    connection = Connection(direct=direct)
    connection.receive(post(b"e"))
    outcome = await connection.end()
    assert re.fullmatch(rb"HTTP/1.1 500 .*connection: close\r\n\r\nInternal Server Error", outcome.written, re.DOTALL)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "a fault"


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize(("body", "expected"), [(b"w", b"HTTP/1.1 503 "), (b"sw", b"HTTP/1.1 200 ")])
async def test_a_server_that_exits_ends_the_request(direct: bool, body: bytes, expected: bytes) -> None:
    """The server cancels the task. A response that has begun is complete as far as HTTP can tell."""
    connection = Connection(direct=direct)
    server = UvicornServer(connection.app, lambda: None)
    server.config.load()
    protocol_class: Any = server.config.http_protocol_class
    if not direct:
        protocol_class = http_protocol(LIMITS, "httptools")
    protocol = protocol_class(server.config, connection.state, {}, asyncio.get_running_loop())
    connection.transport.lose()
    connection.transport = protocol.transport = Transport(reads=True)
    connection.protocol = connection.transport.protocol = protocol
    protocol.connection_made(connection.transport)
    connection.receive(post(body))
    await connection.quiet()
    assert is_direct(connection) == direct
    server.should_exit = True
    [task] = connection.state.tasks
    task.cancel()
    await connection.quiet()
    assert connection.transport.written.startswith(expected)
    if body == b"w":
        assert b"The server ended before the request was answered." in connection.transport.written
    else:
        assert connection.transport.written.endswith(b"\r\n0\r\n\r\n")
    assert not connection.state.tasks
    connection.transport.abort()
