"""Streamable HTTP: one endpoint for both eras. `StreamableHTTP` is a function from HttpRequest to HttpResponse.

How it works: `Admission` decides whether a request is served. The body of a POST goes to one of two eras. It belongs to
the per-request era if ``_meta`` of the message says so, or the MCP-Protocol-Version header of a message that neither is
``initialize`` nor has a session, and else to the handshake era. GET and DELETE exist in the handshake era only. A
browser's GET gets the page, which needs no credentials.

Source: "basic/transports, Streamable HTTP" of every revision from 2025-03-26 on.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from funcmcp._protocol.codec import InvalidJSONError, RepeatedNameError, decode, memory_of, request_id_in
from funcmcp._protocol.envelope import carries_version
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from funcmcp._server.calls.route import RoutedRequest
from funcmcp._server.limits import LimitReachedError
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._transports.http.admission.admission import Admission, HeaderCheck
from funcmcp._transports.http.admission.body import answer_body, too_large
from funcmcp._transports.http.endpoints.handshake import HandshakeEra
from funcmcp._transports.http.endpoints.per_request import PerRequestEra
from funcmcp._transports.http.endpoints.streamable_headers import CheckedHeaders, StreamableHeaders
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import limit_reached, refuse
from funcmcp._transports.http.streams import sse

if TYPE_CHECKING:
    from funcmcp._server.calls.route import RoutedBody
    from funcmcp._server.dispatch import Server
    from funcmcp._state.sessions.store import SessionStore
    from funcmcp._transports.http.admission.authentication import Authentication
    from funcmcp._transports.http.endpoints.streamable_headers import PageOf
    from funcmcp._transports.http.messages import HttpRequest
    from funcmcp._transports.http.options import HTTPOptions

_OK = 200


class Era(Protocol):
    """Answers POSTs."""

    async def post(self, http: HttpRequest, message: RoutedBody, checked: CheckedHeaders) -> HttpResponse:
        """Answer a POST whose body has been decoded and routed."""


class StreamableHTTP:
    """The endpoint.

    Args:
        server: Answers the messages.
        sessions: Stores the sessions of the handshake era.
        options: The options of the HTTP endpoints.
        path: The path of the endpoint, such as `/mcp`.
        authentication: Authenticates callers; None admits every caller.
        page: Returns the page for a request of a browser. None: they get the same answers as MCP clients.
    """

    def __init__(
        self,
        server: Server,
        sessions: SessionStore,
        options: HTTPOptions,
        *,
        path: str,
        authentication: Authentication | None = None,
        page: PageOf | None = None,
    ) -> None:
        self._server = server
        self._limits = server.options.limits
        self._load = server.load
        headers = StreamableHeaders(server.revisions, path, sessions, page)
        self._admission: Admission[CheckedHeaders] = Admission(
            server, options, HeaderCheck(headers.examine, headers.FIELDS), authentication, checks_messages=True
        )
        self._handshake = HandshakeEra(server, sessions, require_session=options.require_session)
        self._per_request = PerRequestEra(server)
        self._authentication = authentication

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        checked = await self._admission.admit(request)
        if isinstance(checked, HttpResponse):
            return await self._page_in_time(request, checked) if checked.status == _OK else checked
        body = request.take_body() if request.method == "POST" else b""
        if body is not None and len(body) > self._limits.message_bytes:
            return too_large(self._limits.message_bytes)
        try:
            if body is None:
                return await answer_body(request, self._limits, self._load, partial(self._answer, request, checked))
            self._load.requests.take(request.caller)
            try:
                if request.method == "POST":
                    return await self._answer(request, checked, body)
                return await self._get_or_delete(request, checked)
            finally:
                self._load.requests.give_back(request.caller)
        except LimitReachedError as error:
            return limit_reached(error)

    async def _page_in_time(self, request: HttpRequest, page: HttpResponse) -> HttpResponse:
        """Return the page, or the refusal of a caller who sends too many requests."""
        if self._admission.rate_limit is None:
            return page
        return await self._admission.rate_limit.refusal(request) or page

    async def _get_or_delete(self, request: HttpRequest, checked: CheckedHeaders) -> HttpResponse:
        try:
            if request.method == "GET":
                return await self._handshake.get(request, checked)
            return await self._handshake.delete(request, checked)
        except StoreUnavailableError as error:
            return _unserved(error)

    async def _answer(self, request: HttpRequest, checked: CheckedHeaders, body: bytes) -> HttpResponse:
        """Answer the body of a POST."""
        try:
            value: Any = decode(body, self._limits.message_depth, self._limits.message_values)
        except (InvalidJSONError, RepeatedNameError) as error:
            code = PARSE_ERROR if isinstance(error, InvalidJSONError) else INVALID_REQUEST
            return refuse(400, code, str(error), request_id=request_id_in(body, self._limits.message_values))
        per_request = checked.per_request
        message: RoutedBody
        if type(value) is list:
            refusal = await self._count_batch(request, len(value))
            if refusal is not None:
                return refusal
            message = value
        else:
            if type(value) is dict:
                per_request = carries_version(value.get("params")) or (
                    per_request and not _has_handshake(request, checked, value)
                )
            message = self._server.read(value, memory_of(body))
            if self._server.provided is not None:
                message = await self._server.resolve(message, request.principal, http=request)
        if self._authentication is not None:
            refusal = await self._authentication.check(message, request)
            if refusal is not None:
                return refusal
        era: Era = self._per_request if per_request else self._handshake
        try:
            response = await era.post(request, message, checked)
        except (StoreUnavailableError, LimitReachedError) as error:
            response = _unserved(error, message)
        if request.has_early_response:
            return sse.rest_of_stream(response)
        return response if checked.accept.json else sse.as_stream(response)

    async def _count_batch(self, request: HttpRequest, size: int) -> HttpResponse | None:
        """Count the messages of a batch but one, which was counted with the request; return its refusal, or None."""
        if self._admission.rate_limit is None or size < 2:  # noqa: PLR2004 - one message is counted already
            return None
        return await self._admission.rate_limit.refusal(request, size - 1)


def _has_handshake(request: HttpRequest, checked: CheckedHeaders, message: dict[str, Any]) -> bool:
    """Return whether a message without a version in ``_meta`` is of the handshake era, whatever the header says.

    ``initialize`` negotiates the revision, and after it, that of the session counts. Some clients go on to name their
    newest one in the header, such as Claude.ai in August 2026 (https://github.com/CodeWithCJ/SparkyFitness/issues/2155).
    """
    has_session = checked.is_supported and bool(request.fields.get(b"mcp-session-id"))
    return has_session or message.get("method") == "initialize"


def _unserved(error: StoreUnavailableError | LimitReachedError, message: RoutedBody | None = None) -> HttpResponse:
    """Return the refusal of a request for which there is no room, or whose store can't be reached."""
    request_id = message.request.id if isinstance(message, RoutedRequest) else None
    if isinstance(error, LimitReachedError):
        return limit_reached(error, request_id)
    if error.retry_after is None:
        return refuse(503, INTERNAL_ERROR, str(error), request_id=request_id)
    retry = (("retry-after", str(error.retry_after)),)
    return refuse(503, INTERNAL_ERROR, f"{error} Try again later.", request_id=request_id, headers=retry)
