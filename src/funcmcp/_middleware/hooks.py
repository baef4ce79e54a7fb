"""Middleware for some requests only: calls of tools, and lists."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public
from funcmcp._protocol.methods import FEATURE_LISTS
from funcmcp._server.middleware import check_middleware, place_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext, Middleware

    Definitions = list[dict[str, Any]]
    EditList = Callable[[RequestContext, Definitions], Definitions | Awaitable[Definitions]]


_ASSIGNED = ("__name__", "__qualname__", "__doc__")
"""The attributes that middleware copies from the author's function. It keeps its own ``__module__``, because
`funcmcp.compat` recognizes it by that."""


@public("funcmcp.middleware")
def on_tool_call(middleware: Middleware) -> Middleware:
    """Return middleware that runs around `tools/call` only; usable as a decorator.

    ``context.feature`` is the tool, or None if the server has no tool of that name. The arguments that the client sent
    are ``context.request.params.get("arguments", {})``; they are not validated yet.

    Args:
        middleware: An async function ``(context, call_next) -> Reply``. It may return a `ToolResult`, or a result as a
            dict, in place of a reply.
    """
    check_middleware(middleware)

    @wraps(middleware, assigned=_ASSIGNED)
    async def around_tool_calls(context: RequestContext, call_next: CallNext) -> Any:
        if context.request.method == "tools/call":
            return await middleware(context, call_next)
        return await call_next(context)

    return around_tool_calls


@public("funcmcp.middleware")
def on_list(edit: EditList) -> Middleware:
    """Return middleware that edits lists of tools, resources, resource templates and prompts; usable as a decorator.

    It hides definitions and does not protect features: clients can still call a hidden tool. To protect it, use
    ``authorize=``. The edited list is marked as private to its caller, so that shared caches don't keep it.

    Args:
        edit: Gets the context and the definitions of one page, and returns those that the client gets. May be async.
            ``context.request.method`` tells which list it is.
    """

    @wraps(edit, assigned=_ASSIGNED)
    async def edit_list(context: RequestContext, call_next: CallNext) -> Reply | dict[str, Any]:
        reply = await call_next(context)
        member = FEATURE_LISTS.get(context.request.method)
        result = None if member is None else reply.result()
        if member is None or result is None:
            return reply
        definitions = edit(context, result[member])
        if inspect.isawaitable(definitions):
            definitions = await definitions
        if not isinstance(definitions, list) or not all(isinstance(definition, dict) for definition in definitions):
            raise TypeError(f"on_list: {place_of(edit)} must return the list of definitions that the client gets.")
        edited = {**result, member: definitions}
        if "cacheScope" in edited:
            edited["cacheScope"] = "private"
        return edited

    return edit_list
