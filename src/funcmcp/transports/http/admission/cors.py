"""CORS: the headers that let pages of allowed origins call the endpoint from a browser.

Source: Fetch living standard, "CORS protocol" (`*` in Access-Control-Allow-Headers does not cover Authorization).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp.transports.http.admission.origin import OriginCheck
from funcmcp.transports.http.messages import HttpResponse

if TYPE_CHECKING:
    from funcmcp.transports.http.messages import Exchange, HttpRequest
    from funcmcp.transports.http.options import HTTPOptions

_VARY = ("vary", "origin")
_EXPOSED = ("access-control-expose-headers", "mcp-session-id, retry-after, www-authenticate")
_PREFLIGHT = (
    ("access-control-allow-methods", "GET, POST, DELETE"),
    ("access-control-allow-headers", "authorization, *"),
    ("access-control-max-age", "600"),
)


class CORS:
    """Adds CORS headers to the answers for pages of allowed origins, and answers their preflight requests.

    Args:
        options: The allowed origins.
        otherwise: Answers all other requests.
    """

    def __init__(self, options: HTTPOptions, *, otherwise: Exchange) -> None:
        self._origins = frozenset(origin.lower().rstrip("/") for origin in options.allowed_origins)
        self._origin = OriginCheck(options)
        self._otherwise = otherwise

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        origin = request.fields.get(b"origin", b"").decode("latin-1").strip(" \t")
        allowed = self._allowed(origin)
        if allowed is None:
            response = await self._otherwise(request)
            return response.with_headers(_VARY)
        headers = (("access-control-allow-origin", allowed), _VARY)
        if request.method == "OPTIONS" and b"access-control-request-method" in request.fields:
            return self._origin.refusal(request) or HttpResponse(204, (*headers, *_PREFLIGHT))
        response = await self._otherwise(request)
        return response.with_headers(*headers, _EXPOSED)

    def _allowed(self, origin: str) -> str | None:
        """Return the value of Access-Control-Allow-Origin: the origin as it was configured, or None."""
        if origin and "*" in self._origins:
            return "*"
        return origin.lower() if origin.lower() in self._origins else None
