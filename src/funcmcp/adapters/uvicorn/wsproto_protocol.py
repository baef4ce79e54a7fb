"""uvicorn's WebSocket protocol on wsproto, with bounds for one connection.

- A message has at most `MAX_FRAGMENTS` fragments; each costs far more than the byte that it may consist of.
- A ping is answered only if the client has read what was sent before. The unread answers of others would pile up.
- A client that does not read loses the connection after a time (`WriteDeadline`).

Source: RFC 6455 sections 5.4 (fragments) and 5.5.3 (a pong may answer only the most recent of several pings).
"""

from __future__ import annotations

from typing import Any

import wsproto.events
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from funcmcp.adapters.uvicorn.connection import WriteDeadline

MAX_FRAGMENTS = 4096

_NOT_ALLOWED = 1008


class _TooManyFragmentsError(Exception):
    """A message has more than `MAX_FRAGMENTS` fragments."""


class WsprotoServerProtocol(WriteDeadline, WSProtocol):
    """A WebSocket connection of a client that may be hostile."""

    _fragments = 0

    def connection_made(self, transport: Any) -> None:
        """Take any unsent byte for a client that does not read: pings and the closing frame count, too."""
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)

    def handle_events(self) -> None:
        """Handle what has come, and close the connection at a message with too many fragments."""
        try:
            super().handle_events()
        except _TooManyFragmentsError:
            self.close_sent = True
            reason = f"A message may have {MAX_FRAGMENTS} fragments."
            self.queue.put_nowait({"type": "websocket.disconnect", "code": _NOT_ALLOWED, "reason": reason})
            self.transport.write(self.conn.send(wsproto.events.CloseConnection(_NOT_ALLOWED, reason)))
            self.transport.close()

    def handle_message(self, event: wsproto.events.TextMessage | wsproto.events.BytesMessage) -> None:
        """Take a fragment, or the part of it that has come."""
        if event.message_finished:
            self._fragments = 0
        elif event.frame_finished:
            self._fragments += 1
            if self._fragments >= MAX_FRAGMENTS:
                raise _TooManyFragmentsError
        super().handle_message(event)

    def handle_ping(self, event: wsproto.events.Ping) -> None:
        """Answer a ping, unless the client has not read what was sent before."""
        if self.writable.is_set():
            super().handle_ping(event)
