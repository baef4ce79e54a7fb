"""Subclasses that override what answers requests in FastMCP and the official SDK, such as ``call_tool``.

How it works: `OverriddenMethods` is the outermost middleware of FastMCP's kind on a server of such a subclass. For a
request it calls the overridden methods of the request's kind, those of the protocol first. While one of them runs, a
context variable has a `Pending`: what ``super()`` calls then passes the request on, with the arguments that it gets,
and returns the answer as middleware sees it. The variable is reset for the rest of the request, so calls that a tool
makes are calls of their own.

A call of the author's code (``await mcp.call_tool(...)``) reaches the overridden method itself, whose ``super()`` sends
a request that passes this middleware by (`direct_calls`).
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._compat.content import ResourceContent, ResourceResult, ToolResult
from funcmcp._compat.editable import EditableParams
from funcmcp._compat.errors import NotFoundError
from funcmcp._compat.middleware import MalformedParams
from funcmcp._protocol.methods import FEATURE_LISTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from funcmcp._compat.middleware import CallNext, MiddlewareContext


class _Answers(NamedTuple):
    """What a method of the originals answers.

    Attributes:
        method: The method of the protocol.
        public: The public method of the server that does the same.
    """

    method: str
    public: str


METHODS: dict[str, _Answers] = {
    # of the protocol
    "_list_tools_mcp": _Answers("tools/list", "list_tools"),
    "_list_resources_mcp": _Answers("resources/list", "list_resources"),
    "_list_resource_templates_mcp": _Answers("resources/templates/list", "list_resource_templates"),
    "_list_prompts_mcp": _Answers("prompts/list", "list_prompts"),
    "_call_tool_mcp": _Answers("tools/call", "call_tool"),
    "_read_resource_mcp": _Answers("resources/read", "read_resource"),
    "_get_prompt_mcp": _Answers("prompts/get", "get_prompt"),
    "_mcp_list_tools": _Answers("tools/list", "list_tools"),
    "_mcp_list_resources": _Answers("resources/list", "list_resources"),
    "_mcp_list_resource_templates": _Answers("resources/templates/list", "list_resource_templates"),
    "_mcp_list_prompts": _Answers("prompts/list", "list_prompts"),
    "_mcp_call_tool": _Answers("tools/call", "call_tool"),
    "_mcp_read_resource": _Answers("resources/read", "read_resource"),
    "_mcp_get_prompt": _Answers("prompts/get", "get_prompt"),
    # public
    "list_tools": _Answers("tools/list", "list_tools"),
    "list_resources": _Answers("resources/list", "list_resources"),
    "list_resource_templates": _Answers("resources/templates/list", "list_resource_templates"),
    "list_prompts": _Answers("prompts/list", "list_prompts"),
    "call_tool": _Answers("tools/call", "call_tool"),
    "read_resource": _Answers("resources/read", "read_resource"),
    "render_prompt": _Answers("prompts/get", "get_prompt"),
    "get_prompt": _Answers("prompts/get", "get_prompt"),
    "get_tool": _Answers("tools/call", "get_tool"),
    # of FastMCP 2, without its middleware
    "_list_tools": _Answers("tools/list", "list_tools"),
    "_list_resources": _Answers("resources/list", "list_resources"),
    "_list_resource_templates": _Answers("resources/templates/list", "list_resource_templates"),
    "_list_prompts": _Answers("prompts/list", "list_prompts"),
    "_call_tool": _Answers("tools/call", "call_tool"),
    "_read_resource": _Answers("resources/read", "read_resource"),
    "_get_prompt": _Answers("prompts/get", "get_prompt"),
}
"""The methods that subclasses override, the outermost first."""

_REFUSED = (
    *("_on_call_tool", "_on_list_tools", "_on_read_resource", "_on_list_resources", "_on_list_resource_templates"),
    *("_on_get_prompt", "_on_list_prompts", "_run_middleware", "_apply_middleware", "_call_tool_middleware"),
    *("_list_tools_middleware", "_list_resources_middleware", "_list_resource_templates_middleware"),
    *("_read_resource_middleware", "_get_prompt_middleware", "_list_prompts_middleware", "_get_tool"),
    *("_get_resource", "_get_resource_template", "get_resource", "get_resource_template"),
)
"""Methods of FastMCP that answer requests or choose components, and that nothing calls here."""

_WITH_CONTEXT = ("_call_tool", "_read_resource", "_get_prompt")
"""Methods that FastMCP 2.13 calls with the context of its middleware."""

_MEMBERS = {"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"}


def check_overrides(cls: type, base: type) -> None:
    """Raise TypeError if a class overrides a method of the originals that funcmcp does not call.

    Args:
        cls: The class of the author.
        base: A class of funcmcp that the author's class inherits from.
    """
    theirs = [owner for owner in cls.__mro__ if not owner.__module__.startswith(("funcmcp.", "builtins"))]
    refused = [name for name in _REFUSED if any(name in vars(owner) for owner in theirs if not issubclass(base, owner))]
    if refused:
        # The override could be a check of the caller's rights, which must not be lost without a word.
        raise TypeError(
            f"{cls.__name__} overrides {', '.join(refused)}, which funcmcp does not call for requests. Use "
            "add_middleware with a Middleware that has on_call_tool, on_list_tools and so on."
        )


@dataclass
class Pending:
    """A request that an overridden method answers.

    Attributes:
        server: The server.
        context: The message.
        proceed: Passes a message on.
    """

    server: Any
    context: MiddlewareContext[Any]
    proceed: CallNext[Any, Any]

    async def __call__(self, **changes: Any) -> Any:
        """Pass the request on with changed parameters, and return its answer."""
        if not changes:
            return await self.proceed(self.context)
        message = self.context.message.model_copy(update=changes)
        return await self.proceed(self.context.copy(message=message))

    async def with_arguments(self, *arguments: Any, **named: Any) -> Any:
        """Pass the request on with the arguments of a private method: the message, a context, or the parameters."""
        values = [*arguments, *named.values()]
        if self.context.method in FEATURE_LISTS or not values:
            return await self()
        if not isinstance(values[0], str):
            context = values[0]
            return await (self.proceed(context) if hasattr(context, "message") else self())
        names = ("uri",) if self.context.method == "resources/read" else ("name", "arguments")
        return await self(**dict(zip(names, values, strict=False)))


@dataclass
class _Direct:
    """A call of the author's code.

    Attributes:
        server: The server.
    """

    server: Any


_state: ContextVar[Pending | _Direct | None] = ContextVar("funcmcp_compat_overrides", default=None)


@contextmanager
def _stating(state: Pending | _Direct | None) -> Iterator[None]:
    outer = _state.get()
    _state.set(state)
    try:
        yield
    finally:
        _state.set(outer)


def direct_calls(server: Any) -> Any:
    """Return a context manager for a call of the author's code, which must not reach overridden methods again."""
    return _stating(_Direct(server))


