"""A connection in the handshake of TLS, before it becomes an HTTP connection.

How it works: a server of asyncio with TLS reports a connection when the handshake is over, which is too late to count
it. So the server accepts connections without TLS. Each begins as a `TLSHandshake`, which counts as open from then on,
and begins TLS with `loop.start_tls`.

| event | then |
|---|---|
| the connection is accepted | it is counted; if there is no place for it, it ends. `start_tls` begins in a task |
| the handshake is complete | an HTTP connection takes its place, and gets the data that came with the handshake |
| it fails, the client leaves, or `seconds` are over | it ends |
| another connection needs the place, or the server ends | it ends |

Two kinds of data come here. uvloop may read the client's first message before the task has begun: `start_tls` replaces
the protocol of the transport, and the new one gets that message. asyncio passes on what came with the end of the
handshake before `start_tls` returns: it waits for the HTTP connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from funcmcp._adapters.http1.open_connections import OpenConnections


class TLSHandshake(asyncio.Protocol):
    """A connection in the handshake; see the module's docstring.

    Args:
        make_connection: Creates the protocol of a connection whose handshake is complete.
        context: The certificate of the server.
        seconds: The time of the handshake.
        open_connections: Counts the connection.
        connections: The connections that uvicorn shuts down when it ends.
    """

    def __init__(
        self,
        make_connection: Callable[[], Any],
        context: ssl.SSLContext,
        seconds: float,
        open_connections: OpenConnections,
        connections: set[Any],
    ) -> None:
        self._make_connection = make_connection
        self._context = context
        self._seconds = seconds
        self._open_connections = open_connections
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._deadline = 0.0
        self._received = bytearray()
        self._task: asyncio.Task[None] | None = None
        self.transport: Any = None

    # What asyncio calls

    def connection_made(self, transport: Any) -> None:
        """Count the connection, and begin the handshake."""
        self.transport = transport
        self._connections.add(self)
        if not self._open_connections.add(self):
            self.give_way()
            return
        self._deadline = self._loop.time() + self._seconds
        self._task = self._loop.create_task(self._shake_hands())

    def data_received(self, data: bytes) -> None:
        """Store what is not for this protocol; see the module's docstring."""
        self._received += data

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Stop counting the connection."""
        self._connections.discard(self)
        self._open_connections.remove(self)

    # What uvicorn calls

    def shutdown(self) -> None:
        """End the connection: no request can have been sent on it."""
        self.transport.abort()

    # What `open_connections.OpenConnections` calls

    @property
    def waiting_rank(self) -> tuple[int, float] | None:
        """The sort key of a connection that waits for its client, as of one whose request is incomplete."""
        return None if self.transport.is_closing() else (1, self._deadline)

    def give_way(self) -> None:
        """End the connection: another one gets the place."""
        self.transport.abort()

    def refuse_unfinished(self, *, is_caller_limit: bool) -> None:
        """Refuse what has not been answered. No such data is counted before the handshake is complete."""

    async def _shake_hands(self) -> None:
        """Do the handshake, and begin an HTTP connection."""
        if self.transport.is_closing():  # `start_tls` would begin nevertheless
            self._task = None
            return
        if self._received:
            self._loop.call_soon(self._pass_on)  # before the new protocol begins the handshake
        transport: asyncio.Transport | None = None
        try:
            transport = await self._loop.start_tls(
                self.transport, self, self._context, server_side=True, ssl_handshake_timeout=self._seconds
            )
        except OSError as error:  # of TLS, of the connection, or of the time
            error.with_traceback(None)  # its frames refer to the future that refers to it
        finally:
            self._task = None
            if transport is None or transport.is_closing():
                self.connection_lost(None)
        if transport is not None and not transport.is_closing():
            self._hand_over(transport)

    def _pass_on(self) -> None:
        """Pass what was received before it to the protocol of TLS."""
        protocol = self.transport.get_protocol()
        while self._received and protocol is not self:
            buffer = protocol.get_buffer(len(self._received))
            size = min(len(buffer), len(self._received))
            buffer[:size] = self._received[:size]
            del self._received[:size]
            protocol.buffer_updated(size)

    def _hand_over(self, transport: asyncio.Transport) -> None:
        """Replace this connection with an HTTP connection."""
        connection = self._make_connection()
        connection.tcp = self.transport
        self._connections.discard(self)
        self._open_connections.replace(self, connection)
        transport.set_protocol(connection)
        connection.connection_made(transport)
        if self._received:
            connection.data_received(bytes(self._received))
