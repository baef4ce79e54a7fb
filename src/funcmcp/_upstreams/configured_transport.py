"""The transport of a client to the servers of a configuration: to the only one, or to all of them at once."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._client.errors import ConnectionFailedError
from funcmcp._client.streamable_http import MemoryTransport
from funcmcp._client.target_transports import transport_for
from funcmcp._server.log import logger, quote
from funcmcp._serving.composition import runtime_of
from funcmcp._upstreams.bridged import server_with, upstreams_of
from funcmcp._upstreams.servers_file import read_servers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from funcmcp._app.mcp_server import MCPServer
    from funcmcp._client.transport import Receive, Transport
    from funcmcp._upstreams.status import UpstreamStatus
    from funcmcp._upstreams.upstream import Upstream


def configured_transport(configuration: Mapping[str, Any] | PathLike[str], headers: Mapping[str, str]) -> Transport:
    """Return the transport to the servers of a configuration.

    Args:
        configuration: The configuration, or its file.
        headers: Header fields of every request, if there is one server only.

    Raises:
        ValueError: The configuration names no server that can be used, or several and there are headers.
    """
    if isinstance(configuration, os.PathLike):
        configuration = Path(configuration)
    servers = read_servers(configuration, os.environ)
    for sentence in (*servers.problems, *servers.notes):
        logger.warning("%s", quote(sentence, 600))
    if not servers.entries:
        raise ValueError(" ".join(["No server of the configuration can be used.", *servers.problems]))
    if not servers.has_prefixes:
        return transport_for(servers.entries[0].target, headers)
    if headers:
        raise ValueError("headers are for one server. Write the headers of each server into the configuration.")
    upstreams = upstreams_of(servers)
    return TransportToServers(server_with(upstreams, "servers"), upstreams)


class TransportToServers(MemoryTransport):
    """A transport to a server in this process with the features of several others.

    Args:
        server: The server.
        upstreams: The other ones, by their prefix.
    """

    def __init__(self, server: MCPServer, upstreams: Mapping[str, Upstream]) -> None:
        super().__init__(runtime_of(server), {})
        self._upstreams = upstreams

    @property
    def servers(self) -> dict[str, UpstreamStatus]:
        """The state of each server, by its prefix."""
        return {prefix: upstream.status for prefix, upstream in self._upstreams.items()}

    async def connect(self, receive: Receive) -> None:
        """Connect to all servers at once; raise ConnectionFailedError if none of them answers."""
        await super().connect(receive)
        attempts = [upstream.connect() for upstream in self._upstreams.values()]
        errors = await asyncio.gather(*attempts, return_exceptions=True)
        if all(isinstance(error, Exception) for error in errors):
            await self.aclose()
            reasons = [f"{upstream.name}: {upstream.status.last_error}" for upstream in self._upstreams.values()]
            raise ConnectionFailedError(f"No server of the configuration answers. {' '.join(reasons)}")
