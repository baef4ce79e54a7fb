"""The server card: ``GET /mcp/server-card`` says what the server is and where it is, before a client connects.

How it works: the card has what `initialize` and `server/discover` say of the server itself: its name for people, its
version, description, icons and website, and the revisions. It lists no features and no capabilities, so it is open to
every caller and to pages of every origin, also where the endpoint needs credentials. The checks of Host, load and rate
are those of the endpoint.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from funcmcp._objects.mappings import without_none
from funcmcp._protocol import server_card
from funcmcp._protocol.codec import encode
from funcmcp._protocol.http_rules import is_cached
from funcmcp._server.tool_search import shortened
from funcmcp._transports.http.admission.admission import Admission, HeaderCheck
from funcmcp._transports.http.admission.origin import names_host
from funcmcp._transports.http.messages import READ_METHODS, HttpResponse
from funcmcp._transports.http.status import wrong_method

if TYPE_CHECKING:
    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.messages import Exchange, HttpRequest
    from funcmcp._transports.http.options import HTTPOptions, ServerCard

_METHODS = (*READ_METHODS, "OPTIONS")
_SAFE = ":/%[]@!$&'()*+,;=~"
_ORIGIN = ("access-control-allow-origin", "*")
_PREFLIGHT = (
    _ORIGIN,
    ("access-control-allow-methods", "GET"),
    ("access-control-allow-headers", "Content-Type, If-None-Match"),
    ("access-control-max-age", "600"),
)
_BY_REQUEST = ("vary", "host, x-forwarded-proto")
"""For a card whose URL is that of the request: the keys of some caches have no Host, such as those of nginx."""

_HEADERS = (
    _ORIGIN,
    ("access-control-expose-headers", "ETag"),
    ("cache-control", f"public, max-age={server_card.MAX_AGE}"),
    ("x-content-type-options", "nosniff"),
)


class ServerCardEndpoint:
    """Answers the requests for the card, and passes on all others.

    Args:
        server: The server, whose load counts, and which the card describes.
        options: The options of the HTTP endpoints.
        card: What the author says in the card.
        url: The URL of the endpoint as clients reach it; None for that of each request.
        otherwise: Answers the requests for all other paths.
    """

    def __init__(
        self, server: Server, options: HTTPOptions, card: ServerCard, *, url: str | None, otherwise: Exchange
    ) -> None:
        every_origin = replace(options, allowed_origins=["*"], require_origin=False)
        self._admission: Admission[None] = Admission(server, every_origin, HeaderCheck(_refusal_of_method), None)
        self._server = server
        self._options = options
        self._name = card.name
        self._url = card.url or url
        self._path = options.path.rstrip("/") + server_card.PATH
        self._otherwise = otherwise

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        if request.path != self._path:
            return await self._otherwise(request)
        refusal = await self._admission.admit(request)
        if refusal is not None:
            return refusal
        if request.method == "OPTIONS":
            return HttpResponse(204, _PREFLIGHT)
        body = encode(self._card(self._url or self._url_of(request)))
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers: tuple[tuple[str, str], ...] = (*_HEADERS, ("etag", etag))
        if self._url is None:
            headers = (*headers, _BY_REQUEST)
        if is_cached(request.fields.get(b"if-none-match"), etag):
            return HttpResponse(304, headers)
        return HttpResponse(200, (("content-type", server_card.MEDIA_TYPE), *headers), body)

    def _card(self, url: str | None) -> dict[str, Any]:
        """Return the card of the server at a URL; without its place if the URL is unknown."""
        info = self._server.results.server_info
        title = info.get("title") or info["name"]
        description = info.get("description") or title or self._name
        members = {
            "$schema": server_card.SCHEMA,
            "name": self._name,
            "version": info["version"][: server_card.MAX_VERSION],
            "title": shortened(title, server_card.MAX_TEXT) or None,
            "description": shortened(description, server_card.MAX_TEXT),
            "icons": info.get("icons"),
            "websiteUrl": info.get("websiteUrl"),
            "remotes": None if url is None else self._remotes(url),
        }
        return without_none(members)

    def _remotes(self, url: str) -> list[dict[str, Any]]:
        """Return the endpoints below a URL that the card names. HTTP+SSE is beside that of Streamable HTTP."""
        dates = sorted(self._server.revisions, reverse=True)
        remotes = [{"type": server_card.STREAMABLE_HTTP, "url": url, "supportedProtocolVersions": dates}]
        sse, path = self._options.sse, self._options.path
        if sse is not None and url.endswith(path):
            remotes.append({"type": server_card.HTTP_SSE, "url": url.removesuffix(path) + sse})
        return remotes

    def _url_of(self, request: HttpRequest) -> str | None:
        """Return the URL of the endpoint that a request reached; None if it can't be known.

        A proxy may have ended TLS, also one that `HTTPOptions.proxies` does not count, and a Host that is no name came
        with ``allowed_hosts=["*"]``.
        """
        has_ended_tls = request.proxies > 0 or request.fields.get(b"x-forwarded-proto", b"http") != b"http"
        if (has_ended_tls and request.scheme == "http") or not names_host(request):
            return None
        base = request.url.partition("?")[0].removesuffix(server_card.PATH)
        slash = "/" if self._options.path.endswith("/") else ""
        return quote(base, safe=_SAFE) + slash


def _refusal_of_method(request: HttpRequest) -> HttpResponse | None:
    return None if request.method in _METHODS else wrong_method(_METHODS)
