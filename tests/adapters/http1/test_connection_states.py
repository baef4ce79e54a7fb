"""The states of a connection: its timer after each event, and what is left of it when it has ended."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import ssl
import weakref
from asyncio import constants
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pytest
import pytest_asyncio
import uvicorn
from uvicorn.server import ServerState

from funcmcp._adapters.asgi.application import ASGIApplication, HTTPRuntime
from funcmcp._adapters.http1.cycle import Cycle
from funcmcp._adapters.http1.direct_path import direct_path
from funcmcp._adapters.http1.h11_parser import H11Parser
from funcmcp._adapters.http1.httptools_parser import HttptoolsParser
from funcmcp._adapters.http1.open_connections import OpenConnections
from funcmcp._adapters.http1.states import State
from funcmcp._adapters.http1.tls_handshake import TLSHandshake
from funcmcp._adapters.uvicorn.protocols import http_protocol, websocket_protocol
from funcmcp._server.limits import Limits
from funcmcp._server.load import Load
from funcmcp._transports.http.messages import HttpResponse
from fuzz.http_bytes import Transport, check_timer
from tests.certificates import client_context, server_context, write_certificate
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpRequest

    Parser: TypeAlias = Literal["httptools", "h11"]

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

KEEP_ALIVE, MESSAGE_SECONDS = 95, 30
SHORT = 0.05
TLS_END_SECONDS = constants.SSL_SHUTDOWN_TIMEOUT
"""How long asyncio waits for the client's end of TLS."""

COMPLETE = {
    "get": b"GET /a HTTP/1.1\r\nhost:x\r\n\r\n",
    "direct": b"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n1",
    "early": b"POST /early HTTP/1.1\r\nhost:x\r\ncontent-length:9\r\n\r\n123456789",
    "chunked": b"POST /a HTTP/1.1\r\nhost:x\r\ntransfer-encoding:chunked\r\n\r\n1\r\nx\r\n0\r\nt:1\r\n\r\n",
    "expecting": b"POST /a HTTP/1.1\r\nhost:x\r\nexpect:100-continue\r\ncontent-length:2\r\n\r\n12",
    "old": b"GET /a HTTP/1.0\r\n\r\n",
    "closing": b"GET /a HTTP/1.1\r\nhost:x\r\nconnection:close\r\n\r\n",
    "nonsense": b"nonsense\r\n\r\n",
    "lines": b"\r\n\r\n",
}
PIPELINES: list[tuple[str, ...]] = [*itertools.permutations(["get", "direct", "early", "chunked", "expecting"], 2)]
PIPELINES += [
    (first, last) for first in ("get", "direct", "early", "chunked") for last in ("old", "closing", "nonsense")
]
PIPELINES += [("lines", name) for name in ("get", "direct", "early", "chunked", "expecting")]
PIPELINES += [("get", "lines", name) for name in ("get", "direct", "early")]
PIPELINES += [(name, name, name) for name in ("get", "direct", "early", "chunked", "expecting")]
PIPELINES += [("get", "get", "get", "get", "early"), ("early", "early", "get"), ("direct", "get", "early")]
PIPELINES += [("old", "get"), ("closing", "get")]

INCOMPLETE = [
    b"G",
    b"GET /a HT",
    b"GET /a HTTP/1.1\r\nhost",
    b"POST /a HTTP/1.1\r\nhost:x\r\ncontent-length:500\r\n\r\n",
    b"POST /early HTTP/1.1\r\nhost:x\r\ncontent-length:500\r\n\r\n12",
    b"POST /a HTTP/1.1\r\nhost:x\r\ntransfer-encoding:chunked\r\n\r\n5\r\nx",
    b"POST /a HTTP/1.1\r\nhost:x\r\ntransfer-encoding:chunked\r\n\r\n0\r\nt:",
]


