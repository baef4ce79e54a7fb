"""A two-way stream of JSON-RPC messages with one client, which stdio, WebSocket and HTTP+SSE have in common.

How it works: the transport calls `Connection.receive` with each message, and the connection calls `send`.

- *Eras.* A request whose ``_meta`` has a revision belongs to the per-request era, whatever came before. `initialize`
  begins the handshake era for all other requests: before it only `ping` is answered, afterwards `_client` is set.
- *Places.* At most `AT_ONCE` requests run at once; `_Call` has a place while it runs. Without a free place `receive`
  waits, so that the transport reads no further. A call releases its place while it waits for the client's response to
  a question, because that response has to be read; so does `subscriptions/listen`, which only waits.
- *Writing.* One message is sent at a time (`write`). A cancelled run does not interrupt the message that it sends. A
  client that does not read a message within `patience` seconds loses the connection.
- *End.* There are three steps. `end_of_input`: the client sends nothing more, so open questions fail and subscriptions
  end. `finish`: further requests are refused, and those under way get a time to be answered. `aclose`: everything is
  cancelled, and nothing more is sent.

Source: 2026-07-28 "basic/transports/stdio" and "basic/versioning, Backward Compatibility" (how a dual-era server
chooses); 2025-11-25 "basic/lifecycle" and "basic/utilities/cancellation"; 2025-03-26 "basic/index" (batches).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._protocol import envelope
from funcmcp._protocol.codec import InvalidJSONError, RepeatedNameError, decode, encode, memory_of, request_id_in
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, MCPError, ToolError
from funcmcp._protocol.jsonrpc import Malformed, Response
from funcmcp._protocol.replies import error_reply
from funcmcp._protocol.revisions import handshake_revision
from funcmcp._server.calls.channel import ClosedChannel
from funcmcp._server.calls.context import RequestContext, UserContext
from funcmcp._server.calls.route import RoutedRequest
from funcmcp._server.connections.cancellation import cancel_requested
from funcmcp._server.connections.client import ConnectedClient
from funcmcp._server.connections.conversation import Conversation
from funcmcp._server.handlers.lifecycle import negotiate
from funcmcp._server.run import Run, RunCancelledError
from funcmcp._transports.batch import BatchAnswer, read_batch, request_id_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from funcmcp._protocol.jsonrpc import Notification, RequestId
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.authorization import Guard
    from funcmcp._server.calls.context import HTTPRequestInfo
    from funcmcp._server.dispatch import Server

    Send = Callable[[bytes], Coroutine[Any, Any, None]]
    Pace = Callable[[int], Awaitable[None]]
    Deliver = Callable[[bytes | None], Awaitable[None]]

AT_ONCE = 64
"""Requests of one connection that run at once."""

_MAX_UNANSWERED = 1000
"""Requests without an answer, including those that wait for a place or for the client. Further ones are refused."""

_CLOSING_SECONDS = 1.0
"""Seconds within which cancelled calls have to end. Later they are abandoned."""

_CLOSED = ClosedChannel()


class Connection:
    """The server's end of a stream. An event loop must run when it is created.

    Args:
        server: Answers the requests.
        send: Sends one message. It is called for one message at a time, must not raise, and is cancelled only when the
            connection closes.
        at_once: The number of requests that run at once.
        patience: Seconds within which a message has to be sent; None without a limit.
        local: Whether the client is the process that started this one, which may do everything.

    Attributes:
        closed: Whether nothing more is sent.
        ended: Is set when the connection closes.
        places: The free places for requests.
    """

    def __init__(
        self,
        server: Server,
        send: Send,
        *,
        at_once: int = AT_ONCE,
        patience: float | None = None,
        local: bool = False,
    ) -> None:
        self.places = asyncio.Semaphore(at_once)
        self.closed = False
        self.ended = asyncio.Event()
        self._server = server
        self._guard = None if local else server.guard
        self._context_class = UserContext if local else RequestContext
        self._send = send
        self._patience = patience
        self._conversation = Conversation(pushes=True)
        self._newest_handshake = handshake_revision(server.revisions)
        self._client: ConnectedClient | None = None
        self._unanswered = 0
        self._waiting_for_place = 0
        self._calls: set[asyncio.Task[None]] = set()
        self._subscriptions: set[Run] = set()
        self._notifying: asyncio.Task[None] | None = None
        self._write_lock = asyncio.Lock()
        self._sending: asyncio.Task[None] | None = None
        self._has_input = True
        self._is_finishing = False

    async def receive(self, json_text: bytes, http: HTTPRequestInfo | None = None, *, pace: Pace | None = None) -> None:
        """Handle a message or a batch: start its requests, and return without waiting for their answers.

        Args:
            json_text: The text in UTF-8.
            http: The HTTP request that carried it; None without HTTP.
            pace: Waits until the client may send a number of messages, or raises LimitReachedError.
        """
        try:
            limits = self._server.options.limits
            value = decode(json_text, limits.message_depth, limits.message_values)
        except InvalidJSONError as error:
            await self.refuse(str(error), PARSE_ERROR, request_id_in(json_text, limits.message_values))
            return
        except RepeatedNameError as error:
            await self.refuse(str(error), INVALID_REQUEST, request_id_in(json_text, limits.message_values))
            return
        if type(value) is list:
            if pace is not None:
                await pace(len(value))
            await self._receive_batch(value, http)
        else:
            if pace is not None:
                await pace(1)
            await self._receive_message(value, memory_of(json_text), http)

    async def refuse(self, reason: str, code: int = INVALID_REQUEST, request_id: RequestId | None = None) -> None:
        """Send an error for data that is not a message, with its id if it has one."""
        await self.write(error_reply(MCPError(code, reason), request_id).body)

    async def push(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, unless the connection is closed."""
        await self.write(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def end_of_input(self) -> None:
        """Note that the client sends nothing more. Open questions fail, and subscriptions end."""
        self._fail_questions()
        for run in self._subscriptions:
            run.cancel()

    def _fail_questions(self) -> None:
        self._has_input = False
        self._conversation.abandon()

    async def finish(self, seconds: float) -> None:
        """Refuse further requests, and wait until those under way are answered, for at most *seconds*."""
        self._is_finishing = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._calls:
                    await asyncio.wait(self._calls)

    async def finish_with_server(self, *, answerable: bool) -> None:
        """Wait until the server shuts down, and then until the calls in flight are answered.

        Args:
            answerable: Whether the client can still respond to the questions of those calls.
        """
        with self._server.hub.listening(lambda _: False) as changes:
            async for _ in changes:
                pass
        if not answerable:
            self._fail_questions()
        await self.finish(self._server.drain.remaining())

    async def aclose(self) -> None:
        """Cancel everything that is under way, and send nothing more. Calls that ignore it are abandoned."""
        tasks = self._close()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSING_SECONDS)

    def _close(self) -> set[asyncio.Task[None]]:
        """Cancel everything that is under way, and return its tasks."""
        self._has_input, self._is_finishing, self.closed = False, True, True
        self.ended.set()
        for _ in range(self._waiting_for_place):
            self.places.release()  # `_begin` continues and drops the call, even if no running call ever ends
        tasks = set(self._calls)
        for task in (self._sending, self._notifying):
            if task is not None:
                tasks.add(task)
        for task in tasks:
            task.cancel()
        self._conversation.subscribed.close()
        if self._client is not None:
            self._server.client_ended(self._client)
        return tasks

    async def _receive_message(self, value: object, size: int, http: HTTPRequestInfo | None) -> None:
        message = self._server.read(value, size)
        if isinstance(message, RoutedRequest):
            if message.request.method == "initialize" and not envelope.carries_version(message.request.params):
                await self.write(await self._initialize(message, http))
            else:
                await self._begin(message, self._deliver, http)
        elif isinstance(message, Malformed):
            fault = MCPError(INVALID_REQUEST, message.reason)
            await self.write(error_reply(fault, request_id_of(message, value)).body)
        else:
            self._receive_unanswered(message, http)

    async def _receive_batch(self, values: list[object], http: HTTPRequestInfo | None) -> None:
        """Handle a batch. Its requests run concurrently, and their answers are one array."""
        try:
            members = read_batch(self._server, values, None if self._client is None else self._client.revision)
        except MCPError as error:
            await self.refuse(error.message)
            return
        count = sum(member.fault is not None or isinstance(member.message, RoutedRequest) for member in members)
        answer = BatchAnswer(count, self.write)
        for message, fault, request_id in members:
            if fault is not None:
                await answer.add(error_reply(fault, request_id).body)
            elif isinstance(message, RoutedRequest):
                await self._begin(message, answer.add, http)
            elif message is not None:
                self._receive_unanswered(message, http)

    def _receive_unanswered(self, message: Notification | Response, http: HTTPRequestInfo | None) -> None:
        """Handle a message that gets no answer. One without an effect is dropped."""
        self._server.notified(message, self._client, http)
        if isinstance(message, Response):
            self._conversation.answer(message)
        elif message.method == "notifications/cancelled":
            cancel_requested(self._conversation, message.params)

    async def _initialize(self, routed: RoutedRequest, http: HTTPRequestInfo | None) -> bytes:
        """Begin the handshake era, once, and return the answer."""
        try:
            if self._client is not None:
                raise MCPError(INVALID_REQUEST, "This connection is initialized already.")
            handshake = negotiate(routed.request.params, self._server.revisions)
            revision = self._server.revisions[handshake.revision]
            client = ConnectedClient(
                revision,
                handshake.capabilities,
                handshake.info,
                conversation=self._conversation,
                connection_id=os.urandom(16).hex(),
            )
            reply = await self._server.answer(self._context_class(routed, client, _CLOSED, http))
        except MCPError as error:
            return error_reply(error, routed.request.id).body
        if reply.error is None:
            self._client = client
            self._notifying = asyncio.create_task(self._send_changes())
        return reply.body

    async def _send_changes(self) -> None:
        """Send the client of the handshake era a notification for each change."""
        self._server.bus.start()
        missed = partial(self._server.changes_for, self._conversation)
        with self._server.hub.listening(self._conversation.wants, missed) as changes:
            async for change in changes:
                await self.push(change.method, change.params)

    async def _begin(self, routed: RoutedRequest, deliver: Deliver, http: HTTPRequestInfo | None) -> None:
        """Start a request in a task of its own, once there is a place for it."""
        request = routed.request
        refusal = self._refusal_of_request()
        if refusal is not None:
            await deliver(error_reply(refusal, request.id).body)
            return
        call = _Call(self, routed, deliver, http)
        self._conversation.begin(request.id, call.run)  # from now on the client can cancel it
        self._unanswered += 1
        self._waiting_for_place += 1
        try:
            await call.take_place()
        except asyncio.CancelledError:
            self._drop(call)
            raise
        finally:
            self._waiting_for_place -= 1
        if self.closed:
            self._drop(call)
            return
        task = asyncio.create_task(self._serve(call))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        if request.method == "subscriptions/listen":
            call.release_place()
            self._subscriptions.add(call.run)

    def _drop(self, call: _Call) -> None:
        """Forget a call that has not begun."""
        self._unanswered -= 1
        call.release_place()
        self._conversation.finish(call.request.id, call.run)

    def _refusal_of_request(self) -> MCPError | None:
        """Return the reason why no further request is accepted now, or None."""
        if self._is_finishing:
            return MCPError(INTERNAL_ERROR, "The server is about to end.")
        if self._unanswered >= _MAX_UNANSWERED:
            return MCPError(INTERNAL_ERROR, "Too many requests are under way; wait for their answers.")
        return None

    async def _serve(self, call: _Call) -> None:
        try:
            try:
                body = await self._answer(call)
            finally:
                self._unanswered -= 1
                call.close()
                self._subscriptions.discard(call.run)
                self._conversation.finish(call.request.id, call.run)
            await call.deliver(body)
        finally:
            call.release_place()

    async def _answer(self, call: _Call) -> bytes | None:
        """Return the answer to a request; None if the client cancelled it."""
        if call.run.cancelled:
            return None
        try:
            if self._server.provided is not None:
                principal = None if call.http is None else call.http.principal
                call.routed = await self._server.resolve(call.routed, principal, http=call.http)
            context = self._context(call)
            conversation = context.client.conversation
            if conversation is not None and conversation.rules is not None:
                context.routed = await self._server.resolve_in_session(context.routed, conversation.rules, call.http)
            work = self._server.answer(context) if self._guard is None else self._guarded(context, self._guard)
            return (await call.run.wait(work)).body
        except MCPError as error:
            return error_reply(error, call.request.id).body
        except RunCancelledError:
            return None

    async def _guarded(self, context: RequestContext, guard: Guard) -> Reply:
        """Answer a request if its caller may send it."""
        refusal = await guard.check(context.routed, context.principal)
        if refusal is not None:
            return error_reply(refusal.error(), context.request.id)
        return await self._server.answer(context)

    def _context(self, call: _Call) -> RequestContext:
        """Return the context of a request; raise MCPError if the request belongs to no era of the server."""
        params = call.request.params
        if envelope.carries_version(params) or self._newest_handshake is None:
            client = self._per_request_client(params)
        elif self._client is not None:
            client = self._client
        elif call.request.method == "ping":
            client = ConnectedClient(self._newest_handshake, {}, {})
        else:
            raise MCPError(
                INVALID_REQUEST,
                "Initialize first, or name a revision without a handshake in "
                f'"_meta" as "{envelope.PROTOCOL_VERSION}".',
            )
        return self._context_class(call.routed, client, call, http=call.http)

    def _per_request_client(self, params: dict[str, Any]) -> ConnectedClient:
        """Return the client that a request of the per-request era describes in ``_meta``; raise MCPError."""
        meta = envelope.read_meta(params)
        revision = self._server.revisions.get(meta[envelope.PROTOCOL_VERSION])
        if revision is None or not revision.per_request:
            raise envelope.unsupported_version(meta[envelope.PROTOCOL_VERSION], self._server.supported)
        return ConnectedClient(revision, meta[envelope.CLIENT_CAPABILITIES], meta.get(envelope.CLIENT_INFO, {}))

    async def _deliver(self, body: bytes | None) -> None:
        if body is not None:
            await self.write(body)

    async def write(self, data: bytes) -> None:
        """Send a message after those before it. It is sent as a whole, even if the run that sends it is cancelled."""
        async with self._write_lock:
            if self._sending is not None and not self._sending.done():
                await asyncio.wait({self._sending})
            if not self.closed:
                self._sending = asyncio.create_task(self._send(data))
                done, _ = await asyncio.wait({self._sending}, timeout=self._patience)
                if not done:
                    self._close()

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send requests to a client of the handshake era, and return its results by key; raise ToolError."""
        if not self._has_input:
            raise ToolError("The client can't be asked any more.")
        return await self._conversation.ask(questions, self.write)


class _Call:
    """A request that runs or waits for a place; the channel of its run."""

    __slots__ = ("_connection", "_has_place", "_open", "deliver", "http", "request", "routed", "run")
    pushes = True

    def __init__(
        self, connection: Connection, routed: RoutedRequest, deliver: Deliver, http: HTTPRequestInfo | None
    ) -> None:
        self.routed = routed
        self.request = routed.request
        self.deliver = deliver
        self.http = http
        self.run = Run()
        self._connection = connection
        self._open = True
        self._has_place = False

    async def take_place(self) -> None:
        """Wait for a place."""
        await self._connection.places.acquire()
        self._has_place = True

    def release_place(self) -> None:
        """Release the place, if the call has one."""
        if self._has_place:
            self._has_place = False
            self._connection.places.release()

    def close(self) -> None:
        """Send no further notification: the run has ended."""
        self._open = False

    def close_stream(self) -> None:
        """Do nothing: the connection is the only stream."""

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, unless the run has ended."""
        if self._open and not self.run.cancelled:
            await self._connection.push(method, params)

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send the questions as requests and wait for the client's responses, without a place."""
        self.release_place()
        try:
            answers = await self._connection.ask(questions)
        except ToolError:
            await self.take_place()
            raise
        await self.take_place()  # a cancelled run takes no place: it ends
        return answers
