"""Requests to one server, in the revision that client and server agree on.

How it works: `Requests.connect` opens the transport and agrees on a revision with the server. If the caller did not
choose one, it sends ``server/discover`` in the newest revision. A server that does not support this revision names the
supported ones, in the error -32022 or in its result. The client then sends the request again, in the newest of these
that has no handshake. It does the same with any later request, which may reach an older instance of the server. If
there is no such revision, or if the server does not have the method, the client sends ``initialize`` in the newest
handshake revision. If the server refuses it and names its revisions, the client sends it again in the newest of these.

After that, each request is one message: `send` adds the members and headers that the revision requires, waits for the
response, and cancels the request if the caller stops waiting. If the server has ended the session, `send` starts a new
one and sends the request again: the server has not begun a request that it answers with status 404. In the handshake
era the server sends its questions as requests, which the transport passes to `_receive`.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp import __version__
from funcmcp._client.answers import UndeclaredQuestionError
from funcmcp._client.errors import ConnectionFailedError, RequestTimeoutError, SessionEndedError, one_line
from funcmcp._client.messages import member_of, result_of
from funcmcp._client.transport import StandingStreams
from funcmcp._protocol import envelope
from funcmcp._protocol import headers as header_names
from funcmcp._protocol.codec import encode
from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    ClientError,
    InvalidResponseError,
    MCPError,
)
from funcmcp._protocol.methods import FEATURE_LISTS, repeated_members
from funcmcp._protocol.objects import Tool, objects_of
from funcmcp._protocol.revisions import NEWEST_HANDSHAKE, REVISIONS, newest, released, with_handshake
from funcmcp._protocol.tasks import EXTENSION
from funcmcp._state.line_limit import LineOfEach

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from funcmcp._client.answers import Answers
    from funcmcp._client.transport import Transport
    from funcmcp._protocol.headers import MirroredParameter
    from funcmcp._protocol.revisions import Revision


def trace_context() -> dict[str, str]:
    """Return what OpenTelemetry's propagators write for the current span and baggage.

    It is empty if the program does not use OpenTelemetry, which is then not imported.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.propagate import inject  # noqa: PLC0415 - as the docstring says

    carrier: dict[str, str] = {}
    inject(carrier)
    return carrier


_logger = logging.getLogger("funcmcp")

_MAX_PAGES = 1000
_MAX_CAPABILITIES, _MAX_DESCRIPTION = 64 * 1024, 1024 * 1024
"""Bytes of what a server says about itself, which is kept as long as the connection."""

_PROBE_SECONDS = 10.0
"""Seconds that a server on stdio may take for ``server/discover``. Old servers may ignore unknown methods."""

_MAX_ANSWERING = 100
"""Requests of the server that are answered in the background at the same time."""

NO_HANDSHAKE = {INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, UNSUPPORTED_PROTOCOL_VERSION}
"""Error codes of ``initialize`` of a server that begins no session in the handshake era."""

_CANCEL_SECONDS = 2.0
"""Seconds that sending ``notifications/cancelled`` may take."""

_HANDSHAKES = with_handshake(REVISIONS)
_KNOWS_PER_REQUEST = {INTERNAL_ERROR, HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY}
"""Error codes of ``server/discover`` after which the client does not try ``initialize``."""

_SERVER_ERROR = -32000
"""The error code of servers of the official TypeScript SDK for a revision that they do not support."""

_REFUSES_REVISION = {_SERVER_ERROR, INVALID_PARAMS, UNSUPPORTED_PROTOCOL_VERSION}
"""Error codes of ``initialize`` whose data or message may name the revisions of the server."""

_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b", re.ASCII)
_CLIENT_INFO = {"name": "funcmcp", "version": __version__}


class _OtherRevisionsError(InvalidResponseError):
    """The server does not support the revision of ``server/discover``, and its result names other ones."""

    def __init__(self, date: str, supported: Sequence[str]) -> None:
        super().__init__(
            f"The server does not support revision {date} of this client. It supports: {_list_of(supported)}."
        )
        self.supported = supported


class _Options(NamedTuple):
    """What only some requests have; see `Requests.send`."""

    envelope: Mapping[str, Any] | None = None
    mirrored: tuple[MirroredParameter, ...] | None = None
    request_id: int | None = None


