"""The lines that ``funcmcp run`` writes for the requests it serves, and its log level.

How it works: a line is about one HTTP request, which can carry several JSON-RPC requests (a batch), so there are two
parts. The function around the server's exchange starts the clock, and writes the line after the last byte of the
response. In between, the middleware `_note_request` notes each JSON-RPC request and how it ended. A context variable
connects them: it holds the notes for the HTTP request that the task serves.
"""

from __future__ import annotations

import logging
import sys
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from funcmcp._cli.output import write_note
from funcmcp._middleware.request_log import OK, is_tool_error, outcome_of
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

_HTTP_OK = 200
_FIRST_FAILURE = 400


@dataclass
class _Note:
    """A JSON-RPC request: its method and the name that it uses, and how it ended; "" as long as it has not."""

    subject: str
    outcome: str = ""


_notes: ContextVar[list[_Note] | None] = ContextVar("_notes", default=None)
"""The JSON-RPC requests of the HTTP request that the task serves. None outside of HTTP requests."""


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
        serving = serving_of(server)
        serving.server.add_middleware(_note_request)  # that of the compatibility classes takes FastMCP's middleware
        serving.wrap_exchange(_logging)
    return server


async def _note_request(context: RequestContext, call_next: CallNext) -> Reply:
    """Note a JSON-RPC request, and how it ended, for the line of its HTTP request."""
    notes = _notes.get()
    if notes is None:
        return await call_next(context)
    note = _Note(_description_of(context.request))
    notes.append(note)
    reply = await call_next(context)
    note.outcome = outcome_of(reply.error, is_tool_error=is_tool_error(context, reply))
    return reply


def _logging(exchange: Exchange) -> Exchange:
    """Return a function that answers HTTP requests as *exchange* and writes a line to stderr after each response."""

    async def exchange_and_log(request: HttpRequest) -> HttpResponse:
        notes: list[_Note] = []
        token = _notes.set(notes)
        start = time.perf_counter()
        try:
            response = await exchange(request)
        finally:
            _notes.reset(token)
        if isinstance(response, ApplicationResponse):
            response.on_end.append(lambda: _write(request, notes, response.status, start))
            return response
        if isinstance(response.body, bytes):
            _write(request, notes, response.status, start)
            return response
        body = _logged_stream(response.body, response.status, request, notes, start)
        return HttpResponse(response.status, response.headers, body)

    return exchange_and_log


async def _logged_stream(
    body: AsyncIterator[bytes], status: int, request: HttpRequest, notes: list[_Note], start: float
) -> AsyncIterator[bytes]:
    """Yield the parts of a response's body, and write the line after the last one."""
    try:
        async for part in body:
            yield part
    finally:
        _write(request, notes, status, start)
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


def _write(request: HttpRequest, notes: list[_Note], status: int, start: float) -> None:
    """Write the line of a request, in red if it failed. JSON-RPC requests have outcomes in place of the status."""
    parts = [f"{note.subject} {note.outcome}".rstrip() for note in notes]
    subject = ", ".join(parts) or f"{_short(request.method)} {_short(request.path)}"
    if not notes or status != _HTTP_OK:
        subject += f" {status}"
    failed = status >= _FIRST_FAILURE or any(note.outcome not in ("", OK) for note in notes)
    milliseconds = (time.perf_counter() - start) * 1000
    write_note(f"{subject} {milliseconds:.1f} ms", error=True, colour="red" if failed else None)
