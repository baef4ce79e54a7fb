"""A gateway: several servers behind one endpoint, one of them in this process and some elsewhere.

Run it with ``funcmcp run samples.gateway.server:mcp``. GATEWAY_SERVERS names the servers elsewhere, as
``prefix=URL prefix=URL``.
"""

import os

from funcmcp import MCPServer
from funcmcp.upstreams import Upstream

math = MCPServer("math")


@math.tool(read_only=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


mcp = MCPServer("gateway")
mcp.mount(math, prefix="math")
for entry in os.environ.get("GATEWAY_SERVERS", "").split():
    prefix, _, url = entry.partition("=")
    mcp.mount(Upstream(url, optional=True), prefix=prefix)

if __name__ == "__main__":
    mcp.run("http")
