"""Server-sent events: how an event and a comment are written, and the headers of a stream.

Source: HTML living standard, "Server-sent events".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._transports.http import status
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import EVENT_STREAM, JSON_HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp._protocol.jsonrpc import RequestId

HEADERS = (
    ("content-type", EVENT_STREAM),
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),
)
"""The headers of a response that is an event stream."""

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment, which clients ignore."""

KEEP_ALIVE_SECONDS = 15.0
"""Seconds of silence after which `KEEP_ALIVE` is sent, so that no client or proxy closes the response.

It holds for streams, and for requests without an answer (`early_response`). The two reference implementations have the
same interval. The shortest idle times in use are 30 seconds."""

_OK = 200


def event(data: bytes, *, name: bytes = b"message", event_id: bytes | None = None) -> bytes:
    """Return an event. Its data is a single line, as JSON text is."""
    if event_id is None:
        return b"event: %b\ndata: %b\n\n" % (name, data)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event_id, name, data)


def priming_event(event_id: bytes, retry: int) -> bytes:
    """Return an event without data. The client stores its id, and waits *retry* milliseconds before it reconnects."""
    return b"id: %b\nretry: %d\ndata: \n\n" % (event_id, retry)


def unanswered(request_id: RequestId) -> bytes:
    """Return the last event of a stream for a request that has no answer yet when the server ends."""
    return event(status.unanswered(request_id))


def response(body: bytes | AsyncIterator[bytes]) -> HttpResponse:
    """Return a response that is an event stream."""
    return HttpResponse(_OK, HEADERS, body)


def as_stream(answer: HttpResponse) -> HttpResponse:
    """Return a JSON answer as a stream of one event, for a client that accepts only event streams."""
    if answer.status != _OK or not isinstance(answer.body, bytes) or answer.headers[:1] != JSON_HEADERS:
        return answer
    return HttpResponse(_OK, HEADERS + answer.headers[1:], event(answer.body))


def rest_of_stream(answer: HttpResponse) -> HttpResponse:
    """Return an answer as the end of a stream that has begun: JSON as an event, another status as 200.

    The status and the header fields of the answer are lost: the client has those of the stream.
    """
    body = answer.body
    if isinstance(body, bytes) and body and answer.headers[:1] == JSON_HEADERS:
        body = event(body)
    return HttpResponse(_OK, HEADERS, body)