@pytest.fixture(params=["httptools", "h11"])
def parser(request: pytest.FixtureRequest) -> Parser:
    chosen: Parser = request.param
    return chosen


class Answers(HTTPRuntime):
    """Answers every request; one to /early before its body has come."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(self._answer, limits)

    @property
    def endpoint(self) -> str:
        return "/mcp"

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if request.path != "/early":
            await request.read(1000)
            await asyncio.sleep(0)
        return HttpResponse(200, (), b"ok")


class Clock:
    """A loop whose time passes when a test says so."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.now = self.loop.time()
        self.loop.time = lambda: self.now  # type: ignore[method-assign]

    async def pass_time(self, seconds: float, connection: Connection) -> None:
        """Let time pass; check the rule of timers after each turn of the loop."""
        self.now += seconds
        await connection.turns()


class Connection:
    """The server's end of a connection in memory."""

    def __init__(self, config: uvicorn.Config, *, half_closes: bool, address: str = "") -> None:
        self.state = ServerState()
        self.transport = Transport(reads=True, half_closes=half_closes, address=address)
        protocol_class: Any = config.http_protocol_class
        self.protocol: Any = protocol_class(config, self.state, {}, asyncio.get_running_loop())
        self.transport.protocol = self.protocol
        self.protocol.connection_made(self.transport)
        self.check()

    def check(self) -> None:
        """Check the rule of timers."""
        check_timer(self.protocol)

    def receive(self, data: bytes) -> None:
        if not self.transport.closing:
            self.protocol.data_received(data)
            self.check()

    async def turns(self) -> None:
        """Let the loop run until nothing happens any more."""
        for _ in range(3):
            await asyncio.sleep(0)
            self.check()
        while any(not task.done() and not _waits(task) for task in self.state.tasks if task is not None):
            await asyncio.sleep(0)
            self.check()


class BelowTLS(Transport):
    """A transport in memory that `loop.start_tls` accepts."""

    _start_tls_compatible = True

    def _force_close(self, _: Exception | None) -> None:
        self.abort()


class TLSConnection(Connection):
    """The server's end of a connection with TLS in memory, and a client that never answers the end of TLS."""

    def __init__(self, config: uvicorn.Config, server: ssl.SSLContext, client: ssl.SSLContext) -> None:
        self.state = ServerState()
        self.transport = BelowTLS(reads=True)
        self.protocol: Any = None
        self._config = config
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._client = client.wrap_bio(self._incoming, self._outgoing)
        protocol_class: Any = config.http_protocol_class
        handshake = TLSHandshake(
            self._make, server, MESSAGE_SECONDS, protocol_class.open_connections, self.state.connections
        )
        self.transport.protocol = handshake
        handshake.connection_made(self.transport)

    def _make(self) -> Any:
        protocol_class: Any = self._config.http_protocol_class
        self.protocol = protocol_class(self._config, self.state, {}, asyncio.get_running_loop())
        return self.protocol

    async def shake_hands(self) -> None:
        while self.protocol is None:
            with contextlib.suppress(ssl.SSLWantReadError):
                self._client.do_handshake()
            self._send()
            await asyncio.sleep(0)
            self._incoming.write(self.transport.written)
            self.transport.written.clear()

    def receive(self, data: bytes) -> None:
        self._client.write(data)
        self._send()
        self.check()

    def check(self) -> None:
        if not self.transport.lost:
            super().check()

    def _send(self) -> None:
        data = self._outgoing.read()
        protocol: Any = self.transport.get_protocol()
        if protocol.__class__ is TLSHandshake:
            protocol.data_received(data)  # as uvloop does
        elif data and not self.transport.closing:
            protocol.get_buffer(len(data))[: len(data)] = data
            protocol.buffer_updated(len(data))


def _waits(task: asyncio.Task[Any]) -> bool:
    future = getattr(task, "_fut_waiter", None)
    return future is not None and not future.done()


