"""A two-way stream of JSON-RPC messages with one client: what stdio, WebSocket and HTTP+SSE have in common.

Both eras are served on one connection. A request that carries its revision in `_meta` is served by that alone;
`initialize` begins the handshake era for the others.

Source: 2026-07-28 "basic/transports/stdio" and "basic/versioning, Backward Compatibility" (how a dual-era server
chooses); 2025-11-25 "basic/lifecycle" and "basic/utilities/cancellation"; 2025-03-26 "basic/index" (batches).
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp.protocol import envelope
from funcmcp.protocol.codec import InvalidJSONError, RepeatedNameError, decode, encode
from funcmcp.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, MCPError, ToolError
from funcmcp.protocol.jsonrpc import Malformed, Response
from funcmcp.protocol.replies import error_reply
from funcmcp.server.calls.channel import ClosedChannel
from funcmcp.server.calls.context import RequestContext
from funcmcp.server.calls.route import RoutedRequest
from funcmcp.server.connections.client import Client
from funcmcp.server.connections.conversation import Conversation, cancel_requested
from funcmcp.server.handlers.lifecycle import negotiate
from funcmcp.server.run import Run, RunCancelledError
from funcmcp.transports.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from funcmcp.protocol.jsonrpc import Notification
    from funcmcp.protocol.replies import Reply
    from funcmcp.server.calls.context import HTTPRequestInfo
    from funcmcp.server.dispatch import Server
    from funcmcp.server.guard import Guard

    Send = Callable[[bytes], Coroutine[Any, Any, None]]
    Pace = Callable[[int], Awaitable[None]]
    Deliver = Callable[[bytes | None], Awaitable[None]]

AT_ONCE = 64
"""Requests of one connection that run at once."""

GRACE_SECONDS = 6.0
"""How long calls in flight may go on once the server is about to end."""

_MOST = 1000
"""Requests under way, with those that wait for their turn or for the client's answer; more are refused."""

_MAX_BATCH = 100
_CLOSING_SECONDS = 1.0
_CLOSED = ClosedChannel()


