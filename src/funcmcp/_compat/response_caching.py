"""FastMCP's middleware that caches lists, results of tools, contents of resources and messages of prompts.

How it works: entries are JSON objects in a store with the interface of the package `py-key-value-aio`, each kind of
request in a collection of its own. The key has the caller's token, the revision, the version and the arguments. Errors,
tasks and questions to the client are not stored, and a request that has the answer to a question passes by. While the
store fails, requests are answered without the cache.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from funcmcp._compat.annotations import plain
from funcmcp._compat.content import ToolResult, block_of
from funcmcp._compat.dependencies import get_access_token
from funcmcp._compat.editable import Editable, ListedPrompt, ListedResource, ListPage, PromptAnswer, ReadResult
from funcmcp._compat.listed_components import ListedTool
from funcmcp._compat.middleware import CallNext, Middleware, MiddlewareContext
from funcmcp._compat.response_limiting import wire_of
from funcmcp._compat.session_visibility import as_dicts
from funcmcp._objects.mappings import only, without_none
from funcmcp._objects.public_names import public
from funcmcp._server.log import types_and_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_logger = logging.getLogger("funcmcp.compat")
_LIST_SECONDS = 300
_RESULT_SECONDS = 3600
_MIB = 1024 * 1024
_ANONYMOUS = "__anonymous__"
_MAX_ENTRIES = 10_000
_MAX_BYTES = 64 * _MIB
"""Bytes of all entries in the memory of a process. Clients choose the arguments, and so how many entries there are."""


@public("funcmcp.compat")
class SharedMethodSettings(TypedDict, total=False):
    """How one kind of request is cached: ``ttl`` in seconds, and whether it is ``enabled``."""

    ttl: int
    enabled: bool


@public("funcmcp.compat")
class ListToolsSettings(SharedMethodSettings):
    """How lists of tools are cached."""


@public("funcmcp.compat")
class ListResourcesSettings(SharedMethodSettings):
    """How lists of resources are cached."""


@public("funcmcp.compat")
class ListPromptsSettings(SharedMethodSettings):
    """How lists of prompts are cached."""


@public("funcmcp.compat")
class CallToolSettings(SharedMethodSettings, total=False):
    """How results of tools are cached: also ``included_tools`` and ``excluded_tools``, both of them names."""

    included_tools: list[str]
    excluded_tools: list[str]


@public("funcmcp.compat")
class ReadResourceSettings(SharedMethodSettings):
    """How contents of resources are cached."""


@public("funcmcp.compat")
class GetPromptSettings(SharedMethodSettings):
    """How messages of prompts are cached."""


class _Store(Protocol):
    """A store of `py-key-value-aio`."""

    async def get(self, key: str, *, collection: str | None = None) -> dict[str, Any] | None:
        """Return an entry; None if there is none."""

    async def put(self, key: str, value: Mapping[str, Any], *, collection: str | None = None, ttl: Any = None) -> None:
        """Store an entry for *ttl* seconds."""


class _Memory:
    """The store in the memory of the process: 10,000 entries and 64 MiB. What was used longest ago leaves first."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str | None, str], tuple[float, bytes]] = OrderedDict()
        self._size = 0

    async def get(self, key: str, *, collection: str | None = None) -> dict[str, Any] | None:
        """Return an entry; None if there is none."""
        place = collection, key
        if place not in self._entries:
            return None
        expires, text = self._entries[place]
        if expires <= time.monotonic():
            self._remove(place)
            return None
        self._entries.move_to_end(place)
        entry: dict[str, Any] = json.loads(text)
        return entry

    async def put(self, key: str, value: Mapping[str, Any], *, collection: str | None = None, ttl: Any = None) -> None:
        """Store an entry for *ttl* seconds."""
        place = collection, key
        self._remove(place)
        text = json.dumps(value).encode()
        self._entries[place] = (time.monotonic() + ttl, text)
        self._size += len(text)
        while self._entries and (len(self._entries) > _MAX_ENTRIES or self._size > _MAX_BYTES):
            self._remove(next(iter(self._entries)))

    def _remove(self, place: tuple[str | None, str]) -> None:
        entry = self._entries.pop(place, None)
        if entry is not None:
            self._size -= len(entry[1])


