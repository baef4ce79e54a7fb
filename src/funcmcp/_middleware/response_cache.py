"""Middleware that caches the results of tools, resources and prompts in memory.

How it works: an entry is kept by method, params (without ``_meta``), revision and principal, so no caller gets the
result of another. The cache is bounded by bytes; the entry that was used longest ago leaves first. Errors, results with
``isError`` and rounds of questions are not kept. Requests that arrive while the first one of their kind runs also run.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._auth.owner import owner_of
from funcmcp._mappings import without
from funcmcp._public_names import public

if TYPE_CHECKING:
    from collections.abc import Collection

    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext, Middleware

_MIB = 1024 * 1024
_METHODS = frozenset({"tools/call", "resources/read", "prompts/get"})
_ENTRY_BYTES = 500
"""Bytes that an entry takes up beside its key and its result, roughly."""


class _Entry(NamedTuple):
    expires: float
    result: dict[str, Any]
    size: int


@public("funcmcp.middleware")
def cache_results(seconds: float, features: Collection[str], *, max_bytes: int = 16 * _MIB) -> Middleware:
    """Return middleware that keeps results in memory and answers the same request of the same principal with them.

    Args:
        seconds: How long a result is kept.
        features: Names of tools and prompts, URIs of resources and texts of URI templates whose results are kept.
            Choose only features whose result depends on nothing but arguments and principal.
        max_bytes: The size of the cache; a larger result is not kept.

    Raises:
        ValueError: `seconds` or `max_bytes` is not above 0.
        TypeError: `features` is a string.
    """
    if not seconds > 0 or max_bytes <= 0:
        raise ValueError(f"seconds and max_bytes must be above 0; got {seconds} and {max_bytes}.")
    if isinstance(features, str):
        raise TypeError("features is a list of names and URIs, not one string.")
    cached_features = frozenset(features)
    results = _Results(seconds, max_bytes)

    async def cache(context: RequestContext, call_next: CallNext) -> Reply | dict[str, Any]:
        feature = context.feature
        if context.request.method not in _METHODS or feature is None or feature.key not in cached_features:
            return await call_next(context)
        key = _key_of(context)
        result = results.get(key)
        if result is not None:
            return result
        reply = await call_next(context)
        results.add(key, reply)
        return reply

    return cache


class _Results:
    """Results by key, for a time and within a size."""

    def __init__(self, seconds: float, max_bytes: int) -> None:
        self._seconds = seconds
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # the entry that was used longest ago is the first
        self._bytes = 0

    def get(self, key: str) -> dict[str, Any] | None:
        entry = self._entries.get(key)
        if entry is None or entry.expires <= time.monotonic():
            return None
        self._entries.move_to_end(key)
        return entry.result

    def add(self, key: str, reply: Reply) -> None:
        """Keep the result of a reply, unless it is an error, not final, or larger than the cache."""
        size = len(reply.body) + len(key) + _ENTRY_BYTES
        result = reply.result()
        if result is None or not _is_final(result) or size > self._max_bytes:
            return
        self._discard(key)
        self._entries[key] = _Entry(time.monotonic() + self._seconds, result, size)
        self._bytes += size
        while self._bytes > self._max_bytes:
            self._discard(next(iter(self._entries)))

    def _discard(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size


def _is_final(result: dict[str, Any]) -> bool:
    """Return whether a result is complete, and not an error of the tool or a question to the client."""
    return result.get("isError") is not True and result.get("resultType", "complete") == "complete"


def _key_of(context: RequestContext) -> str:
    request = context.request
    params = without(request.params, "_meta")
    parts = [request.method, context.client.revision.date, owner_of(context.principal), params]
    return json.dumps(parts, sort_keys=True, separators=(",", ":"))
