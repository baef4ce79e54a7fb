"""The handshake era over HTTP: `initialize` creates a session, and later requests carry its id.

How it works: `HandshakeEra` keeps a `HandshakeClient` for each session in memory (`Clients`). If that was dropped, it
creates another one from the session store. A response has one of four forms:

- Plain JSON, if the client does not accept event streams or the request can't send messages.
- A resumable stream, if sessions are live (`LiveSessions`) and the platform supports streaming.
- A stream that ends with its connection, if sessions are not live and the platform supports streaming.
- A complete stream, if the platform sends only complete bodies. With live sessions, the stream begins with the changes
  that have not been sent to the client yet.

In the last three cases the response is plain JSON, too, if the server sends no message before the result. Where the
platform supports streaming, a response that is not known after `sse.KEEP_ALIVE_SECONDS` begins as a stream in all four
cases (`early_response`). A stream of a live session can then be resumed, if the revision has an event for that.

Source: "basic/transports" of 2025-03-26, 2025-06-18 and 2025-11-25; batches only in 2025-03-26.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._auth.owner import address_mark, owner_of
from funcmcp._protocol import headers
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, MCPError
from funcmcp._protocol.jsonrpc import Malformed, Notification, Response
from funcmcp._protocol.replies import Reply, error_reply
from funcmcp._protocol.revisions import ASSUMED, NEWEST_OF_AZURE, handshake_revision
from funcmcp._server.calls.alarms import Alarms
from funcmcp._server.calls.channel import ClosedChannel
from funcmcp._server.calls.context import RequestContext, alarms_of
from funcmcp._server.calls.route import RoutedRequest
from funcmcp._server.connections.client import ConnectedClient
from funcmcp._server.connections.conversation import Conversation
from funcmcp._server.connections.relay import Relay
from funcmcp._server.connections.session_clients import Clients
from funcmcp._server.handlers.lifecycle import negotiate
from funcmcp._server.limits import LimitReachedError
from funcmcp._server.run import Run, RunCancelledError, Waiting
from funcmcp._state.line_limit import LineLimit
from funcmcp._state.sessions.store import (
    Handshake,
    LiveSessions,
    LocalSessions,
    NoSessions,
    SessionKey,
    SessionsFullError,
    SharedSessions,
    StoreUnavailableError,
)
from funcmcp._transports.batch import read_batch
from funcmcp._transports.http.admission.caller import address_for_log
from funcmcp._transports.http.endpoints.handshake_client import HandshakeClient, notification_of
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import JSON_HEADERS, accepted, handshake_response, refuse, unanswered
from funcmcp._transports.http.streams import sse
from funcmcp._transports.http.streams.early_response import commenting
from funcmcp._transports.http.streams.remote_streams import RemoteStreams
from funcmcp._transports.http.streams.request_stream import BufferedChannel, StreamChannel, stream_response
from funcmcp._transports.http.streams.resumable import (
    FinishedStreams,
    Position,
    ResumableChannel,
    SessionStreams,
    resumable_if_silent,
    resumable_response,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Coroutine

    from funcmcp._protocol.jsonrpc import Request, RequestId
    from funcmcp._server.calls.route import RoutedBody
    from funcmcp._server.dispatch import Server
    from funcmcp._state.sessions.store import SessionStore
    from funcmcp._transports.http.endpoints.streamable_headers import CheckedHeaders
    from funcmcp._transports.http.messages import HttpRequest
    from funcmcp._transports.http.status import Accepts

_OK = 200
_CLOSED = ClosedChannel()
_ANONYMOUS = SessionKey("")


class HandshakeEra:
    """Responds to the requests of the handshake era.

    Args:
        server: The server that handles the messages.
        sessions: The session store. With `NoSessions`, clients may send requests without `initialize`.
        require_session: Whether requests without a session id are rejected. If not, each is served by itself, as by
            Azure's MCP extension.
    """

    def __init__(self, server: Server, sessions: SessionStore, *, require_session: bool = True) -> None:
        self._server = server
        self._sessions = sessions
        self._is_stateless = isinstance(sessions, NoSessions)
        self._require_session = require_session
        self._assumed = ASSUMED if require_session else NEWEST_OF_AZURE
        self._is_live = isinstance(sessions, LiveSessions)
        self._clients: Clients[HandshakeClient] = Clients(on_end=server.client_ended)
        self._finished_streams = FinishedStreams(memory=server.load.memory)
        store = None
        self._remote_streams = None
        if isinstance(sessions, SharedSessions):
            store = sessions
            self._remote_streams = RemoteStreams(server.bus, server.hub, self._streams_of)
        self._relay = Relay(server.bus, self._clients, store)
        sessions.endings.append(self._clients.end)
        if isinstance(sessions, LocalSessions):
            sessions.is_busy = self._clients.is_busy
        self._refused = LineLimit()

    async def post(self, http: HttpRequest, message: RoutedBody, checked: CheckedHeaders) -> HttpResponse:
        """Respond to a POST whose body has been decoded and routed."""
        if isinstance(message, RoutedRequest) and message.request.method == "initialize":
            return await self._initialize(http, message)
        if isinstance(message, Malformed):
            return refuse(400, INVALID_REQUEST, message.reason, request_id=message.id)
        session_id = _session_id(http)
        if self._is_stateless or (not self._require_session and not session_id):
            client = self._client_without_session(checked, message)
        else:
            handshake = await self._sessions.get(session_id)
            client = self._client(http, session_id, handshake, checked, message)
        if isinstance(client, HttpResponse):
            return client
        reports_changes = self._is_live and not http.can_stream
        if reports_changes:
            await self._server.bus.ready()
            await client.conversation.restore()
            client.listen()
        if isinstance(message, RoutedRequest):
            response = await self._respond(http, message, checked, client)
        else:
            response = await self._other(http, message, checked, client)
        if reports_changes and checked.accept.events:
            return await self._with_changes(response, client)
        return response

    async def _respond(
        self, http: HttpRequest, message: RoutedRequest, checked: CheckedHeaders, client: HandshakeClient
    ) -> HttpResponse:
        if client.conversation.rules is not None:
            message = await self._server.resolve_in_session(message, client.conversation.rules, http)
        context = RequestContext(message, client, _CLOSED, http)
        try:
            if checked.accept.events and message.interactive:
                return await self._stream(http, context, client)
            reply = self._server.begin(context)
            if isinstance(reply, Waiting):
                work = _run(context, client.conversation, reply)
                alarms, request_id = alarms_of(context), message.request.id
                if self._is_live and client.revision.priming:
                    return await resumable_if_silent(
                        work, http, checked.accept, alarms, request_id=request_id, streams_of=lambda: client.streams
                    )
                reply = await commenting(work, http, checked.accept, alarms, ending=partial(sse.unanswered, request_id))
            return HttpResponse(200, JSON_HEADERS, reply.body)
        except RunCancelledError:
            return _cancelled(message.request, checked.accept)

    async def _with_changes(self, response: HttpResponse, client: HandshakeClient) -> HttpResponse:
        """Return the complete response, preceded by the changes that have not been sent to the client yet."""
        body = response.body
        if not isinstance(body, bytes):
            body = b"".join([part async for part in body])
        complete = HttpResponse(response.status, response.headers, body)
        if response.status != _OK or not body:
            return complete
        changes = client.take_changes()
        if not changes:
            return complete
        self._relay.reported(client, changes)
        events = [sse.event(notification_of(change)) for change in changes]
        events.append(sse.event(body) if response.headers == JSON_HEADERS else body)
        return sse.response(b"".join(events))

    async def _stream(self, http: HttpRequest, context: RequestContext, client: HandshakeClient) -> HttpResponse:
        """Run a request during which the server may send messages before the response."""
        await self._server.bus.ready()
        await client.conversation.restore()
        if self._is_live and http.can_stream:
            stream = client.streams.open()
            context.channel = resumable = ResumableChannel(client.conversation, stream)
            work = _run(context, client.conversation, self._server.answer(context))
            return await resumable_response(
                work, resumable, stream, client.streams, request_id=context.request.id, respond=handshake_response
            )
        channel = StreamChannel(client.conversation) if http.can_stream else BufferedChannel()
        context.channel = channel
        work = _run(context, client.conversation, self._server.answer(context))
        return await stream_response(work, channel, request_id=context.request.id, respond=handshake_response)

    async def get(self, http: HttpRequest, checked: CheckedHeaders) -> HttpResponse:
        """Open the general stream of a session, or resume one of its streams."""
        session_id = _session_id(http)
        client = self._client(http, session_id, await self._sessions.get(session_id), checked)
        if isinstance(client, HttpResponse):
            return client
        self._server.load.streams.check(http.caller)
        await self._server.bus.ready()
        await client.conversation.restore()
        last_event_id = http.fields.get(b"last-event-id", b"").decode("latin-1").strip(" \t")
        position = client.streams.find(last_event_id)
        if position is None:
            if last_event_id and self._remote_streams is not None:
                events = await self._remote_streams.follow(client.key, last_event_id)
                if events is not None:
                    return self._open(http, events)
            if await self._has_general_stream(client):
                return refuse(409, INVALID_REQUEST, "This session already has a GET stream. Close or resume it.")
        client.start_general_stream()
        if position is None:
            general = client.streams.general
            position = Position(general, general.last_sent)
        return self._open(http, position.follow())

    async def _has_general_stream(self, client: HandshakeClient) -> bool:
        """Return whether the client reads its general stream at this or another instance."""
        if client.streams.general.is_read:
            return True
        return self._remote_streams is not None and await self._remote_streams.is_read(client.key)

    def _streams_of(self, key: SessionKey) -> SessionStreams | None:
        client = self._clients.get(key)
        return None if client is None else client.streams

    def _open(self, http: HttpRequest, events: AsyncGenerator[bytes]) -> HttpResponse:
        return sse.response(self._until_session_ends(_session_id(http), events, http.caller))

    async def _until_session_ends(
        self, session_id: str, events: AsyncGenerator[bytes], caller: str | None
    ) -> AsyncIterator[bytes]:
        """Yield events until the session ends. A session does not expire while it has a stream."""
        with self._server.load.streams.counting(caller):
            async with aclosing(events):
                async for part in events:
                    if await self._has_ended(session_id):
                        return
                    yield part

    async def _has_ended(self, session_id: str) -> bool:
        """Return whether a session has ended; False if its store can't be reached."""
        try:
            return await self._sessions.get(session_id) is None
        except StoreUnavailableError:
            return False

    async def delete(self, http: HttpRequest, checked: CheckedHeaders) -> HttpResponse:
        """End the session that the request names; raise LimitReachedError if the end can't be recorded."""
        session_id = _session_id(http)
        client = self._client(http, session_id, await self._sessions.get(session_id), checked)
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
            handshake = negotiate(request.params, self._server.revisions, self._server.catalog.extensions, owner=owner)
        except MCPError as error:
            return handshake_response(error_reply(error, request.id))
        revision = self._server.revisions[handshake.revision]
        # Its response never begins early: the client needs the session id, which is in the header of the response.
        conversation = Conversation(pushes=self._is_live)
        client = ConnectedClient(revision, handshake.capabilities, handshake.info, conversation=conversation)
        reply = await self._server.answer(RequestContext(routed, client, _CLOSED, http))
        if reply.error is not None or self._is_stateless:
            return handshake_response(reply)
        try:
            session_id = await self._sessions.create(handshake._replace(address=address_mark(http.caller)))
        except SessionsFullError as error:
            reason, why = "Too many sessions; try again later.", "The store of sessions has no room"
            if error.is_owner_limit:
                reason, why = "Too many of your sessions; end one.", "The caller has as many sessions as one may have"
            self._log_refused_session(why, http)
            raise LimitReachedError(reason, error.retry_after, is_caller_limit=error.is_owner_limit) from None
        return HttpResponse(200, (*JSON_HEADERS, (headers.SESSION_ID, session_id)), reply.body)

    def _log_refused_session(self, why: str, http: HttpRequest) -> None:
        """Log that a session is refused, once in a minute."""
        store = type(self._sessions).__name__
        self._refused.write("%s (%s). The session of a client at %s is refused.", why, store, address_for_log(http))

    def _client_without_session(self, checked: CheckedHeaders, message: RoutedBody) -> HandshakeClient | HttpResponse:
        """Return a client for one request without a session, or the response that rejects its revision."""
        if checked.version is None:  # before 2025-06-18 clients named their revision only in `initialize`
            revision = handshake_revision(self._server.revisions, self._assumed)
        else:
            revision = self._server.revisions.get(checked.version)
        if revision is None or revision.per_request:
            return self._refuse_revision(message)
        handshake = Handshake(revision.date, {}, {})
        return HandshakeClient(revision, handshake, _ANONYMOUS, None, finished_streams=self._finished_streams)

    def _client(
        self,
        http: HttpRequest,
        session_id: str,
        handshake: Handshake | None,
        checked: CheckedHeaders,
        message: RoutedBody | None = None,
    ) -> HandshakeClient | HttpResponse:
        """Return the client of a session, or the response that rejects the request.

        The status is 400 if the session id is missing, and 404 if the session has ended or has another owner.
        """
        owner = None if http.principal is None else owner_of(http.principal)
        if not session_id:
            return _refuse(400, "The header Mcp-Session-Id is missing; initialize first.", message)
        if handshake is not None and handshake.owner is not None and handshake.owner != owner:
            return _refuse(404, _UNKNOWN_SESSION, message)
        revision = None if handshake is None else self._server.revisions.get(handshake.revision)
        if handshake is None or revision is None:
            self._clients.end(session_id)
            return _refuse(404, _UNKNOWN_SESSION, message)
        if not checked.is_supported:
            return self._refuse_revision(message)
        # The part of an anonymous session that belongs to a principal has a key of its own.
        key = (session_id, None if handshake.owner == owner else owner)
        client = self._clients.get(key)
        if client is None:
            client = HandshakeClient(
                revision,
                handshake,
                SessionKey(*key),
                self._server if self._is_live else None,
                finished_streams=self._finished_streams,
                caller=http.caller,
            )
            client.conversation.subscribed.charge_to(self._server.load.subscriptions, http.caller)
            self._relay.meet(client)
            self._clients.add(client)
        return client

    def _refuse_revision(self, message: RoutedBody | None) -> HttpResponse:
        return _refuse(400, f"Use a revision of {', '.join(self._server.supported)}.", message)

    async def _other(
        self,
        http: HttpRequest,
        message: Notification | Response | list[Any],
        checked: CheckedHeaders,
        client: HandshakeClient,
    ) -> HttpResponse:
        if isinstance(message, list):
            return await self._batch(http, message, checked, client)
        self._server.notified(message, client, http)
        if client.session_id is None:  # the message is about another request, which this server can't find
            return accepted()
        if not await self._relay.receive(message, client):
            return refuse(400, INVALID_REQUEST, "No question with this id is open.")
        return accepted()

    async def _batch(
        self, http: HttpRequest, values: list[object], checked: CheckedHeaders, client: HandshakeClient
    ) -> HttpResponse:
        """Respond to a batch. Its requests run concurrently, and their responses form one array."""
        try:
            members = read_batch(self._server, values, client.revision)
        except MCPError as error:
            return refuse(400, error.code, error.message)
        fault = next((member.fault for member in members if member.fault is not None), None)
        if fault is not None:
            return refuse(400, fault.code, fault.message)
        work = []
        request_ids = []
        has_effect = client.session_id is None
        for member in members:
            message = member.message
            if isinstance(message, RoutedRequest):
                routed = await self._server.resolve(message, http.principal, http=http)
                if client.conversation.rules is not None:
                    routed = await self._server.resolve_in_session(routed, client.conversation.rules, http)
                context = RequestContext(routed, client, _CLOSED, http)
                request_ids.append(message.request.id)
                work.append(_run(context, client.conversation, _in_batch(self._server, context)))
            elif message is not None and client.session_id is not None:
                self._server.notified(message, client, http)
                has_effect = await self._relay.receive(message, client) or has_effect
        if not work:
            return accepted() if has_effect else refuse(400, INVALID_REQUEST, "No question with these ids is open.")
        replies = asyncio.gather(*work, return_exceptions=True)
        ending = partial(_unanswered_batch, request_ids)
        bodies = _bodies(await commenting(replies, http, checked.accept, Alarms(), ending=ending))
        return HttpResponse(200, JSON_HEADERS, _array(bodies)) if bodies else accepted()


