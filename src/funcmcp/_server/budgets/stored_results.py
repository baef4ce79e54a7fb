"""Whole results in a store, and the features that read them: the tool `read_result`, and resources ``result://{id}``.

How it works: a result is stored for the principal of its call. An anonymous caller has no name, so the id of its result
is the only key: it has 96 random bits. A caller that may no longer use the tool can't read its results either.
"""

from __future__ import annotations

import re
import secrets
import zlib
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._auth.owner import owner_of
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import ResourceNotFound, ToolError
from funcmcp._protocol.uri_template import URITemplate
from funcmcp._server.authorization import guard_for
from funcmcp._server.budgets.full_texts import FullText
from funcmcp._server.calls.value_owner import payer_of
from funcmcp._server.catalog.features import READ_TOOL, RESULT_SCHEME, ResourceTemplate, Tool
from funcmcp._state.caller_values import ValueOwner
from funcmcp._state.key_values import StateFullError
from funcmcp._state.records import value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._auth.access import Access
    from funcmcp._protocol.uri_template import Values
    from funcmcp._server.authorization import Guard
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._state.caller_values import CallerValues

RESULT_URI, PART_URI = f"{RESULT_SCHEME}{{id}}", f"{RESULT_SCHEME}{{id}}/{{offset}}"
_VERSION = 1
_ID = re.compile(r"[0-9a-f]{32}")
PAGE_NOTE_CHARACTERS = 200
"""Characters of the sentence behind a page, at most."""

_DEFINITION = {
    "name": READ_TOOL,
    "title": "Read result",
    "description": (
        "Reads on in a result that was too long to be shown as a whole. Such a result names the id and the offset. "
        "Each part of it names the offset of the next part."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The id that the shortened result names."},
            "offset": {
                "type": "integer",
                "minimum": 0,
                "default": 0,
                "description": "The number of characters before the part; 0 for the beginning of the result.",
            },
        },
        "required": ["id"],
        "additionalProperties": False,
    },
    "annotations": {"title": "Read result", "readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
}


class StoredResult(NamedTuple):
    """A whole result as it is stored.

    Attributes:
        full_text: The text of the result.
        tool: The name of the tool; None for a tool that a provider has for some callers.
        page: The characters of a page.
    """

    full_text: FullText
    tool: str | None
    page: int

    def to_bytes(self) -> bytes:
        """Return a line with a record, and the compressed text."""
        record = {"v": _VERSION, "tool": self.tool, "page": self.page, "json": self.full_text.is_json}
        return encode(record) + b"\n" + zlib.compress(self.full_text.text.encode(errors="replace"), 1)

    @classmethod
    def of_bytes(cls, value: bytes | None) -> StoredResult | None:
        """Return a stored result; None if there is none, or this version can't read it."""
        if value is None:
            return None
        record, _, compressed = value.partition(b"\n")
        try:
            text = zlib.decompress(compressed).decode()
        except (zlib.error, UnicodeDecodeError):
            return None
        match value_of(record):
            case {"v": 1, "tool": str() | None as tool, "page": int(page), "json": bool(is_json)}:
                return cls(FullText(text, is_json), tool, page)
        return None


