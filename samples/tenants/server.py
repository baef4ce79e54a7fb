"""A server for several companies: the tenant of the caller decides which notes a tool sees, and which tools there are.

Run it with ``funcmcp run samples/tenants/server.py``. The keys below are for a try. A server on the internet has tokens
with a claim that names the tenant (see README.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from funcmcp import Context, MCPServer, Principal, ToolError
from funcmcp.auth import APIKeys, Auth

KEYS = {"ada": "contoso-key-of-ada-1", "ben": "contoso-key-of-ben-1", "eve": "fabrikam-key-of-eve-1"}
TENANTS = {"ada": "contoso", "ben": "contoso", "eve": "fabrikam"}
WITH_EXPORT = {"contoso"}
"""Tenants that have paid for the tool export."""


def tenant_of(principal: Principal | None) -> str:
    """Return the tenant of a caller. It comes from what the server has checked, never from an argument."""
    tenant = None if principal is None else TENANTS.get(principal.subject)
    if tenant is None:
        raise ToolError("Your account belongs to no tenant.")
    return tenant


class Notes:
    """The notes of one tenant.

    Args:
        store: The notes of all tenants.
        tenant: The tenant.
    """

    def __init__(self, store: dict[str, list[str]], tenant: str) -> None:
        self._notes = store.setdefault(tenant, [])

    def add(self, text: str) -> int:
        """Add a note; return its number."""
        self._notes.append(text)
        return len(self._notes)

    def all(self) -> Sequence[str]:
        """Return all notes."""
        return tuple(self._notes)


store: dict[str, list[str]] = {}


def notes_of(context: Context) -> Notes:
    """Return the notes of the caller's tenant."""
    return Notes(store, tenant_of(context.principal))


def may_export(principal: Principal) -> bool:
    """Return whether the caller's tenant has the tool export."""
    return TENANTS.get(principal.subject) in WITH_EXPORT


mcp = MCPServer("notes", auth=Auth(APIKeys(KEYS), lists="filtered"))


@mcp.tool(destructive=False)
def add_note(text: Annotated[str, Field(description="The text of the note", min_length=1)], context: Context) -> int:
    """Add a note for all users of the tenant; return its number."""
    return notes_of(context).add(text)


@mcp.tool(read_only=True)
def list_notes(context: Context) -> list[str]:
    """List the notes of the tenant."""
    return list(notes_of(context).all())


@mcp.tool(read_only=True, authorize=may_export)
def export(context: Context) -> str:
    """Return all notes as one text in Markdown."""
    return "\n".join(f"- {note}" for note in notes_of(context).all())


if __name__ == "__main__":
    mcp.run("http")