def configured(parser: Parser, limits: Limits, **options: Any) -> uvicorn.Config:
    app = ASGIApplication(Answers(limits))
    protocol = http_protocol(limits, parser, direct=direct_path(app))
    settings = {"ws": "none", "lifespan": "off", "log_config": None, "proxy_headers": False, **options}
    config = uvicorn.Config(app, http=protocol, timeout_keep_alive=KEEP_ALIVE, **settings)
    config.load()
    return config


def prefixes() -> list[bytes]:
    """Return each prefix of a pipeline once."""
    pipelines = [b"".join(COMPLETE[name] for name in names) for names in PIPELINES]
    return sorted({pipeline[:size] for pipeline in pipelines for size in range(len(pipeline) + 1)})


def test_there_are_fifty_pipelines() -> None:
    assert len(set(PIPELINES)) == 50


@pytest.mark.slow("Much data is sent.")
def test_each_prefix_of_a_pipeline_has_a_timer_and_an_end(parser: Parser) -> None:
    """The rule is checked after each event; then time passes, and no connection outlasts it."""
    config = configured(parser, Limits(message_seconds=MESSAGE_SECONDS))
    clock = Clock()

    async def play(data: bytes) -> None:
        connection = Connection(config, half_closes=True)
        connection.receive(data)
        await connection.turns()
        for seconds in (MESSAGE_SECONDS - 1, 2, KEEP_ALIVE - 3, 5, 5):
            await clock.pass_time(seconds, connection)
        assert connection.transport.lost, data
        assert not connection.protocol.timers

    with contextlib.closing(clock.loop):
        for prefix in prefixes():
            clock.loop.run_until_complete(play(prefix))


@pytest.mark.slow("Each of two thousand connections begins with a TLS handshake.")
def test_each_prefix_of_a_pipeline_over_tls_has_a_timer_and_an_end(parser: Parser, tmp_path: Path) -> None:
    """The same with the TLS of asyncio between the connection and the transport."""
    write_certificate(tmp_path)
    contexts = server_context(tmp_path), client_context()
    contexts[0].num_tickets = 0  # nobody comes back, and a ticket takes as long as the rest
    config = configured(parser, Limits(message_seconds=MESSAGE_SECONDS))
    clock = Clock()

    async def play(data: bytes) -> None:
        connection = TLSConnection(config, *contexts)
        await connection.shake_hands()
        connection.check()
        connection.receive(data)
        await connection.turns()
        for seconds in (MESSAGE_SECONDS - 1, 2, KEEP_ALIVE - 3, 5, TLS_END_SECONDS, 1):
            await clock.pass_time(seconds, connection)
        assert connection.transport.lost, data
        assert not connection.protocol.timers
        assert not connection.state.connections

    with contextlib.closing(clock.loop):
        for prefix in prefixes():
            clock.loop.run_until_complete(play(prefix))


