"""The search for tools: a short list, the tools that a caller finds by words, and a limit of their size.

How it works: `ToolSearch` listens to the catalog. Tools with the same access rule are one group. A tool is added to its
group at once. The next search reads its definition and adds its words to the index of the group. So a change costs the
work of one tool, and schemas are generated only if a client searches. A search asks the guard once for each access rule
and reads the groups that the caller may use. Other groups have no influence on its result.

Tools that are always visible are in the list of tools, so a search does not return them.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from difflib import get_close_matches
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from funcmcp._objects.mappings import only
from funcmcp._protocol import adaptation
from funcmcp._protocol.codec import encode
from funcmcp._server.authorization import guard_for
from funcmcp._server.catalog.conditions import shown_features
from funcmcp._server.catalog.features import READ_TOOL
from funcmcp._server.catalog.lookup import in_version
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.handlers.lists import YIELD_INTERVAL, FeatureList, cursor_of, session_rules_of
from funcmcp._server.log import log_left_out, logger, quote
from funcmcp._server.tool_index import Index, best_matches, count_words, terms_in, words_in
from funcmcp._state.line_limit import LineOfEach

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from funcmcp._auth.access import Access
    from funcmcp._server.authorization import Guard
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.features import Tool
    from funcmcp._server.catalog.registry import Registry
    from funcmcp._server.handlers.lists import ListFilter
    from funcmcp._server.results import Results

    R = TypeVar("R", Tool, "_ToolGroup")
    GroupKey = tuple[bool, tuple[str, ...], int]

MAX_NAMED = 20
"""Tools that one search returns because the query has their names."""

MAX_QUERY = 2_000
"""Characters of a query that are read."""

MAX_QUERY_WORDS = 16
MAX_DESCRIPTION = 1_000
"""Characters of a description in the result of a search."""

_SUGGESTIONS = 3
_MAX_COMPARED = 200
"""Names that are compared with an unknown one."""

_COMPARED_CHARACTERS = 64
"""Characters of an unknown name that are compared. Equal characters take a time that grows with their square."""

_NAME_WEIGHT, _TITLE_WEIGHT, _TAG_WEIGHT = 8, 6, 6
_DESCRIPTION_WEIGHT, _ARGUMENT_WEIGHT, _DETAIL_WEIGHT = 2, 1, 1
"""Weights of a word by its place. The details are the descriptions of arguments and the values of enumerations."""

_MAX_NESTING = 6
"""Levels of objects in an input schema whose words are read."""


class SearchOptions(NamedTuple):
    """The options of `MCPServer.tool_search`.

    Attributes:
        search_tool_name: The name of the tool that searches.
        call_tool_name: The name of the tool that calls what was found.
        always_visible: Names of tools that stay in the list.
        always_visible_tags: Tags of tools that stay in the list.
        max_results: The number of tools that a search returns.
        result_characters: The characters of JSON that a search returns.
        whole_list_clients: Names of clients that get the list of all tools.
    """

    search_tool_name: str
    call_tool_name: str
    always_visible: frozenset[str]
    always_visible_tags: frozenset[str]
    max_results: int
    result_characters: int
    whole_list_clients: frozenset[str]

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two tools."""
        return self.search_tool_name, self.call_tool_name

    def keeps_in_list(self, tool: Tool) -> bool:
        """Return whether a tool stays in the list."""
        return tool.name in self.always_visible or not self.always_visible_tags.isdisjoint(tool.tags)


class Hints(NamedTuple):
    """What the annotations of tools say about the most dangerous of them."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool

    @classmethod
    def of(cls, annotations: Mapping[str, Any]) -> Hints:
        """Return what the annotations of one tool say. Without one, the specification's default counts."""
        read_only = annotations.get("readOnlyHint") is True
        return cls(
            read_only,
            not read_only and annotations.get("destructiveHint") is not False,
            read_only or annotations.get("idempotentHint") is True,
            annotations.get("openWorldHint") is not False,
        )

    def annotations(self) -> dict[str, bool]:
        """Return the ToolAnnotations."""
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }


NO_HINTS = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
"""The hints of a tool that calls no other one yet."""


