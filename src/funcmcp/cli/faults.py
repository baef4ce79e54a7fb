"""Features that no list can have, because a type in their signature is no JSON."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from funcmcp.protocol import shape
from funcmcp.protocol.revisions import REVISIONS
from funcmcp.server.features import Tool
from funcmcp.server.handlers.lists import described
from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp import MCPServer

_NEWEST = REVISIONS[max(REVISIONS)]


async def faults_of(server: MCPServer) -> AsyncIterator[tuple[str, str]]:
    """Yield name and reason of each feature that can't be described; between two, other tasks have their turn."""
    served = server.server
    for feature in (*served.tools, *served.resources, *served.templates, *served.prompts):
        form = shape.tool_definition if isinstance(feature, Tool) else shape.definition
        try:
            described(feature, form, _NEWEST)
        except RegistrationError as error:
            served.left_out.add(feature.key)  # it is told here, and need not be told in the log again
            yield feature.key, str(error)
        await asyncio.sleep(0)


def told(name: str, reason: str) -> str:
    """Return the line about a tool for people."""
    return f"The tool {name} is left out of the list. Correct it: {' '.join(reason.split())}"
