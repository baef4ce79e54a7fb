"""FastMCP's transforms that replace whole lists, and its searches for tools, which are such transforms."""

from __future__ import annotations

import inspect
import math
import re
import time
from collections import Counter
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from funcmcp._compat.components import Tool
from funcmcp._compat.context import Context, get_context
from funcmcp._compat.errors import NotFoundError
from funcmcp._compat.transforms import Transform
from funcmcp._compat.versions import dedupe_with_versions
from funcmcp._objects.mappings import only
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import decode
from funcmcp._protocol.errors import WrongArguments
from funcmcp._providers.features_as_tools import asked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from funcmcp._compat.transforms import CallNext
    from funcmcp._compat.versions import VersionSpec
    from funcmcp._server.calls.context import RequestContext

MAX_PATTERN = 1_000
"""Characters of a regular expression. A longer one matches nothing."""

SEARCH_SECONDS = 1.0
"""Seconds after which a search by a regular expression returns what it has found."""

_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
_WORD = re.compile(r"[a-z0-9]+")


@public("funcmcp.compat")
class CatalogTransform(Transform):
    """A transform that replaces lists, and can read the lists that it replaces.

    A subclass overrides ``transform_tools`` and so on in place of ``list_tools``. `get_tool_catalog` and so on return
    the components of the request's caller without the transform.
    """

    def __init__(self) -> None:
        self._bypass: ContextVar[bool] = ContextVar(f"funcmcp_compat_bypass_{id(self)}", default=False)

    async def transform_tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        """Return the tools of the list."""
        return tools

    async def transform_resources(self, resources: Sequence[Any]) -> Sequence[Any]:
        """Return the resources of the list."""
        return resources

    async def transform_resource_templates(self, templates: Sequence[Any]) -> Sequence[Any]:
        """Return the resource templates of the list."""
        return templates

    async def transform_prompts(self, prompts: Sequence[Any]) -> Sequence[Any]:
        """Return the prompts of the list."""
        return prompts

    async def list_tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        """Return the tools of the list, or those that it replaces."""
        return tools if self._bypass.get() else await self.transform_tools(tools)

    async def list_resources(self, resources: Sequence[Any]) -> Sequence[Any]:
        """Return the resources of the list, or those that it replaces."""
        return resources if self._bypass.get() else await self.transform_resources(resources)

    async def list_resource_templates(self, templates: Sequence[Any]) -> Sequence[Any]:
        """Return the resource templates of the list, or those that it replaces."""
        return templates if self._bypass.get() else await self.transform_resource_templates(templates)

    async def list_prompts(self, prompts: Sequence[Any]) -> Sequence[Any]:
        """Return the prompts of the list, or those that it replaces."""
        return prompts if self._bypass.get() else await self.transform_prompts(prompts)

    async def get_tool_catalog(self, ctx: Context, *, run_middleware: bool = True) -> Sequence[Any]:
        """Return the tools of the caller that a model may see, each in its newest version.

        Args:
            ctx: The context of the request.
            run_middleware: Ignored: the list passes the middleware.
        """
        tools = await self._read(ctx, "list_tools", run_middleware=run_middleware)
        newest = dedupe_with_versions(tools, lambda tool: str(tool.name))
        return [tool for tool in newest if _is_for_models(tool)]

    async def get_resource_catalog(self, ctx: Context, *, run_middleware: bool = True) -> Sequence[Any]:
        """Return the resources of the caller. Arguments are those of `get_tool_catalog`."""
        return await self._read(ctx, "list_resources", run_middleware=run_middleware)

    async def get_resource_template_catalog(self, ctx: Context, *, run_middleware: bool = True) -> Sequence[Any]:
        """Return the resource templates of the caller. Arguments are those of `get_tool_catalog`."""
        return await self._read(ctx, "list_resource_templates", run_middleware=run_middleware)

    async def get_prompt_catalog(self, ctx: Context, *, run_middleware: bool = True) -> Sequence[Any]:
        """Return the prompts of the caller. Arguments are those of `get_tool_catalog`."""
        return await self._read(ctx, "list_prompts", run_middleware=run_middleware)

    async def _read(self, ctx: Context, method: str, *, run_middleware: bool) -> list[Any]:
        del run_middleware
        token = self._bypass.set(True)
        try:
            components: list[Any] = await getattr(ctx.fastmcp, method)(principal=ctx.caller)
        finally:
            self._bypass.reset(token)
        return components


def _is_for_models(tool: Any) -> bool:
    """Return whether a model may see a tool: MCP Apps have tools that only their pages call."""
    ui = (tool.meta or {}).get("ui")
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return not isinstance(visibility, list) or "model" in visibility


