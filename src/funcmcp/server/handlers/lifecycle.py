"""Handshake, discovery, ping and log level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol.codec import encode
from funcmcp.protocol.errors import InvalidParams
from funcmcp.protocol.levels import LEVELS
from funcmcp.server.catalog.capabilities import capabilities
from funcmcp.state.sessions.store import Handshake

if TYPE_CHECKING:
    from funcmcp.server.calls.context import Context
    from funcmcp.server.dispatch import Server

_MAX_CLIENT_FACTS = 8192
"""Bytes of client info and capabilities that a session may hold."""


def initialize(
    server: Server, params: dict[str, Any], *, pushes: bool, owner: str | None = None
) -> tuple[Handshake, dict[str, Any]]:
    """Agree on a revision; return what to remember and the InitializeResult.

    A revision that the server has is echoed; for any other the newest of the handshake era is offered.

    Args:
        server: that is asked.
        params: of the request.
        pushes: whether messages outside of a request can reach the client.
        owner: whose session it will be.

    Raises:
        InvalidParams: the parameters are not those of an `initialize` request.
    """
    requested = params.get("protocolVersion")
    if type(requested) is not str:
        raise InvalidParams('"protocolVersion" must be a string such as "2025-11-25".')
    for member in ("capabilities", "clientInfo"):
        if type(params.get(member, {})) is not dict:
            raise InvalidParams(f'"{member}" must be an object.')
    client_capabilities, client_info = params.get("capabilities", {}), params.get("clientInfo", {})
    if len(encode([client_capabilities, client_info])) > _MAX_CLIENT_FACTS:
        raise InvalidParams(f'"capabilities" and "clientInfo" may have {_MAX_CLIENT_FACTS} bytes together.')
    offered = [date for date, revision in server.revisions.items() if not revision.per_request]
    if not offered:
        raise InvalidParams("This server needs no initialize.", {"supported": server.supported})
    revision = server.revisions[requested if requested in offered else max(offered)]
    result: dict[str, Any] = {
        "protocolVersion": revision.date,
        "capabilities": capabilities(server, revision, pushes=pushes),
        "serverInfo": server.implementation(revision),
    }
    if server.options.instructions is not None:
        result["instructions"] = server.options.instructions
    return Handshake(revision.date, client_capabilities, client_info, owner), result


async def discover(server: Server, context: Context) -> dict[str, Any]:
    """Answer `server/discover`."""
    listens = context.http is None or context.http.streams  # where subscriptions/listen works
    result: dict[str, Any] = {
        "supportedVersions": server.supported,
        "capabilities": capabilities(server, context.client.revision, pushes=listens),
        "ttlMs": int(server.options.list_ttl * 1000),
        "cacheScope": server.cache_scope,
    }
    if server.options.instructions is not None:
        result["instructions"] = server.options.instructions
    return result


async def ping(_server: Server, _context: Context) -> dict[str, Any]:
    """Answer `ping`."""
    return {}


async def set_level(_server: Server, context: Context) -> dict[str, Any]:
    """Answer `logging/setLevel`: remember the least severe level that this client wants."""
    level = context.request.params.get("level")
    if type(level) is not str or level not in LEVELS:
        raise InvalidParams(f'"level" must be one of {", ".join(LEVELS)}.')
    await context.set_log_level(level)
    return {}
