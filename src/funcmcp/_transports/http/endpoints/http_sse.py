"""HTTP+SSE, the transport of 2024-11-05, for clients that have no later one.

How it works: GET opens an event stream. Its first event has the URI to which the client posts its messages: a path with
the prefix that a proxy removes, if the server knows it. A URI of the query alone would be right behind any prefix, but
clients of the Java SDK resolve it against the root of the server. Everything that the server sends, answers included,
comes on the stream; the answer to a POST is 202. A stream is a `Connection` from its first event to its end. When the
server shuts down, the stream continues until the calls in flight have their answers.

Source: 2024-11-05 "basic/transports, HTTP with SSE".
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from funcmcp._auth.owner import owner_of
from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._server.limits import LimitReachedError
from funcmcp._transports.connection import Connection
from funcmcp._transports.http.admission.admission import Admission, HeaderCheck
from funcmcp._transports.http.admission.body import answer_body, wrong_type
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.options import PLAIN_PATH
from funcmcp._transports.http.status import accepted, limit_reached, refuse, wrong_method
from funcmcp._transports.http.streams import sse
from funcmcp._transports.http.streams.event_queue import EventQueue

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.admission.authentication import Authentication
    from funcmcp._transports.http.messages import Exchange, HttpRequest
    from funcmcp._transports.http.options import HTTPOptions

_SESSION = "session_id"
_METHODS = ("GET", "POST")
_MAX_QUEUED = 16
"""Messages that may be queued for a slow reader. Beyond that, runs wait."""


class HTTPSSE:
    """The endpoint: GET opens a stream, and POST takes a message for one of the open streams.

    Args:
        server: Answers the messages.
        options: The options of the HTTP endpoints.
        path: The path of the endpoint, such as `/sse`.
        otherwise: Answers the requests for all other paths.
        authentication: Authenticates callers; None admits every caller.
    """

    def __init__(
        self,
        server: Server,
        options: HTTPOptions,
        *,
        path: str,
        otherwise: Exchange,
        authentication: Authentication | None = None,
    ) -> None:
        self._server = server
        self._limits = server.options.limits
        self._path = path
        self._has_proxies = bool(options.proxies)
        self._otherwise = otherwise
        self._admission: Admission[Literal[True]] = Admission(server, options, HeaderCheck(_examine), authentication)
        self._connections: dict[str, tuple[Connection, str | None]] = {}

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        if request.path != self._path:
            return await self._otherwise(request)
        checked = await self._admission.admit(request)
        if isinstance(checked, HttpResponse):
            return checked
        try:
            if request.method == "POST":
                return await self._post(request)
            self._server.load.streams.check(request.caller)
        except LimitReachedError as error:
            return limit_reached(error)
        return sse.response(self._events(request))

    async def _post(self, request: HttpRequest) -> HttpResponse:
        connection, owner = self._connections.get(request.query_params.get(_SESSION, ""), (None, None))
        if connection is None or owner != owner_of(request.principal):
            return _unknown_stream()
        answer = partial(self._receive, request, connection)
        return await answer_body(request, self._limits, self._server.load, answer)

    async def _receive(self, request: HttpRequest, connection: Connection, body: bytes) -> HttpResponse:
        await connection.receive(body, request, pace=partial(self._count_batch, request))
        return _unknown_stream() if connection.closed else accepted()

    async def _count_batch(self, request: HttpRequest, count: int) -> None:
        """Count the messages of a batch but one, which was counted with the request; raise LimitReachedError.

        A POST is refused and does not wait, as a WebSocket does, because it has one of the places for requests.
        """
        if self._admission.rate_limit is not None and count > 1:
            await self._admission.rate_limit.take(request, count - 1)

    async def _events(self, request: HttpRequest) -> AsyncIterator[bytes]:
        """Yield the events of a stream. The connection begins here, so that a response that is never sent has none."""
        with self._server.load.streams.counting(request.caller):
            async with aclosing(self._serve(request)) as events:
                async for part in events:
                    yield part

    async def _serve(self, request: HttpRequest) -> AsyncGenerator[bytes]:
        messages = EventQueue(_MAX_QUEUED)
        connection = Connection(self._server, messages.put, patience=self._limits.write_seconds)
        session_id = secrets.token_urlsafe(32)
        self._connections[session_id] = connection, owner_of(request.principal)
        # During a shutdown the server accepts no POST, so that questions can't be answered.
        shutdown = asyncio.create_task(connection.finish_with_server(answerable=False))
        shutdown.add_done_callback(lambda _: messages.end())
        try:
            uri = f"{quote(self._prefix_of(request) + request.path)}?{_SESSION}={session_id}"
            yield sse.event(uri.encode("ascii"), name=b"endpoint")
            while not connection.closed:
                part = await messages.next_part()
                if part is None:
                    return
                yield part
        finally:
            shutdown.cancel()
            del self._connections[session_id]
            await connection.aclose()

    def _prefix_of(self, request: HttpRequest) -> str:
        """Return what is before the endpoint's path in the URL of the client."""
        if not request.mount and self._has_proxies:
            prefix = request.headers.get("x-forwarded-prefix", "").rstrip("/")
            return prefix if PLAIN_PATH.fullmatch(prefix) else ""
        return request.mount


def _examine(request: HttpRequest) -> Literal[True] | HttpResponse:
    """Return the refusal of a request by its method and media type, or True."""
    if request.method not in _METHODS:
        return wrong_method(_METHODS)
    if request.method == "POST":
        return wrong_type(request) or True
    return True


def _unknown_stream() -> HttpResponse:
    return refuse(404, INVALID_REQUEST, "Unknown stream. Open a stream with GET and keep it open.")
