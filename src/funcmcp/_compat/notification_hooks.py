"""Notifications of clients: FastMCP's hook ``on_notification``, and handlers of the low-level server.

How it works: each notification runs in a task of its own through the middleware and its handler. The middleware sees it
and can't stop it: funcmcp itself has handled it. While `_AT_ONCE` notifications run, further ones are not shown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable  # noqa: TC003 - a NamedTuple reads its annotations
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._compat.context import context_variable
from funcmcp._compat.middleware import MiddlewareContext
from funcmcp._server.log import log_exception, quote

if TYPE_CHECKING:
    from funcmcp._compat.middleware import CallNext
    from funcmcp._server.calls.context import RequestContext

_logger = logging.getLogger("funcmcp.compat")
_AT_ONCE = 100


class Handler(NamedTuple):
    """A function for the notifications of a method.

    Attributes:
        params_type: The model of the parameters.
        function: Gets the context and the parameters.
    """

    params_type: Any
    function: Callable[[Any, Any], Awaitable[None]]


class Notifications:
    """Shows the notifications of a server's clients to its middleware and handlers.

    Args:
        server: The server.

    Attributes:
        middleware: The middleware of FastMCP's kind, the outermost first.
        handlers: The functions by the methods of the notifications.
    """

    def __init__(self, server: Any) -> None:
        self.middleware: list[Callable[[Any, Any], Awaitable[Any]]] = []
        self.handlers: dict[str, Handler] = {}
        self._server = server
        self._tasks: set[asyncio.Task[None]] = set()

    def receive(self, request: RequestContext) -> None:
        """Show a notification. Its context is that of a request that can't be answered."""
        if not (self.middleware or self.handlers) or len(self._tasks) >= _AT_ONCE:
            return
        task = asyncio.create_task(self._run(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, request: RequestContext) -> None:
        method = request.request.method
        try:
            with self._server.active_context(request):
                context: MiddlewareContext[Any] = MiddlewareContext(
                    message=dict(request.request.params),
                    fastmcp_context=context_variable.get(),
                    type="notification",
                    method=method,
                )
                call_next: CallNext[Any, Any] = self._handle
                for middleware in reversed(self.middleware):
                    call_next = partial(middleware, call_next=call_next)
                await call_next(context)
        except Exception as error:  # noqa: BLE001 - nobody waits for an answer
            log_exception(_logger, error, "The notification %s failed: %s", (quote(method), quote(error)))

    async def _handle(self, context: MiddlewareContext[Any]) -> None:
        handler = self.handlers.get(context.method or "")
        if handler is not None and context.fastmcp_context is not None:
            params = handler.params_type.model_validate(context.message)
            await handler.function(context.fastmcp_context.request_context, params)
