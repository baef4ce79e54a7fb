"""`MCPServer.tool_search`: the tools that search for tools and call them.

How it works: a call of the calling tool is routed as a call of the tool that it names, before anything is decided about
the request. So the guard, the limits, middleware, the log, tasks and questions are those of that tool. The calling tool
answers itself only if its arguments are wrong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._authoring.calling.feature_context import Context  # noqa: TC001 - read at run time
from funcmcp._authoring.calling.unknown_arguments import KnownArguments
from funcmcp._authoring.features.tools import make_tool
from funcmcp._protocol.codec import decode
from funcmcp._protocol.errors import InvalidParams, ToolError
from funcmcp._protocol.jsonrpc import Request
from funcmcp._server.calls.route import RoutedRequest
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.tool_search import SearchOptions, ToolSearch

if TYPE_CHECKING:
    from collections.abc import Collection

    from funcmcp._authoring.calling.services import Services
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Tool
    from funcmcp._server.dispatch import Server

MAX_RESULTS = 50
MIN_CHARACTERS = 1_000

_MAX_QUOTED = 128
_ARGUMENTS = frozenset({"name", "arguments"})
_OUTPUT = {
    "type": "object",
    "properties": {"tools": {"type": "array", "items": {"type": "object"}}, "hint": {"type": "string"}},
    "required": ["tools"],
}


class _Call(NamedTuple):
    """The arguments of the calling tool."""

    name: str
    arguments: dict[str, Any]


def add_tool_search(server: Server, services: Services, options: SearchOptions, *, allow_anonymous: bool) -> None:
    """Add a search, and its two tools, to a server.

    Args:
        server: The server.
        services: The server's services, with the rules of its arguments.
        options: The options.
        allow_anonymous: Whether callers without credentials may search.

    Raises:
        RegistrationError: The server has a search, a name is not valid or taken, or an option is wrong.
    """
    if any(tool.reroute is not None for tool in server.catalog.tools):
        raise RegistrationError("The server has a search already. Call mcp.tool_search once.")
    if server.view is not None:
        raise RegistrationError("The server has transforms for each request, which a search does not pass.")
    _check(options)
    search = ToolSearch(server.catalog, server.guard, options)
    searching = _searching_tool(server, search, services, allow_anonymous=allow_anonymous)
    calling = _calling_tool(search, services, allow_anonymous=allow_anonymous)
    server.catalog.add(searching)
    try:
        server.catalog.add(calling)
    except RegistrationError:
        server.catalog.remove(searching)
        raise
    search.start()
    server.routes.add_tool_search(search)
    search.filters = server.list_filters
    for features in server.routes.lists.values():
        features.filters = server.list_filters


def names_in(option: str, names: Collection[str]) -> frozenset[str]:
    """Return the names in an option; raise RegistrationError if it is not a collection of texts."""
    if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in names):
        raise RegistrationError(f'{option} must be a set of texts, such as {{"help"}}; got {names!r:.60}.')
    return frozenset(names)


def _check(options: SearchOptions) -> None:
    if type(options.max_results) is not int or not 1 <= options.max_results <= MAX_RESULTS:
        raise RegistrationError(f"max_results must be from 1 to {MAX_RESULTS}; got {options.max_results!r}.")
    if type(options.result_characters) is not int or options.result_characters < MIN_CHARACTERS:
        raise RegistrationError(
            f"result_characters must be at least {MIN_CHARACTERS:,}; got {options.result_characters!r}."
        )


def _searching_tool(server: Server, search: ToolSearch, services: Services, *, allow_anonymous: bool) -> Tool:
    search_name, call_name = search.options.names

    async def search_tools(query: str, context: Context) -> dict[str, Any]:
        """Search.

        Args:
            query: What the tool does, in words, or names of tools.
            context: Has the caller.
        """
        if server.provided is not None:
            await server.provided.ready()
        return await search.result(context._context, query)  # noqa: SLF001 - what no author needs

    tool = make_tool(
        search_tools,
        {
            "name": search_name,
            "description": "Find tools of this server, of which most are not in the list. Returns the best matches "
            f"with their input schemas. Call them with {call_name}.",
            "read_only": True,
            "open_world": False,
            "output_schema": _OUTPUT,
            "allow_anonymous": allow_anonymous,
        },
        services,
    )
    return replace(tool, is_built_in=True, interactive=False)


def _calling_tool(search: ToolSearch, services: Services, *, allow_anonymous: bool) -> Tool:
    search_name, call_name = search.options.names

    async def call_tool(name: str, arguments: dict[str, Any] | None = None) -> None:
        """Call.

        Args:
            name: The tool's name.
            arguments: The tool's arguments.
        """
        raise ToolError(f"{name!r:.80} and {arguments!r:.80} can't be a call.")  # `Rerouting` takes valid ones

    tool = make_tool(
        call_tool,
        {
            "name": call_name,
            "description": f"Call a tool that {search_name} has found.",
            "output_schema": None,
            "allow_anonymous": allow_anonymous,
        },
        services,
    )

    def describe() -> dict[str, Any]:
        return {**tool.describe(), "annotations": search.hints().annotations()}

    rules = services.argument_rules
    rerouting = Rerouting(search, KnownArguments(_ARGUMENTS, rules.unknown), lax=rules.lax)
    return replace(tool, describe=describe, reroute=rerouting.reroute, annotations=None, is_built_in=True)


class Rerouting:
    """Routes calls of the calling tool as calls of other tools.

    Args:
        search: Has the tools.
        accepted: The arguments of the calling tool, and what happens to others.
        lax: Whether the arguments of the other tool may be a text with a JSON object.
    """

    def __init__(self, search: ToolSearch, accepted: KnownArguments, *, lax: bool) -> None:
        self._search = search
        self._accepted = accepted
        self._lax = lax

    def reroute(self, routed: RoutedRequest) -> RoutedRequest:
        """Return the route of the call that a call stands for.

        The guard sees the tool that is called. Without such a tool it sees a fault, as for every unknown name, so that
        an anonymous caller gets the same refusal for tools that exist and for others.
        """
        call = self._call_in(routed.request)
        if call is None or routed.route is None:
            return routed  # the calling tool says what is wrong
        refusal = replace(routed.route, handler=self._refuse)
        if call.name in self._search.options.names:
            return RoutedRequest(routed.request, refusal, routed.feature)
        tool = self._search.tool(call.name, routed.request.params)
        if tool is None:
            return RoutedRequest(routed.request, refusal, fault=InvalidParams("Unknown tool"))
        if self._search.options.keeps_in_list(tool):
            return RoutedRequest(routed.request, refusal, tool)
        params = {**routed.request.params, **call._asdict()}
        rerouted = RoutedRequest(Request(routed.request.id, routed.request.method, params), routed.route, tool)
        rerouted.sent = routed.sent
        return rerouted

    def _call_in(self, request: Request) -> _Call | None:
        """Return the arguments of a call of the calling tool; None if they are wrong."""
        arguments = request.params.get("arguments", {})
        if type(arguments) is not dict:
            return None
        try:
            arguments = self._accepted.known_in(arguments, dict)
        except ToolError:
            return None
        name, inner = arguments.get("name"), arguments.get("arguments")
        if self._lax and isinstance(inner, str):
            inner = _decoded(inner)
        if inner is None:
            inner = {}
        return _Call(name, inner) if isinstance(name, str) and isinstance(inner, dict) else None

    async def _refuse(self, context: RequestContext) -> dict[str, Any]:
        """Return the error for a name that the calling tool does not call."""
        search = self._search
        call = self._call_in(context.request)
        name = "" if call is None else call.name[:_MAX_QUOTED]
        if context.feature is not None:
            text = f"{name} is in the list of tools. Call it by its own name."
        else:
            similar = [other for other in await search.closest(context, name) if other != name]
            text = f"Unknown tool: {name!r}."
            if similar:
                text += f" Did you mean {' or '.join(similar)}?"
            text += f" {search.options.search_tool_name} finds the names of tools."
        context.set_error(ToolError(text))
        return {"content": [{"type": "text", "text": text}], "isError": True}


def _decoded(text: str) -> Any:
    """Return the value that a text has as JSON; the text if it is not JSON."""
    try:
        return decode(text.encode())
    except ValueError:
        return text
