"""HTTP requests and responses with MCP messages, as a client makes and reads them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from funcmcp._client.errors import AuthenticationError, HTTPStatusError, one_line
from funcmcp._client.event_stream import EventReader
from funcmcp._client.messages import MESSAGES_AT_ONCE, parse_message
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import InvalidResponseError
from funcmcp._transports.http.messages import HttpRequest
from funcmcp._transports.http.status import EVENT_STREAM, JSON

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from funcmcp._client.event_stream import Event
    from funcmcp._transports.http.messages import Exchange, HttpResponse

_UNAUTHORIZED, _FORBIDDEN = 401, 403
_NOT_THE_ENDPOINT = frozenset({404, 405})
"""Statuses of a web server for a path that has no endpoint."""

FIRST_FAILURE = 400
"""The lowest HTTP status of a request that failed."""

_MAX_DIGITS = 5
"""Digits of a number of seconds in Retry-After that is read."""


@public("funcmcp.testing")
class MemoryRequest(HttpRequest):
    """An HTTP request whose body is in memory, as from a client on this machine.

    Args:
        method: The HTTP method, in upper case.
        path: The path of the endpoint.
        pairs: Header lines, with names in lower case.
        body: The body.
    """

    __slots__ = ()
    network_transport: str | None = None

    def __init__(self, method: str, path: str, pairs: list[tuple[bytes, bytes]], body: bytes) -> None:
        super().__init__(method, path, pairs, "127.0.0.1")
        self.body: bytes = body


@public("funcmcp.testing")
async def post(
    exchange: Exchange, path: str, body: bytes, headers: Mapping[str, str], *, method: str = "POST"
) -> HttpResponse:
    """Send one HTTP request through an exchange and return the response.

    Args:
        exchange: A function from HttpRequest to HttpResponse.
        path: The path of the endpoint.
        body: The body.
        headers: Header fields, beside those that every request of a client has.
        method: The HTTP method.
    """
    fields = {
        "host": "127.0.0.1",
        "content-type": JSON,
        "accept": f"{JSON}, {EVENT_STREAM}",
        "content-length": str(len(body)),
        **headers,
    }
    lines = [(name.encode(), value.encode("latin-1")) for name, value in fields.items()]
    return await exchange(MemoryRequest(method, path, lines, body))


@public("funcmcp.testing")
async def read_messages(
    response: HttpResponse, reader: EventReader | None = None
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the JSON-RPC messages of a response: one of a JSON body, or those of an event stream.

    Args:
        response: The response.
        reader: Reads the events, and knows the last one afterwards. None: a new one.

    Raises:
        InvalidResponseError: The body is not a JSON-RPC message, or an event is not one.
    """
    if isinstance(response.body, bytes) and not is_event_stream(response):
        if response.body:
            yield _message_in(response.body, response)
        return
    async with aclosing(read_events(response, reader or EventReader())) as events:
        async for event in events:
            if event.name == "message" and event.data.strip():
                yield _message_in(event.data, response)


async def read_events(response: HttpResponse, reader: EventReader) -> AsyncGenerator[Event, None]:
    """Yield the events with data of an event stream, and close the response at the end."""
    if isinstance(response.body, bytes):
        for event in reader.feed(response.body):
            yield event
        return
    count = 0
    try:
        async for part in response.body:
            items: list[Event | None] = [None, *reader.feed(part)]  # each part counts, too
            for item in items:
                count += 1
                if count % MESSAGES_AT_ONCE == 0:
                    await asyncio.sleep(0)
                if item is not None:
                    yield item
    finally:
        await _close(response.body)


def _message_in(json_text: bytes, response: HttpResponse) -> dict[str, Any]:
    message = parse_message(json_text)
    if message is None:
        kind = _media_type(response) or "no content type"
        text = f"The answer is not an MCP message (HTTP status {response.status}, {one_line(kind)})."
        if response.status in _NOT_THE_ENDPOINT or kind == "text/html":
            text += " Check the path of the URL: most servers have their endpoint at /mcp, and older ones at /sse."
        if response.status >= FIRST_FAILURE:
            raise HTTPStatusError(text, response.status, wanted_pause(response))
        raise InvalidResponseError(text)
    return message


def refusal_of(response: HttpResponse) -> AuthenticationError | None:
    """Return the error of a response that refuses the credentials of its request; None for other responses."""
    challenge = field_of(response, "www-authenticate")
    if response.status == _UNAUTHORIZED or (response.status == _FORBIDDEN and challenge is not None):
        return AuthenticationError(response.status, challenge)
    return None


async def discard(response: HttpResponse) -> None:
    """Close a response whose body is not read."""
    if not isinstance(response.body, bytes):
        await _close(response.body)


async def _close(body: Any) -> None:
    """Close a body's iterator, which closes the connection. A plain iterator has nothing to close."""
    if hasattr(body, "aclose"):
        await body.aclose()


def field_of(response: HttpResponse, name: str) -> str | None:
    """Return the value of a header field. Return None if the response does not have it."""
    for field, value in response.headers:
        if field == name:
            return value
    return None


def is_event_stream(response: HttpResponse) -> bool:
    """Return whether the body of a response is an event stream."""
    return _media_type(response) == EVENT_STREAM


def _media_type(response: HttpResponse) -> str:
    """Return the media type of a response in lower case, without parameters. Empty if it has none."""
    return (field_of(response, "content-type") or "").partition(";")[0].strip().lower()


def wanted_pause(response: HttpResponse) -> float | None:
    """Return the seconds that the server wants the client to wait; None if it sends none, or a date."""
    text = field_of(response, "retry-after") or ""
    return float(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and int(text) else None
