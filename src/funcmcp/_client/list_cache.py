"""Lists of features for as long as the server allows to cache them.

Only servers of 2026-07-28 do: a result has a time (`ttlMs`) and a scope. A list of several pages is cached for the
shortest time of them. A list for one user (``private``) is not used with other credentials.

Source: 2026-07-28 "server/utilities/caching" (SEP-2549).
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._protocol.objects import number_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_MAX_SECONDS = 24 * 3600.0
"""The longest time for which a list is cached, although the server allows more."""

_METHODS = {
    "tools": ("tools/list",),
    "prompts": ("prompts/list",),
    "resources": ("resources/list", "resources/templates/list"),
}
"""The lists that change together, by the kind of a `Change`."""


class _CachedList(NamedTuple):
    items: list[Any]
    expires: float
    is_public: bool
    credentials: str | None


class ListCache:
    """The lists of one server.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lists: dict[str, _CachedList] = {}
        self._changes = 0

    def get(self, method: str, credentials: str | None) -> list[Any] | None:
        """Return a copy of the items of a list. Return None if they are not cached for these credentials."""
        cached = self._lists.get(method)
        if cached is None or self._clock() >= cached.expires:
            return None
        if not cached.is_public and cached.credentials != credentials:
            return None
        items: list[Any] = _copy(cached.items)
        return items

    def begin(self) -> int:
        """Return a number for `put`, before a list is requested."""
        return self._changes

    def put(
        self, method: str, items: list[Any], pages: Sequence[Mapping[str, Any]], begun: int, credentials: str | None
    ) -> None:
        """Cache the items of a list, if the server allows it, and if nothing has changed since `begin`."""
        milliseconds = min(number_of(page.get("ttlMs")) or 0 for page in pages)
        if begun != self._changes or milliseconds <= 0:
            self._lists.pop(method, None)
            return
        expires = self._clock() + min(milliseconds / 1000, _MAX_SECONDS)
        is_public = all(page.get("cacheScope") == "public" for page in pages)
        self._lists[method] = _CachedList(_copy(items), expires, is_public, credentials)

    def drop(self, kind: str) -> None:
        """Drop the lists that have changed: those of tools, prompts or resources."""
        self._changes += 1
        for method in _METHODS.get(kind, ()):
            self._lists.pop(method, None)

    def clear(self) -> None:
        """Drop all lists."""
        self._changes += 1
        self._lists.clear()


def _copy(value: Any) -> Any:
    """Return a JSON value that shares no list and no object with another one."""
    if isinstance(value, dict):
        return {name: _copy(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_copy(member) for member in value]
    return value
