"""The rule of one feature about its callers, as its author declares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp.auth.principal import Principal

    Allow = Callable[[Principal], bool | Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use a feature of a server that authenticates its callers. Other servers don't check it.

    Attributes:
        anonymous: Accept every caller, with and without credentials.
        scopes: Scopes that a principal must hold, all of them.
        allow: An extra check of the principal; must return exactly ``True``. May be async.
    """

    anonymous: bool = False
    scopes: tuple[str, ...] = ()
    allow: Allow | None = None


SIGNED_IN = Access()
"""Every principal may use the feature."""
