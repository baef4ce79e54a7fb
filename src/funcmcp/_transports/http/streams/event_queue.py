"""The messages that wait to be sent on one event stream."""

from __future__ import annotations

import asyncio

from funcmcp._server.wakeup import Wakeup
from funcmcp._transports.http.streams import sse

_MAX_MESSAGES = 1000
"""Messages that may be queued for a slow reader. Beyond that, the writers wait."""

_MAX_BYTES = 1024 * 1024
"""Bytes that may be queued for a slow reader. Beyond that, the writers wait."""


class EventQueue:
    """A queue with one reader, bounded in its messages and, up to the last message, in their bytes.

    Args:
        max_messages: Messages that may be queued.

    Attributes:
        closed: Whether the reader has left.
    """

    __slots__ = ("_bytes", "_ended", "_max_messages", "_messages", "_wakeup", "_writers", "closed")

    def __init__(self, max_messages: int = _MAX_MESSAGES) -> None:
        self._max_messages = max_messages
        self._messages: list[bytes] = []  # an empty deque has 0.7 KB
        self._bytes = 0
        self._writers: list[asyncio.Future[None]] = []
        """Writers that wait for room."""
        self._wakeup = Wakeup()
        self._ended = False
        self.closed = False

    @property
    def has_messages(self) -> bool:
        """Whether messages are queued."""
        return bool(self._messages)

    async def put(self, message: bytes) -> None:
        """Add a message, as soon as there is room for it. Once the queue is closed, drop it."""
        while not self.closed and (len(self._messages) >= self._max_messages or self._bytes >= _MAX_BYTES):
            room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._writers.append(room)
            await room
        if not self.closed:
            self._messages.append(message)
            self._bytes += len(message)
            self._wakeup.set()

    def end(self) -> None:
        """End the queue after the queued messages: no further one follows."""
        self._ended = True
        self._wakeup.set()

    def close(self) -> None:
        """Drop queued and further messages, because the reader has left. Writers that wait for room continue."""
        self.closed = True
        self._messages.clear()
        self._bytes = 0
        self._wake_writers()

    async def ready(self, seconds: float | None = None) -> bool:
        """Wait for a message or the end; return False if neither comes within this time."""
        while not self._messages and not self._ended:
            self._wakeup.clear()
            if not await self._wakeup.wait(seconds):
                return False
        return True

    def take(self) -> bytes | None:
        """Remove and return the first message, or return None if there is none."""
        if not self._messages:
            return None
        message = self._messages.pop(0)
        self._bytes -= len(message)
        if self._writers:
            self._wake_writers()
        return message

    async def next_part(self) -> bytes | None:
        """Return the next message as an event, or a comment after a long silence; None after the last message."""
        if not await self.ready(sse.KEEP_ALIVE_SECONDS):
            return sse.KEEP_ALIVE
        message = self.take()
        return None if message is None else sse.event(message)

    def _wake_writers(self) -> None:
        """Wake all writers that wait, so that each checks again for room."""
        writers, self._writers = self._writers, []
        for room in writers:
            if not room.done():
                room.set_result(None)
