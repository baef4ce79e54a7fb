"""A plugin for pytest, in the peer's environment: the peers' clients reach servers of funcmcp over HTTP.

A peer's `Client(server)` talks to its own server in memory, by private attributes. A server of funcmcp is served on
this machine instead, for as long as the client is connected.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any

import fastmcp.client.client
import fastmcp.client.transports
import fastmcp.client.transports.inference
import mcp
import uvicorn
from fastmcp.client.transports.http import StreamableHttpTransport
from mcp.client.streamable_http import streamable_http_client

from funcmcp.compat import FastMCP, MCPServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_SECONDS = 3.0


@contextlib.asynccontextmanager
async def served(server: Any) -> AsyncIterator[str]:
    """Serve a server of funcmcp in this event loop; return its URL."""
    app = server.http_app() if hasattr(server, "http_app") else server.streamable_http_app()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=1)
        running = uvicorn.Server(config)
        running.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
        task = asyncio.create_task(running.serve([listener]))
        while not running.started and not task.done():  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            running.should_exit = running.force_exit = True
            await asyncio.wait([task], timeout=_SECONDS)


class ServedTransport(StreamableHttpTransport):
    """The transport of FastMCP's client to a server of funcmcp."""

    def __init__(self, server: Any) -> None:
        super().__init__("http://127.0.0.1:1/mcp")
        self._server = server

    @contextlib.asynccontextmanager
    async def connect_session(self, **options: Any) -> AsyncIterator[Any]:
        """Serve the server while the session is open."""
        async with served(self._server) as url:
            self.url = url
            async with super().connect_session(**options) as session:
                yield session


@contextlib.asynccontextmanager
async def streams(server: Any) -> AsyncIterator[Any]:
    """Return the streams of the official client to a server of funcmcp."""
    async with served(server) as url, streamable_http_client(url) as both:
        yield both


_infer_transport = fastmcp.client.transports.inference.infer_transport
_post_init = mcp.Client.__post_init__


def infer_transport(target: Any) -> Any:
    """Return FastMCP's transport for a target."""
    return ServedTransport(target) if isinstance(target, FastMCP | MCPServer) else _infer_transport(target)


def post_init(client: mcp.Client) -> None:
    """Give the official client a transport in place of a server of funcmcp."""
    if isinstance(client.server, FastMCP | MCPServer):
        client.server = streams(client.server)
    _post_init(client)


for module in (fastmcp.client.client, fastmcp.client.transports, fastmcp.client.transports.inference):
    module.infer_transport = infer_transport  # type: ignore[attr-defined]
mcp.Client.__post_init__ = post_init  # type: ignore[method-assign]
