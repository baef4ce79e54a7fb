"""Tracebacks for the page of a developer: ``GET /mcp?error_id=...``.

How it works: a server whose sockets all listen on loopback addresses keeps the tracebacks of its last failures
(`recent_failures`). A request gets one if it comes from this machine, names a loopback host and passed no proxy, as
far as its header shows that. All other requests are answered as if there were no tracebacks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from funcmcp._protocol.loopback import is_loopback
from funcmcp._server.recent_failures import recent_failures
from funcmcp._transports.http.admission.origin import is_on_loopback
from funcmcp._transports.http.messages import HttpResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from funcmcp._transports.http.messages import Exchange, HttpRequest

_QUERY = re.compile(r"error_id=([0-9a-f]{16})")
_PROXY_FIELDS = (
    b"forwarded",
    b"via",
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"x-real-ip",
    b"cf-connecting-ip",
)
_OWN_SITES = {None, b"none", b"same-origin"}
_HEADERS = (
    ("content-type", "text/plain; charset=utf-8"),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("cross-origin-resource-policy", "same-origin"),
)
_NO_CONTENT = 204


class Tracebacks:
    """Answers requests for tracebacks, and passes on all others.

    Args:
        path: The path of the endpoint.
        otherwise: Answers the other requests.
    """

    def __init__(self, path: str, otherwise: Exchange) -> None:
        self._path = path.rstrip("/")
        self._otherwise = otherwise

    def __call__(self, request: HttpRequest) -> Awaitable[HttpResponse]:
        """Return what to await for the response to an HTTP request."""
        if request.method != "GET" or not request.query_string or request.path.rstrip("/") != self._path:
            return self._otherwise(request)
        match = _QUERY.fullmatch(request.query_string)
        if match is None or not gets_tracebacks(request):
            return self._otherwise(request)
        return _traceback_response(match[1])


async def _traceback_response(error_id: str) -> HttpResponse:
    text = recent_failures.text_of(error_id)
    if text is None:  # 404 would be an error on the browser's console
        return HttpResponse(_NO_CONTENT, (("cache-control", "no-store"),))
    return HttpResponse(200, _HEADERS, text.encode("utf-8", "backslashreplace"))


def gets_tracebacks(request: HttpRequest) -> bool:
    """Return whether a request may have tracebacks: it comes from a person at this machine."""
    if not recent_failures.is_kept or request.is_hosted or not is_on_loopback(request):
        return False
    fields = request.fields
    if not is_loopback(request.peer or "") or any(name in fields for name in _PROXY_FIELDS):
        return False
    return fields.get(b"sec-fetch-site") in _OWN_SITES and sum(name == b"host" for name, _ in request.pairs) == 1
