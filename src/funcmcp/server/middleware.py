"""Middleware: functions around every request that the server answers.

How it works: `fold` makes one function of the server's own `respond` and its middleware, once, when middleware is
added. Without middleware the result is `respond` itself, so requests pay nothing. The middleware that was added first
is the outermost one. A middleware that raises ends the request with an error, as a feature that raises does. The two
exceptions for which transports have statuses of their own (`LimitReachedError`, `StoreAwayError`) pass through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp.protocol.replies import Reply

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from funcmcp.server.calls.context import Context

    Respond: TypeAlias = Callable[[Context], Coroutine[Any, Any, Reply]]
    Complete: TypeAlias = Callable[[dict[str, Any], Context], Reply]
    Fail: TypeAlias = Callable[[BaseException, Context], Reply]

    CallNext: TypeAlias = Callable[[Context], Awaitable[Reply]]
    Middleware: TypeAlias = Callable[[Context, CallNext], Awaitable[Reply | dict[str, Any]]]


def fold(middleware: Sequence[Middleware], respond: Respond, complete: Complete, fail: Fail) -> Respond:
    """Return a function that passes a request through all middleware to *respond*.

    Args:
        middleware: The middleware, the outermost first.
        respond: Answers a request; never raises but for limits and unreachable stores.
        complete: Returns the answer for a result that a middleware returned in place of a reply.
        fail: Returns the answer for an exception that a middleware raised; raises what transports handle.
    """
    for function in reversed(middleware):
        respond = _around(respond, function, complete, fail)
    return respond


def _around(respond: Respond, middleware: Middleware, complete: Complete, fail: Fail) -> Respond:
    async def around(context: Context) -> Reply:
        try:
            answer = await middleware(context, respond)
            if isinstance(answer, Reply):
                return answer
            if isinstance(answer, dict):
                return complete(answer, context)
            raise TypeError(
                f"The middleware {middleware!r} must return the Reply of call_next, or a result as a dict; "
                f"got {type(answer).__name__}."
            )
        except BaseException as error:  # noqa: BLE001 - `fail` raises what is not a failure again
            return fail(error, context)

    return around
