"""What can be said of a request before its body is read: it may pass, and how its answer may look, or a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp.protocol.errors import INVALID_REQUEST
from funcmcp.protocol.revisions import REVISIONS
from funcmcp.transports.http.admission.body import wrong_length, wrong_type
from funcmcp.transports.http.admission.origin import OriginCheck
from funcmcp.transports.http.admission.rate_limits import wrong_header
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import accepts, refuse

if TYPE_CHECKING:
    from funcmcp.server.dispatch import Server
    from funcmcp.transports.http.messages import HttpRequest
    from funcmcp.transports.http.options import HTTPOptions
    from funcmcp.transports.http.status import Accepts

_REMEMBERED = 256
"""Combinations of headers that passed. Clients may vary them at will, so they are bounded."""


class Entry:
    """A request that may pass.

    Attributes:
        accept: which kinds of answer the client takes.
        version: the revision that the version header names; None without one.
        per_request: whether that is a revision without a handshake, or none that exists.
        known_version: whether the server speaks that revision; True without a header.
    """

    __slots__ = ("accept", "known_version", "per_request", "version")

    def __init__(self, accept: Accepts, version: str | None, *, known_version: bool) -> None:
        self.accept = accept
        self.version = version
        self.known_version = known_version
        self.per_request = version is not None and (version not in REVISIONS or REVISIONS[version].per_request)


class Gate:
    """Examines method, path and headers. The verdict on a combination is kept: clients repeat themselves.

    Args:
        server: its revisions are the ones that it speaks.
        options: allowed hosts and origins.
        path: where the endpoint is.
        listens: whether GET opens a stream for clients of the handshake era.
        sessions: whether there are sessions, which DELETE ends.
    """

    def __init__(
        self, server: Server, options: HTTPOptions, *, path: str, listens: bool, sessions: bool = True
    ) -> None:
        self._server = server
        self._path = path
        self._paths = {path, path.rstrip("/"), path.rstrip("/") + "/"}
        self._origin = OriginCheck(options)
        self._listens = listens
        self._sessions = sessions
        limits = server.options.limits
        self._max_header, self._max_body = limits.header_bytes, limits.message_bytes
        self._digits = len(str(self._max_body))
        self._passed: dict[tuple[object, ...], Entry] = {}

    def admit(self, request: HttpRequest) -> Entry | HttpResponse:
        """Return what is known of a request that may pass, or its refusal."""
        large = wrong_header(request, self._max_header)
        if large is not None:
            return large
        get = request.fields.get
        key = (
            request.method,
            request.path,
            request.server,
            request.streams,
            len(request.pairs) - len(request.fields),
            get(b"host"),
            get(b"origin"),
            get(b"content-type"),
            get(b"content-encoding"),
            get(b"accept"),
            get(b"mcp-protocol-version"),
        )
        entry = self._passed.get(key)
        if entry is None:
            verdict = self._examine(request)
            if isinstance(verdict, HttpResponse):
                return verdict
            if len(self._passed) >= _REMEMBERED:
                self._passed.clear()
            entry = self._passed[key] = verdict
        length = get(b"content-length")
        if length is None or len(length) < self._digits:
            return entry
        return wrong_length(request, self._max_body) or entry

    def _methods(self, entry: Entry, *, streams: bool) -> tuple[str, ...]:
        if entry.per_request or not self._sessions:
            return ("POST",)
        return ("GET", "POST", "DELETE") if self._listens and streams else ("POST", "DELETE")

    def _examine(self, request: HttpRequest) -> Entry | HttpResponse:
        refusal = self._origin.refusal(request)
        if refusal is not None:
            return refuse(refusal[0], INVALID_REQUEST, refusal[1])
        if request.path not in self._paths:
            return refuse(404, INVALID_REQUEST, f"Nothing is here; the MCP endpoint is {self._path}.")
        named = request.fields.get(b"mcp-protocol-version")
        version = None if named is None else named.decode("latin-1").strip(" \t")
        entry = Entry(
            accepts(request.fields.get(b"accept")),
            version,
            known_version=version is None or version in self._server.revisions,
        )
        allowed = self._methods(entry, streams=request.streams)
        if request.method not in allowed:
            methods = ", ".join(allowed)
            return refuse(405, INVALID_REQUEST, f"Use {methods}.", headers=(("allow", methods),))
        if request.method == "POST":
            return _refusal_of_post(request, entry) or entry
        if request.method == "GET" and not entry.accept.events:
            return refuse(406, INVALID_REQUEST, "Accept text/event-stream.")
        return entry


def _refusal_of_post(request: HttpRequest, entry: Entry) -> HttpResponse | None:
    refusal = wrong_type(request)
    if refusal is None and not (entry.accept.json or entry.accept.events):
        return refuse(406, INVALID_REQUEST, "Accept application/json and text/event-stream.")
    return refusal
