"""The handshake era over HTTP: `initialize` begins a session, and later requests name it.

Source: "basic/transports" of 2025-03-26, 2025-06-18 and 2025-11-25; batches only in 2025-03-26.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp.auth.principal import owner_of
from funcmcp.protocol import headers
from funcmcp.protocol.codec import encode
from funcmcp.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, MCPError
from funcmcp.protocol.jsonrpc import Malformed, Notification, Response
from funcmcp.protocol.replies import Reply, error_reply
from funcmcp.protocol.revisions import ASSUMED
from funcmcp.server.calls.channel import ClosedChannel
from funcmcp.server.calls.context import RequestContext
from funcmcp.server.calls.route import RoutedRequest
from funcmcp.server.connections.client import Client
from funcmcp.server.connections.clients import Clients, SessionClient, part_of
from funcmcp.server.connections.conversation import Conversation
from funcmcp.server.connections.relay import Relay
from funcmcp.server.handlers.lifecycle import negotiate
from funcmcp.server.limits import LimitReachedError
from funcmcp.server.run import Run, RunCancelledError, Waiting, begin
from funcmcp.state.sessions.store import Handshake, NoSessions, SessionsFullError, SharedSessions, StoreAwayError
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import JSON_HEADERS, accepted, handshake_response, refuse
from funcmcp.transports.http.streams.remote_streams import Elsewhere
from funcmcp.transports.http.streams.request_stream import (
    STREAM_HEADERS,
    BufferedChannel,
    StreamChannel,
    event,
    stream_response,
)
from funcmcp.transports.http.streams.resumable import KeptStreams, ResumableChannel, Streams, resumable_response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Coroutine

    from funcmcp.protocol.jsonrpc import Request, RequestId
    from funcmcp.protocol.revisions import Revision
    from funcmcp.server.calls.route import RoutedBody
    from funcmcp.server.connections.hub import Change, Listener
    from funcmcp.server.dispatch import Server
    from funcmcp.state.sessions.store import SessionStore
    from funcmcp.transports.http.admission.header_checks import Entry
    from funcmcp.transports.http.messages import HttpRequest
    from funcmcp.transports.http.status import Accepts

_MAX_BATCH = 100
_OK = 200
_CLOSED = ClosedChannel()


class HandshakeEra:
    """Answers POSTs and DELETEs of the handshake era.

    Args:
        server: answers the requests.
        sessions: remembers what `initialize` agreed on. With `NoSessions` a request needs no `initialize` before it.
        optional: Serve requests without a session id as `NoSessions` does.
    """

    def __init__(self, server: Server, sessions: SessionStore, *, optional: bool = False) -> None:
        self._server = server
        self._sessions = sessions
        self._stateless = isinstance(sessions, NoSessions)
        self._optional = optional
        self._clients: Clients[_Client] = Clients()
        store = sessions if isinstance(sessions, SharedSessions) else None
        self._relay = Relay(server.bus, self._clients, store)
        self._elsewhere = None if store is None else Elsewhere(server.bus, server.hub, self._streams_of)
        self._kept_streams = KeptStreams()
        sessions.endings.append(self._clients.end)

    async def post(self, http: HttpRequest, message: RoutedBody, entry: Entry) -> HttpResponse:
        """Answer one POST whose body has been decoded, classified and routed."""
        if isinstance(message, RoutedRequest) and message.request.method == "initialize":
            return await self._initialize(http, message)
        if isinstance(message, Malformed):
            return refuse(400, INVALID_REQUEST, message.reason, request_id=message.id)
        if self._stateless or (self._optional and not _session_id(http)):
            client = self._client_without_session(entry, message)
        else:
            client = self._client(http, await self._sessions.get(_session_id(http)), entry, message)
        if isinstance(client, HttpResponse):
            return client
        if http.streams or not self._sessions.pushes:
            return await self._respond(http, message, entry, client)
        await self._server.bus.ready()
        await client.conversation.restore()
        client.listen()  # nothing but answers will ever reach it
        response = await self._respond(http, message, entry, client)
        return await self._with_news(response, client) if entry.accept.events else response

    async def _respond(
        self,
        http: HttpRequest,
        message: RoutedRequest | Notification | Response | list[Any],
        entry: Entry,
        client: _Client,
    ) -> HttpResponse:
        if not isinstance(message, RoutedRequest):
            return await self._other(http, message, client)
        context = RequestContext(message, client, _CLOSED, http)
        try:
            if entry.accept.events and message.interactive:
                return await self._stream(http, context, client)
            reply = begin(self._server.answer(context))
            if isinstance(reply, Waiting):
                reply = await _run(context, client.conversation, reply)
            return HttpResponse(200, JSON_HEADERS, reply.body)
        except RunCancelledError:
            return _cancelled(message.request, entry.accept)

    async def _with_news(self, response: HttpResponse, client: _Client) -> HttpResponse:
        """Put what a client is to be told before an answer, which then is a complete event stream."""
        body = response.body
        if not isinstance(body, bytes):
            body = b"".join([part async for part in body])
        whole = HttpResponse(response.status, response.headers, body)
        changes = client.news() if response.status == _OK and body else []
        if not changes:
            return whole
        self._relay.told(client, changes)
        told = b"".join(event(_told(change)) for change in changes)
        answer = event(body) if response.headers == JSON_HEADERS else body
        return HttpResponse(_OK, STREAM_HEADERS, told + answer)

    async def _stream(self, http: HttpRequest, context: RequestContext, client: _Client) -> HttpResponse:
        """Run a request that may send something before its answer."""
        await self._server.bus.ready()
        await client.conversation.restore()
        if not (self._sessions.pushes and http.streams):
            channel = StreamChannel(client.conversation) if http.streams else BufferedChannel()
            context.channel = channel
            work = _run(context, client.conversation, self._server.answer(context))
            return await stream_response(work, channel, respond=handshake_response)
        stream = client.streams.open()
        context.channel = resumable = ResumableChannel(client.conversation, stream)
        work = _run(context, client.conversation, self._server.answer(context))
        return await resumable_response(
            work,
            resumable,
            stream,
            respond=handshake_response,
            unused=partial(client.streams.forget, stream),
            finished=partial(client.streams.keep, stream),
        )

    async def get(self, http: HttpRequest, entry: Entry) -> HttpResponse:
        """Open the stream of what belongs to no request, or take another one up again."""
        session_id = _session_id(http)
        client = self._client(http, await self._sessions.get(session_id), entry)
        if isinstance(client, HttpResponse):
            return client
        self._server.load.streams.check(http.caller)
        await self._server.bus.ready()
        await client.conversation.restore()
        last_seen = http.fields.get(b"last-event-id", b"").decode("latin-1").strip(" \t")
        found, general = client.streams.find(last_seen), client.streams.general
        if found is None and self._elsewhere is not None:
            events = await self._elsewhere.follow(client.key, last_seen) if last_seen else None
            if events is not None:
                return self._open(http, events)
        if found is None and (general.is_read or (self._elsewhere and await self._elsewhere.is_read(client.key))):
            return refuse(409, INVALID_REQUEST, "This session has a stream already; end it, or resume it.")
        client.tell()
        if found is None:
            found = general, general.told
        return self._open(http, found[0].follow(found[1]))

    def _streams_of(self, key: str) -> Streams | None:
        client = self._clients.get(key)
        return None if client is None else client.streams

    def _open(self, http: HttpRequest, events: AsyncGenerator[bytes]) -> HttpResponse:
        return HttpResponse(200, STREAM_HEADERS, self._while_living(_session_id(http), events, http.caller))

    async def _while_living(
        self, session_id: str, events: AsyncGenerator[bytes], caller: str | None
    ) -> AsyncIterator[bytes]:
        """Yield events as long as the session lives; whoever listens keeps it alive."""
        with self._server.load.streams.counting(caller):
            async with aclosing(events):
                async for part in events:
                    if await self._is_over(session_id):
                        return
                    yield part

    async def _is_over(self, session_id: str) -> bool:
        """Tell whether a session has ended; while nobody knows, it has not."""
        try:
            return await self._sessions.get(session_id) is None
        except StoreAwayError:
            return False

    async def delete(self, http: HttpRequest, entry: Entry) -> HttpResponse:
        """End the session that the request names; raise LimitReachedError if that can't be remembered."""
        session_id = _session_id(http)
        client = self._client(http, await self._sessions.get(session_id), entry)
        if isinstance(client, HttpResponse):
            return client
        try:
            await self._sessions.end(session_id)
        except SessionsFullError as error:
            raise LimitReachedError("Too many sessions were ended; try again later.", error.retry_after) from None
        self._relay.end(session_id)
        return HttpResponse(204, ())

    async def _initialize(self, http: HttpRequest, routed: RoutedRequest) -> HttpResponse:
        request, owner = routed.request, owner_of(http.principal)
        try:
            handshake = negotiate(request.params, self._server.revisions, owner=owner)
        except MCPError as error:
            return handshake_response(error_reply(error, request.id))
        revision = self._server.revisions[handshake.revision]
        conversation = Conversation(pushes=self._sessions.pushes)
        client = Client(revision, handshake.capabilities, handshake.info, conversation=conversation)
        reply = await self._server.answer(RequestContext(routed, client, _CLOSED, http))
        if reply.error is not None or self._stateless:
            return handshake_response(reply)
        try:
            session_id = await self._sessions.create(handshake)
        except SessionsFullError as error:
            message = "Too many of your sessions; end one." if error.own else "Too many sessions; try again later."
            raise LimitReachedError(message, error.retry_after, own=error.own) from None
        return HttpResponse(200, (*JSON_HEADERS, (headers.SESSION_ID, session_id)), reply.body)

    def _client_without_session(self, entry: Entry, message: RoutedBody) -> _Client | HttpResponse:
        """Return a client for one request of a server without sessions, or the refusal of its revision."""
        served = [date for date, revision in self._server.revisions.items() if not revision.per_request]
        date = entry.version
        if date is None and served:  # before 2025-06-18 clients named their revision only in `initialize`
            date = ASSUMED if ASSUMED in served else max(served)
        if date not in served:
            reason = f"Use a revision of {', '.join(self._server.supported)}."
            request_id = _id_of(message)
            return refuse(400, INVALID_REQUEST, reason, request_id=request_id)
        return _Client(self._server.revisions[date], Handshake(date), "", None, kept_streams=self._kept_streams, key="")

    def _client(
        self, http: HttpRequest, handshake: Handshake | None, entry: Entry, message: RoutedBody | None = None
    ) -> _Client | HttpResponse:
        """Return the client of a session, or the refusal: 400 without an id, 404 for one that is over or another's."""
        session_id, owner = _session_id(http), owner_of(http.principal)
        is_theirs = handshake is None or handshake.owner is None or handshake.owner == owner
        revision = None if handshake is None or not is_theirs else self._server.revisions.get(handshake.revision)
        if handshake is not None and revision is not None and entry.known_version:
            key = session_id if handshake.owner == owner else part_of(session_id, owner)
            client = self._clients.get(key)
            if client is None:
                server = self._server if self._sessions.pushes else None
                client = _Client(revision, handshake, session_id, server, kept_streams=self._kept_streams, key=key)
                client.conversation.subscribed.charge_to(self._server.load.subscriptions, http.caller)
                self._relay.meet(client)
                self._clients.add(client)
            return client
        status, reason = 404, "There is no such session; initialize again."
        if not session_id:
            status, reason = 400, "The header Mcp-Session-Id is missing; initialize first."
        elif revision is not None:
            status, reason = 400, f"Use a revision of {', '.join(self._server.supported)}."
        elif is_theirs:
            self._clients.end(session_id)
        return refuse(status, INVALID_REQUEST, reason, request_id=_id_of(message))

    async def _other(
        self, http: HttpRequest, message: Notification | Response | list[Any], client: _Client
    ) -> HttpResponse:
        if isinstance(message, list):
            return await self._batch(http, message, client)
        if not client.session_id:  # it could only be about another request, which this one has nothing to do with
            return accepted()
        if not await self._relay.receive(message, client):
            return refuse(400, INVALID_REQUEST, "No question with this id is open.")
        return accepted()

    async def _batch(self, http: HttpRequest, values: list[object], client: _Client) -> HttpResponse:
        """Answer a batch: requests run side by side, and their answers come in one array."""
        if not client.revision.batches:
            return refuse(400, INVALID_REQUEST, "This protocol revision has no batches; send one message.")
        if not 0 < len(values) <= _MAX_BATCH:
            return refuse(400, INVALID_REQUEST, f"A batch has 1 to {_MAX_BATCH} messages.")
        messages: list[RoutedRequest | Notification | Response] = []
        for value in values:
            message = self._server.read(value)
            if isinstance(message, Malformed):
                return refuse(400, INVALID_REQUEST, message.reason)
            if isinstance(message, RoutedRequest) and message.request.method == "initialize":
                return refuse(400, INVALID_REQUEST, "initialize can't be part of a batch.")
            messages.append(message)
        work, is_taken = [], not client.session_id
        for message in messages:
            if isinstance(message, RoutedRequest):
                context = RequestContext(message, client, _CLOSED, http)
                work.append(_run(context, client.conversation, _in_batch(self._server, context)))
            elif client.session_id:
                is_taken = await self._relay.receive(message, client) or is_taken
        if not work:
            return accepted() if is_taken else refuse(400, INVALID_REQUEST, "No question with these ids is open.")
        bodies = _bodies(await asyncio.gather(*work, return_exceptions=True))
        return HttpResponse(200, JSON_HEADERS, b"[" + b",".join(bodies) + b"]") if bodies else accepted()