def test_the_idle_time_begins_when_the_client_has_read_the_response(parser: Parser) -> None:
    config = configured(parser, Limits(write_seconds=KEEP_ALIVE * 10))
    clock = Clock()

    async def play() -> None:
        connection = Connection(config, half_closes=True)
        transport, protocol = connection.transport, connection.protocol
        connection.receive(COMPLETE["direct"])
        await connection.turns()
        assert protocol.state is State.IDLE
        protocol.pause_writing()  # the client does not read
        await clock.pass_time(KEEP_ALIVE * 3, connection)
        connection.receive(COMPLETE["direct"])
        await connection.turns()
        await clock.pass_time(KEEP_ALIVE * 3, connection)
        assert not transport.closing
        protocol.resume_writing()
        await connection.turns()
        assert transport.written.count(b"HTTP/1.1 200 OK") == 2
        await clock.pass_time(KEEP_ALIVE - 1, connection)
        assert not transport.closing
        await clock.pass_time(2, connection)
        assert transport.lost

    with contextlib.closing(clock.loop):
        clock.loop.run_until_complete(play())


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"".join(b"x-%d: v\r\n" % number for number in range(600)), "500 fields"),
        (b"x-long: " + b"secret" * 2000, "8000 bytes"),
    ],
)
async def test_a_header_that_is_too_large_is_refused_and_logged_with_its_limit(
    parser: Parser, header: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = configured(parser, Limits(header_bytes=8000))
    protocol_class: Any = config.http_protocol_class
    protocol_class.open_connections = OpenConnections()
    for _ in range(3):
        connection = Connection(config, half_closes=True, address="192.0.2.1")
        connection.receive(b"GET / HTTP/1.1\r\nhost: x\r\n" + header)
        assert connection.transport.written.startswith(b"HTTP/1.1 431 ")
        assert b"The header may have %b." % reason.encode() in connection.transport.written
        connection.transport.abort()
    [line] = caplog.messages
    assert line.startswith(f"A request of 192.0.2.1 is refused with 431: its header has more than {reason} (")
    assert "secret" not in line


async def test_an_incomplete_request_behind_a_complete_one_has_its_own_time(parser: Parser) -> None:
    for complete, incomplete in itertools.product(("get", "direct", "early", "chunked"), INCOMPLETE):
        connection = Connection(configured(parser, Limits(message_seconds=SHORT)), half_closes=True)
        connection.receive(COMPLETE[complete] + incomplete)
        await connection.turns()
        assert connection.protocol.state is State.RECEIVING
        connection.transport.abort()


@pytest.mark.parametrize(
    ("address", "limits", "refusal"),
    [
        ("192.0.2.1", Limits(memory_bytes_per_principal=15_000), b"429 Too Many Requests"),
        ("", Limits(memory_bytes=60_000), b"503 Service Unavailable"),
    ],
    ids=["of an address", "of all"],
)
async def test_headers_that_do_not_end_take_up_so_much_memory(
    parser: Parser, address: str, limits: Limits, refusal: bytes
) -> None:
    """The connection that has received nothing for longest is refused; one that answers a request ends after it."""
    config = configured(parser, Limits(message_seconds=MESSAGE_SECONDS))
    load = Load(limits)
    protocol_class: Any = config.http_protocol_class
    protocol_class.open_connections = OpenConnections(headers=load.headers)
    header = b"GET / HTTP/1.1\r\nhost: x\r\nx-long: " + b"a" * 6000
    first, second = (Connection(config, half_closes=True, address=address) for _ in range(2))
    first.receive(COMPLETE["get"] + header)
    second.receive(header)
    second.receive(b"a" * 2000)
    third = Connection(config, half_closes=True, address=address)
    third.receive(header)
    await first.turns()
    assert first.transport.written.count(b"HTTP/1.1 200 OK") == 1
    assert first.protocol.state in (State.LINGERING, State.ENDED)
    assert second.protocol.state is State.RECEIVING
    fourth = Connection(config, half_closes=True, address=address)
    fourth.receive(header)
    assert second.transport.written.startswith(b"HTTP/1.1 %b\r\n" % refusal)
    third.receive(b"\r\n\r\n")
    await third.turns()
    assert third.transport.written.startswith(b"HTTP/1.1 200 OK\r\n")
    fourth.receive(b"a" * 10_000)
    assert fourth.transport.written.startswith(b"HTTP/1.1 %b\r\n" % refusal)
    assert load.memory.used == 0
    for connection in (first, second, third, fourth):
        connection.transport.abort()


async def test_a_connection_without_a_place_is_closed_and_others_give_way_if_they_wait(parser: Parser) -> None:
    config = configured(parser, Limits())
    protocol_class: Any = config.http_protocol_class
    protocol_class.open_connections = OpenConnections(4)
    waiting = [Connection(config, half_closes=True) for _ in range(5)]
    await waiting[-1].turns()
    assert [connection.transport.lost for connection in waiting] == [True, False, False, False, False]
    for connection in waiting[1:]:
        connection.receive(COMPLETE["get"])
    unwanted = Connection(config, half_closes=True)
    assert unwanted.transport.lost
    for connection in waiting:
        connection.transport.abort()


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Free memory by counting references only."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Listener:
    """A server in this event loop.

    Attributes:
        connections: The connections, as long as they are in memory.
        tls: The context of clients; None without TLS.
    """

    def __init__(self, config: uvicorn.Config, folder: Path | None) -> None:
        self.connections: list[weakref.ref[Any]] = []
        self.tls = None if folder is None else client_context()
        self._context = None if folder is None else server_context(folder)
        self._state = ServerState()
        self._config = config
        self._port = 0

    def _make(self) -> Any:
        protocol_class: Any = self._config.http_protocol_class
        connection = protocol_class(self._config, self._state, {})
        self.connections.append(weakref.ref(connection))
        return connection

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Listener]:
        loop = asyncio.get_running_loop()
        make: Any = self._make
        if self._context is not None:
            protocol_class: Any = self._config.http_protocol_class
            open_connections, connections = protocol_class.open_connections, self._state.connections
            make = partial(TLSHandshake, make, self._context, PATIENCE, open_connections, connections)
        server = await loop.create_server(make, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port, ssl=self.tls)

    async def are_free(self) -> bool:
        """Wait until the connections are not in memory; return whether nothing of them is."""
        assert self.connections
        async with asyncio.timeout(PATIENCE):
            while any(connection() is not None for connection in self.connections):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)
        return not any(isinstance(thing, (HttptoolsParser, H11Parser, Cycle)) for thing in gc.get_objects())


