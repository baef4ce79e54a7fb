"""Pages of other origins that may call the endpoint: what their browsers want to hear before and after.

Source: Fetch living standard, "CORS protocol" (`*` in Access-Control-Allow-Headers does not cover Authorization).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp.protocol.errors import INVALID_REQUEST
from funcmcp.transports.http.admission.origin import OriginCheck
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import refuse

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
    """Tells browsers that pages of the allowed origins may read the answers; of others nothing is said.

    Args:
        options: names the origins.
        otherwise: answers the requests.
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
            return HttpResponse(response.status, (*response.headers, _VARY), response.body)
        said = (("access-control-allow-origin", allowed), _VARY)
        if request.method == "OPTIONS" and b"access-control-request-method" in request.fields:
            refusal = self._origin.refusal(request)
            if refusal is not None:
                return refuse(refusal[0], INVALID_REQUEST, refusal[1])
            return HttpResponse(204, (*said, *_PREFLIGHT))
        response = await self._otherwise(request)
        return HttpResponse(response.status, (*response.headers, *said, _EXPOSED), response.body)

    def _allowed(self, origin: str) -> str | None:
        """Return what the browser is told; an origin only as it was configured, and never as it came."""
        if origin and "*" in self._origins:
            return "*"
        return origin.lower() if origin.lower() in self._origins else None
