"""The states of upstreams for the page of a developer: ``GET /mcp?upstreams``.

Only a person at this machine gets them, as with tracebacks: the reasons of failures have addresses and commands. All
other requests are answered as if there were no states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._protocol.codec import encode
from funcmcp._transports.http.endpoints.tracebacks import gets_tracebacks
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import JSON

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from funcmcp._transports.http.messages import Exchange, HttpRequest

_QUERY = "upstreams"
_HEADERS = (
    ("content-type", JSON),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
)
_MEMBERS = ("name", "state", "optional", "away_since", "last_error", "list_error", "changed", "sessions")


class UpstreamStates:
    """Answers requests for the states of upstreams, and passes on all others.

    Args:
        path: The path of the endpoint.
        statuses: Returns the status of each upstream.
        otherwise: Answers the other requests.
    """

    def __init__(self, path: str, statuses: Callable[[], Iterable[Any]], otherwise: Exchange) -> None:
        self._path = path.rstrip("/")
        self._statuses = statuses
        self._otherwise = otherwise

    def __call__(self, request: HttpRequest) -> Awaitable[HttpResponse]:
        """Return what to await for the response to an HTTP request."""
        is_query = request.method == "GET" and request.query_string == _QUERY
        if not is_query or request.path.rstrip("/") != self._path or not gets_tracebacks(request):
            return self._otherwise(request)
        return self._answer()

    async def _answer(self) -> HttpResponse:
        states = [{name: getattr(status, name) for name in _MEMBERS} for status in self._statuses()]
        return HttpResponse(200, _HEADERS, encode({"upstreams": states}))