@pytest_asyncio.fixture(params=[False, True], ids=["plain", "TLS"])
async def listener(parser: Parser, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Listener]:
    if request.param:
        write_certificate(tmp_path)
    limits = Limits(message_seconds=SHORT)
    config = configured(parser, limits, ws=websocket_protocol(limits))
    async with Listener(config, tmp_path if request.param else None).listening() as listener:
        yield listener


async def test_an_incomplete_request_behind_a_complete_one_is_closed_in_time(listener: Listener) -> None:
    async def held(data: bytes) -> None:
        reader, writer = await listener.connect()
        writer.write(data)
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionResetError):
                assert b"HTTP/1.1 200 OK" in await reader.read()
        writer.close()

    complete = [COMPLETE[name] for name in ("get", "direct", "early", "chunked")]
    await asyncio.gather(*(held(first + second) for first in complete for second in INCOMPLETE))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="timeout without a byte"),
        pytest.param(COMPLETE["get"][:20], id="timeout in a header"),
        pytest.param(COMPLETE["early"][:-1], id="timeout in a body"),
        pytest.param(COMPLETE["closing"], id="normal close"),
        pytest.param(COMPLETE["direct"] + COMPLETE["closing"], id="normal close, without ASGI"),
        pytest.param(COMPLETE["nonsense"], id="refused"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 600, id="header too large"),
        pytest.param(
            b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
            b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            id="upgrade",
        ),
    ],
)
async def test_a_connection_is_freed_without_a_garbage_collection(listener: Listener, data: bytes) -> None:
    with without_collection():
        reader, writer = await listener.connect()
        writer.write(data)
        with contextlib.suppress(ConnectionResetError):
            await reader.read()
        writer.close()
        assert await listener.are_free()


@pytest.mark.parametrize(
    "data", [b"", COMPLETE["get"], COMPLETE["direct"], COMPLETE["early"][:-2], b"GET / HTTP/1.1\r\na:"]
)
async def test_a_connection_that_its_client_aborts_is_freed_as_well(listener: Listener, data: bytes) -> None:
    with without_collection():
        _, writer = await listener.connect()
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0.01)
        writer.transport.abort()
        assert await listener.are_free()
