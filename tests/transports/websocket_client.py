"""A WebSocket client on a real socket, frame by frame."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wsproto.events import Event


class Client:
    """A client that has asked to open a WebSocket.

    Attributes:
        accepted: what the server said to that, or None.
        rejected: the status of its refusal, or None.
    """

    def __init__(
        self,
        port: int,
        *,
        path: str = "/ws",
        subprotocols: Sequence[str] = ("mcp",),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.accepted: AcceptConnection | None = None
        self.rejected: int | None = None
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._connection = WSConnection(ConnectionType.CLIENT)
        self._events: list[Event] = []
        said = dict(headers or {})
        host = said.pop("host", f"127.0.0.1:{port}")
        extra = [(name.encode(), value.encode()) for name, value in said.items()]
        self._send(Request(host=host, target=path, subprotocols=list(subprotocols), extra_headers=extra))
        answer = self._next()
        if isinstance(answer, AcceptConnection):
            self.accepted = answer
        elif isinstance(answer, RejectConnection):
            self.rejected = answer.status_code

    def say(self, message: object) -> None:
        """Send a message: text as it is, anything else as JSON."""
        self._send(TextMessage(data=message if isinstance(message, str) else json.dumps(message)))

    def say_bytes(self, data: bytes) -> None:
        """Send a binary frame."""
        self._send(BytesMessage(data=data))

    def hear(self) -> Any:
        """Return the next message."""
        parts = []
        while True:
            event = self._next()
            assert isinstance(event, TextMessage), event
            parts.append(event.data)
            if event.message_finished:
                return json.loads("".join(parts))

    def closed_with(self) -> int:
        """Wait until the server closes it; return the status code."""
        while True:
            event = self._next()
            if isinstance(event, CloseConnection):
                return int(event.code)

    def close(self) -> None:
        """Leave."""
        self._socket.close()

    def _send(self, event: Event) -> None:
        self._socket.sendall(self._connection.send(event))

    def _next(self) -> Event:
        while True:
            while self._events:
                event = self._events.pop(0)
                if isinstance(event, Ping):
                    self._send(event.response())
                elif not isinstance(event, RejectData):
                    return event
            data = self._socket.recv(65536)
            self._connection.receive_data(data or None)
            self._events += self._connection.events()
