"""WebSocket: one message in each text frame, under the subprotocol `mcp`.

Source: 2026-07-28 "basic/transports, Custom Transports" (any two-way channel may carry the messages); RFC 6455
sections 4.2.2 (subprotocols) and 7.4.1 (status codes).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp.server.limits import LimitReachedError
from funcmcp.transports.connection import Connection
from funcmcp.transports.http.admission.origin import OriginCheck
from funcmcp.transports.http.admission.rate_limits import known_caller, no_room, pace_of, wrong_header

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from funcmcp.server.dispatch import Server
    from funcmcp.transports.http.admission.authentication import Identity
    from funcmcp.transports.http.messages import HttpRequest, HttpResponse
    from funcmcp.transports.http.options import HTTPOptions

    Receive = Callable[[], Awaitable[str | bytes | None]]
    Send = Callable[[bytes], Coroutine[Any, Any, None]]

SUBPROTOCOL = "mcp"
_GOING_AWAY, _NOT_TEXT, _NOT_ALLOWED, _TOO_BIG = 1001, 1003, 1008, 1009


class WebSocket:
    """The endpoint.

    Args:
        server: answers the requests.
        options: what the operator chose about HTTP: hosts and origins.
        path: where the endpoint is, such as `/ws`; None if it is nowhere.
        identity: finds out who calls; None lets everybody call.
    """

    def __init__(
        self, server: Server, options: HTTPOptions, *, path: str | None, identity: Identity | None = None
    ) -> None:
        self._identity = identity
        self._server = server
        self._limits = server.options.limits
        self._proxies = options.proxies
        self._pace = pace_of(options.rates, options.proxies)
        self._path = path
        self._origin = OriginCheck(options)

    def refusal(self, request: HttpRequest, subprotocols: Sequence[str]) -> tuple[int, str] | None:
        """Return the HTTP status and the reason of a refusal, or None if the WebSocket may be opened.

        Args:
            request: the request to open it.
            subprotocols: what the client offers.
        """
        refusal = self._origin.refusal(request)
        if refusal is not None:
            return refusal
        if request.path != self._path:
            return 404, "No WebSocket is served here."
        if SUBPROTOCOL not in subprotocols:
            return 400, f"Offer the subprotocol {SUBPROTOCOL}."
        if wrong_header(request, self._limits.header_bytes) is not None:
            return 431, f"The header may have {self._limits.header_bytes} bytes."
        return None

    async def turned_away(self, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal of a client whose credentials don't let it open one more WebSocket now, or None."""
        request.caller = known_caller(request, self._proxies)
        refusal = None if self._identity is None else await self._identity.open(request)
        if self._pace is not None:
            refusal = await self._pace.refusal(request) or refusal
        if refusal is not None:
            return refusal
        try:
            request.caller = known_caller(request, self._proxies)
            self._server.load.streams.check(request.caller)
        except LimitReachedError as error:
            return no_room(error)
        return None

    async def serve(self, request: HttpRequest, receive: Receive, send: Send) -> tuple[int, str] | None:
        """Serve an open WebSocket to its end; return the status code and the reason to close it with, if it is open.

        It ends when the client closes it or does not read a message within `Limits.write_seconds`. When the server is
        about to end, calls in flight are answered first.

        Args:
            request: the request that opened it.
            receive: returns the next message, text or binary; None once the client has gone.
            send: sends a text message; never raises.
        """
        with self._server.load.streams.counting(request.caller):
            return await self._serve(request, receive, send)

    async def _serve(self, request: HttpRequest, receive: Receive, send: Send) -> tuple[int, str] | None:
        connection = Connection(self._server, send, patience=self._limits.write_seconds)
        reading = asyncio.create_task(self._read(connection, request, receive))
        ending = asyncio.create_task(connection.finish_with_server(answerable=True))
        given_up = asyncio.create_task(connection.ended.wait())
        tasks: set[asyncio.Task[Any]] = {reading, ending, given_up}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                return reading.result()
            return None if given_up.done() else (_GOING_AWAY, "The server ends.")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await connection.aclose()

    async def _read(self, connection: Connection, request: HttpRequest, receive: Receive) -> tuple[int, str] | None:
        most, pace = self._limits.message_bytes, self._pace
        waiting = None if pace is None else partial(pace.wait, request)
        while not connection.closed and (message := await receive()) is not None:
            if isinstance(message, bytes):
                return _NOT_TEXT, "Send text frames."
            data = message.encode("utf-8", "surrogatepass")
            if len(data) > most:
                return _TOO_BIG, f"A message may have {most} bytes."
            if self._identity is not None and not await self._identity.knows_still(request):
                return _NOT_ALLOWED, "The credentials are no longer good."
            await connection.receive(data, request, pace=waiting)
        return None
