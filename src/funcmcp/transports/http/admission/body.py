"""A POST's body: what is checked before it is read, and how it is read."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING

from funcmcp.protocol.errors import INVALID_REQUEST
from funcmcp.server.run import Waiting, begin
from funcmcp.transports.http.messages import BodyTooLargeError
from funcmcp.transports.http.status import is_json, refuse

if TYPE_CHECKING:
    from funcmcp.server.limits import Limits
    from funcmcp.server.load import Body
    from funcmcp.transports.http.messages import HttpRequest, HttpResponse


def wrong_type(request: HttpRequest) -> HttpResponse | None:
    """Return the refusal of a body that is not plain JSON, or None."""
    if not is_json(request.fields.get(b"content-type")):
        return refuse(415, INVALID_REQUEST, "Send Content-Type: application/json.")
    encoding = request.fields.get(b"content-encoding")
    if encoding is not None and encoding.strip().lower() != b"identity":
        return refuse(415, INVALID_REQUEST, "Send the body without a Content-Encoding.")
    return None


def wrong_length(request: HttpRequest, max_body: int) -> HttpResponse | None:
    """Return the refusal of a body whose length is said to be beyond the limit, or None."""
    length = request.fields.get(b"content-length", b"")
    return too_large(max_body) if length.isdigit() and int(length[:20]) > max_body else None


def too_large(max_body: int) -> HttpResponse:
    """Return the refusal of a body that is too large."""
    return refuse(413, INVALID_REQUEST, f"The body may have {max_body} bytes.")


def _expire(deadline: asyncio.Timeout) -> None:
    """End the time for a body now."""
    with contextlib.suppress(RuntimeError):  # it has expired by itself
        deadline.reschedule(0)


async def read_body(request: HttpRequest, limits: Limits, incoming: Body) -> bytes | HttpResponse:
    """Return a body, or the refusal of one that is too large or too slow.

    Args:
        request: Whose body it is.
        limits: Of one body: bytes and seconds.
        incoming: Counts the bytes of a body that comes in parts.

    Raises:
        LimitReachedError: There are too many bytes of incomplete bodies, and this is the oldest of them.
    """
    try:
        body = begin(request.read(limits.message_bytes, incoming.add))
        if isinstance(body, Waiting):  # most bodies are there already
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
    return refuse(408, INVALID_REQUEST, f"The body has to come within {limits.message_seconds:g} seconds.")
