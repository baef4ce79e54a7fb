"""The checks of a Streamable HTTP request that need its header only: Host, Origin, path, method, media types, length.

How it works: a request passes with `CheckedHeaders`, which the endpoints use. The result for a combination of headers
is cached, because clients repeat themselves. Refusals are not cached, so that a hostile client can't fill the cache
with them. The length of the header and that of the body are not part of the combination.

Source: "basic/transports, Streamable HTTP" of every revision from 2025-03-26 on (400, 404, 405, 406, 415); RFC 9110
sections 12.5.1 (Accept) and 15.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp.protocol.errors import INVALID_REQUEST
from funcmcp.protocol.revisions import REVISIONS
from funcmcp.state.sessions.store import LiveSessions, NoSessions
from funcmcp.transports.http.admission.body import wrong_length, wrong_type
from funcmcp.transports.http.admission.origin import OriginCheck
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import accepts, refuse

if TYPE_CHECKING:
    from funcmcp.server.dispatch import Server
    from funcmcp.state.sessions.store import SessionStore
    from funcmcp.transports.http.messages import HttpRequest
    from funcmcp.transports.http.options import HTTPOptions
    from funcmcp.transports.http.status import Accepts

_MAX_CACHED = 256
"""Combinations of headers in the cache. Clients may send any number of them."""


class CheckedHeaders:
    """The headers of a request that passed the checks.

    Attributes:
        accept: The kinds of answer that the client accepts.
        version: The revision in the MCP-Protocol-Version header; None without the header.
        per_request: Whether that revision has no handshake, or does not exist.
        is_supported: Whether the server serves that revision; True without the header.
    """

    __slots__ = ("accept", "is_supported", "per_request", "version")

    def __init__(self, accept: Accepts, version: str | None, *, is_supported: bool) -> None:
        self.accept = accept
        self.version = version
        self.is_supported = is_supported
        self.per_request = version is not None and (version not in REVISIONS or REVISIONS[version].per_request)


class HeaderChecks:
    """Checks the headers of the requests to an endpoint.

    Args:
        server: Its revisions are those that a request may name.
        options: The allowed hosts and origins.
        path: The path of the endpoint.
        sessions: Decides which methods the endpoint has: GET with live sessions, DELETE with any sessions.
    """

    def __init__(self, server: Server, options: HTTPOptions, *, path: str, sessions: SessionStore) -> None:
        self._server = server
        self._path = path
        self._paths = {path, path.rstrip("/"), path.rstrip("/") + "/"}
        self._origin = OriginCheck(options)
        self._sessions = sessions
        self._max_body = server.options.limits.message_bytes
        self._max_body_digits = len(str(self._max_body))
        self._cache: dict[tuple[object, ...], CheckedHeaders] = {}

    def check(self, request: HttpRequest) -> CheckedHeaders | HttpResponse:
        """Return the headers of a request that passes, or its refusal."""
        get = request.fields.get
        key = (
            request.method,
            request.path,
            request.server,
            request.can_stream,
            len(request.pairs) - len(request.fields),
            get(b"host"),
            get(b"origin"),
            get(b"content-type"),
            get(b"content-encoding"),
            get(b"accept"),
            get(b"mcp-protocol-version"),
        )
        checked = self._cache.get(key)
        if checked is None:
            result = self._examine(request)
            if isinstance(result, HttpResponse):
                return result
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            checked = self._cache[key] = result
        length = get(b"content-length")
        if length is None or len(length) < self._max_body_digits:
            return checked
        return wrong_length(request, self._max_body) or checked

    def _methods(self, checked: CheckedHeaders, *, can_stream: bool) -> tuple[str, ...]:
        if checked.per_request or isinstance(self._sessions, NoSessions):
            return ("POST",)
        if isinstance(self._sessions, LiveSessions) and can_stream:
            return ("GET", "POST", "DELETE")
        return ("POST", "DELETE")

    def _examine(self, request: HttpRequest) -> CheckedHeaders | HttpResponse:
        refusal = self._origin.refusal(request)
        if refusal is not None:
            return refuse(refusal[0], INVALID_REQUEST, refusal[1])
        if request.path not in self._paths:
            return refuse(404, INVALID_REQUEST, f"Nothing is here; the MCP endpoint is {self._path}.")
        version_field = request.fields.get(b"mcp-protocol-version")
        version = None if version_field is None else version_field.decode("latin-1").strip(" \t")
        is_supported = version is None or version in self._server.revisions
        checked = CheckedHeaders(accepts(request.fields.get(b"accept")), version, is_supported=is_supported)
        methods = self._methods(checked, can_stream=request.can_stream)
        if request.method not in methods:
            allow = ", ".join(methods)
            return refuse(405, INVALID_REQUEST, f"Use {allow}.", headers=(("allow", allow),))
        if request.method == "POST":
            return _refusal_of_post(request, checked) or checked
        if request.method == "GET" and not checked.accept.events:
            return refuse(406, INVALID_REQUEST, "Accept text/event-stream.")
        return checked


def _refusal_of_post(request: HttpRequest, checked: CheckedHeaders) -> HttpResponse | None:
    refusal = wrong_type(request)
    if refusal is None and not (checked.accept.json or checked.accept.events):
        return refuse(406, INVALID_REQUEST, "Accept application/json and text/event-stream.")
    return refusal
