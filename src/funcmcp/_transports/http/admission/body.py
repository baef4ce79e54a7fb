"""The body of a POST: media type (415), size (413), and the time in which it has to arrive (408)."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING

from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._server.load import Body
from funcmcp._server.run import Waiting, begin
from funcmcp._transports.http.messages import BodyTooLargeError, HttpResponse
from funcmcp._transports.http.status import is_json, refuse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._server.limits import Limits
    from funcmcp._server.load import Load
    from funcmcp._transports.http.messages import HttpRequest


IDENTITY = b"identity"
"""The Content-Encoding of a body without one (RFC 9110 section 12.5.3)."""


def wrong_type(request: HttpRequest) -> HttpResponse | None:
    """Return the refusal of a body that is not plain JSON, or None."""
    if not is_json(request.fields.get(b"content-type")):
        return refuse(415, INVALID_REQUEST, "Send Content-Type: application/json.")
    if not is_identity(request.fields.get(b"content-encoding", IDENTITY)):
        return refuse(415, INVALID_REQUEST, "Send the body without a Content-Encoding.")
    return None


def is_identity(encoding: bytes) -> bool:
    """Return whether a Content-Encoding leaves the body as it is."""
    return encoding.strip().lower() == IDENTITY


def too_large(max_body: int) -> HttpResponse:
    """Return the refusal of a body that is too large."""
    return refuse(413, INVALID_REQUEST, f"The body may have {max_body} bytes.")


async def answer_body(
    request: HttpRequest, limits: Limits, load: Load, answer: Callable[[bytes], Awaitable[HttpResponse]]
) -> HttpResponse:
    """Read a body and answer it, if there is room for one more request then.

    Args:
        request: The request, whose caller is known.
        limits: The size of a body and the time in which it has to arrive.
        load: Counts the request, and the bytes of a body that arrives in parts.
        answer: Answers the body.

    Raises:
        LimitReachedError: Too many requests are under way, or too many bytes of incomplete bodies have arrived.
    """
    caller = request.caller
    incoming = Body(load.bodies, caller)
    try:
        body = await read_body(request, limits, incoming)
        if isinstance(body, HttpResponse):
            return body
        load.requests.take(caller)
        try:
            return await answer(body)
        finally:
            load.requests.give_back(caller)
    finally:
        incoming.close()


async def read_body(request: HttpRequest, limits: Limits, incoming: Body) -> bytes | HttpResponse:
    """Return a body, or the refusal of one that is too large or too slow.

    Args:
        request: The request.
        limits: The size of a body and the time in which it has to arrive.
        incoming: Counts the bytes of a body that arrives in parts.

    Raises:
        LimitReachedError: Too many bytes of incomplete bodies have arrived, and this is the oldest of them.
    """
    try:
        body = begin(request.read(limits.message_bytes, incoming.add))
        if isinstance(body, Waiting):  # most bodies have arrived already
            incoming.add(0)
            async with asyncio.timeout(limits.message_seconds) as deadline:
                incoming.on_drop = partial(_expire, deadline)
                body = await body
        incoming.complete()
        return body
    except BodyTooLargeError:
        return too_large(limits.message_bytes)
    except TimeoutError:
        pass
    incoming.raise_if_dropped()
    return too_late(limits.message_seconds)


def too_late(seconds: float) -> HttpResponse:
    """Return the refusal of a body that has not arrived in time."""
    text = f"The body has to come within {seconds_text(seconds)} (Limits.message_seconds)."
    return refuse(408, INVALID_REQUEST, text)


def _expire(deadline: asyncio.Timeout) -> None:
    """Make a deadline expire now."""
    with contextlib.suppress(RuntimeError):  # it has expired already
        deadline.reschedule(0)
