"""The lines that ``funcmcp run`` writes for the requests it serves, and its log level."""

from __future__ import annotations

import logging
import sys
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from funcmcp.cli.output import visible, write_line
from funcmcp.server.log import FORMAT
from funcmcp.transports.http.messages import HttpResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp import MCPServer
    from funcmcp.protocol.jsonrpc import Request
    from funcmcp.protocol.replies import Reply
    from funcmcp.server.calls.context import RequestContext
    from funcmcp.server.middleware import CallNext
    from funcmcp.transports.http.messages import HttpRequest

_MAX_NAME = 100
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

_messages: ContextVar[list[str] | None] = ContextVar("_messages", default=None)
"""What the HTTP request that is being answered asks for, a text for each JSON-RPC request in it."""


def configure(server: MCPServer, level: str | None) -> MCPServer:
    """Set the log level, if there is one, and log requests at info and below, or on a terminal; return the server."""
    if level is not None:
        logging.basicConfig(format=FORMAT)
        logging.getLogger().setLevel(level.upper())
    shows = sys.stderr.isatty() if level is None else level in {"debug", "info"}
    if shows:
        _log_requests(server)
    return server


def _log_requests(server: MCPServer) -> None:
    """Write a line to stderr for each HTTP request from now on, once its answer has been sent."""
    exchange = server.exchange

    async def answer_and_note(context: RequestContext, call_next: CallNext) -> Reply:
        messages = _messages.get()
        if messages is None:
            return await call_next(context)
        place = len(messages)
        messages.append(_described(context.request))
        reply = await call_next(context)
        if reply.error is not None:
            messages[place] += f" (error {reply.error})"
        return reply

    async def exchange_and_log(request: HttpRequest) -> HttpResponse:
        messages: list[str] = []
        token = _messages.set(messages)
        start = time.perf_counter()
        try:
            response = await exchange(request)
        finally:
            _messages.reset(token)
        if isinstance(response.body, bytes):
            _write(request, messages, response.status, start)
            return response
        body = _logged_stream(response.body, request, messages, response.status, start)
        return HttpResponse(response.status, response.headers, body)

    server.server.add_middleware(answer_and_note)
    server.exchange = exchange_and_log


async def _logged_stream(
    body: Any, request: HttpRequest, messages: list[str], status: int, start: float
) -> AsyncIterator[bytes]:
    """Yield the parts of a body, and write the line after the last one."""
    try:
        async for part in body:
            yield part
    finally:
        _write(request, messages, status, start)
        if hasattr(body, "aclose"):
            await body.aclose()


def _described(request: Request) -> str:
    """Return a request's method and the name of what it uses."""
    name = request.params.get(_NAMED_BY.get(request.method, ""))
    return f"{_short(request.method)} {_short(name)}" if isinstance(name, str) else _short(request.method)


def _short(text: str) -> str:
    """Return the beginning of a text that a client has sent, on one line and without control characters."""
    shown = text if len(text) <= _MAX_NAME else text[:_MAX_NAME] + "..."
    return visible(shown).replace("\n", "\\n").replace("\t", "\\t")


def _write(request: HttpRequest, messages: list[str], status: int, start: float) -> None:
    subject = ", ".join(messages) or f"{_short(request.method)} {_short(request.path)}"
    milliseconds = (time.perf_counter() - start) * 1000
    write_line(f"{subject} {status} {milliseconds:.1f} ms", error=True)
