"""The definitions that an upstream lists: read within bounds, and checked before they become features.

How it works: `DefinitionReader.read` asks for all lists of an upstream at the same time, page by page. What is read
ends at the bounds below, with one line in the log. A definition that is not valid is left out, which is logged once:
clients refuse a whole list for one member of the wrong type. `ListWork` gives the event loop back while definitions are
checked, and counts the time that they take.

Source: 2026-07-28 schema, Tool, Resource, ResourceTemplate and Prompt; "server/utilities/pagination" (cursors are
opaque, and a server chooses the size of its pages).
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from funcmcp._protocol import extensions
from funcmcp._protocol.codec import encode
from funcmcp._protocol.envelope import CLIENT_CAPABILITIES
from funcmcp._protocol.errors import METHOD_NOT_FOUND, InvalidResponseError, MCPError
from funcmcp._protocol.extensions import declared_settings
from funcmcp._protocol.headers import mirrored_parameters
from funcmcp._protocol.objects import number_of
from funcmcp._protocol.skills import entry_error
from funcmcp._server.handlers.lists import Caching
from funcmcp._server.log import quote
from funcmcp._state.line_limit import LineOfEach
from funcmcp._text.visible import hidden_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from funcmcp._upstreams.connection import Link

    Definition = Mapping[str, Any]

T = TypeVar("T")

MAX_PAGES = 1_000
"""Pages of one list."""

MAX_DEFINITIONS = 10_000
"""Definitions of one list."""

MAX_DEFINITION_BYTES = 512 * 1024
"""Bytes of one definition, as JSON text."""

MAX_LIST_BYTES = 32 * 1024 * 1024
"""Bytes of all definitions of one list."""

MAX_NESTING = 48
"""Objects and arrays inside each other. Clients read 64, and a list has some around its definitions."""

MAX_KEY = 2_048
"""Characters of a name or URI."""

MAX_CURSOR = 16_384
"""Characters of a cursor. All cursors of a list are compared."""

PART_SECONDS = 0.01
"""Seconds of work on definitions, after which other requests get their turn."""

QUICK_SECONDS = 0.05
"""Seconds of work on lists which are not worth a pause before the lists are read again."""

PAUSE_FACTOR = 20
"""How many times as long as more work the pause is."""

LONGEST_PAUSE = 60.0
"""Seconds of the pause at most."""

_DIALECTS = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-04/schema#",
    }
)
"""Dialects whose schemas are checked. The library would fetch the description of any other one."""


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of features in lists.

    Attributes:
        name: The word for messages.
        method: The method of its list.
        member: The member of the result with the definitions.
        key: The member of a definition that names the feature.
        capability: The capability of servers that have the list.
        members: The types of the other members.
    """

    name: str
    method: str
    member: str
    key: str
    capability: str
    members: Mapping[str, type | tuple[type, ...]]


_COMMON: dict[str, type | tuple[type, ...]] = {"title": str, "description": str, "icons": list, "_meta": dict}
_RESOURCE = {**_COMMON, "name": str, "mimeType": str, "annotations": dict}

TOOLS = Kind(
    "tool",
    "tools/list",
    "tools",
    "name",
    "tools",
    {**_COMMON, "inputSchema": dict, "outputSchema": dict, "annotations": dict, "execution": dict},
)
RESOURCES = Kind("resource", "resources/list", "resources", "uri", "resources", {**_RESOURCE, "size": (int, float)})
TEMPLATES = Kind(
    "resource template", "resources/templates/list", "resourceTemplates", "uriTemplate", "resources", _RESOURCE
)
PROMPTS = Kind("prompt", "prompts/list", "prompts", "name", "prompts", {**_COMMON, "arguments": list})

SKILLS = Kind("skill", "skills/list", "skills", "uri", "skills", {"frontmatter": dict, "resources": (list, str)})

KINDS = (TOOLS, RESOURCES, TEMPLATES, PROMPTS)


class UpstreamLists(NamedTuple):
    """What an upstream lists.

    Attributes:
        definitions: The valid definitions of each kind, by their keys.
        caching: How the lists may be cached.
        is_cut: Whether one of the lists was not read to its end, because of a bound.
    """

    definitions: dict[Kind, dict[str, Definition]]
    caching: Caching
    is_cut: bool = False

    def keys(self) -> set[tuple[Kind, str]]:
        """Return the kinds and keys of all definitions, in a new set."""
        return {(kind, key) for kind, definitions in self.definitions.items() for key in definitions}


class _Items(NamedTuple):
    """The items of one list from all of its pages.

    Attributes:
        items: The items.
        cachings: How each page may be cached.
        fault: Which bound ends the list; None if the upstream ends it.
    """

    items: list[Any]
    cachings: list[Caching]
    fault: str | None = None


