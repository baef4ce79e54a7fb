"""Scopes: words for what a caller has been allowed (RFC 6749 section 3.3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


def distinct(scopes: Iterable[str]) -> tuple[str, ...]:
    """Return scopes in their order, each once; raise ValueError for what is no scope."""
    found = tuple(dict.fromkeys(scopes))
    wrong = [scope for scope in found if not isinstance(scope, str) or not _SCOPE.fullmatch(scope)]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is no scope: one has visible ASCII characters without quotes and backslashes.")
    return found
