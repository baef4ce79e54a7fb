"""WebSocket: one message in each text frame, with the subprotocol `mcp`.

How it works: `WebSocket.admit` decides about the handshake like any other HTTP endpoint. Then `serve` runs one
`Connection` until the first of three events: the client closes the WebSocket or breaks a rule (`_read` returns), the
client does not read a message in time (`Connection.ended`), or the server shuts down and the calls in flight are
answered. Before each message the credentials of the handshake are validated again, because they may have expired.

Source: 2026-07-28 "basic/transports, Custom Transports" (any two-way channel may carry the messages); RFC 6455
sections 4.2.2 (subprotocols) and 7.4.1 (status codes).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._server.limits import LimitReachedError
from funcmcp._transports.connection import Connection
from funcmcp._transports.http.admission.admission import Admission, HeaderCheck
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import limit_reached, refuse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.admission.authentication import Authentication
    from funcmcp._transports.http.messages import HttpRequest
    from funcmcp._transports.http.options import HTTPOptions

    Receive = Callable[[], Awaitable[str | bytes | None]]
    Send = Callable[[bytes], Coroutine[Any, Any, None]]

SUBPROTOCOL = "mcp"
_GOING_AWAY, _NOT_TEXT, _NOT_ALLOWED, _TOO_BIG = 1001, 1003, 1008, 1009


class WebSocket:
    """The endpoint.

    Args:
        server: Answers the messages.
        options: The options of the HTTP endpoints.
        path: The path of the endpoint, such as `/ws`; None without an endpoint.
        authentication: Authenticates callers; None admits every caller.
    """

    def __init__(
        self, server: Server, options: HTTPOptions, *, path: str | None, authentication: Authentication | None = None
    ) -> None:
        self._authentication = authentication
        self._server = server
        self._limits = server.options.limits
        self._path = path
        self._admission: Admission[Literal[True]] = Admission(
            server, options, HeaderCheck(self._examine), authentication
        )

    async def admit(self, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal of a request to open a WebSocket, or None if it may be opened."""
        checked = await self._admission.admit(request)
        if isinstance(checked, HttpResponse):
            return checked
        try:
            self._server.load.streams.check(request.caller)
        except LimitReachedError as error:
            return limit_reached(error)
        return None

    def _examine(self, request: HttpRequest) -> Literal[True] | HttpResponse:
        if request.path != self._path:
            return refuse(404, INVALID_REQUEST, "No WebSocket is served here.")
        offered = request.fields.get(b"sec-websocket-protocol", b"").decode("latin-1").split(",")
        if SUBPROTOCOL not in map(str.strip, offered):
            return refuse(400, INVALID_REQUEST, f"Offer the subprotocol {SUBPROTOCOL}.")
        return True

    async def serve(self, request: HttpRequest, receive: Receive, send: Send) -> tuple[int, str] | None:
        """Serve an open WebSocket to its end.

        Args:
            request: The request that opened it.
            receive: Returns the next message, text or binary; None once the client has disconnected.
            send: Sends a text message; never raises.

        Returns:
            The status code and the reason for closing the WebSocket; None if it is closed already, or if the client
            does not read.
        """
        with self._server.load.streams.counting(request.caller):
            return await self._serve(request, receive, send)

    async def _serve(self, request: HttpRequest, receive: Receive, send: Send) -> tuple[int, str] | None:
        connection = Connection(self._server, send, patience=self._limits.write_seconds)
        reading = asyncio.create_task(self._read(connection, request, receive))
        shutdown = asyncio.create_task(connection.finish_with_server(answerable=True))
        ended = asyncio.create_task(connection.ended.wait())
        tasks: set[asyncio.Task[Any]] = {reading, shutdown, ended}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                return reading.result()
            if ended.done():
                return None
            return _GOING_AWAY, "The server ends."
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await connection.aclose()

    async def _read(self, connection: Connection, request: HttpRequest, receive: Receive) -> tuple[int, str] | None:
        """Handle messages until the client disconnects (None) or breaks a rule (a status code and a reason)."""
        max_bytes, rate_limit = self._limits.message_bytes, self._admission.rate_limit
        pace = None if rate_limit is None else partial(rate_limit.wait, request)
        while not connection.closed and (message := await receive()) is not None:
            if isinstance(message, bytes):
                return _NOT_TEXT, "Send text frames."
            encoded = message.encode("utf-8", "surrogatepass")
            if len(encoded) > max_bytes:
                return _TOO_BIG, f"A message may have {max_bytes} bytes."
            if self._authentication is not None and not await self._authentication.is_still_valid(request):
                return _NOT_ALLOWED, "The credentials are no longer good."
            await connection.receive(encoded, request, pace=pace)
        return None