_NO_OPTIONS = _Options()


class Requests:
    """Sends requests to a server, and answers those of the server.

    Args:
        transport: Carries the messages.
        answers: Answers the server's questions.
        revision: The revision to use. None for the newest one that the server supports.
        log_level: The least severe log messages to ask for. None for none.
        timeout: The default number of seconds that a request may take. None for no limit.
        on_notification: Receives every notification of the server. If it returns an awaitable, the messages after the
            notification wait for it.
        on_session: Is called after each handshake, and when a revision without one is agreed on.
        client_info: The Implementation that the server gets. None for that of funcmcp.

    Attributes:
        answers: Answers the server's questions.
        date: The revision that client and server use. Empty before they have agreed on one.
        server_info: The server's Implementation.
        capabilities: The server's capabilities, by name.
        instructions: The server's instructions for the model. None if the server does not send any.
        supported: The revisions that the server has named in the result of ``server/discover``; none without one. Many
            servers leave out those with a handshake.
    """

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        transport: Transport,
        answers: Answers,
        *,
        revision: str | None,
        log_level: str | None,
        timeout: float | None,
        on_notification: Callable[[dict[str, Any]], Awaitable[None] | None],
        on_session: Callable[[], None] | None = None,
        client_info: Mapping[str, Any] | None = None,
    ) -> None:
        self.answers = answers
        self._client_info: Mapping[str, Any] = client_info or _CLIENT_INFO
        self.date: str = revision or ""
        self.server_info: dict[str, Any] = {}
        self.capabilities: dict[str, Any] = {}
        self.instructions: str | None = None
        self.supported: list[str] = []
        self._transport = transport
        self._requested_revision = revision
        self._log_level = log_level
        self._timeout = timeout
        self._on_notification = on_notification
        self._on_session = on_session
        self._ids = count(1)
        self._tools: dict[str, Tool] | None = None
        self._mirrored: dict[str, tuple[MirroredParameter, ...]] = {}
        self._left_out = LineOfEach()
        self._starting_session = asyncio.Lock()
        self._has_begun_session = False
        self._answering: dict[str | int, asyncio.Task[None]] = {}  # by the id of the question
        self._time_limits: dict[str | int, tuple[asyncio.Timeout, float]] = {}  # by the progress token

    @property
    def session_id(self) -> str | None:
        """The id of the session. None without a session."""
        return self._transport.session_id

    @property
    def credentials(self) -> str | None:
        """The credentials of the next request. None if it has none, or if the transport does not know them."""
        return getattr(self._transport, "credentials", None)

    @property
    def revision(self) -> Revision:
        """The revision that client and server use."""
        if not self.date:
            raise RuntimeError("The client is not connected. Write: async with Client(mcp) as client")
        return REVISIONS[self.date]

    @property
    def _session_has_ended(self) -> bool:
        """Whether the server has ended the session, and no new one has begun. The transport then has no session id."""
        return self._has_begun_session and self.session_id is None

    def next_id(self) -> int:
        """Return a number that no request or progress token of this client has."""
        return next(self._ids)

    def seconds(self, timeout: float | None) -> float | None:
        """Return the seconds that a request may take: those of the caller, or else those of the client."""
        return self._timeout if timeout is None else timeout

    async def connect(self) -> None:
        """Open the transport, and agree with the server on a revision."""
        self.forget_tools()
        self._has_begun_session = False
        await self._transport.connect(self._receive)
        try:
            await self._negotiate()
        except BaseException:
            await self.aclose()
            raise

    async def resume(self, session_id: str, date: str, capabilities: dict[str, Any]) -> None:
        """Open the transport, and go on with a session that another client has begun.

        Args:
            session_id: The id of the session.
            date: Its revision.
            capabilities: The capabilities of the server.
        """
        await self._transport.connect(self._receive)
        self._transport.session_id = session_id
        self._has_begun_session = True
        self.date, self.capabilities = date, capabilities

    async def aclose(self) -> None:
        """End the session, and close the transport."""
        self._has_begun_session = False
        for task in tuple(self._answering.values()):
            task.cancel()
        await self._transport.aclose()

    def open_stream(
        self, on_gap: Callable[[], None] | None, on_end: Callable[[bool], None] | None = None
    ) -> asyncio.Event | None:
        """Open the stream for what the server sends outside of requests, if the transport has one.

        Args:
            on_gap: Is called when messages may be missing. None leaves that of an open stream as it is.
            on_end: Is called when the server refuses the stream, with whether it was open before. None is as above.

        Returns:
            Is set when the server has answered: the stream is open, or there is none. None: the transport has none.
        """
        if isinstance(self._transport, StandingStreams):
            return self._transport.open_stream(self._headers(), on_gap, on_end)
        return None

    async def send(
        self,
        method: str,
        params: Mapping[str, Any],
        seconds: float | None,
        *,
        envelope: Mapping[str, Any] | None = None,
        mirrored: tuple[MirroredParameter, ...] | None = None,
        request_id: int | None = None,
    ) -> dict[str, Any]:
        """Send a request and return its result.

        Start a new session if the server has ended the session. Send the request again in another revision if the
        server does not support that of the client, and a call again with other headers if it names arguments that the
        client does not know: the server has not begun a request that it refuses in this way.

        Args:
            method: The method.
            params: The request's params, without the members of `_meta` that the revision requires.
            seconds: The time until the response has to arrive. None: no limit.
            envelope: Members of `_meta` in the per-request era, such as the capabilities, instead of those of the
                client.
            mirrored: The arguments of a tool that HTTP requests repeat in headers. None: those in the server's list.
            request_id: The id of the request, from `next_id`. None for a new one.

        Raises:
            MCPError: The response is an error.
            ClientError: The request failed. The subclass names the reason.
        """
        if self._session_has_ended:
            await self._start_session()
        try:
            return await self._send_once(method, params, seconds, _Options(envelope, mirrored, request_id))
        except SessionEndedError:
            await self._start_session()
        except MCPError as error:
            if not self._can_repeat(method, error):
                raise
        return await self._send_once(method, params, seconds, _Options(envelope, None, request_id))

    def _can_repeat(self, method: str, error: MCPError) -> bool:
        """Prepare to send a request again after an error, and return whether that may help."""
        if not self.revision.per_request:
            return False
        if error.code == HEADER_MISMATCH and method == "tools/call" and self._tools is not None:
            self.forget_tools()  # the tool has other headers than in the list that the client has read
            return True
        date = _shared_revision(_supported_by(error))
        if date is None or self._requested_revision is not None:
            return False
        self.date = date
        return True

    async def send_checked(
        self, method: str, params: Mapping[str, Any], seconds: float | None, *result_types: str
    ) -> dict[str, Any]:
        """Send a request and return its result. Raise InvalidResponseError if it has another type than "complete".

        Args:
            method: The method.
            params: The request's params.
            seconds: The time until the response has to arrive. None: no limit.
            result_types: Further types of results that the caller handles, such as ``input_required``.
        """
        result = await self.send(method, params, seconds)
        result_type = result.get("resultType", "complete")
        if self.revision.per_request and result_type not in ("complete", *result_types):
            raise InvalidResponseError(
                f"The result of {method} has the type {one_line(result_type, 50)!r}, which this client does not know."
            )
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification. Raise ClientError if it cannot be sent."""
        message = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
        await self._transport.send(message, self._headers())

    async def list_items(self, method: str, member: str, arguments: Mapping[str, Any] | None = None) -> list[Any]:
        """Return the items of a list as the server sends them, from all pages; see `Client.list_items`.

        Args:
            method: The method.
            member: The member of the result that holds the items.
            arguments: Params beside the cursor.
        """
        pages = self.pages(method, arguments or {})
        return [item async for page in pages for item in member_of(page, member, list, method)]

    async def pages(
        self,
        method: str,
        params: Mapping[str, Any],
        timeout: float | None = None,  # noqa: ASYNC109 - `send` cancels the request at the server, too
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the results of a list, one for each page. A cursor that the server has sent before ends the list."""
        cursors: list[object] = []
        last: dict[str, Any] | None = None
        for _ in range(_MAX_PAGES):
            result = await self.send_checked(method, params, self.seconds(timeout))
            cursor = result.get("nextCursor")
            if cursor is not None and cursor in cursors:
                _logger.warning("The end of %s is left out: the cursor %s repeats.", method, one_line(cursor, 80))
                if result != last:
                    yield result
                return
            yield result
            if cursor is None:
                return
            cursors.append(cursor)
            last = result
            params = {**params, "cursor": cursor}
        raise InvalidResponseError(f"{method} has more than {_MAX_PAGES} pages.")

    async def tool(self, name: object) -> Tool | None:
        """Return the definition of a tool. None if the server's list does not have it.

        The list is requested once, and again after ``notifications/tools/list_changed``.
        """
        if self._tools is None:
            self.remember_tools(objects_of(await self.list_items("tools/list", FEATURE_LISTS["tools/list"]), Tool))
        return (self._tools or {}).get(str(name))

    def remember_tools(self, tools: Iterable[Tool]) -> None:
        """Use these definitions of all tools for later calls."""
        self._tools = {str(tool.get("name")): tool for tool in tools}
        self._mirrored = {}

    def forget_tools(self) -> None:
        """Request the list of tools again before the next call that needs it."""
        self._tools = None
        self._mirrored = {}

    async def set_log_level(self, level: str) -> None:
        """Ask for log messages of this level and more severe ones."""
        if not self.revision.per_request:
            await self.send("logging/setLevel", {"level": level}, self._timeout)
        self._log_level = level

    def usable_tools(self, tools: Sequence[Tool]) -> list[Tool]:
        """Return the tools without those whose arguments cannot be repeated in headers, if calls have to repeat them.

        Source: 2026-07-28 "server/tools, x-mcp-header": clients over HTTP MUST reject such a definition.
        """
        if not self.repeats_arguments:
            return list(tools)
        usable = []
        for tool in tools:
            problem = _header_problem(tool)
            if problem is None:
                usable.append(tool)
                continue
            name = one_line(tool.get("name"), 100)
            text = "The client leaves out the tool %s, whose definition is not valid: %s"
            self._left_out.write(name, text, name, problem)
        return usable

    @property
    def repeats_arguments(self) -> bool:
        """Whether a call repeats arguments in headers."""
        return self.revision.per_request and self._transport.is_http

    async def _send_once(
        self, method: str, params: Mapping[str, Any], seconds: float | None, options: _Options = _NO_OPTIONS
    ) -> dict[str, Any]:
        """Send a request and return its result. Cancel it at the server if the caller stops waiting."""
        headers = await self._request_headers(method, params, options.mirrored)
        meta = trace_context()
        if self.revision.per_request:
            meta |= {**params.get("_meta", {}), **self._envelope()}
            if options.envelope is not None:
                meta |= options.envelope
        elif meta:
            meta |= params.get("_meta", {})
        if meta:
            params = {**params, "_meta": meta}
        request_id = self.next_id() if options.request_id is None else options.request_id
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": dict(params)}
        scope = asyncio.timeout(seconds)
        try:
            async with scope:
                with self._time_limit(params, scope, seconds):
                    response = await self._transport.request(message, headers)
        except TimeoutError:
            if seconds is None or not scope.expired():
                raise
            await self._cancel(request_id, method, f"no response within {seconds_text(seconds)}")
            raise RequestTimeoutError(f"{method} got no response within {seconds_text(seconds)} (timeout=).") from None
        except asyncio.CancelledError:
            await self._cancel(request_id, method, "the caller stopped waiting")
            raise
        return result_of(response, method)

    @contextmanager
    def _time_limit(self, params: Mapping[str, Any], scope: asyncio.Timeout, seconds: float | None) -> Iterator[None]:
        """Register the time limit of a request while it runs, for `restart_time`."""
        token = (params.get("_meta") or {}).get("progressToken")
        if seconds is None or not isinstance(token, str | int):
            yield
            return
        self._time_limits[token] = scope, seconds
        try:
            yield
        finally:
            del self._time_limits[token]

    def restart_time(self, token: str | int) -> None:
        """Begin the seconds of the request with a progress token again, if it runs."""
        scope, seconds = self._time_limits.get(token, (None, 0.0))
        if scope is not None and not scope.expired():
            scope.reschedule(asyncio.get_running_loop().time() + seconds)

    async def _start_session(self) -> None:
        """Start a new session, unless another request has already done so.

        Source: 2025-11-25 "basic/transports, Session Management": after a 404 the client MUST start a new session by
        sending a new InitializeRequest without a session id.
        """
        async with self._starting_session:
            if self._session_has_ended:
                try:
                    await self._initialize()
                except MCPError as error:
                    if error.code not in NO_HANDSHAKE:
                        raise
                    raise SessionEndedError from error  # it may be another version of the server now

    async def _cancel(self, request_id: int, method: str, reason: str) -> None:
        """Cancel a request at the server. In the per-request era, closing its HTTP response has already done so."""
        if method == "initialize" or (self.revision.per_request and self._transport.is_http):
            return
        with suppress(ClientError, TimeoutError):
            async with asyncio.timeout(_CANCEL_SECONDS):
                await self.notify("notifications/cancelled", {"requestId": request_id, "reason": reason})

    async def _receive(self, message: dict[str, Any]) -> None:
        """Handle a notification or a request of the server. Exceptions of callbacks propagate."""
        if "id" not in message:
            if message["method"] == "notifications/tools/list_changed":
                self.forget_tools()
            if message["method"] == "notifications/cancelled":
                self._stop_answering(message)
            handling = self._on_notification(message)
            if handling is not None:
                await handling
        elif self.answers.in_background:
            await self._answer_in_background(message)
        else:
            await self._answer(message, self.answers.to(message))

    async def _answer_in_background(self, message: dict[str, Any]) -> None:
        """Answer a request of the server in a task of its own, so that the messages after it do not wait."""
        question_id = message["id"]
        if type(question_id) not in (str, int) or question_id in self._answering:
            await self._refuse(message, MCPError(INVALID_REQUEST, "The id is invalid, or in use."))
        elif len(self._answering) >= _MAX_ANSWERING:
            await self._refuse(message, MCPError(INTERNAL_ERROR, f"More than {_MAX_ANSWERING} requests are open."))
        else:
            task = asyncio.create_task(self._answer(message, self.answers.to(message)))
            self._answering[question_id] = task
            task.add_done_callback(partial(self._has_answered, question_id))

    def _has_answered(self, question_id: str | int, task: asyncio.Task[None]) -> None:
        """Remove the task of an answer. The server learns of a failure when it sends the next message."""
        del self._answering[question_id]
        if not task.cancelled():
            task.exception()

    def _stop_answering(self, message: Mapping[str, Any]) -> None:
        """Stop to answer the request that the server has cancelled."""
        params = message.get("params")
        question_id = params.get("requestId") if isinstance(params, dict) else None
        task = self._answering.get(question_id) if isinstance(question_id, str | int) else None
        if task is not None:
            task.cancel()

    async def _answer(self, message: dict[str, Any], answer: Awaitable[dict[str, Any]]) -> None:
        """Send the answer to a request of the server."""
        try:
            result = await answer
        except UndeclaredQuestionError:
            await self._refuse(message, MCPError(METHOD_NOT_FOUND, "The client does not have this method"))
        except MCPError as error:
            await self._refuse(message, error)
        except Exception:
            with suppress(ClientError):
                await self._refuse(message, MCPError(INTERNAL_ERROR, "The client failed to answer"))
            raise
        else:
            response = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            await self._transport.send(response, self._headers())

    async def _refuse(self, message: dict[str, Any], error: MCPError) -> None:
        """Answer a request of the server with an error."""
        response = {"jsonrpc": "2.0", "id": message["id"], "error": error.payload()}
        await self._transport.send(response, self._headers())

    def _envelope(self) -> dict[str, Any]:
        """Return the members of `_meta` that every request of the per-request era has."""
        declared = self.answers.capabilities
        members: dict[str, Any] = {
            envelope.PROTOCOL_VERSION: self.date,
            envelope.CLIENT_CAPABILITIES: {**declared, "extensions": {EXTENSION: {}, **declared.get("extensions", {})}},
            envelope.CLIENT_INFO: self._client_info,
        }
        if self._log_level is not None:
            members[envelope.LOG_LEVEL] = self._log_level
        return members

    def _headers(self) -> dict[str, str]:
        """Return the header fields that every message but `initialize` has."""
        return {header_names.VERSION: self.revision.date}

    async def _request_headers(
        self, method: str, params: Mapping[str, Any], mirrored: tuple[MirroredParameter, ...] | None
    ) -> dict[str, str]:
        """Return the header fields of a request."""
        if method == "initialize":
            return {}
        fields = self._headers()
        if not self.repeats_arguments:
            return fields
        fields[header_names.METHOD] = header_names.encode_value(method)
        for header, value in repeated_members(method, params, self.date).items():
            fields[header] = header_names.encode_value(value)
        arguments = params.get("arguments")
        if method == "tools/call" and isinstance(arguments, dict):
            parameters = await self._mirrored_parameters(str(params.get("name"))) if mirrored is None else mirrored
            fields |= header_names.encode_mirrored(arguments, parameters)
            fields |= self._headers()  # the list of tools may have come in another revision
        return fields

    async def _mirrored_parameters(self, name: str) -> tuple[MirroredParameter, ...]:
        """Return the arguments of a tool that HTTP requests repeat in headers."""
        if name not in self._mirrored:
            tool = await self.tool(name)
            if tool is None:
                return ()
            self._mirrored[name] = ()
            with suppress(ValueError, InvalidResponseError):  # without a valid schema there is nothing to repeat
                self._mirrored[name] = header_names.mirrored_parameters(tool.input_schema)
        return self._mirrored[name]

    async def _negotiate(self) -> None:
        """Agree with the server on a revision."""
        if self._requested_revision is not None:
            self.date = self._requested_revision
            if self.revision.per_request:
                await self._discover(self._timeout)
            else:
                await self._initialize()
        elif not await self._agree_without_handshake():
            self.date = NEWEST_HANDSHAKE
            await self._handshake_or_discover()

    async def _handshake_or_discover(self) -> None:
        """Send ``initialize``, and ``server/discover`` again if the server refuses the handshake.

        A server that names the revisions that it supports gets ``initialize`` once more, in the newest shared one.

        A process that needs long to start may answer the first ``server/discover`` after the client has stopped waiting
        for it. A server of the official SDK then serves the revisions without a handshake only.
        """
        try:
            await self._initialize()
        except MCPError as error:
            date = _handshake_after(error, self.date)
            if date is not None:
                self.date = date
                await self._initialize()
                return
            if error.code != UNSUPPORTED_PROTOCOL_VERSION or self._transport.is_http:
                raise
            self.date = _shared_revision(_supported_by(error)) or newest(REVISIONS)
            try:
                await self._discover(self._timeout)
            except _OtherRevisionsError as other:
                if not await self._discover_in_one_of(other.supported):
                    raise

    async def _agree_without_handshake(self) -> bool:
        """Agree on a revision that has no handshake. Return False if the server may have one with a handshake."""
        self.date = newest(REVISIONS)
        seconds = self._timeout
        if not self._transport.is_http:
            seconds = _PROBE_SECONDS if seconds is None else min(seconds, _PROBE_SECONDS)
        try:
            await self._discover(seconds)
        except _OtherRevisionsError as error:
            return await self._discover_in_one_of(error.supported)
        except MCPError as error:
            if error.code in _KNOWS_PER_REQUEST:
                raise
            _refuse_other_revisions(_supported_by(error))
            return False
        except (InvalidResponseError, RequestTimeoutError):
            return False
        except ConnectionFailedError:
            if self._transport.is_http:
                raise
            await self._transport.aclose()  # an old server may exit when it receives an unknown method
            await self._transport.connect(self._receive)
            return False
        return True

    async def _discover_in_one_of(self, supported: Sequence[str]) -> bool:
        """Send ``server/discover`` in the newest revision of a server; return False if all of them have a handshake."""
        date = _shared_revision(supported)
        if date is None:
            _refuse_other_revisions(supported)
            return False
        self.date = date
        await self._discover(self._timeout)
        return True

    async def _discover(self, seconds: float | None) -> None:
        """Send ``server/discover``; raise _OtherRevisionsError if the server does not support the revision."""
        method = "server/discover"
        result = await self.send_checked(method, {}, seconds)
        supported = _dates_in(result.get("supportedVersions", [self.date]))
        if self.date not in supported:
            raise _OtherRevisionsError(self.date, supported)
        self.supported = supported
        meta = result.get("_meta")
        self._learn(result, meta.get(envelope.SERVER_INFO) if isinstance(meta, dict) else None, method)
        self._report_session()

    async def _initialize(self) -> None:
        """Start a session, or the only one on stdio, in a handshake revision."""
        method = "initialize"
        capabilities = dict(self.answers.capabilities)
        if "roots" in capabilities:
            capabilities["roots"] = {"listChanged": True}
        params = {"protocolVersion": self.date, "capabilities": capabilities, "clientInfo": self._client_info}
        result = await self._send_once(method, params, self._timeout)
        date = member_of(result, "protocolVersion", str, method)
        if date not in {*_HANDSHAKES, self.date}:
            raise InvalidResponseError(
                f"The server chose the revision {date!r:.50}, which this client does not support in a handshake. "
                f"The client supports: {_list_of(_HANDSHAKES)}."
            )
        self._learn(result, result.get("serverInfo"), method)
        self.date = date
        self._has_begun_session = self._has_begun_session or self.session_id is not None
        await self.notify("notifications/initialized")
        if self._log_level is not None and "logging" in self.capabilities:
            await self._send_once("logging/setLevel", {"level": self._log_level}, self._timeout)
        self._report_session()

    def _report_session(self) -> None:
        if self._on_session is not None:
            self._on_session()

    def _learn(self, result: dict[str, Any], server_info: object, method: str) -> None:
        """Store the server's capabilities, information and instructions from the first result."""
        capabilities = member_of(result, "capabilities", dict, method)
        if len(encode(capabilities)) > _MAX_CAPABILITIES or len(encode(result)) > _MAX_DESCRIPTION:
            raise InvalidResponseError(
                f"The server describes itself in the result of {method} with more than {_MAX_DESCRIPTION} bytes, or "
                f"has more than {_MAX_CAPABILITIES} bytes of capabilities."
            )
        self.capabilities = capabilities
        self.server_info = server_info if isinstance(server_info, dict) else {}
        instructions = result.get("instructions")
        self.instructions = instructions if isinstance(instructions, str) else None


