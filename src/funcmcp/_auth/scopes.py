"""Scopes: permissions that an authorization server grants (RFC 6749 section 3.3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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
