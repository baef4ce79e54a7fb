"""Server-sent events: how an event and a comment are written, and the headers of a stream.

Source: HTML living standard, "Server-sent events".
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import EVENT_STREAM, JSON_HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HEADERS = (
    ("content-type", EVENT_STREAM),
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),
)
"""The headers of a response that is an event stream."""

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment, which clients ignore."""

KEEP_ALIVE_SECONDS = 15.0
"""Seconds of silence after which a stream sends `KEEP_ALIVE`, so that no proxy closes it as dead."""

_OK = 200


def event(data: bytes, *, name: bytes = b"message", event_id: bytes | None = None) -> bytes:
    """Return an event. Its data is a single line, as JSON text is."""
    if event_id is None:
        return b"event: %b\ndata: %b\n\n" % (name, data)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event_id, name, data)


def priming_event(event_id: bytes, retry: int) -> bytes:
    """Return an event without data. The client stores its id, and waits *retry* milliseconds before it reconnects."""
    return b"id: %b\nretry: %d\ndata: \n\n" % (event_id, retry)


def response(body: bytes | AsyncIterator[bytes]) -> HttpResponse:
    """Return a response that is an event stream."""
    return HttpResponse(_OK, HEADERS, body)


def as_stream(answer: HttpResponse) -> HttpResponse:
    """Return a JSON answer as a stream of one event, for a client that accepts only event streams."""
    if answer.status != _OK or not isinstance(answer.body, bytes) or answer.headers[:1] != JSON_HEADERS:
        return answer
    return HttpResponse(_OK, HEADERS + answer.headers[1:], event(answer.body))


async def next_part(messages: asyncio.Queue[bytes], ended: asyncio.Future[Any]) -> bytes | None:
    """Return the next message as an event, or `KEEP_ALIVE` after a long silence.

    Args:
        messages: The messages of the stream.
        ended: Is done once no further message will come.

    Returns:
        None once *ended* is done and no message is left.
    """
    if messages.empty() and not ended.done():
        getter = asyncio.ensure_future(messages.get())
        try:
            await asyncio.wait({ended, getter}, timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if getter.done():
                return event(getter.result())
        finally:
            getter.cancel()
        if not ended.done():
            return KEEP_ALIVE
    if messages.empty():
        return None
    return event(messages.get_nowait())