@dataclass
class _Gets:
    """How often a cache was asked, and with what result."""

    count: int = 0
    hit: int = 0
    miss: int = 0


@dataclass
class _Puts:
    """How often an entry was stored."""

    count: int = 0


@public("funcmcp.compat")
@dataclass
class CacheStatistics:
    """The use of the cache of one kind of request.

    Attributes:
        get: How often it was asked: ``count``, ``hit`` and ``miss``.
        put: How often an entry was stored: ``count``.
    """

    get: _Gets = field(default_factory=_Gets)
    put: _Puts = field(default_factory=_Puts)


@public("funcmcp.compat")
@dataclass
class ResponseCachingStatistics:
    """The use of the caches of a `ResponseCachingMiddleware`. One that was not used is None."""

    list_tools: CacheStatistics | None = None
    list_resources: CacheStatistics | None = None
    list_prompts: CacheStatistics | None = None
    read_resource: CacheStatistics | None = None
    get_prompt: CacheStatistics | None = None
    call_tool: CacheStatistics | None = None


@dataclass
class _Cache:
    """The cache of one kind of request.

    Attributes:
        collection: The method.
        store: The store.
        max_size: The bytes of an entry.
        pack: Returns a result as a JSON object; None if it must not be stored.
        unpack: Returns the result of a JSON object.
        statistics: The use; None before the first one.
        is_store_failing: Whether the last use of the store failed.
    """

    collection: str
    store: _Store
    max_size: int
    pack: Callable[[Any], dict[str, Any] | None]
    unpack: Callable[[dict[str, Any]], Any]
    statistics: CacheStatistics | None = None
    is_store_failing: bool = False

    async def answer(self, key: str, ttl: float, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Return the result that is stored, or pass the request on and store its result."""
        if self.statistics is None:
            self.statistics = CacheStatistics()
        self.statistics.get.count += 1
        stored = await self._get(key)
        if stored is not None:
            self.statistics.get.hit += 1
            return stored[0]
        self.statistics.get.miss += 1
        result = await call_next(context)
        entry = self.pack(result)
        if entry is not None and _may_serve_others(context):
            self.statistics.put.count += 1
            if len(json.dumps(entry)) <= self.max_size:
                await self._put(key, entry, ttl)
        return result

    async def _get(self, key: str) -> tuple[Any] | None:
        """Return the result that is stored; None if there is none, or the store can't return it."""
        try:
            entry = await self.store.get(key, collection=self.collection)
            result = None if entry is None else (self.unpack(entry),)
        except Exception as error:  # noqa: BLE001 - a store of the author, and what other versions stored there
            self._report(error)
            return None
        return result

    async def _put(self, key: str, entry: dict[str, Any], ttl: float) -> None:
        try:
            await self.store.put(key, entry, collection=self.collection, ttl=ttl)
        except Exception as error:  # noqa: BLE001 - a store of the author, such as one on a disk that is full
            self._report(error)
        else:
            self.is_store_failing = False

    def _report(self, error: Exception) -> None:
        """Log the first failure of the store, until it stores an entry again."""
        if not self.is_store_failing:
            self.is_store_failing = True
            _logger.warning(
                "The cache of %s failed with %s. Requests are answered without it until it stores a result again.",
                self.collection,
                types_and_texts(error),
            )


@public("funcmcp.compat")
class ResponseCachingMiddleware(Middleware):
    """Caches lists for 5 minutes, and results of tools, resources and prompts for an hour, separately for each token.

    All tools are cached, also those that change something: choose them with `call_tool_settings`.

    Args:
        cache_storage: A store of the package `py-key-value-aio`. None: the memory of the process. While the store
            fails, such as on a full disk, requests are answered without it, with a warning in the log.
        list_tools_settings: How lists of tools are cached.
        list_resources_settings: How lists of resources are cached.
        list_prompts_settings: How lists of prompts are cached.
        read_resource_settings: How contents of resources are cached.
        get_prompt_settings: How messages of prompts are cached.
        call_tool_settings: How results of tools are cached.
        max_item_size: The bytes of an entry. A larger one is not stored.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - FastMCP's parameters
        self,
        cache_storage: Any = None,
        list_tools_settings: ListToolsSettings | None = None,
        list_resources_settings: ListResourcesSettings | None = None,
        list_prompts_settings: ListPromptsSettings | None = None,
        read_resource_settings: ReadResourceSettings | None = None,
        get_prompt_settings: GetPromptSettings | None = None,
        call_tool_settings: CallToolSettings | None = None,
        max_item_size: int = _MIB,
    ) -> None:
        store: _Store = cache_storage or _Memory()
        self._tools: CallToolSettings = call_tool_settings or {}
        self._settings: dict[str, Mapping[str, Any]] = {
            "list_tools": list_tools_settings or {},
            "list_resources": list_resources_settings or {},
            "list_prompts": list_prompts_settings or {},
            "read_resource": read_resource_settings or {},
            "get_prompt": get_prompt_settings or {},
            "call_tool": self._tools,
        }
        self._caches: dict[str, _Cache] = {
            name: _Cache(collection, store, max_item_size, pack, unpack)
            for name, (collection, pack, unpack) in _KINDS.items()
        }

    def statistics(self) -> ResponseCachingStatistics:
        """Return the use of the caches."""
        return ResponseCachingStatistics(**{name: cache.statistics for name, cache in self._caches.items()})

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Answer with the list that is stored."""
        return await self._listed("list_tools", context, call_next)

    async def on_list_resources(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Answer with the list that is stored."""
        return await self._listed("list_resources", context, call_next)

    async def on_list_prompts(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Answer with the list that is stored."""
        return await self._listed("list_prompts", context, call_next)

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Answer with the result that is stored."""
        if not self._matches_tool_cache_settings(context.message.name):
            return await call_next(context)
        subject = [context.message.name, context.message.arguments]
        return await self._answered("call_tool", subject, context, call_next)

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Answer with the contents that are stored."""
        await self.check_resource_access(context)
        if _is_live(context):
            return await call_next(context)
        return await self._answered("read_resource", str(context.message.uri), context, call_next)

    async def on_get_prompt(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Answer with the messages that are stored."""
        subject = [context.message.name, context.message.arguments]
        return await self._answered("get_prompt", subject, context, call_next)

    def _matches_tool_cache_settings(self, tool_name: str) -> bool:
        included, excluded = self._tools.get("included_tools"), self._tools.get("excluded_tools")
        if included and tool_name not in included:
            return False
        return not excluded or tool_name not in excluded

    async def _listed(self, name: str, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        settings = self._settings[name]
        if settings.get("enabled") is False:
            return await call_next(context)
        cursor = getattr(getattr(context.message, "params", None), "cursor", None)
        key = _digest([_caller(), _revision_of(context), cursor, *_rules_of(context)])
        return await self._caches[name].answer(key, settings.get("ttl", _LIST_SECONDS), context, call_next)

    async def _answered(
        self, name: str, subject: Any, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]
    ) -> Any:
        settings = self._settings[name]
        if settings.get("enabled") is False or _has_answers(context) or _is_refused(context):
            return await call_next(context)
        key = _digest([_caller(), _revision_of(context), _version_of(context), subject])
        return await self._caches[name].answer(key, settings.get("ttl", _RESULT_SECONDS), context, call_next)


def _digest(parts: list[Any]) -> str:
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=_plain_or_text)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain_or_text(value: Any) -> Any:
    wire = plain(value)
    return str(value) if wire is value else wire


def _caller() -> Any:
    """Return what tells callers apart: the token, and whose it is where its text is not known."""
    token = get_access_token()
    return _ANONYMOUS if token is None else [token.token, token.client_id, token.subject, token.scopes, token.claims]


def _revision_of(context: MiddlewareContext[Any]) -> str | None:
    current = context.fastmcp_context
    return None if current is None else getattr(current, "protocol_version", None)


def _rules_of(context: MiddlewareContext[Any]) -> list[Any]:
    """Return the rules that show and hide components for the client; nothing if it has none."""
    rules = None if context.fastmcp_context is None else as_dicts(context.fastmcp_context.session_rules)
    return [rules] if rules else []


def _is_refused(context: MiddlewareContext[Any]) -> bool:
    """Return whether a request names nothing that its client sees, such as a tool that was hidden meanwhile."""
    call = None if context.fastmcp_context is None else context.fastmcp_context._call  # noqa: SLF001 - a part of Context
    return call is not None and call.request.routed.fault is not None


def _version_of(context: MiddlewareContext[Any]) -> Any:
    """Return the version of the feature that a request names in its ``_meta``."""
    meta = (getattr(context.message, "meta", None) or {}).get("fastmcp")
    return meta.get("version") if isinstance(meta, dict) else None


def _has_answers(context: MiddlewareContext[Any]) -> bool:
    """Return whether a request continues one that asked its client."""
    members = ("input_responses", "inputResponses", "request_state", "requestState")
    return any(getattr(context.message, member, None) is not None for member in members)


def _may_serve_others(context: MiddlewareContext[Any]) -> bool:
    """Return whether a result may answer other requests: not if its request has asked the client."""
    call = None if context.fastmcp_context is None else context.fastmcp_context._call  # noqa: SLF001 - a part of Context
    return call is None or call.request.is_reusable


def _packed_list(items: Sequence[Any]) -> dict[str, Any]:
    members = [{"wire": dict(item), "tags": sorted(item.tags)} for item in items]
    return {"items": members, "next_cursor": getattr(items, "next_cursor", None)}


def _unpacked_list(kind: type[Editable]) -> Callable[[dict[str, Any]], list[Any]]:
    def unpack(entry: dict[str, Any]) -> list[Any]:
        items = ListPage(entry.get("next_cursor"))
        for member in entry["items"]:
            item = kind(member["wire"])
            item.tags = set(member["tags"])
            items.append(item)
        return items

    return unpack


def _packed_result(result: Any) -> dict[str, Any] | None:
    if not isinstance(result, ToolResult) or result.is_error:
        return None
    members = {"structured": result.structured_content, "meta": result.meta}
    return {"content": [wire_of(block) for block in result.content], **without_none(members)}


def _unpacked_result(entry: dict[str, Any]) -> ToolResult:
    return ToolResult([block_of(block) for block in entry["content"]], entry.get("structured"), entry.get("meta"))


def _packed_read(result: Any) -> dict[str, Any] | None:
    is_final = isinstance(result, ReadResult) and not _is_question(result)
    return only(result, ("contents", "_meta")) if is_final else None


def _packed_prompt(result: Any) -> dict[str, Any] | None:
    is_final = isinstance(result, PromptAnswer) and not _is_question(result)
    return only(result, ("messages", "description", "_meta")) if is_final else None


def _is_question(result: Mapping[str, Any]) -> bool:
    """Return whether a result asks the client, whose answer is not that of others."""
    return result.get("resultType") == "input_required" or "inputRequests" in result


_KINDS: dict[str, tuple[str, Callable[[Any], dict[str, Any] | None], Callable[[dict[str, Any]], Any]]] = {
    "list_tools": ("tools/list", _packed_list, _unpacked_list(ListedTool)),
    "list_resources": ("resources/list", _packed_list, _unpacked_list(ListedResource)),
    "list_prompts": ("prompts/list", _packed_list, _unpacked_list(ListedPrompt)),
    "read_resource": ("resources/read", _packed_read, ReadResult),
    "get_prompt": ("prompts/get", _packed_prompt, PromptAnswer),
    "call_tool": ("tools/call", _packed_result, _unpacked_result),
}
"""The collection of each kind of request, and how its results become JSON objects and back."""


def _is_live(context: MiddlewareContext[Any]) -> bool:
    """Return whether an extension of the server needs the contents of a resource as they are now."""
    server: Any = None if context.fastmcp_context is None else context.fastmcp_context.fastmcp
    if not (getattr(server, "added_extensions", None) or getattr(server, "added_providers", None)):
        return False
    from funcmcp._compat.extensions import requires_live_resource  # noqa: PLC0415 - few servers have extensions

    return requires_live_resource(server, str(context.message.uri))
