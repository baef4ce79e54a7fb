"""The access rule of a feature, as its author declares it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._auth.principal import Principal

    Authorize = Callable[[Principal], bool | Awaitable[bool]]


class Access(NamedTuple):
    """The callers that may use a feature. A server without authentication does not check it.

    Attributes:
        allow_anonymous: Accept every caller, with and without credentials.
        required_scopes: Scopes that a principal must hold, all of them.
        authorize: An extra check of the principal. It must return exactly ``True`` and may be async.
    """

    allow_anonymous: bool = False
    required_scopes: tuple[str, ...] = ()
    authorize: Authorize | None = None


PRINCIPALS_ONLY = Access()
"""Every principal may use the feature."""
