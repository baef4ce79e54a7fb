"""The protocols that uvicorn serves connections with: bounded ones, on the parsers that are installed."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Literal

from funcmcp._adapters.uvicorn.bounded_connection import UnsentBytes

if TYPE_CHECKING:
    import asyncio

    from funcmcp._adapters.uvicorn.bounded_connection import BoundedConnection
    from funcmcp._adapters.uvicorn.direct_path import DirectPath
    from funcmcp._server.limits import Limits


def http_protocol(
    limits: Limits, parser: Literal["httptools", "h11"] | None = None, *, direct: DirectPath | None = None
) -> type[BoundedConnection]:
    """Return the protocol of HTTP connections.

    Args:
        limits: What a client may send and how fast it has to read.
        parser: httptools by default, or h11 where httptools is not installed.
        direct: What answers requests without ASGI, with httptools. None sends all requests through ASGI.
    """
    members: dict[str, object] = {"limits": limits, "unsent": UnsentBytes(limits.unsent_bytes)}
    if parser is None:
        parser = "httptools" if importlib.util.find_spec("httptools") else "h11"
    protocol: type[BoundedConnection]
    if parser == "httptools" and direct is not None:
        from funcmcp._adapters.uvicorn.direct_protocol import DirectHttpToolsProtocol  # noqa: PLC0415 - needs httptools

        protocol = DirectHttpToolsProtocol
        members["direct"] = direct
    elif parser == "httptools":
        from funcmcp._adapters.uvicorn.httptools_protocol import HttpToolsServerProtocol  # noqa: PLC0415 - needs httptools

        protocol = HttpToolsServerProtocol
    else:
        from funcmcp._adapters.uvicorn.h11_protocol import H11ServerProtocol  # noqa: PLC0415 - loaded where it is used

        protocol = H11ServerProtocol
    return type(protocol.__name__, (protocol,), members)


def websocket_protocol(limits: Limits) -> type[asyncio.Protocol] | Literal["none"]:
    """Return the protocol of WebSocket connections, or "none" where wsproto is not installed."""
    if importlib.util.find_spec("wsproto") is None:
        return "none"
    from funcmcp._adapters.uvicorn.wsproto_protocol import WsprotoServerProtocol  # noqa: PLC0415 - needs wsproto

    members = {"limits": limits, "unsent": UnsentBytes(limits.unsent_bytes)}
    return type("WebSocketServerProtocol", (WsprotoServerProtocol,), members)
