"""Budgets of results: a result with more characters than its tool may return is shortened before it is sent.

How it works: `ToolCalls` passes each result to `ResultBudgets.answer`. One that fits costs a comparison of lengths. A
longer one is shortened (`cut_results`), and the whole is stored for its caller (`stored_results`), unless the tool
itself can return the missing items. A note says what is missing and how to get it. Some clients pass only the
structured content to the model, so the note is a member of it; other clients read the texts. A result that can't be
shortened, or whose schema has no room for the note, becomes an error that leads to the whole, because official clients
reject a result whose structured content is missing or does not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from funcmcp._auth.access import Access
from funcmcp._objects.mappings import without
from funcmcp._protocol import adaptation
from funcmcp._protocol.codec import InvalidJSONError, RepeatedNameError
from funcmcp._protocol.result_shapes import shape_error
from funcmcp._server.budgets.cut_results import (
    STRUCTURED,
    characters_of,
    cut_result,
    full_text_of,
    mirrored_text,
)
from funcmcp._server.budgets.cut_values import IndivisibleError
from funcmcp._server.budgets.stored_results import PAGE_NOTE_CHARACTERS, StoredResult, StoredResults, link_to
from funcmcp._server.catalog.features import READ_TOOL, JSONResult, RawResponse
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._state.key_values import StateFullError
from funcmcp._state.line_limit import LineLimit
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeAlias

    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.authorization import Guard
    from funcmcp._server.budgets.cut_results import CutResult, Missing
    from funcmcp._server.budgets.cut_values import Cut, Faults, Path
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.features import ResourceTemplate, Tool
    from funcmcp._server.limits import Limits
    from funcmcp._server.results import Results
    from funcmcp._state.caller_values import CallerValues

    ToolAnswer: TypeAlias = dict[str, Any] | bytes | RawResponse
    ToolResult: TypeAlias = dict[str, Any] | JSONResult | RawResponse

NOTE = "_truncated"
"""The member of structured content with the note."""

_NOTE_CHARACTERS = 900
"""Characters of the note and the link, at most."""

_NOTE_SCHEMA = {"type": "string", "description": "What is missing in this result, and how to get it."}
_RESTRICTIONS = frozenset({"additionalProperties", "unevaluatedProperties"})
"""Keywords of an output schema that may refuse the note unless it is a property."""

_NOT_STORED = "The whole is not stored, because there is no room for it. Ask for less."
_MAX_PLACES = 3
_MAX_NAME = 60

_OFFSETS = ("offset", "skip", "start_index", "startIndex")
_CURSORS = ("cursor", "page_token", "pageToken", "next_token", "nextToken", "continuation_token", "after")
_LIMITS = (
    "limit",
    "page_size",
    "pageSize",
    "per_page",
    "perPage",
    "max_results",
    "maxResults",
    "count",
    "first",
    "top",
)
"""Names of arguments with which tools return their items in pages."""


class SchemaChecks(Protocol):
    """Checks structured content against output schemas."""

    def schema_faults(self, tool: str, schema: Mapping[str, Any], value: object) -> list[Path]:
        """Return the paths of the parts of structured content that the output schema of a tool objects to."""


class ResultBudgets:
    """Keeps the results of one server's tools within their budgets.

    Args:
        limits: The budget of tools without one of their own, and how long whole results are stored.
        results: Completes results.
        catalog: The features.
        guard: Decides which tools a caller may use; None if every caller may use all.
        open_values: Returns the store of the callers' values.
        values: Returns what checks structured content against output schemas; None if nothing checks it.

    Attributes:
        readers: The features with which callers read whole results.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        results: Results,
        catalog: Catalog,
        guard: Guard | None,
        open_values: Callable[[], CallerValues],
        values: Callable[[], SchemaChecks | None],
    ) -> None:
        self.readers: list[Tool | ResourceTemplate] = []
        self._characters = limits.result_characters
        self._max_stored = limits.result_bytes
        self._results = results
        self._catalog = catalog
        self._stored = StoredResults(open_values, limits.stored_result_seconds, catalog=catalog, guard=guard)
        self._values = values
        self._failures = LineLimit()

    def offer_readers(self, *, allow_anonymous: bool) -> None:
        """Offer the features that read whole results, unless they are offered already.

        Args:
            allow_anonymous: Whether callers without credentials may use them.

        Raises:
            RegistrationError: The server has another feature of their names.
        """
        if self.readers and (self.readers[0].access.allow_anonymous or not allow_anonymous):
            return
        if not self.readers and READ_TOOL in self._catalog.tools:
            raise RegistrationError(
                f"Tools have a budget for their results, so the server offers a tool {READ_TOOL!r} of its own. Give "
                "your tool of this name another one."
            )
        for reader in self.readers:
            self._catalog.remove(reader)
        self.readers = self._stored.features(Access(allow_anonymous=allow_anonymous))
        for reader in self.readers:
            self._catalog.add(reader)

    def answer(
        self, result: ToolResult, context: RequestContext, tool: Tool, arguments: dict[str, Any]
    ) -> ToolAnswer | Awaitable[ToolAnswer]:
        """Return the answer with the result of a tool, or an awaitable of that if the result is too long."""
        budget = self.budget_of(tool)
        if budget and not _fits(result, budget):
            return self._limited_answer(result, context, tool, arguments)
        if isinstance(result, dict) and not _is_complete(result):
            return result
        return self._results.tool(result, context.client.revision)

    def tool_definition(self, definition: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
        """Return a Tool in the form of the revision, with a place for the note about what is missing."""
        return adaptation.tool_definition(self._announced(definition), revision)

    def _announced(self, definition: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a tool's definition as clients get it, for a tool of a provider as if it had no budget of its own."""
        tool = self._catalog.tools.get(definition["name"])
        budget = self._characters if tool is None else self.budget_of(tool)
        return _with_place_for_note(definition) if budget else definition

    def budget_of(self, tool: Tool) -> int | None:
        """Return the characters of a tool's result; 0 or None for no budget."""
        return self._characters if tool.result_characters is None else tool.result_characters

    async def limited(
        self, result: dict[str, Any], context: RequestContext, tool: Tool, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Return a ``CallToolResult`` of the newest revision within the budget of its tool.

        Args:
            result: The result.
            context: The request.
            tool: The tool.
            arguments: The arguments of the call.
        """
        budget = self.budget_of(tool)
        if not budget or not _is_complete(result):
            return result
        shown = adaptation.tool_result(result, context.client.revision)
        size = characters_of(shown)
        if size <= budget:
            return result
        if result.get("isError"):
            # It need not fit the schema, and models get the text of an error.
            shown = without(shown, "structuredContent")
        faults = self._faults_of(tool, context)
        try:
            cut = cut_result(shown, budget - _NOTE_CHARACTERS, faults)
            _check_note(cut, faults)
        except IndivisibleError as error:
            return await self._refusal(shown, context, tool, error)
        if not cut.missing:
            return cut.result
        remedy = _own_paging(tool, arguments, cut)
        link = None
        if remedy is None:
            remedy, link = await self._store(shown, context, tool, cut.missing)
        return _with_note(cut, f"{_shown(cut.missing)} The whole result has {size:,} characters. {remedy}", link)

    async def limited_in_revision(self, result: dict[str, Any], context: RequestContext, tool: Tool) -> dict[str, Any]:
        """Do as `limited` for a result in the form of the client's revision, such as one of middleware."""
        limited = await self.limited(result, context, tool, context.request.params.get("arguments") or {})
        return result if limited is result else adaptation.tool_result(limited, context.client.revision)

    async def _limited_answer(
        self, result: ToolResult, context: RequestContext, tool: Tool, arguments: dict[str, Any]
    ) -> ToolAnswer:
        revision = context.client.revision
        if isinstance(result, RawResponse):
            limited = await self.limited_in_revision(result.message["result"], context, tool)
            return RawResponse({**result.message, "result": limited})
        if isinstance(result, JSONResult):
            try:
                result = result.result()
            except (InvalidJSONError, RepeatedNameError) as error:
                return self._results.tool(_error(f"The result of {tool.name} can't be shortened: {error}"), revision)
        return self._results.tool(await self.limited(result, context, tool, arguments), revision)

    def _faults_of(self, tool: Tool, context: RequestContext) -> Faults:
        """Return the function that checks structured content against the schema that the client has seen."""
        values = self._values()
        schema = adaptation.output_schema(self._announced(tool.describe()), context.client.revision)
        if schema is None or values is None:
            return lambda _: ()
        return lambda value: values.schema_faults(tool.name, schema, value)

    async def _refusal(
        self, result: dict[str, Any], context: RequestContext, tool: Tool, reason: IndivisibleError
    ) -> dict[str, Any]:
        """Return the error in place of a result that can't be shortened; it leads to the whole."""
        remedy, link = await self._store(result, context, tool, [])
        text = (
            f"The result has {characters_of(result):,} characters. {tool.name} returns {self.budget_of(tool):,} at "
            f"most, and this result can't be shortened: {reason}. {remedy}"
        )
        error = _error(text)
        if link is not None:
            error["content"].append(link)
        return {**error, "_meta": result["_meta"]} if "_meta" in result else error

    async def _store(
        self, result: dict[str, Any], context: RequestContext, tool: Tool, missing: Sequence[Missing]
    ) -> tuple[str, dict[str, Any] | None]:
        """Store the whole result; return how the model reads on, and a link to it."""
        page = (self.budget_of(tool) or 0) - PAGE_NOTE_CHARACTERS
        full_text, offset = full_text_of(result, page, missing)
        is_in_catalog = self._catalog.tools.get(tool.name) is not None
        stored = StoredResult(full_text, tool.name if is_in_catalog else None, page)
        if len(full_text.text) > self._max_stored:
            return _NOT_STORED, None
        try:
            result_id = await self._stored.put(context, stored)
        except (StateFullError, StoreUnavailableError) as error:
            self._failures.write("The whole result of %s is not stored: %s", tool.name, error)
            return _NOT_STORED, None
        verb = "read on" if missing else "read it"
        remedy = f"To {verb}, call {READ_TOOL} with id={result_id} and offset={offset}."
        has_resources = "resources" not in self._catalog.switched_off
        return remedy, link_to(result_id, stored) if has_resources else None


def _fits(result: ToolResult, budget: int) -> bool:
    """Return whether a result is within a budget; False also for one whose JSON is longer than its texts."""
    if isinstance(result, JSONResult):
        return len(result.text) <= budget and len(result.structured or b"") <= budget
    if isinstance(result, RawResponse):
        result = result.message.get("result", {})
        if not _is_complete(result) or shape_error("tools/call", result) is not None:
            return True  # it is sent unchanged
    return not _is_complete(result) or characters_of(result) <= budget


def _is_complete(result: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a result is a ``CallToolResult``, and not a question to the client or a task."""
    return (
        isinstance(result, dict)
        and isinstance(result.get("content"), list)
        and result.get("resultType", "complete") == "complete"
    )


def _error(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _with_place_for_note(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tool's definition whose output schema allows the note. Most schemas allow any additional member."""
    schema = definition.get("outputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object" or _RESTRICTIONS.isdisjoint(schema.keys()):
        return definition
    properties = {NOTE: _NOTE_SCHEMA, **schema.get("properties", {})}
    return {**definition, "outputSchema": {**schema, "properties": properties}}


def _check_note(cut: CutResult, faults: Faults) -> None:
    """Raise IndivisibleError if structured content is shortened and has no room for the note.

    A client that passes only structured content to the model would hide from it that something is missing.
    """
    if not _is_structure_cut(cut):
        return
    structured = cut.result["structuredContent"]
    is_open = isinstance(structured, dict) and structured.get(NOTE) is None
    if not is_open or list(faults({**structured, NOTE: "Shown: a part."})):
        raise IndivisibleError(f"its output schema has no room for the note {NOTE!r} about what is missing")


def _is_structure_cut(cut: CutResult) -> bool:
    return any(lack.key is STRUCTURED for lack in cut.missing)


def _with_note(cut: CutResult, note: str, link: dict[str, Any] | None) -> dict[str, Any]:
    """Return a shortened result with its note and its link."""
    result = {**cut.result, "content": list(cut.result["content"])}
    text_has_note = False
    if _is_structure_cut(cut):
        result["structuredContent"] = {**cut.result["structuredContent"], NOTE: note}
        text_has_note = _mirror_note(result, cut)
    if not text_has_note:
        result["content"].append({"type": "text", "text": note})
    if link is not None:
        result["content"].append(link)
    return result


def _mirror_note(result: dict[str, Any], cut: CutResult) -> bool:
    """Write the block that repeats the structured content again, with the note; return whether it has the note now."""
    if cut.mirror is None or cut.mirror.is_inner:
        return False
    text, index = mirrored_text(result["structuredContent"], is_inner=False), cut.mirror.number
    result["content"][index] = {**result["content"][index], "text": text}
    return True


def _shown(missing: Sequence[Missing]) -> str:
    """Return the sentence that says what is shown."""
    places = [_place(lack.cut) for lack in missing if lack.cut is not None][:_MAX_PLACES]
    unnamed = len([lack for lack in missing if lack.cut is not None]) - len(places)
    if unnamed:
        places.append(f"parts of {unnamed} more lists")
    blocks = len([lack for lack in missing if lack.cut is None])
    sentence = f"Shown: {', '.join(places)}." if places else ""
    if blocks:
        sentence = f"{sentence} Left out: the last {blocks} content block{'s' if blocks > 1 else ''}.".lstrip()
    return sentence


def _place(cut: Cut) -> str:
    name = _name_of(cut.path)
    if cut.is_text:
        return f"the first {cut.shown:,} of {cut.total:,} characters{name and f' of {name}'}"
    return f"the first {cut.shown:,} of {cut.total:,} items{name and f' of {name}'}"


def _name_of(path: Path) -> str:
    """Return the name of a place in a result, such as ``orders[0].lines``; "" for the whole and for its `result`."""
    name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
    if path == ("result",):
        return ""
    name = "".join(character if character.isprintable() and character not in '"\\' else "?" for character in name)
    return name if len(name) <= _MAX_NAME else f"...{name[3 - _MAX_NAME :]}"


def _own_paging(tool: Tool, arguments: Mapping[str, Any], cut_result: CutResult) -> str | None:
    """Return how the tool itself returns the missing items; None if it can't, or if that is not certain."""
    cut = cut_result.missing[0].cut
    definition = tool.describe()
    is_destructive = definition.get("annotations", {}).get("destructiveHint") is True
    if cut is None or cut.is_text or is_destructive or not _is_of_only_list(cut_result):
        return None
    properties = definition["inputSchema"].get("properties", {})
    offset = _argument(properties, _OFFSETS)
    if offset is not None:
        begin = arguments.get(offset, properties[offset].get("default", 0))
        if type(begin) is int:
            return f"For the following items, call {tool.name} with {offset}={begin + cut.shown}."
    limit = _argument(properties, _LIMITS)
    if limit is not None and any(name in properties for name in _CURSORS):
        return f"For whole pages, call {tool.name} with {limit}={cut.shown} or less."
    return None


def _is_of_only_list(cut_result: CutResult) -> bool:
    """Return whether what is missing belongs to a result with one list: the result itself, or one of its members."""
    if len(cut_result.missing) > 1:
        return False
    key, cut = cut_result.missing[0]
    path = () if cut is None else cut.path
    structured = cut_result.result.get("structuredContent")
    if key is not STRUCTURED or not isinstance(structured, dict):
        return not path
    lists = [name for name, member in structured.items() if isinstance(member, list)]
    return len(path) == 1 and len(lists) == 1


def _argument(properties: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """Return the first of some names that is an integer argument."""
    for name in names:
        schema = properties.get(name)
        if isinstance(schema, dict) and _takes_integers(schema):
            return name
    return None


def _takes_integers(schema: Mapping[str, Any]) -> bool:
    types = schema.get("type")
    if types == "integer" or (isinstance(types, list) and "integer" in types):
        return True
    return any(isinstance(part, dict) and _takes_integers(part) for part in schema.get("anyOf", ()))
