"""HTTP+SSE, the transport of 2024-11-05, for clients that know no better one.

GET opens a stream of events. Its first one names the URI that the client posts its messages to; what the server has
to say, answers included, comes on the stream. The stream is the connection: they end together.
When the server is about to end, the stream stays until the calls in flight are answered.

Source: 2024-11-05 "basic/transports, HTTP with SSE".
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from funcmcp.auth.principal import owner_of
from funcmcp.protocol.errors import INVALID_REQUEST
from funcmcp.server.limits import LimitReachedError
from funcmcp.server.load import Body
from funcmcp.transports.connection import Connection
from funcmcp.transports.http.admission.body import read_body, wrong_length, wrong_type
from funcmcp.transports.http.admission.origin import OriginCheck
from funcmcp.transports.http.admission.rate_limits import known_caller, no_room, pace_of, wrong_header
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import accepted, refuse
from funcmcp.transports.http.streams import sse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from funcmcp.server.dispatch import Server
    from funcmcp.transports.http.admission.authentication import Identity
    from funcmcp.transports.http.messages import Exchange, HttpRequest
    from funcmcp.transports.http.options import HTTPOptions

_SESSION = "session_id"
_MAX_WAITING = 16
"""Messages that may wait for a slow reader; then whoever has more to say waits too."""


class HTTPSSE:
    """The endpoint: GET opens a stream, POST takes a message for one of the open streams.

    Args:
        server: answers the requests.
        options: what the operator chose about HTTP.
        path: where the endpoint is, such as `/sse`.
        otherwise: answers the requests for all other paths.
        identity: finds out who calls; None lets everybody call.
    """

    def __init__(
        self,
        server: Server,
        options: HTTPOptions,
        *,
        path: str,
        otherwise: Exchange,
        identity: Identity | None = None,
    ) -> None:
        self._server = server
        self._limits = server.options.limits
        self._proxies = options.proxies
        self._pace = pace_of(options.rates, options.proxies)
        self._path = path
        self._otherwise = otherwise
        self._origin = OriginCheck(options)
        self._identity = identity
        self._connections: dict[str, tuple[Connection, str | None]] = {}

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        if request.path != self._path:
            return await self._otherwise(request)
        refusal = self._origin.refusal(request)
        if refusal is not None:
            return refuse(refusal[0], INVALID_REQUEST, refusal[1])
        if request.method not in {"GET", "POST"}:
            return refuse(405, INVALID_REQUEST, "Use GET, POST.", headers=(("allow", "GET, POST"),))
        large = wrong_header(request, self._limits.header_bytes)
        if large is not None:
            return large
        try:
            self._server.load.requests.check(None)  # at once, before credentials or a body cost anything
            return await self._admit(request) or await self._answer(request)
        except LimitReachedError as error:
            return no_room(error)

    async def _admit(self, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal of a request whose caller may not send it, or not now; note who the caller is."""
        request.caller = known_caller(request, self._proxies)
        refused = None if self._identity is None else await self._identity.open(request)
        request.caller = known_caller(request, self._proxies)
        early = None if self._pace is None else await self._pace.refusal(request)
        return early or refused

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if request.method == "POST":
            return await self._post(request)
        self._server.load.streams.check(request.caller)
        return sse.response(self._events(request))

    async def _post(self, request: HttpRequest) -> HttpResponse:
        connection, owner = self._connections.get(request.query.get(_SESSION, ""), (None, None))
        if connection is None or owner != owner_of(request.principal):
            return _no_stream()
        refusal = wrong_type(request) or wrong_length(request, self._limits.message_bytes)
        if refusal is not None:
            return refusal
        load, caller = self._server.load, request.caller
        incoming = Body(load.bodies, caller)
        try:
            body = await read_body(request, self._limits, incoming)
            if isinstance(body, HttpResponse):
                return body
            load.requests.take(caller)
            try:
                await connection.receive(body, request, pace=partial(self._count_rest, request))
            finally:
                load.requests.give_back(caller)
        finally:
            incoming.close()
        return _no_stream() if connection.closed else accepted()

    async def _count_rest(self, request: HttpRequest, count: int) -> None:
        """Count the messages of a batch but for one, which was counted with its POST.

        A POST does not wait until it is time for them, as a WebSocket does: it has one of the places for requests.
        """
        if self._pace is not None and count > 1:
            await self._pace.take(request, count - 1)

    async def _events(self, request: HttpRequest) -> AsyncIterator[bytes]:
        """Yield the events of a stream. The connection begins here: a response that is never sent leaves nothing."""
        with self._server.load.streams.counting(request.caller):
            async with aclosing(self._talk(request)) as events:
                async for part in events:
                    yield part

    async def _talk(self, request: HttpRequest) -> AsyncGenerator[bytes]:
        messages: asyncio.Queue[bytes] = asyncio.Queue(_MAX_WAITING)
        connection = Connection(self._server, messages.put, patience=self._limits.write_seconds)
        session_id = secrets.token_urlsafe(32)
        self._connections[session_id] = connection, owner_of(request.principal)
        ending = asyncio.create_task(connection.finish_with_server(answerable=False))  # nothing can be posted then
        try:
            uri = f"{quote(request.mount + request.path)}?{_SESSION}={session_id}"
            yield sse.event(uri.encode("ascii"), name=b"endpoint")
            while not connection.closed:
                part = await sse.next_part(messages, ending)
                if part is None:
                    return
                yield part
        finally:
            ending.cancel()
            del self._connections[session_id]
            await connection.aclose()


def _no_stream() -> HttpResponse:
    return refuse(404, INVALID_REQUEST, "Unknown stream. Open a stream with GET and keep it open.")
