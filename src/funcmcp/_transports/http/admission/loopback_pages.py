"""CORS for pages of this machine: those of loopback origins, if the server is reached on a loopback address, too.

How it works: `OriginCheck` lets their requests pass without an entry in the options. Without the headers of CORS, the
browser would not let the page read the answer, and would send no request after a preflight that is refused.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from funcmcp._transports.http.admission.origin import is_loopback_origin, is_on_loopback

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from funcmcp._transports.http.admission.cors import CORS
    from funcmcp._transports.http.messages import Exchange, HttpRequest, HttpResponse
    from funcmcp._transports.http.options import HTTPOptions


class LoopbackPages:
    """Answers pages of this machine as `CORS` answers those of allowed origins.

    Args:
        options: The allowed hosts and origins.
        otherwise: Answers the requests.
    """

    def __init__(self, options: HTTPOptions, *, otherwise: Exchange) -> None:
        self._options = options
        self._otherwise = otherwise

    def __call__(self, request: HttpRequest) -> Awaitable[HttpResponse]:
        """Return what to await for the response to an HTTP request."""
        field = request.fields.get(b"origin")
        if field is None or request.is_hosted:
            return self._otherwise(request)
        origin = field.decode("latin-1").strip(" \t")
        if not is_loopback_origin(origin) or not is_on_loopback(request):
            return self._otherwise(request)
        return self._cors(request)

    @cached_property
    def _cors(self) -> CORS:
        from funcmcp._transports.http.admission.cors import CORSForAll  # noqa: PLC0415 - few servers need it

        return CORSForAll(self._options, otherwise=self._otherwise)
