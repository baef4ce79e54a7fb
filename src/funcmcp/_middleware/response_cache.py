"""Middleware that caches the results of tools, resources and prompts, in memory or in a store.

How it works: an entry is kept by method, params (without ``_meta``), version of the feature, revision and, unless the
scope is public, the principal. Errors, results with ``isError``, tasks and rounds of questions are not kept. Requests
that arrive while the first one of their kind runs also run.

Each feature has a *generation*, which `ResultCache.invalidate` changes. A result is kept with the generation that was
read before its call began, and counts only in this generation. So a call that began before an invalidation, and ends
after it, leaves nothing behind.

In memory, the cache is bounded by bytes; the entry that was used longest ago leaves first. A store has a fixed number
of *slots*. The digest of a request chooses two of them. A result is put into an empty one, or displaces one of the two
that are there. So what callers can make a store keep is bounded without an account of it. While the store is away,
requests are answered without the cache.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import time
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, cast

from funcmcp._auth.owner import owner_of
from funcmcp._objects.mappings import without
from funcmcp._objects.public_names import public
from funcmcp._server.catalog.features import RESULT_SCHEME, Tool
from funcmcp._state.caller_values import ValueCipher
from funcmcp._state.key_values import StateFullError, StateStore
from funcmcp._state.records import to_record, value_of
from funcmcp._state.seal import require_cipher
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Collection

    from funcmcp._protocol.jsonrpc import Request
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import Feature
    from funcmcp._server.middleware import CallNext
    from funcmcp._state.seal import KeyRing

_MIB = 1024 * 1024
_METHODS = frozenset({"tools/call", "resources/read", "prompts/get"})
_ENTRY_BYTES = 500
"""Bytes that an entry takes up beside its key and its result, roughly."""

SLOT_BYTES = 64 * 1024
"""Bytes of the largest result that is kept in a store, by default."""


_CHOICES = ("first", "second")
"""With two slots for each request, few results displace each other before most slots are in use."""


@public("funcmcp.middleware")
def cache_results(
    ttl: float,
    features: Collection[str],
    *,
    scope: Literal["caller", "public"] = "caller",
    store: StateStore | None = None,
    max_bytes: int = 16 * _MIB,
    max_result_bytes: int | None = None,
) -> ResultCache:
    """Return middleware that keeps results and answers the same request with them.

    Args:
        ttl: Seconds for which a result is kept.
        features: Names of tools and prompts, URIs of resources and texts of URI templates whose results are kept.
            Choose only features whose result depends on nothing but the arguments and, with the scope "caller", the
            principal.
        scope: ``"caller"``: each principal has results of its own, and all anonymous callers have theirs together.
            ``"public"``: all callers have the same results. A caller that may not use a feature gets none of them.
        store: Where results are kept for all processes, such as `funcmcp.redis.RedisState`. They are encrypted. None is
            the memory of the process.
        max_bytes: The size of the cache.
        max_result_bytes: The size of a result; a larger one is not kept. None is `max_bytes` in memory, and 64 KiB in a
            store, which has a slot of this size for each result.

    Raises:
        ValueError: `ttl` or a size is not above 0, or `scope` is unknown.
        TypeError: `features` is a string, or `store` is not a store.
    """
    sizes = [max_bytes, 1 if max_result_bytes is None else max_result_bytes]
    if not 0 < ttl < float("inf") or min(sizes) <= 0:
        raise ValueError(
            f"ttl, max_bytes and max_result_bytes must be above 0; got {ttl!r}, {max_bytes!r} and {max_result_bytes!r}."
        )
    if scope not in {"caller", "public"}:
        raise ValueError(f"scope must be 'caller' or 'public'; got {scope!r}.")
    if isinstance(features, str):
        raise TypeError("features is a list of names and URIs, not one string.")
    if store is None:
        return ResultCache(_MemoryResults(ttl, max_bytes, max_result_bytes or max_bytes), features, scope)
    if not isinstance(store, StateStore):
        raise TypeError(f"store must be a store of state, such as funcmcp.redis.RedisState; got {store!r}.")
    slot_bytes = max_result_bytes or SLOT_BYTES
    return ResultCache(_StoredResults(store, ttl, max(1, max_bytes // slot_bytes), slot_bytes), features, scope)


@public("funcmcp.middleware")
class ResultCache:
    """The middleware that `cache_results` returns. It belongs to one server.

    Example:
        ```python
        cache = cache_results(60, ["get_menu"], store=RedisState(URL))
        mcp = MCPServer("Menu", middleware=[cache])


        @mcp.tool
        async def change_price(dish: str, price: float) -> str:
            await store_price(dish, price)
            await cache.invalidate("get_menu")
            return "changed"
        ```
    """

    def __init__(self, results: _Results, features: Collection[str], scope: str) -> None:
        self._results = results
        self._features = frozenset(features)
        self._is_public = scope == "public"
        self._server: str | None = None

    async def __call__(self, context: RequestContext, call_next: CallNext) -> Reply | dict[str, Any]:
        """Return the result that is kept for a request, or pass the request on and keep its result."""
        feature = context.feature
        if feature is None or not self._caches(feature, context.request):
            return await call_next(context)
        key = self._key_of(context)
        lookup = await self._results.get(feature.key, key)
        if lookup.result is not None:
            return lookup.result
        reply = await call_next(context)
        result = reply.result()
        may_keep = lookup.generation is not None and context.is_reusable
        if may_keep and result is not None and _is_final(result):
            is_of_caller = context.principal is not None and _leads_to_stored_result(result)
            if not (self._is_public and is_of_caller):
                await self._results.add(key, lookup, result, len(reply.body))
        return reply

    async def invalidate(self, feature: str | None = None) -> None:
        """Drop the results of a feature, or of all: those of calls that are under way as well.

        In a store, this holds for all processes; otherwise for this one.

        Args:
            feature: One of the names and URIs that the cache was made with. None: all of them.

        Raises:
            ValueError: The cache has no such feature.
            StoreUnavailableError: The store can't be reached. The results remain until their time is up.
        """
        if feature is not None and feature not in self._features:
            raise ValueError(
                f"The cache has no feature {feature!r}. Its features: {', '.join(sorted(self._features))}."
            )
        for key in sorted(self._features) if feature is None else [feature]:
            await self._results.invalidate(key)

    def bind(self, server: str, keys: KeyRing) -> None:
        """Use the name and the keys of a server; raise ValueError if the cache belongs to another one."""
        if self._server not in {None, server}:
            raise ValueError(
                f"A cache of results belongs to one server, and this one to {self._server}. Call cache_results again "
                f"for {server}."
            )
        self._server = server
        self._results.bind(server, keys)

    async def aclose(self) -> None:
        """Close the connections of the store."""
        await self._results.aclose()

    def _caches(self, feature: Feature, request: Request) -> bool:
        """Return whether a request can be answered with a result that is kept. A person's yes serves one call only."""
        if feature.key not in self._features or request.method not in _METHODS or "task" in request.params:
            return False
        return not isinstance(feature, Tool) or feature.confirmation is None

    def _key_of(self, context: RequestContext) -> str:
        request = context.request
        caller = None if self._is_public else owner_of(context.principal)
        version = None if context.feature is None else context.feature.version
        parts = [request.method, context.client.revision.date, caller, version, without(request.params, "_meta")]
        return json.dumps(parts, sort_keys=True, separators=(",", ":"))


