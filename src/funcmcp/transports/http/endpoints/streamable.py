"""Streamable HTTP: one endpoint for both eras. `StreamableHTTP` is a function from HttpRequest to HttpResponse.

Source: "basic/transports, Streamable HTTP" of every revision from 2025-03-26 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol.codec import InvalidJSONError, RepeatedNameError, decode
from funcmcp.protocol.envelope import carries_version
from funcmcp.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from funcmcp.server.calls.route import RoutedRequest
from funcmcp.server.limits import LimitReachedError
from funcmcp.server.load import Body
from funcmcp.state.sessions.store import StoreAwayError
from funcmcp.transports.http.admission.authentication import Guarded
from funcmcp.transports.http.admission.body import read_body
from funcmcp.transports.http.admission.header_checks import HeaderChecks
from funcmcp.transports.http.admission.rate_limits import known_caller, no_room, pace_of, wrong_header
from funcmcp.transports.http.endpoints.handshake import HandshakeEra
from funcmcp.transports.http.endpoints.per_request import PerRequestEra
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import refuse
from funcmcp.transports.http.streams import sse

if TYPE_CHECKING:
    from funcmcp.protocol.jsonrpc import RequestId
    from funcmcp.server.calls.route import RoutedBody
    from funcmcp.server.dispatch import Server
    from funcmcp.state.sessions.store import SessionStore
    from funcmcp.transports.http.admission.authentication import Era, Identity
    from funcmcp.transports.http.admission.header_checks import CheckedHeaders
    from funcmcp.transports.http.messages import HttpRequest
    from funcmcp.transports.http.options import HTTPOptions


class StreamableHTTP:
    """The endpoint.

    Args:
        server: answers the requests.
        sessions: remembers sessions of the handshake era.
        options: what the operator chose.
        path: where the endpoint is, such as `/mcp`.
        identity: finds out who calls; None lets everybody call.
    """

    def __init__(
        self,
        server: Server,
        sessions: SessionStore,
        options: HTTPOptions,
        *,
        path: str,
        identity: Identity | None = None,
    ) -> None:
        self._server = server
        self._identity = identity
        self._limits = server.options.limits
        self._load = server.load
        self._proxies = options.proxies
        self._pace = pace_of(options.rates, options.proxies)
        self._header_checks = HeaderChecks(server, options, path=path, sessions=sessions)
        self._max_header = self._limits.header_bytes
        self._handshake = HandshakeEra(server, sessions, optional=options.optional_sessions)
        self._sessions: Era = self._handshake
        self._per_request: Era = PerRequestEra(server)
        if identity is not None:
            self._sessions = Guarded(self._sessions, identity)
            self._per_request = Guarded(self._per_request, identity)

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        large = wrong_header(request, self._max_header)
        if large is not None:
            return large
        checked = self._header_checks.check(request)
        if isinstance(checked, HttpResponse):
            return checked
        load = self._load
        try:
            load.requests.check(None)  # at once, before credentials or a body cost anything
            if self._identity is not None or self._pace is not None:
                refusal = await self._admit(request)
                if refusal is not None:
                    return refusal
            request.caller = known_caller(request, self._proxies)
            if request.method == "POST":
                return await self._post(request, checked)
            load.requests.take(request.caller)
            try:
                return await self._get_or_delete(request, checked)
            finally:
                load.requests.give_back(request.caller)
        except LimitReachedError as error:
            return no_room(error)

    async def _admit(self, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal of a request whose caller may not send it, or not now."""
        refusal = None
        if self._identity is not None:
            request.caller = known_caller(request, self._proxies)
            refusal = await (self._identity.admit if request.method == "POST" else self._identity.open)(request)
        if self._pace is not None:
            refusal = await self._pace.refusal(request) or refusal
        return refusal

    async def _get_or_delete(self, request: HttpRequest, checked: CheckedHeaders) -> HttpResponse:
        try:
            return await (self._handshake.get if request.method == "GET" else self._handshake.delete)(request, checked)
        except StoreAwayError as error:
            return _away(error)

    async def _post(self, request: HttpRequest, checked: CheckedHeaders) -> HttpResponse:
        """Read the body of a POST, and answer it if there is room for one more request then."""
        load, caller = self._load, request.caller
        incoming = Body(load.bodies, caller)
        try:
            body = await read_body(request, self._limits, incoming)
            if isinstance(body, HttpResponse):
                return body
            load.requests.take(caller)
            try:
                return await self._answer(request, body, checked)
            finally:
                load.requests.give_back(caller)
        finally:
            incoming.close()

    async def _answer(self, request: HttpRequest, body: bytes, checked: CheckedHeaders) -> HttpResponse:
        try:
            value: Any = decode(body, self._limits.nesting, self._limits.message_values)
        except InvalidJSONError as error:
            return refuse(400, PARSE_ERROR, str(error))
        except RepeatedNameError as error:
            return refuse(400, INVALID_REQUEST, str(error))
        per_request = checked.per_request
        if type(value) is dict:
            per_request = per_request or carries_version(value.get("params"))
        elif self._pace is not None and type(value) is list and len(value) > 1:
            refusal = await self._pace.refusal(request, len(value) - 1)
            if refusal is not None:
                return refusal
        message: RoutedBody = value if type(value) is list else self._server.read(value)
        era = self._per_request if per_request else self._sessions
        try:
            response = await era.post(request, message, checked)
        except StoreAwayError as error:
            return _away(error, message.request.id if isinstance(message, RoutedRequest) else None)
        except LimitReachedError as error:
            return no_room(error, message.request.id if isinstance(message, RoutedRequest) else None)
        return response if checked.accept.json else sse.as_stream(response)


def _away(error: StoreAwayError, request_id: RequestId | None = None) -> HttpResponse:
    """Refuse what needs the store that the instances share while it can't be reached."""
    retry = (("retry-after", str(error.retry_after)),)
    reason = "Sessions can't be reached now; try again later."
    return refuse(503, INTERNAL_ERROR, reason, request_id=request_id, headers=retry)
