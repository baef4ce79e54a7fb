"""The lines that ``funcmcp run`` writes for the requests it serves, and its log level.

How it works: a line is about one HTTP request, which can carry several JSON-RPC requests (a batch), so there are two
parts. The function around the server's exchange starts the clock, and writes the line after the last byte of the
response. In between, the middleware `_describe_request` adds a description of each JSON-RPC request, with the code of
its error. A context variable connects them: it holds the descriptions for the HTTP request that the task serves.
"""

from __future__ import annotations

import logging
import sys
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

from funcmcp._cli.output import write_line
from funcmcp._protocol.methods import METHODS
from funcmcp._server.log import FORMAT
from funcmcp._serving import serving_of
from funcmcp._transports.http.endpoints.application_response import ApplicationResponse
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._visible_text import visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp import MCPServer
    from funcmcp._protocol.jsonrpc import Request
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext
    from funcmcp._transports.http.messages import Exchange, HttpRequest

_MAX_TEXT = 100
"""Characters of a client's text in a line."""

_descriptions: ContextVar[list[str] | None] = ContextVar("_descriptions", default=None)
"""The JSON-RPC requests of the HTTP request that the task serves, each as a text. None outside of HTTP requests."""


def configure(server: MCPServer, level: str | None) -> MCPServer:
    """Set the log level, write lines for requests if the level is low enough, and return the server.

    Args:
        server: The server.
        level: The least severe level. None leaves the level alone, and writes the lines only on a terminal.
    """
    if level is not None:
        logging.basicConfig(format=FORMAT)
        logging.getLogger().setLevel(level.upper())
    writes_lines = sys.stderr.isatty() if level is None else level in {"debug", "info"}
    if writes_lines:
        server.add_middleware(_describe_request)
        serving_of(server).wrap_exchange(_logging)
    return server


async def _describe_request(context: RequestContext, call_next: CallNext) -> Reply:
    """Add the description of a JSON-RPC request, with the code of its error, to those of its HTTP request."""
    descriptions = _descriptions.get()
    if descriptions is None:
        return await call_next(context)
    index = len(descriptions)  # the requests of a batch run at the same time
    descriptions.append(_description_of(context.request))
    reply = await call_next(context)
    if reply.error is not None:
        descriptions[index] += f" (error {reply.error})"
    return reply


def _logging(exchange: Exchange) -> Exchange:
    """Return a function that answers HTTP requests as *exchange* and writes a line to stderr after each response."""

    async def exchange_and_log(request: HttpRequest) -> HttpResponse:
        descriptions: list[str] = []
        token = _descriptions.set(descriptions)
        start = time.perf_counter()
        try:
            response = await exchange(request)
        finally:
            _descriptions.reset(token)
        if isinstance(response, ApplicationResponse):
            response.on_end.append(lambda: _write(request, descriptions, response.status, start))
            return response
        if isinstance(response.body, bytes):
            _write(request, descriptions, response.status, start)
            return response
        body = _logged_stream(response.body, response.status, request, descriptions, start)
        return HttpResponse(response.status, response.headers, body)

    return exchange_and_log


async def _logged_stream(
    body: AsyncIterator[bytes], status: int, request: HttpRequest, descriptions: list[str], start: float
) -> AsyncIterator[bytes]:
    """Yield the parts of a response's body, and write the line after the last one."""
    try:
        async for part in body:
            yield part
    finally:
        _write(request, descriptions, status, start)
        if hasattr(body, "aclose"):
            await body.aclose()


def _description_of(request: Request) -> str:
    """Return a request's method and the name of the feature or the task that it uses."""
    row = METHODS.get(request.method)
    name = None if row is None or row.named_by is None else request.params.get(row.named_by)
    if isinstance(name, str):
        return f"{_short(request.method)} {_short(name)}"
    return _short(request.method)


def _short(text: str) -> str:
    """Return the beginning of a client's text, on one line and without control characters."""
    if len(text) > _MAX_TEXT:
        text = f"{text[:_MAX_TEXT]}..."
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _write(request: HttpRequest, descriptions: list[str], status: int, start: float) -> None:
    subject = ", ".join(descriptions) or f"{_short(request.method)} {_short(request.path)}"
    milliseconds = (time.perf_counter() - start) * 1000
    write_line(f"{subject} {status} {milliseconds:.1f} ms", error=True)
