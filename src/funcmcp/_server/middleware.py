"""Middleware: functions around every request that the server answers.

How it works: `fold` makes one function of the server's own `respond` and its middleware, once, when middleware is
added. Without middleware the result is `respond` itself, so requests pay nothing. The middleware that was added first
is the outermost one. A middleware that raises ends the request with an error, as a feature that raises does. The two
exceptions for which transports have statuses of their own (`LimitReachedError`, `StoreUnavailableError`) pass through.

A result in place of a reply is completed and checked (`middleware_results`). The error for a wrong one names the
author's function. Where that function is decorated, the attribute ``__wrapped__`` leads to it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from funcmcp._objects.public_names import public
from funcmcp._protocol.replies import Reply
from funcmcp._server.log import shown_path

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._state.seal import KeyRing

    Respond: TypeAlias = Callable[[RequestContext], Coroutine[Any, Any, Reply]]
    Complete: TypeAlias = Callable[[object, RequestContext], Coroutine[Any, Any, Reply]]
    Fail: TypeAlias = Callable[[BaseException, RequestContext], Reply]


@public("funcmcp.middleware")
class CallNext(Protocol):
    """Passes a request to the next middleware, or to the server."""

    async def __call__(self, context: RequestContext, /) -> Reply:
        """Return the answer to the request; failures are error replies."""


@public("funcmcp")
class Middleware(Protocol):
    """A function around every request."""

    async def __call__(self, context: RequestContext, call_next: CallNext, /) -> Any:
        """Return the reply of ``call_next(context)``, or a result in its place.

        A result is a dict as in the specification, or an object that a function of the request's kind may return: a
        `ToolResult`, `Contents` or a list of them, a `PromptResult`, or a `Completion`.

        Raises:
            MCPError: Ends the request with this error.
            ToolError: Ends a `tools/call` with a result that has ``isError: true`` and this text.
        """


@runtime_checkable
class BoundMiddleware(Protocol):
    """Middleware that uses the name and the keys of its server, such as `cache_results`."""

    def bind(self, server: str, keys: KeyRing) -> None:
        """Use the name and the keys of a server."""

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""


def check_middleware(middleware: object) -> None:
    """Raise TypeError for an object that can't be middleware, such as a class or a function that is not async."""
    is_plain = inspect.isfunction(middleware) and not inspect.iscoroutinefunction(middleware)
    if callable(middleware) and not inspect.isclass(middleware) and not is_plain:
        return
    name = getattr(middleware, "__qualname__", type(middleware).__name__)
    raise TypeError(
        "Middleware must be an async function (context, call_next) -> Reply, or what a call such as log_requests() "
        f"returns; got {name}."
    )


def fold(middleware: Sequence[Middleware], respond: Respond, complete: Complete, fail: Fail) -> Respond:
    """Return a function that passes a request through all middleware to *respond*.

    Args:
        middleware: The middleware, the outermost first.
        respond: Answers a request; never raises but for limits and unreachable stores.
        complete: Returns the answer for what a middleware returned in place of a reply; raises TypeError or
            ValueError if that can't be a result.
        fail: Returns the answer for an exception that a middleware raised; raises what transports handle.
    """
    for function in reversed(middleware):
        respond = _around(respond, function, complete, fail)
    return respond


def _around(respond: Respond, middleware: Middleware, complete: Complete, fail: Fail) -> Respond:
    async def around(context: RequestContext) -> Reply:
        try:
            answer = await middleware(context, respond)
            if isinstance(answer, Reply):
                return answer
            context.set_error(None)
            try:
                return await complete(answer, context)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"{place_of(middleware)} returned a wrong {context.request.method} result: {error}"
                ) from None
        except BaseException as error:  # noqa: BLE001 - `fail` raises what is not a failure again
            return fail(error, context)

    return around


def place_of(function: object) -> str:
    """Return the name of an author's function or object with the file and the line, for errors."""
    if callable(function):
        function = inspect.unwrap(function)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    definition = function
    if not inspect.isfunction(function):
        definition = type(function).__dict__.get("__call__")
    code = getattr(definition, "__code__", None)
    return name if code is None else f"{name} ({shown_path(code.co_filename)}, line {code.co_firstlineno})"