def _header_problem(tool: Tool) -> str | None:
    """Return why the arguments of a tool cannot be repeated in headers; None if they can, or if there are none."""
    try:
        header_names.mirrored_parameters(tool.input_schema)
    except InvalidResponseError:
        return None
    except ValueError as error:
        return one_line(error)
    return None


def _supported_by(error: MCPError) -> list[str]:
    """Return the revisions that a server supports, as its error -32022 names them; none for another error.

    Source: 2026-07-28 "basic/versioning": a client that gets -32022 SHOULD retry with a revision of ``supported``.
    """
    if error.code != UNSUPPORTED_PROTOCOL_VERSION or not isinstance(error.data, dict):
        return []
    return _dates_in(error.data.get("supported"))


def _refuse_other_revisions(supported: Sequence[str]) -> None:
    """Raise InvalidResponseError if a server names the revisions that it supports, and the client supports none."""
    dates = released(REVISIONS)
    if supported and not any(date in dates for date in supported):
        raise InvalidResponseError(
            f"The server supports no revision of this client. It supports: {_list_of(supported)}. "
            f"The client supports: {_list_of(dates)}."
        )


def _handshake_after(error: MCPError, refused: str) -> str | None:
    """Return the newest handshake revision that a server names when it refuses another one, or None.

    The specification names the revisions in ``data.supported``. The official TypeScript SDK names them in the message.

    Source: 2025-11-25 "basic/lifecycle, Error Handling".
    """
    if error.code not in _REFUSES_REVISION:
        return None
    supported = _dates_in(error.data.get("supported")) if isinstance(error.data, dict) else []
    if not supported and "supported" in str(error):
        supported = _DATE.findall(str(error))
    return max((date for date in _HANDSHAKES if date in supported and date != refused), default=None)


def _list_of(dates: Iterable[str]) -> str:
    """Return revisions as text for an error."""
    return one_line(", ".join(dates)) or "none"


def _dates_in(value: object) -> list[str]:
    """Return the texts in a list of a server; none if it is not a list."""
    return [date for date in value if isinstance(date, str)] if isinstance(value, list) else []


def _shared_revision(supported: Sequence[str]) -> str | None:
    """Return the newest of these revisions that the client supports and that has no handshake, or None."""
    dates = [date for date in released(REVISIONS) if REVISIONS[date].per_request and date in supported]
    return dates[-1] if dates else None
