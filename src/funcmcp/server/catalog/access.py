"""Who may use a feature, as its author said it; and what marks something as a caller's own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp.auth.principal import Principal

    Allow = Callable[[Principal], bool | Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use a feature of a server that wants to know its callers; any other server lets everybody.

    Attributes:
        anonymous: callers without credentials, and everybody else.
        scopes: otherwise only principals who have all of these.
        allow: and for whom this says True; plain or async.
    """

    anonymous: bool = False
    scopes: tuple[str, ...] = ()
    allow: Allow | None = None


SIGNED_IN = Access()
"""Every principal."""


def owner_of(principal: Principal | None) -> str | None:
    """Return what marks a session or a state as a principal's own: the same for each of its tokens; None for nobody."""
    return None if principal is None else _digest(principal.key)


@lru_cache(maxsize=4096)
def _digest(key: tuple[str, str, str]) -> str:
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]
