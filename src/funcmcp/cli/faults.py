"""Tools that no list can have, because a type in their signature is no JSON."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from funcmcp.protocol.revisions import REVISIONS
from funcmcp.server.handlers.tools import describe
from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp import MCPServer

_NEWEST = REVISIONS[max(REVISIONS)]


async def faults_of(server: MCPServer) -> AsyncIterator[tuple[str, str]]:
    """Yield name and reason of each tool that can't be described; between two tools, other tasks have their turn."""
    for tool in tuple(server.server.tools):
        try:
            describe(tool, _NEWEST)
        except RegistrationError as error:
            server.server.left_out.add(tool.name)  # it is told here, and need not be told in the log again
            yield tool.name, str(error)
        await asyncio.sleep(0)


def told(name: str, reason: str) -> str:
    """Return the line about a tool for people."""
    return f"The tool {name} is left out of the list. Correct it: {' '.join(reason.split())}"
