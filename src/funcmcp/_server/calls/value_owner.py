"""Whose values a call reads and writes: those of its principal, its session, or the user of this process."""

from __future__ import annotations

import hashlib
import os
import platform
from typing import TYPE_CHECKING

from funcmcp._auth.owner import address_mark, owner_of
from funcmcp._state.caller_values import ValueOwner

if TYPE_CHECKING:
    from funcmcp._server.calls.context import RequestContext


def value_owner_of(context: RequestContext) -> ValueOwner | None:
    """Return the owner of the values of a call; None if nothing says who calls.

    The user of this process, as on stdio, has the same values in each process of the machine that uses the same store.
    A client in memory, and a direct call by the author, count as this user. A task has the owner of its call.
    """
    principal, client = owner_of(context.principal), context.client
    if principal is not None:
        return ValueOwner(f"principal {principal}")
    if context.task_owner is not None:
        return context.task_owner
    if client.session_id is not None:  # a digest, because the id is what a client shows, and tasks store their owner
        session = hashlib.sha256(client.session_id.encode()).hexdigest()
        return ValueOwner(f"session {session}", payer_of(context))
    if context.by_user or context.network_transport is None:
        return ValueOwner(f"user {_user()} {platform.node()}")
    if client.connection_id is not None:
        return ValueOwner(f"connection {client.connection_id}", payer_of(context))
    return None


def payer_of(context: RequestContext) -> str:
    """Return the address for which the values of an anonymous caller count. Unknown addresses count together."""
    return address_mark(context.caller) or "unknown"


def _user() -> str:
    """Return the user of this process, as the operating system numbers or names users."""
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