def _texts_of(tool: Any) -> Iterator[str]:
    yield tool.name
    yield tool.description or ""
    for name, schema in (tool.parameters or {}).get("properties", {}).items():
        yield name
        if isinstance(schema, dict):
            yield schema.get("description") or ""


def _text_of(tool: Any) -> str:
    """Return what a search reads of a tool: its name and description, and those of its arguments."""
    return " ".join(text for text in _texts_of(tool) if text)


def _as_definitions(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Return tools as lists have them."""
    return [dict(tool) if isinstance(tool, dict) else dict(tool.definition) for tool in tools]


@public("funcmcp.compat")
class BaseSearchTransform(CatalogTransform):
    """Replaces the list of tools by one tool that searches for tools and one that calls them.

    A subclass has a method `search`, and its search tool takes one text.

    Args:
        max_results: The number of tools that a search returns.
        always_visible: Names of tools that stay in the list.
        search_tool_name: The name of the tool that searches.
        call_tool_name: The name of the tool that calls others.
        search_result_serializer: Returns the result for the tools that were found, and may be async. By default the
            result has their definitions.
    """

    def __init__(
        self,
        *,
        max_results: int = 5,
        always_visible: Sequence[str] | None = None,
        search_tool_name: str = "search_tools",
        call_tool_name: str = "call_tool",
        search_result_serializer: Callable[[Sequence[Any]], Any] | None = None,
    ) -> None:
        super().__init__()
        self._max_results = max_results
        self._always_visible = frozenset(always_visible or ())
        self._search_tool_name = search_tool_name
        self._call_tool_name = call_tool_name
        self._serialize = search_result_serializer or _as_definitions

    async def transform_tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        """Return the tools that stay in the list, and those that search and call."""
        visible = [tool for tool in tools if tool.name in self._always_visible]
        return [*visible, self._make_search_tool(), self._make_call_tool()]

    async def get_tool(self, name: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the tool of a name: all tools can be called by their own names."""
        if name == self._search_tool_name:
            return self._make_search_tool()
        if name == self._call_tool_name:
            return self._make_call_tool()
        return await call_next(name, version=version)

    def _make_search_tool(self) -> Tool:
        raise NotImplementedError(f"{type(self).__name__} has no method _make_search_tool.")

    async def _search(self, tools: Sequence[Any], query: str) -> Sequence[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no method _search.")

    def _make_call_tool(self) -> Tool:
        def call_tool(
            name: Annotated[str, "The name of the tool to call"],
            arguments: Annotated[dict[str, Any] | None, "Arguments to pass to the tool"] = None,
        ) -> None:
            """Call a tool by name with the given arguments.

            Use this to execute tools discovered via search_tools.
            """
            del name, arguments  # the handler of `_CallTool` calls the tool

        return _CallTool(call_tool, self._call_tool_name, output_schema=None).of(self)

    async def call(self, request: RequestContext, arguments: dict[str, Any]) -> Any:
        """Return the result of the tool that a call of the calling tool names, with the rights of its caller.

        Raises:
            NotFoundError: The caller can't find the tool.
            ValueError: It is one of the two tools of this transform.
            WrongArguments: The arguments are not a name and an object.
        """
        name, values = arguments.get("name"), arguments.get("arguments")
        if isinstance(values, str):
            values = _decoded(values)
        if not isinstance(name, str):
            raise WrongArguments([("name", "must be a string")])
        if not (values is None or isinstance(values, dict)):
            raise WrongArguments([("arguments", "must be an object")])
        if name in {self._call_tool_name, self._search_tool_name}:
            raise ValueError(f"'{name}' is a synthetic search tool and cannot be called via the call_tool proxy")
        context = get_context()
        if not any(tool.name == name for tool in await self.get_tool_catalog(context)):
            raise NotFoundError(f"Unknown tool: {name!r}")
        server: Any = context.fastmcp
        params = {"name": name, "arguments": values or {}}
        return await asked(server._server, request, "tools/call", params, _own_members)  # noqa: SLF001 - a part of it

    async def _search_result(self, ctx: Context, query: str) -> Any:
        """Return the result of a search."""
        tools = [tool for tool in await self.get_tool_catalog(ctx) if tool.name not in self._always_visible]
        result = self._serialize(await self._search(tools, query))
        return await result if inspect.isawaitable(result) else result


class _CallTool(Tool):
    """The tool of a search that calls other tools. Its result is theirs, and so are its questions to the client."""

    _transform: BaseSearchTransform

    def of(self, transform: BaseSearchTransform) -> Self:
        """Return the tool as that of a search."""
        self._transform = transform
        return self

    def finished(self, feature: Any) -> Any:
        """Return the feature with a handler that gets the request."""
        return replace(feature, handler=self._transform.call)


def _decoded(text: str) -> Any:
    """Return the value that a text has as JSON; the text if it is not JSON."""
    try:
        return decode(text.encode())
    except ValueError:
        return text


def _own_members(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a tool without what the server adds to every result."""
    own = only(result, ("content", "structuredContent", "isError"))
    meta = {name: value for name, value in result.get("_meta", {}).items() if name != _SERVER_INFO}
    return {**own, "_meta": meta} if meta else own


@public("funcmcp.compat")
class BM25SearchTransform(BaseSearchTransform):
    """Searches for tools by words, the most relevant tools first. Arguments are those of `BaseSearchTransform`."""

    def _make_search_tool(self) -> Tool:
        transform = self

        async def search_tools(
            ctx: Context, query: Annotated[str, "Natural language query to search for tools"]
        ) -> str | list[dict[str, Any]]:
            """Search for tools using natural language.

            Returns matching tool definitions ranked by relevance, in the same format as list_tools.
            """
            result: str | list[dict[str, Any]] = await transform._search_result(ctx, query)
            return result

        return Tool(search_tools, self._search_tool_name)

    async def _search(self, tools: Sequence[Any], query: str) -> Sequence[Any]:
        documents = [Counter(_words_in(_text_of(tool))) for tool in tools]
        scores = _scores(documents, _words_in(query))
        ranked = sorted(range(len(tools)), key=lambda number: -scores[number])
        return [tools[number] for number in ranked[: self._max_results] if scores[number] > 0]


_SATURATION, _LENGTH_WEIGHT = 1.5, 0.75
"""The usual parameters of Okapi BM25."""


def _words_in(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if len(word) > 1]


def _scores(documents: Sequence[Counter[str]], query: Sequence[str]) -> list[float]:
    """Return the relevance of documents for the words of a query, by Okapi BM25."""
    lengths = [document.total() for document in documents]
    average = sum(lengths) / len(lengths) if any(lengths) else 1.0
    scores = [0.0] * len(documents)
    for word in query:
        containing = sum(word in document for document in documents)
        rarity = math.log((len(documents) - containing + 0.5) / (containing + 0.5) + 1)
        for number, document in enumerate(documents):
            count = document[word]
            norm = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * lengths[number] / average)
            scores[number] += rarity * count * (_SATURATION + 1) / (count + norm)
    return scores


@public("funcmcp.compat")
class RegexSearchTransform(BaseSearchTransform):
    """Searches for tools by a regular expression. Arguments are those of `BaseSearchTransform`."""

    def _make_search_tool(self) -> Tool:
        transform = self

        async def search_tools(
            ctx: Context,
            pattern: Annotated[
                str,
                "Case-insensitive regex pattern for tool names, descriptions, and parameters, up to 1000 characters; "
                "lookarounds and backreferences are not supported",
            ],
        ) -> str | list[dict[str, Any]]:
            """Search for tools matching a regex pattern.

            Returns matching tool definitions in the same format as list_tools. Invalid, unsupported, or overlong
            patterns return an empty list.
            """
            result: str | list[dict[str, Any]] = await transform._search_result(ctx, pattern)
            return result

        return Tool(search_tools, self._search_tool_name)

    async def _search(self, tools: Sequence[Any], query: str) -> Sequence[Any]:
        matches = None if len(query) > MAX_PATTERN else _matcher(query)
        if matches is None:
            return []
        deadline = time.monotonic() + SEARCH_SECONDS
        matching: list[Any] = []
        for tool in tools:
            if time.monotonic() > deadline or len(matching) >= self._max_results:
                break
            if matches(_text_of(tool)):
                matching.append(tool)
        return matching


def _matcher(pattern: str) -> Callable[[str], bool] | None:
    """Return a function that searches a text for a pattern in linear time; None for a pattern that is not valid.

    Python's own expressions can take exponential time, and the pattern is a client's.
    """
    from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema  # noqa: PLC0415 - few servers

    try:
        schema = core_schema.str_schema(pattern=f"(?i){pattern}", regex_engine="rust-regex")
        validator = SchemaValidator(schema)
    except SchemaError:
        return None

    def matches(text: str) -> bool:
        try:
            validator.validate_python(text)
        except ValidationError:
            return False
        return True

    return matches
