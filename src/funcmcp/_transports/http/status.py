"""Answers as HTTP responses: their status codes and media types, and the media types that a client accepts.

Source: "basic/transports" of every revision. In the handshake era a JSON-RPC error of a request goes out with 200,
because clients drop the body of any other status; 2026-07-28 fixes statuses per error code.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from funcmcp._protocol import errors
from funcmcp._protocol.errors import MCPError
from funcmcp._protocol.http_rules import FIELD_NAME, FIELD_VALUE, WITHOUT_CONTENT
from funcmcp._protocol.replies import error_reply
from funcmcp._server.log import log_failure
from funcmcp._transports.http.messages import HttpResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from funcmcp._protocol.jsonrpc import RequestId
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.limits import LimitReachedError

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
HTML = "text/html"
JSON_HEADERS = (("content-type", JSON),)

PER_REQUEST_STATUS: dict[int | None, int] = {
    errors.PARSE_ERROR: 400,
    errors.INVALID_REQUEST: 400,
    errors.INVALID_PARAMS: 400,
    errors.METHOD_NOT_FOUND: 404,
    errors.HEADER_MISMATCH: 400,
    errors.MISSING_CLIENT_CAPABILITY: 400,
    errors.UNSUPPORTED_PROTOCOL_VERSION: 400,
}
"""Statuses of the per-request era; every other answer is 200."""

_FINAL = range(200, 600)
"""Statuses that end the response to a request (RFC 9110 section 15). Others make a client wait, or are none."""


def handshake_response(reply: Reply) -> HttpResponse:
    """Return the response for an answer of the handshake era."""
    return HttpResponse(200, JSON_HEADERS, reply.body)


def authored_response(status: object, headers: Sequence[tuple[str, str]], body: bytes) -> HttpResponse:
    """Return a response that code of an author has made; it has no body if its status does not allow one.

    Raises:
        ValueError: A server can't send the status or a header.
    """
    checked = checked_status(status, headers)
    return HttpResponse(checked, tuple(headers), b"" if checked in WITHOUT_CONTENT else body)


def checked_status(status: object, headers: Sequence[tuple[str, str]]) -> int:
    """Return the status of a response; raise ValueError if a server can't send the status or a header."""
    if not isinstance(status, int) or isinstance(status, bool) or status not in _FINAL:
        raise ValueError(f"{status!r:.40} is not an HTTP status from 200 to 599.")
    for name, text in headers:
        if not FIELD_NAME.fullmatch(name) or not FIELD_VALUE.fullmatch(text):
            raise ValueError(f"{name!r:.80} is not a valid header field.")
    return status


def refuse(
    status: int,
    code: int,
    message: str,
    *,
    request_id: RequestId | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> HttpResponse:
    """Return the refusal of a request that is not dispatched, with a JSON-RPC error as its body."""
    return HttpResponse(status, JSON_HEADERS + headers, error_reply(MCPError(code, message), request_id).body)


def unanswered(request_id: RequestId | None) -> bytes:
    """Return the error for a request that has no answer yet when the server ends."""
    error = MCPError(errors.INTERNAL_ERROR, "The server ended before the request was answered.")
    return error_reply(error, request_id).body


def wrong_method(allowed: Iterable[str]) -> HttpResponse:
    """Return the refusal of a request to a path that has other methods only."""
    methods = ", ".join(allowed)
    return refuse(405, errors.INVALID_REQUEST, f"Use {methods}.", headers=(("allow", methods),))


def failed(error: BaseException, subject: str, method: str = "") -> HttpResponse:
    """Log a failure of the server, and return the response to it.

    Args:
        error: The exception.
        subject: What failed, for the log.
        method: The method of the request, for the log.
    """
    error_id = os.urandom(8).hex()
    log_failure(error, error_id, subject, method)
    reason = f"It failed: the server's log has the details under error id {error_id}."
    return refuse(500, errors.INTERNAL_ERROR, reason)


def limit_reached(error: LimitReachedError, request_id: RequestId | None = None) -> HttpResponse:
    """Return the refusal of a request for which there is no room: 429 for the caller's own share, or else 503."""
    headers = (*JSON_HEADERS, ("retry-after", str(error.retry_after)))
    return HttpResponse(429 if error.is_caller_limit else 503, headers, error_reply(error, request_id).body)


def accepted() -> HttpResponse:
    """Return the answer to a notification or a response: 202 without a body."""
    return HttpResponse(202, ())


class Accepts:
    """The kinds of answer that a client accepts.

    Attributes:
        json: Whether it accepts JSON.
        events: Whether it accepts an event stream.
    """

    __slots__ = ("events", "json")

    def __init__(self, *, json: bool, events: bool) -> None:
        self.json = json
        self.events = events


def accepts(header: bytes | None) -> Accepts:
    """Read an Accept header (RFC 9110 section 12.5.1).

    No header means JSON. The client accepts events only if it names them or all of `text`. The answer to a bare `*/*`,
    which curl sends, is JSON.
    """
    if header is None or not header.strip():
        return Accepts(json=True, events=False)
    ranges = dict(_media_range(part) for part in header.decode("latin-1").split(",", 32)[:32])
    json = next((ranges[name] for name in (JSON, "application/*", "*/*") if name in ranges), False)
    events = next((ranges[name] for name in (EVENT_STREAM, "text/*") if name in ranges), False)
    return Accepts(json=json, events=events)


def accepts_page(header: bytes | None) -> bool:
    """Return whether a client accepts HTML and no event stream, as browsers do. ``*/*`` alone does not count."""
    if header is None or b"html" not in header.lower():
        return False
    ranges = dict(_media_range(part) for part in header.decode("latin-1").split(",", 32)[:32])
    return ranges.get(HTML, False) and not ranges.get(EVENT_STREAM, False)


def _media_range(part: str) -> tuple[str, bool]:
    name, *parameters = (text.strip().lower() for text in part.split(";"))
    quality = next((value[2:].strip() for value in parameters if value.startswith("q=")), "1")
    return name, quality.strip("0.") != ""


def is_json(content_type: bytes | None) -> bool:
    """Return whether a Content-Type is `application/json`. It may have parameters; a charset must be UTF-8."""
    if content_type is None:
        return False
    name, *parameters = (text.strip().lower() for text in content_type.decode("latin-1").split(";"))
    charsets = [value[8:].strip('"') for value in parameters if value.startswith("charset=")]
    return name == JSON and all(charset in {"utf-8", "utf8"} for charset in charsets)
