"""The metadata of a protected resource, which tells clients where to get tokens; and answers that no cache stores.

Source: RFC 9728 section 3 (the metadata document); RFC 9110 section 9.1 (GET and HEAD); RFC 9111 section 5.2.2.5
(no-store).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from funcmcp._protocol.codec import encode
from funcmcp._transports.http.admission.origin import OriginCheck
from funcmcp._transports.http.messages import READ_METHODS, HttpResponse
from funcmcp._transports.http.status import JSON_HEADERS, wrong_method

if TYPE_CHECKING:
    from funcmcp._auth.protected_resource import ProtectedResource
    from funcmcp._transports.http.messages import Exchange, HttpRequest
    from funcmcp._transports.http.options import HTTPOptions

_CACHE = "cache-control"


@lru_cache(maxsize=256)
def _not_stored(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return (*(field for field in headers if field[0] != _CACHE), (_CACHE, "no-store"))


class ResourceMetadata:
    """Serves the metadata of a protected resource, and forbids caches to store all other answers.

    Args:
        resource: The protected resource; None without metadata.
        options: The options of the HTTP endpoints.
        otherwise: Answers the requests for all other paths.
    """

    def __init__(self, resource: ProtectedResource | None, options: HTTPOptions, *, otherwise: Exchange) -> None:
        self._paths = frozenset() if resource is None else frozenset(resource.paths)
        self._document = b"" if resource is None else encode(resource.document)
        self._origin = OriginCheck(options)
        self._otherwise = otherwise

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        if request.path in self._paths:
            return self._metadata(request)
        response = await self._otherwise(request)
        return HttpResponse(response.status, _not_stored(response.headers), response.body)

    def _metadata(self, request: HttpRequest) -> HttpResponse:
        refusal = self._origin.refusal(request)
        if refusal is not None:
            return refusal
        if request.method not in READ_METHODS:
            return wrong_method(READ_METHODS)
        return HttpResponse(200, (*JSON_HEADERS, (_CACHE, "max-age=3600")), self._document)
