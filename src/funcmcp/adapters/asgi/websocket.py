"""ASGI's WebSockets: from a server's scope, receive and send to the endpoint's messages.

Source: ASGI 3 "HTTP & WebSocket" 2.5, "WebSocket Denial Response" extension.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from funcmcp.adapters.asgi.application import ASGIRequest, ClientDisconnectedError, send_in_time
from funcmcp.transports.websocket import SUBPROTOCOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp.adapters.asgi.application import Receive, Scope, Send
    from funcmcp.transports.websocket import WebSocket

_DENIAL = "websocket.http.response"
_TOLD = {"www-authenticate", "retry-after"}
_REASONS = {429: "Too many requests; slow down.", 503: "Too many streams are open; try again later."}


async def serve_websocket(endpoint: WebSocket, scope: Scope, receive: Receive, send: Send, *, seconds: float) -> None:
    """Open a WebSocket of an ASGI server and serve it to its end, or refuse it.

    Args:
        endpoint: Serves its messages.
        scope: The server's scope.
        receive: Returns the next event.
        send: Sends an event.
        seconds: In which the client has to read the closing frame.
    """
    await receive()  # websocket.connect
    request = ASGIRequest({**scope, "method": "GET"}, receive)
    refusal = endpoint.refusal(request, scope.get("subprotocols", ()))
    if refusal is not None:
        await _refuse(scope, send, *refusal)
        return
    away = await endpoint.turned_away(request)
    if away is not None:
        told = [field for field in away.headers if field[0] in _TOLD]
        await _refuse(scope, send, away.status, _REASONS.get(away.status, "These credentials don't let you in."), told)
        return

    async def read() -> str | bytes | None:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return None
        text: str | None = message.get("text")
        data: bytes = message.get("bytes") or b""
        return data if text is None else text

    async def write(data: bytes) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # it is closed, and `read` will say so
            await send({"type": "websocket.send", "text": data.decode()})

    await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
    fault = await endpoint.serve(request, read, write)
    if fault is not None:
        with contextlib.suppress(ClientDisconnectedError):
            await send_in_time(send, {"type": "websocket.close", "code": fault[0], "reason": fault[1]}, seconds=seconds)


async def _refuse(scope: Scope, send: Send, status: int, reason: str, more: Sequence[tuple[str, str]] = ()) -> None:
    """Refuse to open a WebSocket; where the server can't send a response, it says 403 by itself."""
    if _DENIAL not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})
        return
    body = reason.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    headers += [(name.encode("ascii"), value.encode("latin-1")) for name, value in more]
    await send({"type": f"{_DENIAL}.start", "status": status, "headers": headers})
    await send({"type": f"{_DENIAL}.body", "body": body})
