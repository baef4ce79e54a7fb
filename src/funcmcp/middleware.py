"""Middleware for `MCPServer`: functions around every request, on every transport and trigger.

A middleware is an async function that gets the request's context and the next function:

Example:
    ```python
    async def audit(context: RequestContext, call_next: CallNext) -> Reply:
        reply = await call_next(context)
        print(context.request.method, reply.error)
        return reply


    mcp = MCPServer("Orders", middleware=[audit])
    ```

See guides/middleware.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._middleware.failures import handle_errors, retry_calls
    from funcmcp._middleware.hooks import on_list, on_tool_call
    from funcmcp._middleware.request_log import Timing, log_requests, time_requests
    from funcmcp._middleware.response_cache import ResultCache, cache_results
    from funcmcp._middleware.sizes import limit_sizes
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext, Middleware

__all__ = [
    "CallNext",
    "Middleware",
    "Reply",
    "RequestContext",
    "ResultCache",
    "Timing",
    "cache_results",
    "handle_errors",
    "limit_sizes",
    "log_requests",
    "on_list",
    "on_tool_call",
    "retry_calls",
    "time_requests",
]

_HOMES = {
    "_middleware.failures": ["handle_errors", "retry_calls"],
    "_middleware.hooks": ["on_list", "on_tool_call"],
    "_middleware.request_log": ["Timing", "log_requests", "time_requests"],
    "_middleware.response_cache": ["ResultCache", "cache_results"],
    "_middleware.sizes": ["limit_sizes"],
    "_protocol.replies": ["Reply"],
    "_server.calls.context": ["RequestContext"],
    "_server.middleware": ["CallNext", "Middleware"],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
