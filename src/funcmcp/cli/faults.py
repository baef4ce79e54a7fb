"""Features that no list can have, because a type in their signature is no JSON."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from funcmcp.protocol.revisions import REVISIONS
from funcmcp.server.catalog.registry import RegistrationError
from funcmcp.server.handlers.lists import encoded_definition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp import MCPServer

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
    for features in server.server.routes.lists.values():
        for feature in features.registry:
            try:
                encoded_definition(feature, features.shape, _NEWEST)
            except RegistrationError as error:
                features.left_out.add(feature.key)  # the log need not name it again
                yield Fault(features.registry.kind, feature.key, str(error))
            await asyncio.sleep(0)
