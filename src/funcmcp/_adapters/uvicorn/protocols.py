"""The protocols that uvicorn serves connections with: bounded ones, on the libraries that are installed."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Literal

from funcmcp._adapters.http1.connection import HTTPConnection
from funcmcp._adapters.http1.open_connections import OpenConnections
from funcmcp._adapters.http1.unsent_bytes import UnsentBytes

if TYPE_CHECKING:
    import asyncio

    from funcmcp._adapters.http1.direct_path import DirectPath
    from funcmcp._adapters.http1.parser import Parser
    from funcmcp._server.limits import Limits


def http_protocol(
    limits: Limits,
    parser: Literal["httptools", "h11"] | None = None,
    *,
    direct: DirectPath | None = None,
    unsent: UnsentBytes | None = None,
    connections: OpenConnections | None = None,
) -> type[HTTPConnection]:
    """Return the protocol of HTTP connections.

    Args:
        limits: What a client may send and how fast it has to read.
        parser: httptools by default, or h11 where httptools is not installed.
        direct: What answers requests without ASGI. None sends all requests through ASGI.
        unsent: Counts the unsent bytes of connections; by default those of this protocol only.
        connections: Counts connections, and closes some if there are too many; by default it closes none.
    """
    if parser is None:
        parser = "httptools" if importlib.util.find_spec("httptools") else "h11"
    parser_class: type[Parser]
    if parser == "httptools":
        from funcmcp._adapters.http1.httptools_parser import HttptoolsParser  # noqa: PLC0415 - needs httptools

        parser_class = HttptoolsParser
    else:
        from funcmcp._adapters.http1.h11_parser import H11Parser  # noqa: PLC0415 - loaded where it is used

        parser_class = H11Parser
    members: dict[str, object] = {
        "limits": limits,
        "parser_class": parser_class,
        "direct": direct,
        "unsent": unsent or UnsentBytes(limits.unsent_bytes),
        "open_connections": connections or OpenConnections(),
    }
    return type("HTTPConnection", (HTTPConnection,), members)


def websocket_protocol(
    limits: Limits, unsent: UnsentBytes | None = None, connections: OpenConnections | None = None
) -> type[asyncio.Protocol] | Literal["none"]:
    """Return the protocol of WebSocket connections, or "none" where wsproto is not installed."""
    if importlib.util.find_spec("wsproto") is None:
        return "none"
    from funcmcp._adapters.uvicorn.wsproto_protocol import WsprotoServerProtocol  # noqa: PLC0415 - needs wsproto

    members = {
        "limits": limits,
        "unsent": unsent or UnsentBytes(limits.unsent_bytes),
        "open_connections": connections or OpenConnections(),
    }
    return type("WebSocketServerProtocol", (WsprotoServerProtocol,), members)
