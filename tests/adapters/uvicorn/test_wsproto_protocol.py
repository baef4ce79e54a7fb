"""What one WebSocket connection may cost: fragments, and pings of a client that does not read."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from wsproto import ConnectionType, WSConnection
from wsproto.events import CloseConnection, Ping, Pong, Request, TextMessage

from funcmcp.adapters.uvicorn.protocols import websocket_protocol
from funcmcp.adapters.uvicorn.wsproto_protocol import MAX_FRAGMENTS
from funcmcp.server.limits import Limits
from tests.wire.conftest import running_server
from tests.wire.peer import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def test_a_message_has_so_many_fragments_and_no_more() -> None:
    """Row 27: fragments of one byte each cost far more than their bytes."""
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


def test_unread_pongs_do_not_pile_up() -> None:
    """Row 27: a client that sends pings and reads nothing."""
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
