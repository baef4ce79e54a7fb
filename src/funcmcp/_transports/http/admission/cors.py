"""CORS: the headers that let pages of allowed origins call the endpoint from a browser.

Source: Fetch living standard, "CORS protocol" (`*` in Access-Control-Allow-Headers does not cover Authorization).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from funcmcp._transports.http.admission.origin import OriginCheck
from funcmcp._transports.http.messages import HttpResponse

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import Exchange, HttpRequest
    from funcmcp._transports.http.options import HTTPOptions

_VARY = ("vary", "origin")
_EXPOSED = ("access-control-expose-headers", "dpop-nonce, mcp-session-id, retry-after, www-authenticate")
_CREDENTIALS = ("access-control-allow-credentials", "true")
_MAX_AGE = ("access-control-max-age", "600")
_ANY_HEADERS = "authorization, *"
_METHODS = "GET, POST, DELETE"
_HEADER_NAMES = re.compile(r"[A-Za-z0-9_\-, ]{1,2000}")
_PREFIX = "access-control-"


class CORS:
    """Adds CORS headers to the answers for pages of allowed origins, and answers their preflight requests.

    Args:
        options: The allowed origins.
        otherwise: Answers all other requests. Its own CORS headers are replaced for allowed origins.
        methods: The methods that pages may use.
        credentials: Whether pages may send cookies and client certificates. Then no origin may be ``"*"``.
    """

    def __init__(
        self, options: HTTPOptions, *, otherwise: Exchange, methods: str = _METHODS, credentials: bool = False
    ) -> None:
        self._origins = frozenset(origin.lower().rstrip("/") for origin in options.allowed_origins)
        self._origin = OriginCheck(options)
        self._otherwise = otherwise
        self._methods = methods
        self._credentials = credentials

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        origin = request.fields.get(b"origin", b"").decode("latin-1").strip(" \t")
        allowed = self._allowed(origin)
        if allowed is None:
            request.added_headers = (_VARY,)
            response = await self._otherwise(request)
            return response if _VARY in response.headers else response.with_headers(_VARY)
        headers = [("access-control-allow-origin", allowed), _VARY]
        if self._credentials:
            headers.append(_CREDENTIALS)
        if request.method == "OPTIONS" and b"access-control-request-method" in request.fields:
            methods = ("access-control-allow-methods", self._methods)
            names = ("access-control-allow-headers", self._allowed_headers(request))
            return self._origin.refusal(request) or HttpResponse(204, (*headers, methods, names, _MAX_AGE))
        added = (*headers, _EXPOSED)
        request.added_headers = added
        response = await self._otherwise(request)
        application_headers = [
            header for header in response.headers if header != _VARY and not header[0].lower().startswith(_PREFIX)
        ]
        return HttpResponse(response.status, (*application_headers, *added), response.body)

    def _allowed(self, origin: str) -> str | None:
        """Return the value of Access-Control-Allow-Origin: the origin as it was configured, or None."""
        if origin and "*" in self._origins:
            return "*"
        return origin.lower() if origin.lower() in self._origins else None

    def _allowed_headers(self, request: HttpRequest) -> str:
        """Return the headers that a page may send. With credentials, ``*`` is the name of a header."""
        requested = request.fields.get(b"access-control-request-headers", b"").decode("latin-1")
        return requested if self._credentials and _HEADER_NAMES.fullmatch(requested) else _ANY_HEADERS


class CORSForAll(CORS):
    """Does the same for pages of all origins, by their names. Its caller passes on the requests that may have it."""

    def _allowed(self, origin: str) -> str:
        return origin.lower()