class _Client(SessionClient):
    """The client of a session, with its streams.

    Args:
        revision: that was agreed on.
        handshake: the rest that was agreed on.
        session_id: of the session.
        server: tells what changes; None where the client can't be told of it.
        kept_streams: The finished streams of all sessions.
        key: see `SessionClient`.
    """

    __slots__ = ("_changes", "_kept_streams", "_server", "_streams", "_telling")

    def __init__(
        self,
        revision: Revision,
        handshake: Handshake,
        session_id: str,
        server: Server | None,
        *,
        kept_streams: KeptStreams,
        key: str,
    ) -> None:
        super().__init__(revision, handshake, session_id, pushes=server is not None, key=key)
        self._server = server
        self._kept_streams = kept_streams
        self._streams: Streams | None = None
        self._changes: Listener | None = None
        self._telling: asyncio.Task[None] | None = None

    @property
    def streams(self) -> Streams:
        """Its streams, which most clients never have."""
        if self._streams is None:
            # No other instance of the server may take an event for one of its own.
            instance = "" if self._server is None else self._server.bus.instance
            self._streams = Streams(priming=self.revision.priming, prefix=instance, kept_streams=self._kept_streams)
        return self._streams

    @property
    def busy(self) -> bool:
        """Whether a run is under way, a question waits for its answer, or the client reads a stream."""
        return self.conversation.busy or (self._streams is not None and self._streams.are_read)

    def listen(self) -> None:
        """Begin to take note of changes, if that has not begun yet."""
        if self._changes is None and self._server is not None:
            missed = partial(self._server.changes_for, self.conversation)
            self._changes = self._server.hub.add(self.conversation.wants, missed)

    def tell(self) -> None:
        """Begin to put changes on the general stream, if that has not begun yet."""
        self.listen()
        if self._telling is None and self._changes is not None:
            self._telling = asyncio.create_task(self._tell(self._changes))

    def news(self) -> list[Change]:
        """Return the changes that the client has not been told of; it is told of them now."""
        return [] if self._changes is None else self._changes.take()

    def forget(self, change: Change) -> None:
        """Tell it a change no more: another instance has."""
        if self._changes is not None:
            self._changes.forget(change)

    def close(self) -> None:
        """Take note of nothing more, end the general stream, and keep nothing of the others."""
        if self._changes is not None and self._server is not None:
            self._server.hub.remove(self._changes)
        if self._telling is not None:
            self._telling.cancel()
        if self._streams is not None:
            self._streams.close()
        self.conversation.subscribed.close()

    async def _tell(self, changes: Listener) -> None:
        async for change in changes:
            self.streams.general.append(_told(change))
        self.streams.general.finish()