class _ToolGroup:
    """The tools of one access rule that are not always visible.

    Attributes:
        access: The rule.
        tools: The tools by name.
        index: The words of those that have been read.
    """

    def __init__(self, access: Access) -> None:
        self.access = access
        self.tools: dict[str, Tool] = {}
        self.index = Index()
        self._hints: Hints | None = None  # until the next change

    def add(self, tool: Tool) -> None:
        """Add a tool, whose words are read later."""
        self.tools[tool.name] = tool
        self._hints = None

    def remove(self, name: str) -> None:
        """Remove a tool and its words."""
        del self.tools[name]
        self._hints = None
        if name in self.index.lengths:
            self.index.remove(name)

    def hints(self) -> Hints:
        """Return the hints of the most dangerous of the tools."""
        if self._hints is None:
            self._hints = _most_dangerous(Hints.of(_annotations_of(tool)) for tool in list(self.tools.values()))
        return self._hints


class ToolSearch:
    """Finds tools of a catalog for a caller.

    Args:
        catalog: The tools. Those that are built in are not found.
        guard: Decides which tools a caller may use; None if every caller may use all.
        options: The options.

    Attributes:
        options: The options.
    """

    def __init__(self, catalog: Catalog, guard: Guard | None, options: SearchOptions) -> None:
        self.options = options
        self._registry: Registry[Tool] = catalog.tools
        self._guard = guard
        self.filters: Sequence[ListFilter] = ()
        self._groups: dict[GroupKey, _ToolGroup] = {}
        self._always_visible: dict[str, Tool] = {}
        self._unread: dict[str, Tool] = {}  # tools whose words are not in an index yet
        self._lock = RLock()  # tools may be added in any thread, and by code that describes one
        self._left_out = LineOfEach(logging.ERROR)
        self._has_checked_names = False

    def start(self) -> None:
        """Read the tools that the catalog has, and listen for changes."""
        self._registry.listeners.append(self._changed)
        for tool in self._registry:
            self._changed(tool, 1)

    def _changed(self, tool: Tool, count: int) -> None:
        if tool.is_built_in:
            return
        with self._lock:
            if self.options.keeps_in_list(tool):
                self._always_visible.pop(tool.name, None)
                if count > 0:
                    self._always_visible[tool.name] = tool
            elif count > 0:
                self._groups.setdefault(_group_key(tool.access), _ToolGroup(tool.access)).add(tool)
                self._unread[tool.name] = tool
            else:
                self._unread.pop(tool.name, None)
                group = self._groups[_group_key(tool.access)]
                group.remove(tool.name)
                if not group.tools:
                    del self._groups[_group_key(tool.access)]

    def lists_all_for(self, context: RequestContext) -> bool:
        """Return whether the client of a request gets the list of all tools."""
        return context.client.info.get("name") in self.options.whole_list_clients

    def warn_of_missing_names(self) -> None:
        """Log once which names of `always_visible` no tool has."""
        if self._has_checked_names:
            return
        self._has_checked_names = True
        missing = sorted(name for name in self.options.always_visible if name not in self._registry)
        if missing:
            logger.warning("always_visible names tools that do not exist: %s.", quote(", ".join(missing)))

    async def search(self, context: RequestContext, query: str) -> list[Tool]:
        """Return the tools that match a query best, among those that the caller may use.

        Tools whose names the query has come first.
        """
        await self._read_changes()
        groups = await self._groups_for(context)
        query = query[:MAX_QUERY]
        terms = terms_in(query, MAX_QUERY_WORDS)
        usable = set(map(id, groups))
        with self._lock:
            matches = best_matches([group.index for group in groups], terms, self.options.max_results)
            named = [name for name in _names_in(query) if self._searchable(name, usable) is not None][:MAX_NAMED]
            tools = [self._searchable(name, usable) for name in dict.fromkeys([*named, *matches])]
        seen = await self._seen_by([tool for tool in tools if tool is not None], context)
        return seen[: max(self.options.max_results, len(named))]

    def _searchable(self, name: str, usable: Set[int]) -> Tool | None:
        """Return the tool of a name, if its group is one of those with these ids and its words are there."""
        tool = self.tool(name, {})
        group = None if tool is None else self._groups.get(_group_key(tool.access))
        return tool if group is not None and id(group) in usable and name in group.index.lengths else None

    async def result(self, context: RequestContext, query: str) -> dict[str, Any]:
        """Return the structured content of a search: the tools that match, within the limit of characters."""
        tools = await self.search(context, query)
        if not tools:
            return {"tools": [], "hint": "No tool matches. Use other words for what the tool does or works with."}
        definitions = [adaptation.tool_definition(tool.describe(), context.client.revision) for tool in tools]
        return within_characters(definitions, self.options.result_characters)

    def always_visible_tools(self) -> list[Tool]:
        """Return the tools that stay in the list."""
        return list(self._always_visible.values())

    async def hints_for(self, context: RequestContext) -> Hints:
        """Return the hints of the tool that calls others: those of the most dangerous tool in the caller's list."""
        guard = guard_for(context, self._guard)
        if guard is None or not guard.filters(context.principal):
            return self.hints()
        return self._hints_of(await self._groups_for(context))

    def hints(self) -> Hints:
        """Return the hints of the most dangerous of all tools."""
        return self._hints_of(list(self._groups.values()))

    def _hints_of(self, groups: Sequence[_ToolGroup]) -> Hints:
        hints = [group.hints() for group in groups]
        if not hints:
            return NO_HINTS
        return _most_dangerous(hints)

    def tool(self, name: str, params: Mapping[str, Any]) -> Tool | None:
        """Return the tool of a name, always visible or not; None if there is none, or if it is built in.

        Args:
            name: The name.
            params: Those of the call, which may name a version.
        """
        tool = self._registry.get(name)
        if tool is None or tool.is_built_in:
            return None
        return tool if tool.version is None else in_version(self._registry, tool, params)

    async def closest(self, context: RequestContext, name: str) -> list[str]:
        """Return the names of the tools that are most similar to a name, among those that the caller may use."""
        await self._read_changes()
        groups = await self._groups_for(context)
        terms = [{word: 1.0} for word in itertools.islice(words_in(name), MAX_QUERY_WORDS)]
        with self._lock:
            candidates = best_matches([group.index for group in groups], terms, _MAX_COMPARED // 10)
            names = (other for group in groups for other in group.tools if other[:2] == name[:2])
            candidates += itertools.islice(names, _MAX_COMPARED)
        tools = [tool for other in dict.fromkeys(candidates) if (tool := self._registry.get(other)) is not None]
        tools += await self._usable(self._always_visible.values(), context)
        candidates = [tool.name for tool in await self._seen_by(tools, context)]
        return get_close_matches(name[:_COMPARED_CHARACTERS], candidates, _SUGGESTIONS)

    async def _seen_by(self, tools: list[Tool], context: RequestContext) -> list[Tool]:
        """Return the tools that neither rules of the session, the author nor mounted servers hide from a caller."""
        seen = _seen_in_session(tools, context)
        if any(tool.shown_if is not None for tool in seen):
            seen = await shown_features(seen, context, self._registry)
        for list_filter in self.filters:
            if list_filter.is_active():
                names = {tool.name for tool in await list_filter.shown("tools/list", seen, context)}
                seen = [tool for tool in seen if tool.name in names]
        return seen

    async def _usable(self, items: Iterable[R], context: RequestContext) -> list[R]:
        """Return the tools, or the groups of tools, that the caller of a request may use."""
        guard, listed = guard_for(context, self._guard), list(items)
        if guard is None:
            return listed
        return [item for item in listed if await guard.may_use(item.access, context.principal)]

    async def _groups_for(self, context: RequestContext) -> list[_ToolGroup]:
        """Return the groups that the caller of a request may use."""
        return await self._usable(self._groups.values(), context)

    async def _read_changes(self) -> None:
        """Add the words of new and changed tools to the indexes. Other requests get their turn meanwhile."""
        number = 0
        while True:
            with self._lock:
                if not self._unread:
                    return
                self._read_next()
            number += 1
            if number % YIELD_INTERVAL == 0:
                await asyncio.sleep(0)

    def _read_next(self) -> None:
        """Add the words of one tool to the index of its group."""
        name, tool = self._unread.popitem()
        group = self._groups[_group_key(tool.access)]
        try:
            group.index.add(name, count_words(texts_of(tool.describe(), tool.tags)))
        except Exception as error:  # noqa: BLE001 - authors' types take part in schemas, and may raise anything
            log_left_out(self._left_out, "tool", name, self.options.search_tool_name, _as_fault(error))


class SearchedTools(FeatureList):
    """The list of a server with a search: its two tools and the always visible ones, or all tools for some clients.

    Args:
        search: The search.
        registry: The tools.
        results: Completes the pages.
        guard: Decides which tools a caller gets; None if every caller gets all.
        page_size: The number of tools on a page; None for all of them.
    """

    def __init__(
        self,
        search: ToolSearch,
        registry: Registry[Tool],
        *,
        results: Results,
        guard: Guard | None,
        page_size: int | None,
    ) -> None:
        super().__init__(
            "tools/list", registry, adaptation.tool_definition, results=results, guard=guard, page_size=page_size
        )
        self._search = search
        if search.options.whole_list_clients or guard is not None:
            self.cache_scope = "private"  # the list depends on the client or the caller

    async def page(self, context: RequestContext) -> bytes:
        """Answer a request for a page."""
        if self._search.lists_all_for(context):
            return await super().page(context)
        if self.provided is not None:
            await self.provided.ready()
        tools = [*await self._listed(context), *await self._shown_in_session(context)]
        tools += await self.provided_for(context)
        return await self._built_page(context, tools, cursor_of(context), None)

    def all(self) -> list[Tool]:
        """Return the tools that the author has registered."""
        return [tool for tool in self.registry if not tool.is_built_in]

    def shown(self) -> list[Tool]:
        """Return the two tools of the search and the always visible ones."""
        built_in = [tool for tool in self.registry if tool.is_built_in]
        return [*self._search.always_visible_tools(), *built_in]

    async def _shown_in_session(self, context: RequestContext) -> list[Any]:
        """Return the tools that `Context.enable` shows to one session only, which a search does not find."""
        rules = session_rules_of(context)
        if rules is None:
            return []
        from funcmcp._server.catalog.session_view import seen_features  # noqa: PLC0415 - few sessions have rules

        shown = seen_features(self.registry, rules)
        return await self.allowed([tool for tool in shown if not self.registry.is_visible(tool)], context)

    async def _listed(self, context: RequestContext) -> list[Any]:
        search = self._search
        search.warn_of_missing_names()
        names = (*search.options.names, READ_TOOL)
        built_in = [tool for name in names if (tool := self.registry.get(name)) is not None]
        tools = _seen_in_session(search.always_visible_tools(), context)
        hints = await search.hints_for(context)
        allowed = await self.through_mounts(await self.allowed([*tools, *built_in], context), context)
        return [tool if tool.reroute is None else _CallingTool(tool, hints) for tool in allowed]


class _CallingTool:
    """The tool that calls others, with the hints for one caller.

    Args:
        tool: The tool.
        hints: The hints.
    """

    version: str | None = None

    def __init__(self, tool: Tool, hints: Hints) -> None:
        self.key = tool.key
        self._tool = tool
        self._hints = hints

    def describe(self) -> dict[str, Any]:
        """Return the definition."""
        return {**self._tool.describe(), "annotations": self._hints.annotations()}


def _seen_in_session(tools: list[Tool], context: RequestContext) -> list[Tool]:
    """Return the tools that the rules of a session (`Context.disable`) do not hide from it."""
    rules = session_rules_of(context)
    return tools if rules is None else [tool for tool in tools if rules.decide(tool, default=True)]


def _group_key(access: Access) -> GroupKey:
    """Return what distinguishes an access rule. Functions of authors need not be hashable."""
    return access.allow_anonymous, access.required_scopes, id(access.authorize)


def _most_dangerous(hints: Iterable[Hints]) -> Hints:
    """Return the hints of the most dangerous of several tools."""
    different = set(hints)  # a few, however many tools there are
    return Hints(
        read_only=all(of_tool.read_only for of_tool in different),
        destructive=any(of_tool.destructive for of_tool in different),
        idempotent=all(of_tool.idempotent for of_tool in different),
        open_world=any(of_tool.open_world for of_tool in different),
    )


def _annotations_of(tool: Tool) -> Mapping[str, Any]:
    if tool.annotations is not None:
        return tool.annotations
    try:
        annotations = tool.describe().get("annotations")
    except Exception:  # noqa: BLE001 - as in `_read_next`; the search reports it
        return {}
    return annotations if isinstance(annotations, dict) else {}


def _as_fault(error: Exception) -> ValueError:
    return error if isinstance(error, RegistrationError) else ValueError(f"{type(error).__name__}: {error}")


def _names_in(query: str) -> list[str]:
    """Return the parts of a query that can be names of tools: a plain word only if it is the whole query."""
    parts = [part.strip("\"'`,;:()[]") for part in query.replace(",", " ").split()]
    return list(dict.fromkeys(part for part in parts if len(parts) == 1 or not (part.isalpha() and part.islower())))


def texts_of(definition: Mapping[str, Any], tags: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the texts of a tool that a search reads, each with the weight of its words."""
    yield definition["name"], _NAME_WEIGHT
    for member, weight in (("title", _TITLE_WEIGHT), ("description", _DESCRIPTION_WEIGHT)):
        text = definition.get(member)
        if isinstance(text, str):
            yield text, weight
    for tag in tags:
        yield tag, _TAG_WEIGHT
    yield from _texts_of_schema(definition.get("inputSchema"), _MAX_NESTING)


def _texts_of_schema(schema: Any, levels: int) -> Iterator[tuple[str, int]]:
    if not isinstance(schema, dict) or not levels:
        return
    for name, member in _object_in(schema, "properties").items():
        yield str(name), _ARGUMENT_WEIGHT
        if isinstance(member, dict) and isinstance(member.get("description"), str):
            yield member["description"], _DETAIL_WEIGHT
    values = schema.get("enum")
    if isinstance(values, list):
        yield from ((value, _DETAIL_WEIGHT) for value in values if isinstance(value, str))
    for member in _schemas_in(schema):
        yield from _texts_of_schema(member, levels - 1)


def _schemas_in(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas in a schema."""
    yield from _object_in(schema, "properties").values()
    yield from _object_in(schema, "$defs").values()
    yield schema.get("items")
    yield schema.get("additionalProperties")
    for keyword in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(keyword)
        if isinstance(choices, list):
            yield from choices


def _object_in(schema: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    members = schema.get(keyword)
    return members if isinstance(members, dict) else {}


_FOUND = frozenset({"name", "title", "description", "inputSchema", "annotations"})
_ANNOTATIONS_OF_SCHEMA = frozenset({"description", "title", "examples", "default", "$comment"})
_SCHEMA_HINT = "Tools without inputSchema were left short to save space: search for their names to get it."


def within_characters(definitions: Sequence[Mapping[str, Any]], limit: int) -> dict[str, Any]:
    """Return definitions of tools whose JSON has so many characters at most, the first ones as complete as possible.

    The descriptions in a schema are left out first, then what is below its first level, then the whole schema, and
    last the tools at the end.
    """
    forms = [[(form, _characters(form) + 1) for form in _forms(definition)] for definition in definitions]
    remaining = limit - _characters({"tools": [], "hint": _SCHEMA_HINT})
    reserved = sum(shortest for *_, (_, shortest) in forms)
    tools: list[dict[str, Any]] = []
    for forms_of_tool in forms:
        shortest = forms_of_tool[-1]
        reserved -= shortest[1]
        fitting = (form for form in forms_of_tool if form[1] <= remaining - reserved)
        form, size = next(fitting, shortest)
        if size > remaining:
            break
        tools.append(form)
        remaining -= size
    result: dict[str, Any] = {"tools": tools}
    if any("inputSchema" not in tool for tool in tools):
        result["hint"] = _SCHEMA_HINT
    return result


def _forms(definition: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a definition in ever shorter forms."""
    tool = only(definition, _FOUND)
    if "description" in tool:
        tool["description"] = shortened(tool["description"], MAX_DESCRIPTION)
    yield tool
    schema = tool.get("inputSchema")
    yield {**tool, "inputSchema": _without_texts(schema)}
    short = {**tool, "inputSchema": _first_level(schema)}
    yield short
    if "description" in tool:
        short = {**short, "description": shortened(tool["description"], MAX_DESCRIPTION // 5)}
        yield short
    yield only(short, _FOUND - {"inputSchema"})
    yield only(tool, {"name"})


def shortened(text: str, limit: int) -> str:
    """Return a text of so many characters at most. A longer one ends after a word, with three dots."""
    if len(text) <= limit:
        return text
    end = text.rfind(" ", 0, limit - 2)
    if end < limit // 2:
        end = limit - 3
    return f"{text[:end].rstrip()}..."


def _without_texts(schema: Any) -> Any:
    """Return a schema without what only explains it."""
    if isinstance(schema, list):
        return [_without_texts(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    reduced: dict[str, Any] = {}
    for keyword, member in schema.items():
        if keyword in ("properties", "$defs", "definitions", "patternProperties") and isinstance(member, dict):
            reduced[keyword] = {name: _without_texts(part) for name, part in member.items()}
        elif keyword in ("enum", "const"):
            reduced[keyword] = member
        elif keyword not in _ANNOTATIONS_OF_SCHEMA:
            reduced[keyword] = _without_texts(member)
    return reduced


def _first_level(schema: Any) -> Any:
    """Return the names, types and values of the arguments, and nothing of what is in them."""
    if not isinstance(schema, dict):
        return schema
    members: dict[str, Any] = {}
    for name, member in _object_in(schema, "properties").items():
        members[name] = only(member, ("type", "enum")) if isinstance(member, dict) else member
    return {**only(schema, ("type", "required")), "properties": members}


def _characters(value: Any) -> int:
    return len(encode(value).decode())