class Connection:
    """The server's end of a stream. Make it where an event loop runs.

    Args:
        server: answers the requests.
        send: sends one message. It is called for one message at a time, never raises, and is only cancelled
            by `aclose`.
        at_once: how many requests run at once. A further one waits in `receive`, so that whoever reads the stream
            stops reading; one that waits for the client's answer to a question does not count.
        patience: seconds that sending a message may take. A client that does not read it in this time is given up,
            with all that it asked for. None for a client that may take as long as it likes.
        local: whether the client is whoever started this process, who may do everything.

    Attributes:
        ended: set once nothing more is sent.
        closed: whether nothing more is sent, because of `aclose` or because the client was given up.
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
        self._server = server
        self._guard = None if local else server.guard
        self._send = send
        self._conversation = Conversation(pushes=True)
        self._client: Client | None = None
        self.places = asyncio.Semaphore(at_once)
        self._unanswered = 0
        self._queued = 0
        self._calls: set[asyncio.Task[None]] = set()
        self._listens: set[Run] = set()
        self._telling: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._sending: asyncio.Task[None] | None = None
        self._patience = patience
        self._listening = True
        self._ending = self.closed = False
        self.ended = asyncio.Event()

    async def receive(self, data: bytes, http: HTTPRequestInfo | None = None, *, pace: Pace | None = None) -> None:
        """Take one message, or a batch: start the work that it asks for, and return without waiting for its end.

        Args:
            data: the JSON text.
            http: the HTTP request that carried it, if any did.
            pace: waits until it is time for so many messages, or raises LimitReachedError.
        """
        try:
            limits = self._server.options.limits
            value = decode(data, limits.nesting, limits.message_values)
        except InvalidJSONError as error:
            await self.refuse(str(error), PARSE_ERROR)
        except RepeatedNameError as error:
            await self.refuse(str(error))
        else:
            if pace is not None:
                await pace(len(value) if type(value) is list else 1)
            await (self._batch(value, http) if type(value) is list else self._message(value, http))

    async def refuse(self, reason: str, code: int = INVALID_REQUEST) -> None:
        """Tell the client that what came was no message; the error has no id, for none could be read."""
        await self.write(error_reply(MCPError(code, reason), None).body)

    async def push(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, of a request or outside of any; it is dropped once the connection is closed."""
        await self.write(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def end_of_input(self) -> None:
        """Note that nothing more will come: questions to the client stay without an answer."""
        self._abandon()
        for listening in self._listens:
            listening.cancel()

    def _abandon(self) -> None:
        self._listening = False
        self._conversation.abandon()

    async def finish(self, seconds: float) -> None:
        """Refuse further requests, and wait for the answers of those under way, for at most so many seconds."""
        self._ending = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._calls:
                    await asyncio.wait(self._calls)

    async def finish_with_server(self, *, answerable: bool) -> None:
        """Wait until the server is about to end, and then for the calls in flight, for at most `GRACE_SECONDS`.

        Args:
            answerable: whether the client can still answer the questions of those calls.
        """
        with self._server.hub.listening(lambda _: False) as changes:
            async for _ in changes:
                pass
        if not answerable:
            self._abandon()
        await self.finish(GRACE_SECONDS)

    async def aclose(self) -> None:
        """Cancel what is under way, and send nothing more. Work that ignores it is left behind after a moment."""
        tasks = self._give_up()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSING_SECONDS)

    def _give_up(self) -> set[asyncio.Task[None]]:
        """Cancel what is under way, and return it."""
        self._listening, self._ending, self.closed = False, True, True
        self.ended.set()
        for _ in range(self._queued):
            self.places.release()  # `_begin` wakes up and drops them, even if no running call ever ends
        tasks = {*self._calls, *(task for task in (self._sending, self._telling) if task is not None)}
        for task in tasks:
            task.cancel()
        self._conversation.subscribed.close()
        return tasks

    async def _message(self, value: object, http: HTTPRequestInfo | None) -> None:
        message = self._server.read(value)
        if isinstance(message, RoutedRequest):
            if message.request.method == "initialize" and not envelope.carries_version(message.request.params):
                await self.write(await self._initialize(message, http))
            else:
                await self._begin(message, self._deliver, http)
        elif isinstance(message, Malformed):
            await self.write(_malformed(message, value))
        else:
            self._note(message)

    async def _batch(self, values: list[object], http: HTTPRequestInfo | None) -> None:
        """Take a batch: its requests run side by side, and their answers come in one array."""
        if self._client is None or not self._client.revision.batches:
            await self.refuse("This protocol revision has no batches; send one message.")
            return
        if not 0 < len(values) <= _MAX_BATCH:
            await self.refuse(f"A batch has 1 to {_MAX_BATCH} messages.")
            return
        messages = [self._server.read(value) for value in values]
        answers = Batch(sum(isinstance(message, RoutedRequest | Malformed) for message in messages), self.write)
        for message, value in zip(messages, values, strict=True):
            if isinstance(message, Malformed):
                await answers.add(_malformed(message, value))
            elif not isinstance(message, RoutedRequest):
                self._note(message)
            elif message.request.method == "initialize":
                fault = MCPError(INVALID_REQUEST, "initialize can't be part of a batch.")
                await answers.add(error_reply(fault, message.request.id).body)
            else:
                await self._begin(message, answers.add, http)

    def _note(self, message: Notification | Response) -> None:
        """Take a message that gets no answer; one that means nothing here is dropped."""
        if isinstance(message, Response):
            self._conversation.answer(message)
        elif message.method == "notifications/cancelled":
            cancel_requested(self._conversation, message.params)

    async def _initialize(self, routed: RoutedRequest, http: HTTPRequestInfo | None) -> bytes:
        """Agree on a revision with a client of the handshake era, once, and return the answer."""
        try:
            if self._client is not None:
                raise MCPError(INVALID_REQUEST, "This connection is initialized already.")
            handshake = negotiate(routed.request.params, self._server.revisions)
            revision = self._server.revisions[handshake.revision]
            client = Client(revision, handshake.capabilities, handshake.info, conversation=self._conversation)
            reply = await self._server.answer(RequestContext(routed, client, _CLOSED, http))
        except MCPError as error:
            return error_reply(error, routed.request.id).body
        if reply.error is None:
            self._client = client
            self._telling = asyncio.create_task(self._tell())
        return reply.body

    async def _tell(self) -> None:
        """Tell a client of the handshake era what changes."""
        self._server.bus.start()
        missed = partial(self._server.changes_for, self._conversation)
        with self._server.hub.listening(self._conversation.wants, missed) as changes:
            async for change in changes:
                await self.push(change.method, change.params)

    async def _begin(self, routed: RoutedRequest, deliver: Deliver, http: HTTPRequestInfo | None) -> None:
        """Start a request in a task of its own, when there is room for it."""
        request = routed.request
        refusal = self._overload()
        if refusal is not None:
            await deliver(error_reply(refusal, request.id).body)
            return
        call = _Call(self, routed, deliver, http)
        self._conversation.begin(request.id, call.run)  # from now on the client can cancel it
        self._unanswered += 1
        self._queued += 1
        try:
            await call.take_place()
        except asyncio.CancelledError:
            self._drop(call)
            raise
        finally:
            self._queued -= 1
        if self.closed:
            self._drop(call)
            return
        task = asyncio.create_task(self._serve(call))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        if request.method == "subscriptions/listen":  # it does nothing but wait
            call.leave_place()
            self._listens.add(call.run)

    def _drop(self, call: _Call) -> None:
        """Forget a call that has not begun."""
        self._unanswered -= 1
        call.leave_place()
        self._conversation.finish(call.request.id, call.run)

    def _overload(self) -> MCPError | None:
        if self._ending:
            return MCPError(INTERNAL_ERROR, "The server is about to end.")
        if self._unanswered >= _MOST:
            return MCPError(INTERNAL_ERROR, "Too many requests are under way; wait for their answers.")
        return None

    async def _serve(self, call: _Call) -> None:
        try:
            try:
                body = await self._answer(call)
            finally:
                self._unanswered -= 1
                call.close()
                self._listens.discard(call.run)
                self._conversation.finish(call.request.id, call.run)
            await call.deliver(body)
        finally:
            call.leave_place()

    async def _answer(self, call: _Call) -> bytes | None:
        """Return the answer to a request; None if the client cancelled it."""
        if call.run.cancelled:
            return None
        try:
            context = self._context(call)
            work = self._server.answer(context) if self._guard is None else self._guarded(context, self._guard)
            return (await call.run.wait(work)).body
        except MCPError as error:
            return error_reply(error, call.request.id).body
        except RunCancelledError:
            return None

    async def _guarded(self, context: RequestContext, guard: Guard) -> Reply:
        """Answer a request, unless it may not be run."""
        refusal = await guard.check(context.routed, context.principal)
        if refusal is not None:
            return error_reply(refusal.error(), context.request.id)
        return await self._server.answer(context)

    def _context(self, call: _Call) -> RequestContext:
        """Return a request's context; raise MCPError if it is of no revision that is spoken here."""
        server, request = self._server, call.request
        handshakes = [date for date, revision in server.revisions.items() if not revision.per_request]
        if envelope.carries_version(request.params) or not handshakes:
            meta = envelope.read_meta(request.params)
            revision = server.revisions.get(meta[envelope.PROTOCOL_VERSION])
            if revision is None or not revision.per_request:
                raise envelope.unsupported_version(meta[envelope.PROTOCOL_VERSION], server.supported)
            client = Client(revision, meta[envelope.CLIENT_CAPABILITIES], meta.get(envelope.CLIENT_INFO, {}))
            return RequestContext(call.routed, client, call, http=call.http)
        if self._client is not None:
            return RequestContext(call.routed, self._client, call, http=call.http)
        if request.method == "ping":
            return RequestContext(call.routed, Client(server.revisions[max(handshakes)], {}, {}), call, http=call.http)
        raise MCPError(
            INVALID_REQUEST,
            f'Initialize first, or name a revision without a handshake in "_meta" as "{envelope.PROTOCOL_VERSION}".',
        )

    async def _deliver(self, body: bytes | None) -> None:
        if body is not None:
            await self.write(body)

    async def write(self, data: bytes) -> None:
        """Send a message whole, after those before it; a run that is cancelled meanwhile does not tear it."""
        async with self._turn:
            if self._sending is not None and not self._sending.done():
                await asyncio.wait({self._sending})
            if not self.closed:
                self._sending = asyncio.create_task(self._send(data))
                done, _ = await asyncio.wait({self._sending}, timeout=self._patience)
                if not done:
                    self._give_up()

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send requests to a client of the handshake era, and return its results by key; raise ToolError."""
        if not self._listening:
            raise ToolError("The client can't be asked any more.")
        return await self._conversation.ask(questions, self.write)


class _Call:
    """One request under way: the channel of its run, and its place among those that run at once."""

    __slots__ = ("_connection", "_open", "_placed", "deliver", "http", "request", "routed", "run")
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
        self._placed = False

    async def take_place(self) -> None:
        """Wait for a place."""
        await self._connection.places.acquire()
        self._placed = True

    def leave_place(self) -> None:
        """Give the place to the next one, if it is still taken."""
        if self._placed:
            self._placed = False
            self._connection.places.release()

    def close(self) -> None:
        """Send nothing more: the run is over, or nobody wants what it says."""
        self._open = False

    def close_stream(self) -> None:
        """Do nothing: the connection is the only stream."""

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, unless the run is over."""
        if self._open and not self.run.cancelled:
            await self._connection.push(method, params)

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send the questions as requests and wait for the client's responses; others may run meanwhile."""
        self.leave_place()
        try:
            answers = await self._connection.ask(questions)
        except ToolError:
            await self.take_place()
            raise
        await self.take_place()
        return answers


def _malformed(message: Malformed, value: object) -> bytes:
    """Return the answer to what is no message. An id counts only where it may be that of a request."""
    request_id = message.id if isinstance(value, dict) and "method" in value else None
    return error_reply(MCPError(INVALID_REQUEST, message.reason), request_id).body
