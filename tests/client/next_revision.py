"""A made-up revision after the newest one, without a handshake, and a server that may have it.

A process that has not called `add` is as old as the release before that revision.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from funcmcp import MCPServer, ProtocolOptions
from funcmcp._protocol.revisions import REVISIONS, Revision

if TYPE_CHECKING:
    from collections.abc import Sequence

NEXT = "2099-01-01"
VARIABLE = "REVISIONS_OF_TEST"
"""The revisions of the server in a process of its own, with commas."""


def with_next() -> dict[str, Revision]:
    """Return the table of revisions with one more row, whose columns are those of the newest one."""
    newest = REVISIONS[max(REVISIONS)]
    columns = {name: getattr(newest, name) for name in Revision.__annotations__}
    return {**REVISIONS, NEXT: Revision(**{**columns, "date": NEXT})}


def server_of(revisions: Sequence[str]) -> MCPServer:
    """Return a server that serves some revisions."""
    mcp = MCPServer("Dated", protocol=ProtocolOptions(revisions=revisions))

    @mcp.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return mcp


if VARIABLE in os.environ:
    dates = os.environ[VARIABLE].split(",")
    if NEXT in dates:
        REVISIONS.update(with_next())
    mcp = server_of(dates)

if __name__ == "__main__":
    mcp.run("stdio")