class StoredResults:
    """Stores and reads the whole results of one server.

    Args:
        open_values: Returns the store of the callers' values. It is called when the first result is stored or read.
        seconds: How long results are stored.
        catalog: The tools.
        guard: Decides which tools a caller may use; None if every caller may use all.
    """

    def __init__(
        self, open_values: Callable[[], CallerValues], seconds: float, *, catalog: Catalog, guard: Guard | None
    ) -> None:
        self._open_values = open_values
        self._seconds = seconds
        self._catalog = catalog
        self._guard = guard

    async def put(self, context: RequestContext, result: StoredResult) -> str:
        """Store a result for the caller of a request, and return its id.

        A principal's oldest results make room for the new one.

        Raises:
            StateFullError: There is no room.
            StoreUnavailableError: The store can't be reached.
        """
        values, value = self._open_values(), result.to_bytes()
        result_id = (
            f"{int(time()):08x}{secrets.token_hex(12)}"  # names in the order of the alphabet begin with the oldest
        )
        owner = _owner_of(context, result_id)
        try:
            await values.put(owner, result_id, value, self._seconds)
        except StateFullError:
            if context.principal is None:
                raise
            names = await values.names(owner)
            for name in names[: len(names) // 2 + 1]:
                await values.remove(owner, name)
            await values.put(owner, result_id, value, self._seconds)
        return result_id

    async def get(self, context: RequestContext, result_id: str) -> StoredResult | None:
        """Return a result; None if the caller has none with this id, or may not use its tool."""
        if _ID.fullmatch(result_id) is None:
            return None
        result = StoredResult.of_bytes(await self._open_values().get(_owner_of(context, result_id), result_id))
        if result is None or result.tool is None:
            return result
        tool = self._catalog.tools.get(result.tool)
        guard = guard_for(context, self._guard)
        if tool is None or (guard is not None and not await guard.may_use(tool.access, context.principal)):
            return None
        return result

    def features(self, access: Access) -> list[Tool | ResourceTemplate]:
        """Return the features that read results, for callers with a kind of access."""
        result_definition = {
            "uriTemplate": RESULT_URI,
            "name": "result",
            "title": "Whole result",
            "description": "The whole result of a tool whose result was shortened.",
        }
        part_definition = {
            "uriTemplate": PART_URI,
            "name": "result_part",
            "title": "Part of a result",
            "description": "The part of a shortened result that begins at a number of characters.",
        }
        return [
            Tool(READ_TOOL, lambda: _DEFINITION, self._call, access=access, result_characters=0, is_built_in=True),
            ResourceTemplate(
                URITemplate(RESULT_URI), lambda: result_definition, self._read, access=access, is_built_in=True
            ),
            ResourceTemplate(
                URITemplate(PART_URI), lambda: part_definition, self._read, access=access, is_built_in=True
            ),
        ]

    async def _call(self, context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
        result_id, offset = _arguments_of(arguments)
        result = await self.get(context, result_id)
        if result is None:
            raise ToolError(
                f"There is no result {result_id!r:.40} for you. Results are stored for {self._seconds / 60:g} minutes. "
                "Call the tool again that returned it."
            )
        part = result.full_text.page(offset, result.page)
        end, total = offset + len(part), len(result.full_text.text)
        note = f"These are the characters {offset:,} to {end:,} of {total:,}, the last part of the result."
        if not part:
            note = f"The result ends at character {total:,}."
        elif end < total:
            note = f"These are the characters {offset:,} to {end:,} of {total:,}. The next part has the offset {end}."
        return {"content": [{"type": "text", "text": text} for text in (part, note) if text]}

    async def _read(self, context: RequestContext, uri: str, values: Values) -> dict[str, Any]:
        offset = values.get("offset")
        result = await self.get(context, str(values["id"]))
        if result is None or not (offset is None or (isinstance(offset, str) and _is_number(offset))):
            raise ResourceNotFound(uri)
        contents: dict[str, Any] = {"uri": uri, "mimeType": _media_type(result), "text": result.full_text.text}
        if offset is not None:
            start = int(str(offset))
            part = result.full_text.page(start, result.page)
            contents.update(mimeType="text/plain", text=part)
            if part and start + len(part) < len(result.full_text.text):
                contents["_meta"] = {"nextOffset": start + len(part)}
        return {"contents": [contents]}


def link_to(result_id: str, result: StoredResult) -> dict[str, Any]:
    """Return the content block that links to a stored result."""
    return {
        "type": "resource_link",
        "uri": RESULT_URI.replace("{id}", result_id),
        "name": "result",
        "title": "Whole result",
        "mimeType": _media_type(result),
        "size": len(result.full_text.text.encode(errors="replace")),
    }


def _media_type(result: StoredResult) -> str:
    return "application/json" if result.full_text.is_json else "text/plain"


def _owner_of(context: RequestContext, result_id: str) -> ValueOwner:
    """Return whose value a result is. Results have a share of their own, beside that of `Context.state`.

    A result of an anonymous caller is a caller of its own, and counts for the address. All whose address is unknown, as
    in a task, count together.
    """
    principal = owner_of(context.principal)
    if principal is not None:
        return ValueOwner(f"results of {principal}")
    return ValueOwner(f"result {result_id}", payer_of(context))


def _arguments_of(arguments: Mapping[str, Any]) -> tuple[str, int]:
    """Return the id and the offset of a call; raise ToolError if one is missing or wrong."""
    unknown = sorted(arguments.keys() - {"id", "offset"})
    if unknown:
        raise ToolError(f"{READ_TOOL} has no argument {unknown[0]!r:.40}. Its arguments are id and offset.")
    result_id, offset = arguments.get("id"), arguments.get("offset", 0)
    if not isinstance(result_id, str):
        raise ToolError("id must be a string: the id that the shortened result names.")
    if isinstance(offset, str) and _is_number(offset):
        offset = int(offset)
    if isinstance(offset, bool) or not isinstance(offset, int | float) or offset < 0 or offset != offset // 1:
        raise ToolError("offset must be an integer, 0 or more.")
    return result_id, int(offset)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16  # noqa: PLR2004 - more digits than any result has
