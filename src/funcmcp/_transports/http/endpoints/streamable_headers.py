"""The checks of Streamable HTTP on the headers of a request: path (404), method (405) and media types (406, 415).

Source: "basic/transports, Streamable HTTP" of every revision from 2025-03-26 on; RFC 9110 section 12.5.1 (Accept).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._state.sessions.store import LiveSessions, NoSessions
from funcmcp._transports.http.admission.body import wrong_type
from funcmcp._transports.http.messages import READ_METHODS
from funcmcp._transports.http.status import accepts, refuse, wrong_method

if TYPE_CHECKING:
    from collections.abc import Container

    from funcmcp._state.sessions.store import SessionStore
    from funcmcp._transports.http.endpoints.page import Page
    from funcmcp._transports.http.messages import HttpRequest, HttpResponse
    from funcmcp._transports.http.status import Accepts


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


class StreamableHeaders:
    """Examines the headers of requests.

    Args:
        revisions: The dates of the revisions that the server serves.
        path: The path of the endpoint.
        sessions: Decides which methods the endpoint has: GET with live sessions, DELETE with any sessions.
        page: Answers browsers. None: they get the same answers as MCP clients.
    """

    def __init__(self, revisions: Container[str], path: str, sessions: SessionStore, page: Page | None = None) -> None:
        self._revisions = revisions
        self._path = path
        self._paths = {path, path.rstrip("/"), path.rstrip("/") + "/"}
        self._sessions = sessions
        self._page = page

    def examine(self, request: HttpRequest) -> CheckedHeaders | HttpResponse:
        """Return the headers of a request that passes, or the response to another one: a refusal or the page."""
        if request.path not in self._paths:
            return refuse(404, INVALID_REQUEST, f"Nothing is here; the MCP endpoint is {request.mount}{self._path}.")
        if self._page is not None and request.method in READ_METHODS:
            response = self._page.answer(request)
            if response is not None:
                return response
        version = None
        version_field = request.fields.get(b"mcp-protocol-version")
        if version_field is not None:
            version = version_field.decode("latin-1").strip(" \t")
        is_supported = version is None or version in self._revisions
        checked = CheckedHeaders(accepts(request.fields.get(b"accept")), version, is_supported=is_supported)
        methods = self._methods(checked, can_stream=request.can_stream)
        if request.method not in methods:
            return wrong_method(methods)
        if request.method == "POST":
            return _refusal_of_post(request, checked) or checked
        if request.method == "GET" and not checked.accept.events:
            return refuse(406, INVALID_REQUEST, "Accept text/event-stream.")
        return checked

    def _methods(self, checked: CheckedHeaders, *, can_stream: bool) -> tuple[str, ...]:
        if checked.per_request or isinstance(self._sessions, NoSessions):
            return ("POST",)
        if isinstance(self._sessions, LiveSessions) and can_stream:
            return ("GET", "POST", "DELETE")
        return ("POST", "DELETE")


def _refusal_of_post(request: HttpRequest, checked: CheckedHeaders) -> HttpResponse | None:
    refusal = wrong_type(request)
    if refusal is None and not (checked.accept.json or checked.accept.events):
        return refuse(406, INVALID_REQUEST, "Accept application/json and text/event-stream.")
    return refusal
