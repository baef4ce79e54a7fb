"""The handshake era over HTTP: `initialize` begins a session, and later requests name it.

Source: "basic/transports" of 2025-03-26, 2025-06-18 and 2025-11-25; batches only in 2025-03-26.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp.protocol import headers
from funcmcp.protocol.codec import encode
from funcmcp.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, MCPError
from funcmcp.protocol.jsonrpc import Malformed, Notification, Request, Response, classify
from funcmcp.server.access import owner_of
from funcmcp.server.channel import ClosedChannel
from funcmcp.server.clients import Clients, SessionClient
from funcmcp.server.context import Context
from funcmcp.server.conversation import cancel_requested
from funcmcp.server.dispatch import Reply, error_reply, result_text
from funcmcp.server.handlers.lifecycle import initialize
from funcmcp.server.run import Run, RunCancelledError, Waiting, begin
from funcmcp.sessions.store import SessionsFullError
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.resumable import KeptStreams, ResumableChannel, Streams, resumable_response
from funcmcp.transports.http.status import JSON_HEADERS, accepted, handshake_response, refuse
from funcmcp.transports.http.stream import STREAM_HEADERS, StreamChannel, stream_response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Coroutine

    from funcmcp.protocol.jsonrpc import Body, Message
    from funcmcp.protocol.revisions import Revision
    from funcmcp.server.conversation import Conversation
    from funcmcp.server.dispatch import Server
    from funcmcp.server.hub import Hub, Listener
    from funcmcp.sessions.store import Handshake, SessionStore
    from funcmcp.transports.http.gate import Entry
    from funcmcp.transports.http.messages import HttpRequest
    from funcmcp.transports.http.status import Accepts

_MAX_BATCH = 100
_CLOSED = ClosedChannel()


class HandshakeEra:
    """Answers POSTs and DELETEs of the handshake era.

    Args:
        server: answers the requests.
        sessions: remembers what `initialize` agreed on.
    """

    def __init__(self, server: Server, sessions: SessionStore) -> None:
        self._server = server
        self._sessions = sessions
        self._clients: Clients[_Client] = Clients()
        self._kept = KeptStreams()
        sessions.endings.append(self._clients.end)

    async def post(self, http: HttpRequest, message: Body, entry: Entry) -> HttpResponse:
        """Answer one POST whose body has been decoded and classified."""
        if isinstance(message, Request) and message.method == "initialize":
            return await self._initialize(http, message)
        if isinstance(message, Malformed):
            return refuse(400, INVALID_REQUEST, message.reason, request_id=message.id)
        session_id = _session_id(http)
        client = self._client(http, await self._sessions.get(session_id), entry, message)
        if isinstance(client, HttpResponse):
            return client
        if not isinstance(message, Request):
            return await self._other(http, message, client)
        context = Context(message, client, _CLOSED, http)
        try:
            if entry.accept.events and self._server.is_interactive(message):
                return await self._stream(context, client)
            reply = begin(self._server.answer(context))
            if isinstance(reply, Waiting):
                reply = await _run(context, client.conversation, reply)
            return HttpResponse(200, JSON_HEADERS, reply.body)
        except RunCancelledError:
            return _cancelled(message, entry.accept)

    async def _stream(self, context: Context, client: _Client) -> HttpResponse:
        """Run a request that may send something before its answer."""
        if not self._sessions.pushes:
            context.channel = channel = StreamChannel(client.conversation)
            work = _run(context, client.conversation, self._server.answer(context))
            return await stream_response(work, channel, respond=handshake_response)
        stream = client.streams.open()
        context.channel = resumable = ResumableChannel(client.conversation, stream)
        work = _run(context, client.conversation, self._server.answer(context))
        finished = partial(self._kept.add, client.streams, stream)
        return await resumable_response(work, resumable, stream, respond=handshake_response, finished=finished)

    async def get(self, http: HttpRequest, entry: Entry) -> HttpResponse:
        """Open the stream of what belongs to no request, or take another one up again."""
        session_id = _session_id(http)
        client = self._client(http, await self._sessions.get(session_id), entry)
        if isinstance(client, HttpResponse):
            return client
        last_seen = http.fields.get(b"last-event-id", b"").decode("latin-1").strip(" \t")
        found = client.streams.find(last_seen)
        if found is None and client.streams.general.is_read:
            return refuse(409, INVALID_REQUEST, "This session has a stream already; end it, or resume it.")
        client.listen()
        if found is None:
            found = client.streams.general, client.streams.general.told
        return HttpResponse(200, STREAM_HEADERS, self._while_living(session_id, found[0].follow(found[1])))

    async def _while_living(self, session_id: str, events: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
        """Yield events as long as the session lives; whoever listens keeps it alive."""
        async with aclosing(events):
            async for part in events:
                if await self._sessions.get(session_id) is None:
                    return
                yield part

    async def delete(self, http: HttpRequest, entry: Entry) -> HttpResponse:
        """End the session that the request names."""
        session_id = _session_id(http)
        client = self._client(http, await self._sessions.get(session_id), entry)
        if isinstance(client, HttpResponse):
            return client
        await self._sessions.end(session_id)
        self._clients.end(session_id)
        return HttpResponse(204, ())

    async def _initialize(self, http: HttpRequest, request: Request) -> HttpResponse:
        owner = owner_of(http.principal)
        try:
            handshake, result = initialize(self._server, request.params, pushes=self._sessions.pushes, owner=owner)
            session_id = await self._sessions.create(handshake)
        except MCPError as error:
            return handshake_response(error_reply(error, request.id))
        except SessionsFullError as error:
            retry = (("retry-after", str(error.retry_after)),)
            return refuse(
                503, INTERNAL_ERROR, "Too many sessions; try again later.", request_id=request.id, headers=retry
            )
        body = result_text(request.id, encode(result))
        return HttpResponse(200, (*JSON_HEADERS, (headers.SESSION_ID, session_id)), body)

    def _client(
        self, http: HttpRequest, handshake: Handshake | None, entry: Entry, message: Body | None = None
    ) -> _Client | HttpResponse:
        """Return the client of a session, or the refusal: 400 without an id, 404 for one that is over or another's."""
        session_id, owner = _session_id(http), owner_of(http.principal)
        is_theirs = handshake is None or handshake.owner is None or handshake.owner == owner
        revision = None if handshake is None or not is_theirs else self._server.revisions.get(handshake.revision)
        if handshake is not None and revision is not None and entry.known_version:
            client = self._clients.get(session_id)
            if client is None:
                client = _Client(revision, handshake, session_id, self._server.hub if self._sessions.pushes else None)
                self._clients.add(client)
            return client if handshake.owner == owner else client.of(owner)
        status, reason = 404, "There is no such session; initialize again."
        if not session_id:
            status, reason = 400, "The header Mcp-Session-Id is missing; initialize first."
        elif revision is not None:
            status, reason = 400, f"Use a revision of {', '.join(self._server.supported)}."
        elif is_theirs:
            self._clients.end(session_id)
        return refuse(status, INVALID_REQUEST, reason, request_id=message.id if isinstance(message, Request) else None)

    async def _other(
        self, http: HttpRequest, message: Notification | Response | list[Any], client: _Client
    ) -> HttpResponse:
        if isinstance(message, list):
            return await self._batch(http, message, client)
        _receive(message, client.conversation)
        return accepted()

    async def _batch(self, http: HttpRequest, values: list[object], client: _Client) -> HttpResponse:
        """Answer a batch: requests run side by side, and their answers come in one array."""
        if not client.revision.batches:
            return refuse(400, INVALID_REQUEST, "This protocol revision has no batches; send one message.")
        if not 0 < len(values) <= _MAX_BATCH:
            return refuse(400, INVALID_REQUEST, f"A batch has 1 to {_MAX_BATCH} messages.")
        messages: list[Message] = []
        for value in values:
            message = classify(value)
            if isinstance(message, Malformed):
                return refuse(400, INVALID_REQUEST, message.reason)
            if isinstance(message, Request) and message.method == "initialize":
                return refuse(400, INVALID_REQUEST, "initialize can't be part of a batch.")
            messages.append(message)
        work = []
        for message in messages:
            if isinstance(message, Request):
                context = Context(message, client, _CLOSED, http)
                work.append(_run(context, client.conversation, self._server.answer(context)))
            else:
                _receive(message, client.conversation)
        if not work:
            return accepted()
        replies = await asyncio.gather(*work, return_exceptions=True)
        bodies = [reply.body for reply in replies if isinstance(reply, Reply)]
        return HttpResponse(200, JSON_HEADERS, b"[" + b",".join(bodies) + b"]") if bodies else accepted()


