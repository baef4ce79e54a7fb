"""The access rule of a feature, as its author declares it, and scopes.

Source: RFC 6749 section 3.3, for scopes, the permissions that an authorization server grants.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

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


_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


def distinct(scopes: Iterable[str]) -> tuple[str, ...]:
    """Return scopes in their order, without duplicates; raise ValueError for an invalid scope."""
    unique = tuple(dict.fromkeys(scopes))
    for scope in unique:
        if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):
            raise ValueError(
                f"{scope!r} is not a scope. A scope has visible ASCII characters without quotes and backslashes."
            )
    return unique
