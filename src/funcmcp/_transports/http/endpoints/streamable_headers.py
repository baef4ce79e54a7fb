"""The checks of Streamable HTTP on the headers of a request: path (404), method (405) and media types (406, 415).

Source: "basic/transports, Streamable HTTP" of every revision from 2025-03-26 on; RFC 9110 section 12.5.1 (Accept).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._state.sessions.store import LiveSessions, NoSessions
from funcmcp._transports.http.admission.body import IDENTITY, is_identity, wrong_type
from funcmcp._transports.http.messages import READ_METHODS
from funcmcp._transports.http.status import accepts, is_json, refuse, wrong_method

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from funcmcp._state.sessions.store import SessionStore
    from funcmcp._transports.http.messages import HttpRequest, HttpResponse
    from funcmcp._transports.http.status import Accepts

PageOf: TypeAlias = "Callable[[HttpRequest], HttpResponse | None]"
"""Returns the response with the page for people; None if the request does not ask for it."""


_MAX_CACHED_LENGTH = 512
"""Bytes of header values whose meaning is kept, all together."""


class CheckedHeaders:
    """What the media types and the revision in the header of a request mean.

    Attributes:
        accept: The kinds of answer that the client accepts.
        has_json: Whether the body is JSON without an encoding.
        version: The revision in the MCP-Protocol-Version header; None without the header.
        per_request: Whether that revision has no handshake, or does not exist.
        is_supported: Whether the server serves that revision; True without the header.
    """

    __slots__ = ("accept", "has_json", "is_supported", "per_request", "version")

    def __init__(self, accept: Accepts, version: str | None, *, has_json: bool, is_supported: bool) -> None:
        self.accept = accept
        self.has_json = has_json
        self.version = version
        self.is_supported = is_supported
        self.per_request = version is not None and (version not in REVISIONS or REVISIONS[version].per_request)


class StreamableHeaders:
    """Examines the headers of requests.

    Args:
        revisions: The dates of the revisions that the server serves.
        path: The path of the endpoint.
        sessions: Decides which methods the endpoint has: GET with live sessions, DELETE with any sessions.
        page: Returns the page for a request of a browser. None: they get the same answers as MCP clients.

    Attributes:
        FIELDS: The names of the fields that decide about a POST.
    """

    FIELDS: ClassVar[frozenset[bytes]] = frozenset(
        {b"accept", b"content-encoding", b"content-type", b"mcp-protocol-version"}
    )

    def __init__(
        self, revisions: Container[str], path: str, sessions: SessionStore, page: PageOf | None = None
    ) -> None:
        self._revisions = revisions
        self._path = path
        self._paths = {path, path.rstrip("/"), path.rstrip("/") + "/"}
        self._has_sessions = not isinstance(sessions, NoSessions)
        self._has_streams = isinstance(sessions, LiveSessions)
        self._page = page
        # It depends on nothing but its arguments.
        self._read_again = lru_cache(maxsize=256)(self._read)

    def examine(self, request: HttpRequest) -> CheckedHeaders | HttpResponse:
        """Return the headers of a request that passes, or the response to another one: a refusal or the page."""
        if request.path not in self._paths:
            return refuse(404, INVALID_REQUEST, f"Nothing is here; the MCP endpoint is {request.mount}{self._path}.")
        if self._page is not None and request.method in READ_METHODS:
            response = self._page(request)
            if response is not None:
                return response
        fields = request.fields
        accept, content_type = fields.get(b"accept", b""), fields.get(b"content-type", b"")
        encoding, version = fields.get(b"content-encoding", IDENTITY), fields.get(b"mcp-protocol-version")
        length = len(accept) + len(content_type) + len(encoding) + len(version or b"")
        read = self._read_again if length <= _MAX_CACHED_LENGTH else self._read
        checked = read(accept, content_type, encoding, version)
        if request.method == "POST" and checked.has_json and (checked.accept.json or checked.accept.events):
            return checked
        return self._refusal_for(request, checked) or checked

    def _read(self, accept: bytes, content_type: bytes, encoding: bytes, version_field: bytes | None) -> CheckedHeaders:
        """Return what the values of some header fields mean. Clients repeat them, so they are rarely read."""
        version = None if version_field is None else version_field.decode("latin-1").strip(" \t")
        is_supported = version is None or version in self._revisions
        has_json = is_json(content_type) and is_identity(encoding)
        return CheckedHeaders(accepts(accept), version, has_json=has_json, is_supported=is_supported)

    def _refusal_for(self, request: HttpRequest, checked: CheckedHeaders) -> HttpResponse | None:
        """Return the refusal of a request with the wrong method or media types, or None."""
        methods = self._methods(checked, can_stream=request.can_stream)
        if request.method not in methods:
            return wrong_method(methods)
        if request.method == "POST":
            return wrong_type(request) or refuse(406, INVALID_REQUEST, "Accept application/json and text/event-stream.")
        if request.method == "GET" and not checked.accept.events:
            return refuse(406, INVALID_REQUEST, "Accept text/event-stream.")
        return None

    def _methods(self, checked: CheckedHeaders, *, can_stream: bool) -> tuple[str, ...]:
        if checked.per_request or not self._has_sessions:
            return ("POST",)
        if self._has_streams and can_stream:
            return ("GET", "POST", "DELETE")
        return ("POST", "DELETE")
