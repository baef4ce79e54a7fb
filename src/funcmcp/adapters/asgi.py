"""ASGI: from a server's scope, receive and send to HttpRequest and HttpResponse.

Source: ASGI 3 "HTTP & WebSocket" 2.5 and "Lifespan" 2.0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp.transports.http.messages import BodyTooLargeError, HttpRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp.transports.http.messages import Exchange

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


_NO_CONTENT = 204


class ClientDisconnectedError(Exception):
    """The client left before its request was complete."""


async def serve_http(exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one HTTP request of an ASGI server."""
    try:
        response = await exchange(ASGIRequest(scope, receive))
    except ClientDisconnectedError:
        return
    headers = _encoded(response.headers)
    if isinstance(response.body, bytes):
        if response.status != _NO_CONTENT:
            headers = [*headers, (b"content-length", b"%d" % len(response.body))]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})
        return
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await _stream(response.body, receive, send)


async def serve_lifespan(receive: Receive, send: Send, shutdown: Callable[[], Awaitable[None]]) -> None:
    """Answer an ASGI server's lifespan messages; `shutdown` runs when it stops."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await shutdown()
            await send({"type": "lifespan.shutdown.complete"})
            return


class ASGIRequest(HttpRequest):
    """The request of a scope; its body is still to be read."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope, receive: Receive) -> None:
        path, mount, server, lines = scope["path"], scope.get("root_path"), scope.get("server"), scope["headers"]
        if mount and path.startswith(mount):
            path = path[len(mount) :]
        super().__init__(
            scope["method"],
            path,
            lines if type(lines) is list else list(lines),
            partial(_read_body, receive),
            disconnected=partial(_disconnected, receive),
            server=server[0] if server else None,
        )
        self._scope = scope

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        scheme: str = self._scope.get("scheme", "http")
        return scheme

    @property
    def mount(self) -> str:
        """The path under which the application is mounted."""
        mount: str = self._scope.get("root_path", "")
        return mount

    @property
    def query_string(self) -> str:
        """What stands behind the `?`."""
        query: bytes = self._scope.get("query_string", b"")
        return query.decode("latin-1")


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@lru_cache(maxsize=256)
def _encoded(headers: tuple[tuple[str, str], ...]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers]


async def _read_body(receive: Receive, limit: int) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if message["type"] == "http.request" and not message.get("more_body"):
        if len(body) > limit:
            raise BodyTooLargeError
        return body
    parts, size = [body], len(body)
    while True:
        if message["type"] == "http.disconnect":
            raise ClientDisconnectedError
        if size > limit:
            raise BodyTooLargeError
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)


async def _stream(body: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Send a body as it comes, and stop as soon as the client has gone."""

    async def pump() -> None:
        async for part in body:
            if watching.done():
                return  # the client has gone: nothing more may be sent
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    watching, sending = asyncio.ensure_future(_disconnected(receive)), asyncio.ensure_future(pump())
    try:
        await asyncio.wait({sending, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, watching):
            task.cancel()
        await asyncio.gather(sending, watching, return_exceptions=True)
        close = getattr(body, "aclose", None)
        if close is not None:
            await close()
    if not sending.cancelled():
        sending.result()