class _Client(SessionClient):
    """The client of a session, with its streams.

    Args:
        revision: that was agreed on.
        handshake: the rest that was agreed on.
        session_id: of the session.
        hub: where changes come from; None where the client can't be told of any.
    """

    __slots__ = ("_changes", "_handshake", "_hub", "_of", "_streams", "_telling")
    _changes: Listener

    def __init__(self, revision: Revision, handshake: Handshake, session_id: str, hub: Hub | None) -> None:
        super().__init__(revision, handshake, session_id, pushes=hub is not None)
        self._handshake = handshake
        self._hub = hub
        self._of: dict[str | None, _Client] = {}
        self._streams: Streams | None = None
        self._telling: asyncio.Task[None] | None = None

    def of(self, owner: str | None) -> _Client:
        """Return the client that a principal is in a session that nobody in particular began.

        It has runs, questions and streams of its own: whoever only knows the session's id gets none of them.
        """
        if owner not in self._of:
            self._of[owner] = _Client(self.revision, self._handshake, self.session_id, self._hub)
        return self._of[owner]

    @property
    def streams(self) -> Streams:
        """Its streams, which most clients never have."""
        if self._streams is None:
            self._streams = Streams(priming=self.revision.priming)
        return self._streams

    def listen(self) -> None:
        """Begin to put changes on the general stream, if that has not begun yet."""
        if self._telling is None and self._hub is not None:
            self._changes = self._hub.add(self.conversation.wants)
            self._telling = asyncio.create_task(self._tell(self._changes))

    def close(self) -> None:
        """End the general stream."""
        for client in self._of.values():
            client.close()
        if self._telling is not None and self._hub is not None:
            self._telling.cancel()
            self._hub.remove(self._changes)
            self.streams.general.finish()

    async def _tell(self, changes: Listener) -> None:
        async for change in changes:
            message = {"jsonrpc": "2.0", "method": change.method, "params": change.params}
            self.streams.general.append(encode(message))
        self.streams.general.finish()


def _session_id(http: HttpRequest) -> str:
    return http.fields.get(b"mcp-session-id", b"").decode("latin-1").strip(" \t")


def _run(
    context: Context, conversation: Conversation, work: Coroutine[Any, Any, Reply] | Waiting[Reply]
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


def _receive(message: Notification | Response, conversation: Conversation) -> None:
    """Take a message that gets no answer; one that means nothing here is dropped."""
    if isinstance(message, Response):
        conversation.answer(message)
    elif message.method == "notifications/cancelled":
        cancel_requested(conversation, message.params)


def _cancelled(request: Request, accept: Accepts) -> HttpResponse:
    """Return what is left to say when the client has cancelled its request: nothing, where it takes an empty stream."""
    if accept.events:
        return HttpResponse(200, STREAM_HEADERS, b"")
    return refuse(200, INTERNAL_ERROR, "The request was cancelled.", request_id=request.id)
