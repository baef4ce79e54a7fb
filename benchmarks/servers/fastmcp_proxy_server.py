"""FastMCP in front of another server: BENCH_UPSTREAM is its URL, or its command as JSON."""

from __future__ import annotations

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
from settings import UPSTREAM

target = UPSTREAM if isinstance(UPSTREAM, str) else StdioTransport(UPSTREAM[0], UPSTREAM[1:])
app = create_proxy(target, name="proxy").http_app()