_UNKNOWN_SESSION = "There is no such session; initialize again."


def _refuse(status: int, reason: str, message: RoutedBody | None) -> HttpResponse:
    return refuse(status, INVALID_REQUEST, reason, request_id=_id_of(message))


def _id_of(message: RoutedBody | None) -> RequestId | None:
    """Return the id of a request; None for other messages."""
    return message.request.id if isinstance(message, RoutedRequest) else None


def _bodies(replies: list[Reply | BaseException]) -> list[bytes]:
    """Return the encoded responses of a batch, without cancelled requests; raise the first StoreUnavailableError."""
    for reply in replies:
        if isinstance(reply, StoreUnavailableError):
            raise reply
    return [reply.body for reply in replies if isinstance(reply, Reply)]


def _unanswered_batch(request_ids: list[RequestId]) -> bytes:
    """Return the last event of the response to a batch that has no answer yet when the server ends."""
    return sse.event(_array([unanswered(request_id) for request_id in request_ids]))


def _array(bodies: list[bytes]) -> bytes:
    return b"[" + b",".join(bodies) + b"]"


async def _in_batch(server: Server, context: RequestContext) -> Reply:
    """Return the response to one request of a batch. A reached limit fails this request alone."""
    try:
        return await server.answer(context)
    except LimitReachedError as error:
        return error_reply(error, context.request.id)


def _session_id(http: HttpRequest) -> str:
    return http.fields.get(b"mcp-session-id", b"").decode("latin-1").strip(" \t")


def _run(
    context: RequestContext, conversation: Conversation, work: Coroutine[Any, Any, Reply] | Waiting[Reply]
) -> Coroutine[Any, Any, Reply]:
    """Add a run to its conversation immediately, and return a coroutine that returns the response.

    Until the coroutine ends, the client can cancel the run and answer its questions.
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
    """Return the response to a cancelled request: an empty stream if the client accepts streams, else an error."""
    if accept.events:
        return sse.response(b"")
    return refuse(200, INTERNAL_ERROR, "The request was cancelled.", request_id=request.id)
