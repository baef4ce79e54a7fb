"""The marks of principals, and of the addresses from which anonymous callers come."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from funcmcp._auth.principal import Principal


def owner_of(principal: Principal | None) -> str | None:
    """Return the mark of what belongs to a principal, such as a session or a task; None for an anonymous caller.

    The mark is the same for each token of the same principal. A token without a subject is a principal of its own. The
    mark is a digest, so it may be stored.
    """
    return None if principal is None else owner_of_key(principal.key)


@lru_cache(maxsize=4096)
def owner_of_key(key: tuple[str, ...]) -> str:
    """Return the mark of the principal with a key."""
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]


def address_mark(caller: str | None) -> str | None:
    """Return the mark of the address from which an anonymous caller comes; None if it is unknown.

    The mark is a digest, so that stores need not contain addresses.

    Args:
        caller: The caller, as `funcmcp._server.load.address_caller` names it.
    """
    return None if caller is None else hashlib.sha256(caller.encode()).hexdigest()[:32]


def lists_tasks(principal: Principal | None) -> bool:
    """Return whether a caller can list its tasks, which needs credentials that name a subject.

    Source: MCP 2025-11-25 "basic/utilities/tasks", "Task Isolation and Access Control": receivers that can't identify
    requestors must not declare the list.
    """
    return principal is not None and not principal.per_token
