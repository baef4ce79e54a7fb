"""funcmcp in front of another server: BENCH_UPSTREAM is its URL, or its command as JSON."""

from __future__ import annotations

from settings import REVISIONS, UPSTREAM

from funcmcp import MCPServer, ProtocolOptions
from funcmcp.client import StdioCommand
from funcmcp.upstreams import Upstream

app = MCPServer("proxy", protocol=ProtocolOptions(revisions=REVISIONS) if REVISIONS else None)
app.mount(Upstream(UPSTREAM if isinstance(UPSTREAM, str) else StdioCommand(*UPSTREAM)))
