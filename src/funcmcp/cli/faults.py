"""Features that no list can have, because a type in their signature is no JSON."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp.protocol import shape
from funcmcp.protocol.revisions import REVISIONS
from funcmcp.server.catalog.features import Tool
from funcmcp.server.catalog.registry import RegistrationError
from funcmcp.server.handlers.lists import described

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp import MCPServer
    from funcmcp.server.catalog.registry import Registry

_NEWEST = REVISIONS[max(REVISIONS)]


class Fault(NamedTuple):
    """A feature that can't be described: its kind, its name or URI, and why."""

    kind: str
    key: str
    reason: str

    def __str__(self) -> str:
        """Return the line about it for people."""
        return f"The {self.kind} {self.key} is left out of the list. Correct it: {' '.join(self.reason.split())}"


async def faults_of(server: MCPServer) -> AsyncIterator[Fault]:
    """Yield each feature that can't be described; between two, other tasks have their turn."""
    served = server.server
    registries: tuple[Registry[Any], ...] = (served.tools, served.resources, served.templates, served.prompts)
    for kind, feature in [(registry.kind, feature) for registry in registries for feature in registry]:
        form = shape.tool_definition if isinstance(feature, Tool) else shape.definition
        try:
            described(feature, form, _NEWEST)
        except RegistrationError as error:
            served.left_out.add((kind, feature.key))  # it is told here, and need not be told in the log again
            yield Fault(kind, feature.key, str(error))
        await asyncio.sleep(0)
