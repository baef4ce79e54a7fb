"""uvicorn's WebSocket protocol on wsproto, with bounds for one connection.

- A message has at most `MAX_FRAGMENTS` fragments; each costs far more than the byte that it may consist of.
- A ping is answered only if the client has read everything that was sent before. Unread answers would accumulate.
- A client that does not read loses the connection after a time (`BoundedWriting`).
- Received data is parsed in slices of `SLICE_BYTES`, one in each round of the event loop, because a frame of six bytes
  costs as much time as a large one. Reading is paused while a slice waits, or a message that the application has not
  received.
- Nothing is read between the handshake and its answer, because wsproto would store all of it.

Source: RFC 6455 sections 5.4 (fragments) and 5.5.3 (a pong may answer only the most recent of several pings).
"""

from __future__ import annotations

from typing import Any

import wsproto.events
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from wsproto.connection import ConnectionState

from funcmcp._adapters.http1.parser import SLICE_BYTES
from funcmcp._adapters.http1.unsent_bytes import BoundedWriting, ask_from_first_byte

MAX_FRAGMENTS = 4096

_NOT_ALLOWED = 1008


class _TooManyFragmentsError(Exception):
    """A message has more than `MAX_FRAGMENTS` fragments."""


class WsprotoServerProtocol(BoundedWriting, WSProtocol):
    """A WebSocket connection of a client that may be hostile."""

    _fragments = 0
    _slice_scheduled = False

    def connection_made(self, transport: Any) -> None:
        """Treat any unsent byte as a sign of a client that does not read. Pings and the closing frame count, too."""
        ask_from_first_byte(transport)
        self._unparsed = bytearray()
        super().connection_made(transport)
        if transport.get_write_buffer_size():  # of an HTTP response, for which the HTTP protocol was paused
            self.pause_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the data that was not parsed."""
        self._unparsed.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the handshake at once, and later data in slices."""
        if not self.handshake_complete:
            super().data_received(data)
            self._pause()
        elif self._unparsed or len(data) > SLICE_BYTES:
            self._unparsed += data
            self._continue()
        else:
            super().data_received(data)

    def shutdown(self) -> None:
        """Close the connection. A client that has sent its closing frame gets no second one: wsproto would raise."""
        if self.handshake_complete and not self.close_sent and self.conn.state is not ConnectionState.OPEN:
            self.stop_keepalive()
            self.transport.close()
        else:
            super().shutdown()

    async def receive(self) -> Any:
        """Return the next event for the application."""
        message = await self.queue.get()
        if self.handshake_complete:
            self._continue()
        return message

    async def send(self, message: Any) -> None:
        """Send an event of the application. Continue to read after the answer to the handshake and after closing."""
        await super().send(message)
        if message["type"] in {"websocket.accept", "websocket.close"}:
            self._continue()

    def _continue(self) -> None:
        """Schedule the next slice, or continue to read, unless a message waits for the application."""
        if self._slice_scheduled or self.transport.is_closing():
            return
        if not self.queue.empty() and not self.close_sent:
            self._pause()
        elif self._unparsed:
            self._pause()
            self._slice_scheduled = True
            self.loop.call_soon(self._parse_slice)
        elif self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()

    def _parse_slice(self) -> None:
        self._slice_scheduled = False
        if self._unparsed and not self.transport.is_closing():
            data = bytes(self._unparsed[:SLICE_BYTES])
            del self._unparsed[:SLICE_BYTES]
            super().data_received(data)
            self._continue()

    def _pause(self) -> None:
        if not self.read_paused and not self.transport.is_closing():
            self.read_paused = True
            self.transport.pause_reading()

    def handle_events(self) -> None:
        """Handle the parsed events. Close the connection at a message with too many fragments."""
        try:
            super().handle_events()
        except _TooManyFragmentsError:
            self.close_sent = True
            reason = f"A message may have {MAX_FRAGMENTS} fragments."
            self.queue.put_nowait({"type": "websocket.disconnect", "code": _NOT_ALLOWED, "reason": reason})
            self.transport.write(self.conn.send(wsproto.events.CloseConnection(_NOT_ALLOWED, reason)))
            self.transport.close()

    def handle_message(self, event: wsproto.events.TextMessage | wsproto.events.BytesMessage) -> None:
        """Handle a fragment, or the part of it that has arrived."""
        if event.message_finished:
            self._fragments = 0
        elif event.frame_finished:
            self._fragments += 1
            if self._fragments >= MAX_FRAGMENTS:
                raise _TooManyFragmentsError
        super().handle_message(event)

    def handle_ping(self, event: wsproto.events.Ping) -> None:
        """Answer a ping, unless the client has not read the data that was sent before."""
        if self.writable.is_set():
            super().handle_ping(event)
