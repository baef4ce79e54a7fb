"""A proxy that tests start in a process of its own. The environment variable PROXY has what it mounts, as JSON.

PROXY is an object: `revisions`, and `upstreams`, each with `url` and `endpoint`, or `command` and `env`; and with
`prefix` and `options`. `endpoint` has options of HTTPEndpoint, and `options` those of Upstream.
"""

from __future__ import annotations

import json
import os
from typing import Any

from funcmcp import MCPServer, ProtocolOptions
from funcmcp.client import HTTPEndpoint, StdioCommand
from funcmcp.upstreams import Upstream


def upstream_of(row: dict[str, Any]) -> Upstream:
    """Return the upstream that a row of PROXY describes."""
    target: HTTPEndpoint | StdioCommand
    if "url" in row:
        target = HTTPEndpoint(row["url"], **row.get("endpoint", {}))
    else:
        target = StdioCommand(*row["command"], env=row.get("env"))
    return Upstream(target, **row.get("options", {}))


def server_of(settings: dict[str, Any]) -> MCPServer:
    """Return the proxy that PROXY describes."""
    protocol = ProtocolOptions(revisions=settings["revisions"]) if "revisions" in settings else None
    server = MCPServer("Proxy", sessions="memory", protocol=protocol)
    for row in settings["upstreams"]:
        server.mount(upstream_of(row), prefix=row.get("prefix"))
    return server


mcp = server_of(json.loads(os.environ["PROXY"]))
