"""The GET stream of the handshake era: what a server sends outside of requests.

How it works: the client requests the stream in the background after each handshake, if it has a use for it. When the
stream ends, it requests it again, after the time that the server sent as `retry`, or else after a time that doubles
with each failure. If the events had ids, the new stream continues the old one. Otherwise messages may be missing, and
`on_gap` is called. It is also called when the server was away in between: another process may serve now, and what has
changed with it was never sent. A server that has no such stream, or no longer has the session, answers with another
status, usually 405 or 404, and is not asked again: `on_end` is called.

Source: 2025-11-25 "basic/transports, Listening for Messages from the Server" and "Resumability and Redelivery".
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import aclosing
from typing import TYPE_CHECKING

from funcmcp._client.errors import ConnectionFailedError
from funcmcp._client.event_stream import EventReader
from funcmcp._client.http_messages import discard, is_event_stream, read_messages
from funcmcp._client.shared_stream import SharedStream
from funcmcp._protocol.errors import ClientError, InvalidResponseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from funcmcp._client.transport import Message, Receive
    from funcmcp._transports.http.messages import HttpResponse

    Get = Callable[[Mapping[str, str]], Awaitable[HttpResponse]]

_logger = logging.getLogger("funcmcp")

LAST_EVENT_ID = "last-event-id"
TEMPORARY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses after which a stream is requested again."""

_OK = 200
_FIRST_DELAY, _MAX_DELAY = 1.0, 60.0
_MIN_RETRY = 0.05
"""Seconds that the client waits at least, although a server sends ``retry: 0``."""


def delay_seconds(retry_seconds: float | None, failures: int, ends: int) -> float:
    """Return the seconds until a stream is requested again: more after each failure.

    Args:
        retry_seconds: What the server has sent as `retry`. None for nothing.
        failures: How many requests have failed since the last message.
        ends: How many streams the server has ended since the last message. They count if it has sent no `retry`.
    """
    if retry_seconds is None:
        first, doublings = _FIRST_DELAY, failures + ends
    else:
        first, doublings = max(retry_seconds, _MIN_RETRY), failures
    if doublings == 0:
        return first
    seconds: float = min(first * 2.0 ** min(doublings, 10), max(_MAX_DELAY, first))
    return seconds * random.uniform(1.0, 1.25)  # noqa: S311 - clients of a server that restarts come one by one


class StandingStream:
    """Reads the stream until it is cancelled, or until the server has none.

    Args:
        get: Requests the stream, with header fields.
        receive: Handles the notifications and requests of the server.
        on_gap: Is called when messages may be missing; None for nothing.
        on_end: Is called when the server refuses the stream, with whether it was open before; None for nothing.

    Attributes:
        on_gap: Is called when messages may be missing; None for nothing.
        on_end: Is called when the server refuses the stream, with whether it was open before; None for nothing.
        answered: Is set when the server has answered: the stream is open, or there is none.
        was_open: Whether the server has opened it once.
    """

    def __init__(
        self,
        get: Get,
        receive: Receive,
        on_gap: Callable[[], None] | None,
        on_end: Callable[[bool], None] | None = None,
    ) -> None:
        self._get = get
        self._receive = receive
        self.on_gap = on_gap
        self.on_end = on_end
        self.answered = asyncio.Event()
        self._stream = SharedStream(self._received)
        self._reader = EventReader()
        self._failures = 0
        self._ends = 0
        self.was_open = False
        self._was_away = False  # since the stream was open

    async def run(self) -> None:
        """Read the stream, and request it again when it ends."""
        try:
            while await self._read():
                await self._pause()
        except ClientError as error:
            _logger.debug("The client has no stream for what the server sends outside of requests: %s", error)
        finally:
            self._stream.cancel_answers()
        if self.on_end is not None:
            self.on_end(self.was_open)

    async def _pause(self) -> None:
        await asyncio.sleep(delay_seconds(self._reader.retry_seconds, self._failures, self._ends))

    async def _read(self) -> bool:
        """Read the stream to its end. Return whether to request it again."""
        last_id = self._reader.last_id
        try:
            try:
                http_response = await self._get({} if last_id is None else {LAST_EVENT_ID: last_id})
            except ConnectionFailedError:
                self._was_away = True
                raise
            finally:
                self.answered.set()
            if http_response.status != _OK or not is_event_stream(http_response):
                return await self._is_temporary(http_response)
            is_continued = last_id is not None and not self._was_away
            if self.was_open and not is_continued and self.on_gap is not None:
                self.on_gap()
            self.was_open, self._was_away = True, False
            await self._read_messages(http_response)
            self._ends += 1
        except (ConnectionFailedError, InvalidResponseError) as error:
            self._failures += 1
            _logger.debug("The stream of the server broke: %s", error)
        return True

    async def _read_messages(self, http_response: HttpResponse) -> None:
        self._reader.begin()
        opened = asyncio.get_running_loop().time()
        async with aclosing(read_messages(http_response, self._reader)) as messages:
            async for message in messages:
                self._failures = self._ends = 0
                await self._stream.take(message)
        if asyncio.get_running_loop().time() - opened > _MAX_DELAY:
            self._failures = self._ends = 0

    async def _is_temporary(self, http_response: HttpResponse) -> bool:
        """Return whether a refusal may change: by its status, or because the next request names no event."""
        await discard(http_response)
        named_event = self._reader.last_id is not None
        if http_response.status in TEMPORARY:
            self._failures += 1
            self._was_away = True
            return True
        self._reader.last_id = None
        return named_event

    async def _received(self, message: Message) -> None:
        """Pass a message on. No request fails with what a callback raises here, so it is logged."""
        try:
            await self._receive(message)
        except ClientError as error:
            _logger.debug("An answer to %s was not sent: %s", message.get("method"), error)
        except Exception:
            _logger.exception("A callback for %s of the server failed.", message.get("method"))