class ListWork:
    """The work on the lists of one upstream.

    Attributes:
        seconds: Seconds that it has taken so far, without those of other tasks meanwhile.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    async def parts(self, items: Iterable[T]) -> AsyncIterator[T]:
        """Yield items, and give the event loop back after each `PART_SECONDS` of work on them."""
        began = perf_counter()
        for item in items:
            yield item
            elapsed = perf_counter() - began
            if elapsed >= PART_SECONDS:
                self.seconds += elapsed
                await asyncio.sleep(0)
                began = perf_counter()
        self.seconds += perf_counter() - began

    def pause_after(self, earlier: float) -> float:
        """Return the seconds before lists are read again, for the work since an earlier number of seconds of it."""
        seconds = self.seconds - earlier
        return 0.0 if seconds < QUICK_SECONDS else min(PAUSE_FACTOR * seconds, LONGEST_PAUSE)


class DefinitionReader:
    """Reads the lists of one upstream.

    Args:
        name: The name of the upstream, for the log.
        work: The work on its lists.
        skills: Whether its skills are read.

    Attributes:
        work: The work on its lists.
    """

    def __init__(self, name: str, work: ListWork, *, skills: bool = False) -> None:
        self._name = name
        self.work = work
        self._skills = skills
        self._lines = LineOfEach()

    async def read(self, link: Link, capabilities: Mapping[str, Any]) -> UpstreamLists:
        """Return what the upstream lists for a client with these capabilities; raise MCPError or ClientError."""
        kinds = [kind for kind in KINDS if kind.capability in link.capabilities]
        if self._skills and declared_settings(link.capabilities, extensions.SKILLS) is not None:
            kinds.append(SKILLS)
        lists = await asyncio.gather(*(self._list(link, kind, capabilities) for kind in kinds))
        definitions: dict[Kind, dict[str, Definition]] = {}
        for kind, listed in zip(kinds, lists, strict=True):
            definitions[kind] = await self._valid(kind, listed.items)
            if listed.fault is not None:
                self.log(kind.name, "", f"its list {listed.fault}")
        caching = _merged(caching for listed in lists for caching in listed.cachings)
        return UpstreamLists(definitions, caching, is_cut=any(listed.fault is not None for listed in lists))

    async def _list(self, link: Link, kind: Kind, capabilities: Mapping[str, Any]) -> _Items:
        """Return the items of a list from all pages, up to the bounds."""
        listed = _Items([], [])
        cursors: set[str] = set()
        params: dict[str, Any] = {}
        size = 0
        for _ in range(MAX_PAGES):
            try:
                result = await link.request(kind.method, params, envelope={CLIENT_CAPABILITIES: capabilities})
            except MCPError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
                return listed  # many servers with resources do not have resources/templates/list
            page = result.get(kind.member)
            if not isinstance(page, list):
                raise InvalidResponseError(f"The result of {kind.method} has no list {kind.member!r}.")
            listed.cachings.append(_caching_of(result))
            for item in page:
                size += len(encode(item))
                if len(listed.items) >= MAX_DEFINITIONS or size > MAX_LIST_BYTES:
                    return listed._replace(fault=f"has more than {MAX_DEFINITIONS} items, or is too large")
                listed.items.append(item)
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                return listed
            fault = _cursor_fault(cursor, cursors)
            if fault is not None:
                self.log(kind.name, "", f"its list {fault}")
                return listed
            cursors.add(cursor)
            params = {"cursor": cursor}
        return listed._replace(fault=f"has more than {MAX_PAGES} pages")

    async def _valid(self, kind: Kind, items: list[Any]) -> dict[str, Definition]:
        """Return the valid definitions of a list by their keys. The first one of two with one key remains."""
        definitions: dict[str, Definition] = {}
        async for number, item in self.work.parts(enumerate(items, 1)):
            key = item.get(kind.key) if isinstance(item, dict) else None
            fault = fault_of(kind, item)
            if fault is None and key in definitions:
                fault = "another one has the same name or URI"
            if fault is not None:
                self.log(kind.name, key if isinstance(key, str) else f"number {number}", fault)
            else:
                definitions[item[kind.key]] = item
        return definitions

    def report_hidden_characters(self, kind: Kind, key: str, definition: Definition) -> None:
        """Write once to the log which texts of a definition have characters that a person does not see."""
        for sentence in hidden_in(f"the {kind.name} {key}", definition):
            self._lines.write((kind.name, sentence), "%s: %s", self._name, quote(sentence, 600))

    def log(self, kind: str, key: str, fault: str) -> None:
        """Write once to the log that a definition, or with an empty key the end of a list, is left out."""
        subject = f"the {kind} {quote(key)}" if key else f"the end of the list of {kind}s"
        self._lines.write((kind, key), "%s: %s is left out: %s.", self._name, subject, quote(fault, 300))


def fault_of(kind: Kind, item: object) -> str | None:
    """Return why a definition is not valid, or None."""
    if not isinstance(item, dict):
        return "it is not an object"
    key = item.get(kind.key)
    if not isinstance(key, str) or not key or len(key) > MAX_KEY:
        return f"{kind.key!r} must be a text of 1 to {MAX_KEY} characters"
    for member, types in kind.members.items():
        value = item.get(member)
        if value is not None and (not isinstance(value, types) or isinstance(value, bool)):
            return f"{member!r} has the wrong type {type(value).__name__}"
    fault = _parts_fault(kind, item, key)
    if fault is not None:
        return fault
    if _is_nested_deeper(item, MAX_NESTING):
        return f"it is nested more than {MAX_NESTING} levels deep"
    size = len(encode(item))
    if size > MAX_DEFINITION_BYTES:
        return f"it has {size:,} bytes, and {MAX_DEFINITION_BYTES:,} are allowed"
    if kind is TOOLS:
        return _tool_fault(item)
    return _arguments_fault(item) if kind is PROMPTS else None


def _parts_fault(kind: Kind, item: Mapping[str, Any], key: str) -> str | None:
    """Return which part of a definition has a wrong value, or None."""
    if kind is SKILLS:
        return entry_error(item)
    if kind in (RESOURCES, TEMPLATES):
        if not _URI.match(key):
            return f"{kind.key!r} has no scheme"
        if not item.get("name"):
            return "'name' is missing"
    for icon in item.get("icons") or ():
        if not isinstance(icon, dict) or not isinstance(icon.get("src"), str):
            return "an icon has no 'src'"
    if kind is TOOLS:
        for name, value in (item.get("annotations") or {}).items():
            if name.endswith("Hint") and not isinstance(value, bool | None):
                return f"the annotation {name!r} is not true or false"
    return None


def without_null(definition: Definition) -> dict[str, Any]:
    """Return a definition without members that are null, which some servers send for absent ones."""
    return {member: value for member, value in definition.items() if value is not None}


def _tool_fault(tool: Mapping[str, Any]) -> str | None:
    """Return why the schemas of a tool are not valid, or None."""
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return '\'inputSchema\' must be a JSON schema with "type": "object"'
    for member in ("inputSchema", "outputSchema"):
        fault = _schema_fault(tool.get(member))
        if fault is not None:
            return f"{member!r} is not a valid JSON schema: {fault}"
    try:
        mirrored_parameters(schema)
    except ValueError as error:
        return str(error)
    return None


def _schema_fault(schema: dict[str, Any] | None) -> str | None:
    """Return why a schema is not valid, or None. A schema of an unknown dialect is not checked."""
    import jsonschema_rs  # noqa: PLC0415 - loads the library

    if schema is None or schema.get("$schema", "https://json-schema.org/draft/2020-12/schema") not in _DIALECTS:
        return None
    try:
        jsonschema_rs.meta.validate(schema)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        return str(error).partition("\n")[0]
    return None


def _arguments_fault(prompt: Mapping[str, Any]) -> str | None:
    """Return why the arguments of a prompt are not valid, or None."""
    for argument in prompt.get("arguments") or ():
        if not isinstance(argument, dict) or not isinstance(argument.get("name"), str):
            return "an argument has no name"
        texts = (argument.get("title"), argument.get("description"))
        if not all(isinstance(text, str | None) for text in texts):
            return "an argument has a title or a description that is not a text"
        if not isinstance(argument.get("required"), bool | None):
            return "'required' of an argument is not true or false"
    return None


def _is_nested_deeper(value: object, levels: int) -> bool:
    """Return whether objects and arrays are nested more levels deep."""
    layer: list[Any] = [value]
    for _ in range(levels):
        layer = [child for node in layer for child in _children_of(node)]
        if not layer:
            return False
    return any(isinstance(node, dict | list) for node in layer)


def _children_of(node: object) -> Iterable[Any]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def _cursor_fault(cursor: str, cursors: set[str]) -> str | None:
    """Return why a list ends before a cursor, or None."""
    if len(cursor) > MAX_CURSOR:
        return f"has a cursor of more than {MAX_CURSOR:,} characters"
    return "repeats a cursor" if cursor in cursors else None


def _caching_of(result: Mapping[str, Any]) -> Caching:
    ttl, scope = number_of(result.get("ttlMs")), result.get("cacheScope")
    is_time = ttl is not None and ttl >= 0
    # A list that is "public" there is as private as the other answers of this server.
    return Caching(int(ttl) if is_time and ttl is not None else None, "private" if scope == "private" else None)


def _merged(cachings: Iterable[Caching]) -> Caching:
    """Return how parts of lists may be cached together: for the shortest time, and not shared if one may not be."""
    parts = list(cachings)
    ttl = min((part.ttl for part in parts if part.ttl is not None), default=None)
    return Caching(ttl, next((part.scope for part in parts if part.scope is not None), None))
