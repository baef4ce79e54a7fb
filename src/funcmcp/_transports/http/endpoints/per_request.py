"""The per-request era over HTTP (2026-07-28): each request has its revision and capabilities in ``_meta``.

Headers repeat some members of the message, so that proxies can route it. They must agree with the message.

The order of the checks satisfies the specification, the official conformance suite and clients: shape of the message,
``_meta``, headers against the message, revision, method, arguments against their headers.

Source: 2026-07-28 "basic/transports" and "basic/index".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._protocol import envelope, headers
from funcmcp._protocol.errors import HEADER_MISMATCH, INVALID_REQUEST, MCPError
from funcmcp._protocol.jsonrpc import Notification, Response
from funcmcp._protocol.methods import METHODS, members_repeated_in, repeating_headers
from funcmcp._protocol.replies import error_reply
from funcmcp._protocol.revisions import NEWEST
from funcmcp._server.calls.channel import ClosedChannel
from funcmcp._server.calls.context import RequestContext, alarms_of
from funcmcp._server.calls.route import RoutedRequest
from funcmcp._server.catalog.features import Tool
from funcmcp._server.connections.client import ConnectedClient
from funcmcp._server.run import Run, RunCancelledError, Waiting
from funcmcp._transports.batch import NO_BATCHES
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import JSON_HEADERS, PER_REQUEST_STATUS, accepted, refuse
from funcmcp._transports.http.streams import sse
from funcmcp._transports.http.streams.disconnect import DisconnectWatch
from funcmcp._transports.http.streams.early_response import commenting
from funcmcp._transports.http.streams.request_stream import BufferedChannel, StreamChannel, stream_response

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from funcmcp._protocol.jsonrpc import Malformed
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.route import RoutedBody
    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.endpoints.streamable_headers import CheckedHeaders
    from funcmcp._transports.http.messages import HttpRequest

    _Repeated: TypeAlias = dict[str, tuple[tuple[bytes, str, bool], ...]]
    """By method: the name of a header, the member of ``params``, and whether the header is optional."""

_ROUTING = {name.encode() for name in (headers.VERSION, headers.METHOD, *repeating_headers())}


class PerRequestEra:
    """Answers POSTs of the per-request era.

    Args:
        server: Answers the requests.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._repeated = {date: _headers_of(date) for date in server.revisions}
        self._repeated_by_default = _headers_of(NEWEST)

    async def post(self, http: HttpRequest, message: RoutedBody, checked: CheckedHeaders) -> HttpResponse:
        """Answer a POST whose body has been decoded and routed."""
        if not isinstance(message, RoutedRequest):
            return self._other(http, message, checked)
        try:
            context = self._context(http, message, checked)
        except MCPError as error:
            return per_request_response(error_reply(error, message.request.id))
        try:
            if checked.accept.events and message.interactive:
                return await self._stream(context, http)
            reply = self._server.begin(context)
            if isinstance(reply, Waiting):
                alarms, run = alarms_of(context), Run()
                answer = DisconnectWatch(run, http.disconnected, alarms).during(run.wait(reply))
                ending = partial(sse.unanswered, message.request.id)
                reply = await commenting(answer, http, checked.accept, alarms, ending=ending)
            return per_request_response(reply)
        except RunCancelledError:
            return HttpResponse(204, ())  # the client has disconnected and does not read this

    async def _stream(self, context: RequestContext, http: HttpRequest) -> HttpResponse:
        run = Run()
        context.channel = channel = StreamChannel(None) if http.can_stream else BufferedChannel()
        work = run.wait(self._server.answer(context))
        watch = DisconnectWatch(run, http.disconnected, alarms_of(context))
        return await stream_response(
            work, channel, request_id=context.request.id, respond=per_request_response, watch=watch
        )

    def _other(
        self, http: HttpRequest, message: Notification | Response | Malformed | list[Any], checked: CheckedHeaders
    ) -> HttpResponse:
        """Answer a message that is not a request. Only notifications are accepted."""
        if not isinstance(message, Notification):
            return _refuse_message(message)
        if checked.version and not checked.is_supported:
            unsupported = envelope.unsupported_version(checked.version, self._server.supported)
            return per_request_response(error_reply(unsupported, None))
        self._server.notified(message, None, http)
        return accepted()

    def _context(self, http: HttpRequest, routed: RoutedRequest, checked: CheckedHeaders) -> RequestContext:
        """Check a request and return its context; raise MCPError for the first fault."""
        server, request = self._server, routed.sent
        try:
            meta = envelope.read_meta(request.params)
        except MCPError as error:
            raise self._first_fault(error, checked) from None
        version = meta[envelope.PROTOCOL_VERSION]
        repeating = self._repeated.get(version, self._repeated_by_default)
        repeated: dict[bytes, str] = {}
        for header, member, is_optional in repeating.get(request.method, ()):
            value = request.params.get(member)
            if type(value) is str and (not is_optional or header in http.fields):
                repeated[header] = value
        revision = server.revisions.get(version)
        if (
            request.method not in METHODS
            or revision is None
            or len(http.fields) < len(http.pairs)
            or not headers.agree(http.fields, version, request.method, repeated)
        ):
            _compare(http, version, request.method, repeated)
        if revision is None or not revision.per_request:
            raise envelope.unsupported_version(version, server.supported)
        tool = routed.feature
        if isinstance(tool, Tool) and tool.mirrored:
            server.routes.handler(routed, revision)  # an unknown method precedes wrong headers
            _check_mirrored_arguments(http, routed, tool)
        client = ConnectedClient(revision, meta[envelope.CLIENT_CAPABILITIES], meta.get(envelope.CLIENT_INFO, {}))
        return RequestContext(routed, client, _CLOSED, http)

    def _first_fault(self, error: MCPError, checked: CheckedHeaders) -> MCPError:
        """Return the error about the version of the header, if the server lacks it; otherwise that of the body."""
        if checked.version and not checked.is_supported:
            return envelope.unsupported_version(checked.version, self._server.supported)
        return error