class _Lookup(NamedTuple):
    """What a cache has for a request.

    Attributes:
        result: The result; None if there is none.
        generation: The generation of the feature; None if the cache can't be used now.
        feature: The feature.
        place: The key in the store under which a new result belongs.
        slot: The value there, which the new result replaces; None if there is none.
    """

    result: dict[str, Any] | None
    generation: str | None
    feature: str
    place: str = ""
    slot: str | None = None


class _Results(Protocol):
    """Results by key, for a time and within a size."""

    def bind(self, server: str, keys: KeyRing) -> None:
        """Use the name and the keys of a server."""

    async def get(self, feature: str, key: str) -> _Lookup:
        """Return what there is for a request."""

    async def add(self, key: str, lookup: _Lookup, result: dict[str, Any], size: int) -> None:
        """Keep a result, unless it is too large or the generation has changed."""

    async def invalidate(self, feature: str) -> None:
        """Begin another generation of a feature."""

    async def aclose(self) -> None:
        """Close connections."""


class _Entry(NamedTuple):
    """A result in memory."""

    expires: float
    feature: str
    result: dict[str, Any]
    size: int


class _MemoryResults:
    """Results in the memory of the process."""

    def __init__(self, ttl: float, max_bytes: int, max_result_bytes: int) -> None:
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._max_result_bytes = max_result_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # the entry that was used longest ago is the first
        self._bytes = 0
        self._generations: Counter[str] = Counter()

    def bind(self, server: str, keys: KeyRing) -> None:
        """Do nothing: no other server reaches this memory."""

    async def get(self, feature: str, key: str) -> _Lookup:
        """Return what there is for a request."""
        entry = self._entries.get(key)
        generation = str(self._generations[feature])
        if entry is None or entry.expires <= time.monotonic():
            return _Lookup(None, generation, feature)
        self._entries.move_to_end(key)
        return _Lookup(entry.result, generation, feature)

    async def add(self, key: str, lookup: _Lookup, result: dict[str, Any], size: int) -> None:
        """Keep a result, unless it is too large or the generation has changed."""
        size += len(key) + _ENTRY_BYTES
        is_outdated = str(self._generations[lookup.feature]) != lookup.generation
        if is_outdated or size > min(self._max_bytes, self._max_result_bytes):
            return
        self._discard(key)
        self._entries[key] = _Entry(time.monotonic() + self._ttl, lookup.feature, result, size)
        self._bytes += size
        while self._bytes > self._max_bytes:
            self._discard(next(iter(self._entries)))

    async def invalidate(self, feature: str) -> None:
        """Begin another generation of a feature."""
        self._generations[feature] += 1
        for key in [key for key, entry in self._entries.items() if entry.feature == feature]:
            self._discard(key)

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""

    def _discard(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size


class _StoredResults:
    """Results in a store, for all processes of a server."""

    def __init__(self, store: StateStore, ttl: float, slots: int, max_result_bytes: int) -> None:
        self._store = store
        self._ttl = ttl
        self._slots = slots
        self._max_result_bytes = max_result_bytes
        self._server = ""
        self._bound: ValueCipher | None = None

    def bind(self, server: str, keys: KeyRing) -> None:
        """Use the name and the keys of a server."""
        self._server = server
        self._bound = ValueCipher(self._store, keys)
        if not self._bound.is_plain:
            require_cipher(type(self._store).__name__)

    @property
    def _cipher(self) -> ValueCipher:
        if self._bound is None:
            raise RuntimeError(
                "A cache with a store needs the keys of its server. Pass it to MCPServer(middleware=) or "
                "mcp.add_middleware itself, and not in another middleware."
            )
        return self._bound

    async def get(self, feature: str, key: str) -> _Lookup:
        """Return what there is for a request."""
        places = [self._place(key, choice) for choice in _CHOICES]
        try:
            token, *slots = await asyncio.gather(
                self._store.get(self._digest("generation", feature)), *(self._store.get(place) for place in places)
            )
        except StoreUnavailableError:
            return _Lookup(None, None, feature)
        generation = "" if token is None else self._digest(token)
        for place, slot in zip(places, slots, strict=True):
            match None if slot is None else value_of(self._cipher.reveal(place, slot)):
                case {"v": 1, "key": str(stored), "generation": str(stored_generation), "result": dict(result)}:
                    if stored == self._digest(key) and stored_generation == generation:
                        return _Lookup(cast("dict[str, Any]", result), generation, feature)
        number = slots.index(None) if None in slots else random.randrange(len(slots))  # noqa: S311 - not a secret
        return _Lookup(None, generation, feature, places[number], slots[number])

    async def add(self, key: str, lookup: _Lookup, result: dict[str, Any], size: int) -> None:
        """Keep a result, unless it is too large. One of an earlier generation is never read."""
        if size > self._max_result_bytes:
            return
        place = lookup.place
        members = {"key": self._digest(key), "generation": lookup.generation, "result": result}
        text = self._cipher.conceal(place, to_record(members, {}))
        try:
            if lookup.slot is None:
                await self._store.take(place, text, self._ttl)
            else:
                await self._store.replace(place, lookup.slot, text, self._ttl)
        except (StoreUnavailableError, StateFullError):
            return  # the caller has its result

    async def invalidate(self, feature: str) -> None:
        """Begin another generation of a feature. It lasts until all results of the ones before have ended."""
        place, token = self._digest("generation", feature), os.urandom(16).hex()
        current = await self._store.get(place)
        if current is None:  # if another process is faster, its generation is as good
            await self._store.take(place, token, 2 * self._ttl)
        else:
            await self._store.replace(place, current, token, 2 * self._ttl)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._store.aclose()

    def _place(self, key: str, choice: str) -> str:
        """Return the key of one of the slots of a request."""
        number = int(self._digest(key, choice), 16) % self._slots
        return self._digest("slot", str(number))

    def _digest(self, *parts: str) -> str:
        return hashlib.sha256(json.dumps(["results", self._server, *parts]).encode()).hexdigest()


def _leads_to_stored_result(result: dict[str, Any]) -> bool:
    """Return whether a result was shortened, and the whole is stored for its caller."""
    blocks = result.get("content")
    return isinstance(blocks, list) and any(str(block.get("uri")).startswith(RESULT_SCHEME) for block in blocks)


def _is_final(result: dict[str, Any]) -> bool:
    """Return whether a result is complete, and not an error of the tool, a task or a question to the client."""
    return result.get("isError") is not True and result.get("resultType", "complete") == "complete"
