"""WebSockets of an ASGI server: from its scope, receive and send to the messages of the endpoint.

Source: ASGI 3 "HTTP & WebSocket" 2.5, "WebSocket Denial Response" extension.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from funcmcp._adapters.asgi.application import ASGIRequest, ClientDisconnectedError, send_in_time
from funcmcp._transports.websocket import SUBPROTOCOL

if TYPE_CHECKING:
    from funcmcp._adapters.asgi.application import Receive, Scope, Send
    from funcmcp._transports.http.messages import HttpResponse
    from funcmcp._transports.websocket import WebSocket

_DENIAL = "websocket.http.response"
_SUBPROTOCOLS = b"sec-websocket-protocol"


async def serve_websocket(endpoint: WebSocket, scope: Scope, receive: Receive, send: Send, *, seconds: float) -> None:
    """Open a WebSocket of an ASGI server and serve it to its end, or refuse it.

    Args:
        endpoint: Serves the messages.
        scope: The scope of the ASGI server.
        receive: Returns the next event.
        send: Sends an event.
        seconds: The time within which the client has to read the closing frame.
    """
    await receive()  # websocket.connect
    request = ASGIRequest({**scope, "method": "GET", "headers": _headers(scope)}, receive, send)
    refusal = await endpoint.admit(request)
    if refusal is not None:
        await _deny(scope, send, refusal)
        return

    async def read() -> str | bytes | None:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return None
        text: str | None = message.get("text")
        data: bytes = message.get("bytes") or b""
        return data if text is None else text

    async def write(data: bytes) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # the WebSocket is closed; `read` will return None
            await send({"type": "websocket.send", "text": data.decode()})

    await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
    closing = await endpoint.serve(request, read, write)
    if closing is not None:
        code, reason = closing
        with contextlib.suppress(ClientDisconnectedError):
            await send_in_time(send, {"type": "websocket.close", "code": code, "reason": reason}, seconds=seconds)


def _headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Return the headers with the offered subprotocols, which some servers move to a member of the scope."""
    headers = [field for field in scope["headers"] if field[0] != _SUBPROTOCOLS]
    subprotocols = ", ".join(scope.get("subprotocols", ()))
    return [*headers, (_SUBPROTOCOLS, subprotocols.encode("latin-1", "replace"))]


async def _deny(scope: Scope, send: Send, refusal: HttpResponse) -> None:
    """Refuse to open a WebSocket. A server that can't send a response for this answers with 403."""
    if _DENIAL not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})
        return
    body = refusal.body if isinstance(refusal.body, bytes) else b""
    headers = [(name.encode("ascii"), value.encode("latin-1")) for name, value in refusal.headers]
    headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": f"{_DENIAL}.start", "status": refusal.status, "headers": headers})
    await send({"type": f"{_DENIAL}.body", "body": body})