_CLOSED = ClosedChannel()


def per_request_response(reply: Reply) -> HttpResponse:
    """Return the response for an answer, with the status that the specification has for its error."""
    return HttpResponse(PER_REQUEST_STATUS.get(reply.error, 200), JSON_HEADERS, reply.body)


def _check_mirrored_arguments(http: HttpRequest, routed: RoutedRequest, tool: Tool) -> None:
    """Compare the `Mcp-Param-*` headers with a tool's arguments; raise MCPError for the first difference.

    The client of a call that stands for one of another tool need not know which headers that tool has, so it may leave
    them out. A header that it sends must agree.
    """
    arguments = routed.request.params.get("arguments")
    mirrored = tool.mirrored
    if routed.sent is not routed.request:
        mirrored = tuple(parameter for parameter in mirrored if parameter.header in http.headers)
    if type(arguments) is dict:
        fault = headers.mirrored_mismatch(http.headers, arguments, mirrored)
        if fault is not None:
            raise MCPError(HEADER_MISMATCH, fault)


def _headers_of(revision: str) -> _Repeated:
    """Return the headers that repeat a member of ``params`` in a revision, by method."""
    return {
        method: tuple((row.header.encode(), row.member, row.is_optional) for row in rows)
        for method, rows in members_repeated_in(revision).items()
    }


def _compare(http: HttpRequest, version: str, method: str, repeated: Mapping[bytes, str]) -> None:
    """Compare the headers that repeat something with the message; raise MCPError for the first difference."""
    expected = {headers.VERSION: version, headers.METHOD: method}
    expected |= {header.decode(): value for header, value in repeated.items()}
    fault = _repeated(http) or headers.mismatch(http.headers, expected)
    if fault is not None:
        raise MCPError(HEADER_MISMATCH, fault)


def _repeated(http: HttpRequest) -> str | None:
    """Return an error message if a mirrored header came more than once, or None."""
    seen = set()
    for name, _ in http.pairs:
        if name in seen and (name in _ROUTING or name.startswith(headers.PARAM_PREFIX.encode())):
            return f"The header {name.decode()} came more than once."
        seen.add(name)
    return None


def _refuse_message(message: Response | Malformed | list[Any]) -> HttpResponse:
    if isinstance(message, list):
        return refuse(400, INVALID_REQUEST, NO_BATCHES)
    if isinstance(message, Response):
        return refuse(400, INVALID_REQUEST, "Clients send no responses in this protocol revision.")
    return refuse(400, INVALID_REQUEST, message.reason, request_id=message.id)