def pending_of(server: Any, method: str) -> Pending | None:
    """Return the request that an overridden method answers now; None outside of one."""
    state = _state.get()
    is_pending = isinstance(state, Pending) and state.server is server and state.context.method == method
    return state if is_pending else None  # type: ignore[return-value] # as the line before says


class OverriddenMethods:
    """The middleware that calls the methods which the class of a server overrides.

    Args:
        server: The server.

    Attributes:
        names: The names of the overridden methods by the method of the protocol, the outermost first.
    """

    def __init__(self, server: Any) -> None:
        self._server = server
        self.names: dict[str, list[str]] = {}
        for name, answers in METHODS.items():
            if _is_overridden(type(server), name):
                self.names.setdefault(answers.method, []).append(name)

    async def __call__(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Answer a request with the overridden methods of its kind."""
        state = _state.get()
        is_direct = isinstance(state, _Direct) and state.server is self._server
        names = self.names.get(context.method or "", [])
        if not names or is_direct or isinstance(context.message, MalformedParams):
            with _stating(None):
                return await call_next(context)

        async def run(position: int, context: MiddlewareContext[Any]) -> Any:
            if position == len(names):
                with _stating(None):
                    return await call_next(context)
            with _stating(Pending(self._server, context, partial(run, position + 1))):
                value = await self._call(names[position], context)
            return _result_of(context.method or "", value)

        return await run(0, context)

    async def _call(self, name: str, context: MiddlewareContext[Any]) -> Any:
        function = getattr(self._server, name)
        if name == "get_tool":
            return await self._call_tool_of(function, context)
        if METHODS[name].method in FEATURE_LISTS:
            return await function(*[context.message] * _required(function))
        message = context.message
        if name in _WITH_CONTEXT and _required(function) == 1:
            return await function(context)
        if isinstance(message, EditableParams) and "uri" in vars(message):
            return await function(message.uri)
        return await function(message.name, message.arguments)

    async def _call_tool_of(self, get_tool: Callable[..., Any], context: MiddlewareContext[Any]) -> Any:
        """Call the tool that an overridden ``get_tool`` returns for the name of a request."""
        name = context.message.name
        with _stating(None):
            tool = await get_tool(name)
        if tool is None:
            raise NotFoundError(f"Unknown tool: {name!r}")
        registered = self._server.registered_tool(name)
        source = getattr(tool, "source", None)
        if tool is registered or source is not None:
            return await _state_of(self._server, context)()
        return await tool.run(context.message.arguments)


def _state_of(server: Any, context: MiddlewareContext[Any]) -> Pending:
    pending = pending_of(server, context.method or "")
    if pending is None:
        raise RuntimeError("No request runs.")
    return pending


def _is_overridden(cls: type, name: str) -> bool:
    """Return whether the method of a class is an author's."""
    for owner in cls.__mro__:
        if name in vars(owner):
            return not owner.__module__.startswith("funcmcp.")
    return False


def _required(function: Callable[..., Any]) -> int:
    """Return how many arguments a method needs."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return sum(parameter.kind in kinds and parameter.default is parameter.empty for parameter in parameters)


def _result_of(method: str, value: Any) -> Any:
    """Return what an overridden method returned, as middleware returns it."""
    if method in FEATURE_LISTS:
        return value if isinstance(value, list) else getattr(value, _MEMBERS.get(method, ""), value)
    if method == "tools/call":
        return _tool_result(value)
    if method == "resources/read" and not isinstance(value, dict | list | str | bytes):
        parts = [ResourceContent(part.content, getattr(part, "mime_type", None)) for part in _iterated(value)]
        return ResourceResult(parts) if parts else value
    return value


def _iterated(value: Any) -> list[Any]:
    items = list(value) if hasattr(value, "__iter__") else []
    return items if all(hasattr(item, "content") for item in items) else []


def _tool_result(value: Any) -> Any:
    """Return the result of a tool in one of the forms of the originals: blocks, structured content, or both."""
    if isinstance(value, tuple) and len(value) == 2:  # noqa: PLR2004 - blocks and structured content, as in SDK 1.x
        return ToolResult(list(value[0]), value[1])
    if isinstance(value, list):
        return ToolResult(value)
    if isinstance(value, dict) and "content" not in value and value.get("resultType", "complete") == "complete":
        return ToolResult(structured_content=value)
    return value