def _told(change: Change) -> bytes:
    return encode({"jsonrpc": "2.0", "method": change.method, "params": change.params})


def _bodies(replies: list[Reply | BaseException]) -> list[bytes]:
    """Return the answers to a batch's requests, without those that were cancelled; raise StoreAwayError."""
    for reply in replies:
        if isinstance(reply, StoreAwayError):
            raise reply
    return [reply.body for reply in replies if isinstance(reply, Reply)]


async def _in_batch(server: Server, context: RequestContext) -> Reply:
    """Answer one of several requests; the others are answered even if there is no room for this one."""
    try:
        return await server.answer(context)
    except LimitReachedError as error:
        return error_reply(error, context.request.id)


def _id_of(message: RoutedBody | None) -> RequestId | None:
    """Return the id of a request; None for other messages."""
    return message.request.id if isinstance(message, RoutedRequest) else None


def _session_id(http: HttpRequest) -> str:
    return http.fields.get(b"mcp-session-id", b"").decode("latin-1").strip(" \t")


def _run(
    context: RequestContext, conversation: Conversation, work: Coroutine[Any, Any, Reply] | Waiting[Reply]
) -> Coroutine[Any, Any, Reply]:
    """Enter a run in its conversation at once, and return what waits for its answer.

    Until that is there, the client can cancel the run or answer what it asks.
    """
    run = Run()
    conversation.begin(context.request.id, run)

    async def wait() -> Reply:
        try:
            return await run.wait(work)
        finally:
            conversation.finish(context.request.id, run)

    return wait()


def _cancelled(request: Request, accept: Accepts) -> HttpResponse:
    """Return what is left to say when the client has cancelled its request: nothing, where it takes an empty stream."""
    if accept.events:
        return HttpResponse(200, STREAM_HEADERS, b"")
    return refuse(200, INTERNAL_ERROR, "The request was cancelled.", request_id=request.id)
