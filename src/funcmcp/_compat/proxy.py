"""FastMCP's proxies: servers that pass everything on to another one, or to those of a configuration.

FastMCP's proxy sends the headers of its client on, the credentials among them. These servers do not: a token is for
one server.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._client.targets import StdioCommand
from funcmcp._upstreams.bridged import upstreams_of
from funcmcp._upstreams.servers_file import read_servers
from funcmcp._upstreams.upstream import Upstream

if TYPE_CHECKING:
    from funcmcp._app.mcp_server import MCPServer

_PROGRAMS = {".py": sys.executable, ".js": "node"}
"""What runs a script, by the end of its name."""


def add_upstreams(server: MCPServer, target: Any) -> None:
    """Mount the server that a target of FastMCP's proxies names, or each of a configuration."""
    if isinstance(target, dict):
        servers = read_servers(target, os.environ)
        if not servers.entries:
            raise ValueError(" ".join(["No server of the configuration can be used.", *servers.problems]))
        for prefix, upstream in upstreams_of(servers).items():
            server.mount(upstream, prefix if servers.has_prefixes else None)
        return
    server.mount(Upstream(_target_of(target)))


def _target_of(target: Any) -> Any:
    """Return a target of FastMCP as one of funcmcp; raise TypeError if it is not possible."""
    if isinstance(target, Path):
        program = _PROGRAMS.get(target.suffix)
        if program is None:
            raise TypeError(f"{target} is not a script of Python or Node.")
        return StdioCommand(program, str(target))
    if type(target).__name__ == "AnyUrl":
        return str(target)
    return target
