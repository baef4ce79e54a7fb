"""What the server says it can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from funcmcp.server.dispatch import Server


def capabilities(_server: Server) -> dict[str, Any]:
    """Return the ServerCapabilities: tools and log messages."""
    return {"logging": {}, "tools": {}}
