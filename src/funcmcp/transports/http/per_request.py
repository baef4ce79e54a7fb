"""The per-request era over HTTP (2026-07-28): every request carries all the facts, and headers repeat some of them.

The order of the checks is the one that satisfies the specification, the official conformance suite and clients:
shape of the message, `_meta`, headers against the message, revision, method, mirrored arguments.

Source: 2026-07-28 "basic/transports" and "basic/index".
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from funcmcp.protocol import envelope, headers
from funcmcp.protocol.errors import HEADER_MISMATCH, INVALID_REQUEST, MCPError
from funcmcp.protocol.jsonrpc import Malformed, Notification, Request, Response
from funcmcp.protocol.methods import METHODS
from funcmcp.server.channel import ClosedChannel
from funcmcp.server.client import Client
from funcmcp.server.context import Context
from funcmcp.server.dispatch import error_reply
from funcmcp.server.handlers.tools import find_tool
from funcmcp.server.run import Run, RunCancelledError, Started
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import accepted, per_request_response, refuse
from funcmcp.transports.http.stream import Leaving, StreamChannel, stream_response

if TYPE_CHECKING:
    from funcmcp.protocol.jsonrpc import Body
    from funcmcp.server.dispatch import Reply, Server
    from funcmcp.transports.http.messages import HttpRequest
    from funcmcp.transports.http.status import Accepts

_PATIENCE = 0.1
"""Seconds before a watch for the client's leaving is worth its cost."""

_ROUTING = tuple(name.encode() for name in (headers.VERSION, headers.METHOD, headers.NAME))


class PerRequestEra:
    """Answers POSTs of the per-request era.

    Args:
        server: answers the requests.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    async def post(self, http: HttpRequest, message: Body, accept: Accepts) -> HttpResponse:
        """Answer one POST whose body has been decoded and classified."""
        if isinstance(message, Notification):
            named = _named_version(http)
            if named and named not in self._server.revisions:
                unsupported = envelope.unsupported_version(named, self._server.supported)
                return per_request_response(error_reply(unsupported, None))
            return accepted()
        if not isinstance(message, Request):
            return _refuse_message(message)
        try:
            context = self._context(http, message)
        except MCPError as error:
            return per_request_response(error_reply(error, message.id))
        run = Run()
        leaving = Leaving(run, http.disconnected)
        try:
            if accept.events and self._interactive(message):
                channel = StreamChannel(None)
                context.channel = channel
                work = run.wait(self._server.answer(context))
                return await stream_response(work, channel, respond=per_request_response, leaving=leaving)
            started = Started(self._server.answer(context))
            return per_request_response(started.result if started.done else await _watched(leaving, started))
        except RunCancelledError:
            return HttpResponse(204, ())  # the client has gone, so nobody reads this

    def _context(self, http: HttpRequest, request: Request) -> Context:
        """Check a request in the fixed order and return its context; raise MCPError with the first fault."""
        server = self._server
        try:
            meta = envelope.read_meta(request.params)
        except MCPError:
            named = _named_version(http)
            if named and named not in server.revisions:
                raise envelope.unsupported_version(named, server.supported) from None
            raise
        version = meta[envelope.PROTOCOL_VERSION]
        said = _said(version, request)
        if len(http.fields) < len(http.pairs) or not headers.agree(http.fields, said):
            fault = _repeated(http) or headers.mismatch(http.headers, said)
            if fault is not None:
                raise MCPError(HEADER_MISMATCH, fault)
        revision = server.revisions.get(version)
        if revision is None or not revision.per_request:
            raise envelope.unsupported_version(version, server.supported)
        server.handler(request.method, revision)
        self._check_arguments(http, request)
        client = Client(revision, meta[envelope.CLIENT_CAPABILITIES], meta.get(envelope.CLIENT_INFO, {}))
        return Context(request, client, _CLOSED, http=http)

    def _check_arguments(self, http: HttpRequest, request: Request) -> None:
        """Compare `Mcp-Param-*` with a tool's arguments."""
        if request.method != "tools/call":
            return
        tool = find_tool(self._server, request.params)
        arguments = request.params.get("arguments")
        if tool.mirrored and type(arguments) is dict:
            fault = headers.mirrored_mismatch(http.headers, arguments, tool.mirrored)
            if fault is not None:
                raise MCPError(HEADER_MISMATCH, fault)

    def _interactive(self, request: Request) -> bool:
        tool = self._server.tools.get(request.params["name"]) if request.method == "tools/call" else None
        return tool is not None and tool.interactive


_CLOSED = ClosedChannel()


async def _watched(leaving: Leaving, started: Started[Reply]) -> Reply:
    """Wait for an answer, and cancel the run if the client leaves before: in this era that is how it cancels."""
    watch: list[asyncio.Task[None]] = []
    timer = asyncio.get_running_loop().call_later(
        _PATIENCE, lambda: watch.append(asyncio.ensure_future(leaving.watch()))
    )
    try:
        return await leaving.run.wait(started)
    finally:
        timer.cancel()
        for task in watch:
            task.cancel()


def _named_version(http: HttpRequest) -> str:
    """Return the revision that the version header names; empty without one."""
    return http.fields.get(b"mcp-protocol-version", b"").decode("latin-1").strip(" \t")


def _said(version: str, request: Request) -> dict[str, str]:
    """Return what the mirrored headers must say."""
    said = {headers.VERSION: version, headers.METHOD: request.method}
    row = METHODS.get(request.method)
    if row is not None and row.mirrored is not None:
        name = request.params.get(row.mirrored)
        if type(name) is str:
            said[headers.NAME] = name
    return said


def _repeated(http: HttpRequest) -> str | None:
    """Name a routing header that came twice, or return None."""
    seen = set()
    for name, _ in http.pairs:
        if name in seen and (name in _ROUTING or name.startswith(headers.PARAM_PREFIX.encode())):
            return f"The header {name.decode()} came more than once."
        seen.add(name)
    return None


def _refuse_message(message: Response | Malformed | list[object]) -> HttpResponse:
    if isinstance(message, list):
        return refuse(400, INVALID_REQUEST, "This protocol revision has no batches; send one message.")
    if isinstance(message, Response):
        return refuse(400, INVALID_REQUEST, "Clients send no responses in this protocol revision.")
    return refuse(400, INVALID_REQUEST, message.reason, request_id=message.id)
