"""The protocols that uvicorn serves connections with: bounded ones, on the parsers that are installed."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Literal

from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol

from funcmcp.adapters.uvicorn_connection import WriteDeadline

if TYPE_CHECKING:
    import asyncio

    from funcmcp.adapters.uvicorn_connection import BoundedConnection
    from funcmcp.server.limits import Limits


def http_protocol(limits: Limits, parser: Literal["httptools", "h11"] | None = None) -> type[BoundedConnection]:
    """Return the protocol of HTTP connections.

    Args:
        limits: What a client may send and how fast it has to read.
        parser: httptools by default, or h11 where httptools is not installed.
    """
    if parser is None:
        parser = "httptools" if importlib.util.find_spec("httptools") else "h11"
    protocol: type[BoundedConnection]
    if parser == "httptools":
        from funcmcp.adapters.uvicorn_httptools import HttpToolsServerProtocol  # noqa: PLC0415 - needs httptools

        protocol = HttpToolsServerProtocol
    else:
        from funcmcp.adapters.uvicorn_h11 import H11ServerProtocol  # noqa: PLC0415 - loaded where it is used

        protocol = H11ServerProtocol
    return type(protocol.__name__, (protocol,), {"limits": limits})


def websocket_protocol(limits: Limits) -> type[asyncio.Protocol] | Literal["none"]:
    """Return the protocol of WebSocket connections, or "none" where no library for them is installed."""
    if AutoWebSocketsProtocol is None:
        return "none"
    protocol: Any = AutoWebSocketsProtocol
    return type("WebSocketServerProtocol", (WebSocketConnection, protocol), {"limits": limits})


class WebSocketConnection(WriteDeadline):
    """A WebSocket whose client has to read; it stands before one of uvicorn's protocols."""

    def connection_made(self, transport: Any) -> None:
        """Take any unsent byte for a client that does not read: pings and the closing frame count, too."""
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)
