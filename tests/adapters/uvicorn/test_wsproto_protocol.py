"""What one WebSocket connection may cost: fragments, and pings of a client that does not read."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from wsproto import ConnectionType, WSConnection
from wsproto.events import CloseConnection, Ping, Pong, Request, TextMessage

from funcmcp._adapters.http1.parser import SLICE_BYTES
from funcmcp._adapters.uvicorn.protocols import websocket_protocol
from funcmcp._adapters.uvicorn.wsproto_protocol import MAX_FRAGMENTS
from funcmcp._server.limits import Limits
from tests import rules
from tests.patience import PATIENCE
from tests.wire.conftest import running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.lowest("wsproto reads and writes the frames.")
_SLOW = pytest.mark.slow("Much is sent in small parts.")

FLOOD_BYTES = 64 * 1024 * 1024


async def echo(_scope: Any, receive: Any, send: Any) -> None:
    """Send each message back."""
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


class Line:
    """A client's WebSocket, frame by frame, with a small receive buffer."""

    def __init__(self, port: int) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        self.connection = WSConnection(ConnectionType.CLIENT)
        self.events: list[Any] = []
        self.send(Request(host="127.0.0.1", target="/"))
        self.next()

    def send(self, *events: Any) -> None:
        """Send frames in one go."""
        self.socket.sendall(b"".join(map(self.connection.send, events)))

    def next(self) -> Any:
        """Return the next thing that the server sends."""
        while not self.events:
            self.connection.receive_data(self.socket.recv(65536) or None)
            self.events += self.connection.events()
        return self.events.pop(0)

    def hear(self) -> str:
        """Return the next message."""
        parts = []
        while True:
            event = self.next()
            assert isinstance(event, TextMessage), event
            parts.append(event.data)
            if event.message_finished:
                return "".join(parts)


@contextmanager
def connected() -> Iterator[tuple[uvicorn.Server, Line]]:
    """Serve, and open a WebSocket."""
    config = uvicorn.Config(
        echo, loop="asyncio", ws=websocket_protocol(Limits()), lifespan="off", log_config=None, ws_ping_interval=None
    )
    server = uvicorn.Server(config)
    with running_server(server) as port:
        line = Line(port)
        try:
            yield server, line
        finally:
            line.socket.close()


@_SLOW
@rules.verifies(rules.THREAT_27)
def test_a_message_has_so_many_fragments_and_no_more() -> None:
    """Fragments of one byte need much more memory than their data."""
    with connected() as (_, line):
        for _ in range(2):
            fragments = [TextMessage(data="x", message_finished=False)] * (MAX_FRAGMENTS - 1)
            line.send(*fragments, TextMessage(data="y"))
            assert line.hear() == "x" * (MAX_FRAGMENTS - 1) + "y"
        line.send(*[TextMessage(data="x", message_finished=False)] * (2 * MAX_FRAGMENTS))
        event = line.next()
        assert isinstance(event, CloseConnection)
        assert event.code == 1008


def test_a_large_message_in_few_fragments_is_taken() -> None:
    with connected() as (_, line):
        line.send(TextMessage(data="x" * 30_000, message_finished=False), TextMessage(data="y" * 30_000))
        assert line.hear() == "x" * 30_000 + "y" * 30_000


def test_pings_of_a_client_that_reads_are_answered() -> None:
    with connected() as (_, line):
        for number in range(20):
            line.send(Ping(payload=b"%d" % number))
            event = line.next()
            assert isinstance(event, Pong)
            assert bytes(event.payload) == b"%d" % number


@pytest.mark.slow("Much data is sent.")
@rules.verifies(rules.THREAT_27)
def test_unread_pongs_do_not_pile_up() -> None:
    """The client sends pings and does not read."""
    with connected() as (server, line):
        (protocol,) = server.server_state.connections
        pings = [Ping(payload=b"x" * 125)] * 1000
        for _ in range(40):
            line.send(*pings)
        deadline = time.monotonic() + 1.0
        waiting = 0
        while time.monotonic() < deadline:
            waiting = max(waiting, protocol.transport.get_write_buffer_size())
            time.sleep(0.01)
        assert waiting < 100_000


@_SLOW
def test_a_flood_of_small_frames_is_parsed_in_many_rounds_of_the_event_loop() -> None:
    """Between two rounds, other connections get their turn."""
    with connected() as (server, line):
        protocol: Any = next(iter(server.server_state.connections))
        received, lengths = protocol.conn.receive_data, []

        def receive_data(data: bytes) -> None:
            lengths.append((len(data), rounds))
            received(data)

        rounds = 0

        def count_round() -> None:
            nonlocal rounds
            rounds += 1
            protocol.loop.call_soon(count_round)

        protocol.conn.receive_data = receive_data
        protocol.loop.call_soon_threadsafe(count_round)
        line.send(*[Pong(payload=b"")] * 20_000, TextMessage(data="end"))
        assert line.hear() == "end"
    assert max(length for length, _ in lengths) <= SLICE_BYTES
    assert len({in_round for _, in_round in lengths}) == len(lengths)


def test_messages_in_one_flood_arrive_in_their_order() -> None:
    with connected() as (_, line):
        line.send(*[TextMessage(data=str(number)) for number in range(5000)])
        assert [line.hear() for _ in range(5000)] == [str(number) for number in range(5000)]


def test_the_closing_frame_behind_a_flood_ends_the_connection() -> None:
    with connected() as (_, line):
        line.send(*[Pong(payload=b"")] * 5000, CloseConnection(1000))
        event = line.next()
        assert isinstance(event, CloseConnection)
        assert event.code == 1000


def test_a_server_can_stop_while_a_client_closes_its_connection() -> None:
    failures: list[Exception] = []

    async def stopping_echo(scope: Any, receive: Any, send: Any) -> None:
        await echo(scope, receive, send)
        for connection in list(server.server_state.connections):
            try:
                connection.shutdown()
            except Exception as error:  # noqa: BLE001 - any exception ends uvicorn's shutdown in the middle
                failures.append(error)

    options: Any = {"loop": "asyncio", "ws": websocket_protocol(Limits()), "lifespan": "off", "log_config": None}
    server = uvicorn.Server(uvicorn.Config(stopping_echo, **options))
    with running_server(server) as port:
        line = Line(port)
        line.send(CloseConnection(1000))
        assert isinstance(line.next(), CloseConnection)
        line.socket.close()
    assert not failures


@_SLOW
def test_nothing_is_read_before_the_handshake_is_answered() -> None:
    """An application may wait long for an authenticator."""
    asked, go_on = threading.Event(), threading.Event()

    async def slow_echo(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        assert await asyncio.to_thread(go_on.wait, PATIENCE)
        await echo(scope, receive, send)

    config = uvicorn.Config(slow_echo, loop="asyncio", ws=websocket_protocol(Limits()), lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with running_server(server) as port, socket.create_connection(("127.0.0.1", port), PATIENCE) as line:
        client = WSConnection(ConnectionType.CLIENT)
        line.sendall(client.send(Request(host="127.0.0.1", target="/")))
        assert asked.wait(PATIENCE)
        line.settimeout(0.5)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < FLOOD_BYTES:
                sent += line.send(bytes(65_536))
        go_on.set()
        assert sent < FLOOD_BYTES  # the sockets' buffers hold a few MiB
