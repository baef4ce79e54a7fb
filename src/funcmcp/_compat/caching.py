"""The SDK's option ``cache_hints``: how long, and for whom, caches may store the answers of a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.replies import Reply

_METHODS = frozenset(
    {
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"),
        "server/discover",
    }
)
"""The methods whose answers may be stored."""


def checked_hints(hints: Mapping[Any, Any] | None) -> Mapping[str, Any]:
    """Return the hints by method.

    Raises:
        TypeError: A hint is not a ``CacheHint``.
        ValueError: The answers of a method can't be stored.
    """
    unknown = sorted(repr(method) for method in hints or () if method not in _METHODS)
    if unknown:
        raise ValueError(f"cache_hints keys must be cacheable methods (see CacheableMethod); got: {', '.join(unknown)}")
    for method, hint in (hints or {}).items():
        if not hasattr(hint, "ttl_ms") or not hasattr(hint, "scope"):
            raise TypeError(f"cache_hints[{method!r}] must be a CacheHint, got {type(hint).__name__}")
    return hints or {}


def with_hint(reply: Reply, hint: Any) -> Reply | dict[str, Any]:
    """Return an answer with the time and the scope of a hint, in revisions that have them."""
    result = reply.result()
    if result is None or "ttlMs" not in result:
        return reply
    return {**result, "ttlMs": hint.ttl_ms, "cacheScope": hint.scope}
