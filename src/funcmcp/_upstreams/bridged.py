"""A server that stands for another one over another transport, or for those of a client's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._app.mcp_server import MCPServer
from funcmcp._auth.principal import UpstreamTokenError
from funcmcp._authoring.calling.lifespans import CannotStartError
from funcmcp._client.errors import one_line
from funcmcp._protocol.errors import ClientError, MCPError
from funcmcp._server.options import ProtocolOptions
from funcmcp._serving.composition import runtime_of
from funcmcp._upstreams.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from funcmcp._client.target_transports import Target
    from funcmcp._upstreams.limits import UpstreamTimeouts
    from funcmcp._upstreams.servers_file import ConfiguredServers


def bridge_to(target: Target, name: str, timeouts: UpstreamTimeouts | None = None) -> MCPServer:
    """Return a server that passes everything on to another one, whose names and description it has.

    It connects when it starts. A lifespan fails if that is not possible, so the server does not start.

    Args:
        target: The other server.
        name: The name of the server in the log.
        timeouts: How long the other server may take.
    """
    mcp = MCPServer(name, protocol=ProtocolOptions(offer_tools=None))
    stand_for(Upstream(target, timeouts=timeouts), mcp)
    return mcp


def stand_for(upstream: Upstream, mcp: MCPServer) -> None:
    """Make a server that passes everything on to another one. It connects when it starts, and takes its description."""
    mcp.mount(upstream)

    @mcp.add_lifespan
    async def describe() -> AsyncIterator[None]:
        """Connect, and describe this server as the other one."""
        try:
            await upstream.connect()
        except (ClientError, MCPError, UpstreamTokenError) as error:
            reason = upstream.status.last_error if upstream.is_away else error
            raise CannotStartError(one_line(reason, 2000)) from error
        server = runtime_of(mcp).server
        server.describe_as(dict(upstream.server_info), upstream.server_instructions, upstream.server_capabilities)
        yield


def server_of(servers: ConfiguredServers, name: str) -> MCPServer:
    """Return a server with the features of all servers in a configuration; a single one is passed on as it is.

    Args:
        servers: The servers, at least one.
        name: The name of the server of all of them.
    """
    if not servers.has_prefixes:
        return bridge_to(servers.entries[0].target, name, servers.entries[0].timeouts)
    return server_with(upstreams_of(servers), name)


def upstreams_of(servers: ConfiguredServers) -> dict[str, Upstream]:
    """Return the servers of a configuration by their prefixes. One that is away takes nothing away from the others.

    They are sorted, so it does not depend on the order of the file which one of two equal names remains.
    """
    entries = sorted(servers.entries, key=lambda entry: entry.prefix)
    return {
        entry.prefix: Upstream(entry.target, name=entry.name, optional=True, timeouts=entry.timeouts)
        for entry in entries
    }


def server_with(upstreams: Mapping[str, Upstream], name: str) -> MCPServer:
    """Return a server with the features of several others, each under its prefix."""
    mcp = MCPServer(name)
    for prefix, upstream in upstreams.items():
        mcp.mount(upstream, prefix=prefix)
    return mcp
