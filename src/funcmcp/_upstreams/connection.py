"""One connection to an upstream: a session, or the connection to a server without sessions.

How it works: a `Link` is opened by its first request, once for all requests that wait for it, and again after the
connection has ended. While it is open it has a `Requests`. A request waits for the back-off of the upstream, is sent in
the asyncio task of its caller, and ends with its answer, with an error of the upstream, or with an `UpstreamError`. It
is sent again in two cases only, in which the upstream has not begun it: the session has expired (HTTP status 404), or
the process had ended before the request was written.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress
from contextvars import Context, ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from funcmcp._client.errors import (
    AuthenticationError,
    ConnectionFailedError,
    HTTPStatusError,
    SessionEndedError,
    TooLargeError,
)
from funcmcp._client.requests import Requests
from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import ClientError, MCPError
from funcmcp._server.calls.upstream_call import UpstreamCall
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._upstreams.auth import calling, present_caller
from funcmcp._upstreams.eras import HandshakeRefusedError
from funcmcp._upstreams.link_changes import LinkChanges
from funcmcp._upstreams.questions import UpstreamAnswers
from funcmcp._upstreams.running import RunningRequests
from funcmcp._upstreams.status import UpstreamError
from funcmcp._upstreams.time_limits import TimeLimit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

    from funcmcp._auth.principal import Principal
    from funcmcp._client.transport import Transport
    from funcmcp._protocol.headers import MirroredParameter
    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.calls.upstream_call import Around
    from funcmcp._upstreams.auth import Caller
    from funcmcp._upstreams.limits import UpstreamTimeouts
    from funcmcp._upstreams.link_changes import ChangeReceiver
    from funcmcp._upstreams.status import Health

_current_limit: ContextVar[TimeLimit | None] = ContextVar("funcmcp_upstream_time_limit", default=None)
"""The time limit of the request whose response the task reads."""


_STREAM_SECONDS = 1.0
"""Seconds that a request waits for the stream of its session. Some servers answer only with their first message."""

URL_ELICITATION_REQUIRED = -32042

_AWAY = frozenset({502, 503, 504})
"""HTTP statuses with which a proxy or a load balancer says that the server behind it is away."""


_REFUSED = frozenset({401, 403})
"""HTTP statuses with which a server refuses access, also without a challenge."""

_TOO_MANY_REQUESTS = 429


class LinkKey(NamedTuple):
    """Whose connection a link is. Two callers never share a session, unless they have the same key.

    Attributes:
        subject: The client's session or connection, a principal, an address, or a purpose of this server itself.
        owner: The mark of the principal; None for anonymous callers and for this server itself.
        capabilities: The declared ClientCapabilities, as JSON with sorted names.
    """

    subject: str
    owner: str | None = None
    capabilities: str = "{}"


class StoredSession(NamedTuple):
    """A session at an upstream, as the store has it.

    Attributes:
        session_id: The id that the upstream has given it.
        revision: The date of its revision.
        capabilities: The capabilities of the upstream.
        used: When an instance has noted its use, in seconds since 1970.
    """

    session_id: str
    revision: str
    capabilities: dict[str, Any]
    used: float


class NotedUse(NamedTuple):
    """The last note of this instance that it uses a session.

    Attributes:
        mark: The `StoredSession.used` that it has written. Another value is the note of another instance, whichever is
            greater: the clocks of two machines differ, and a clock may be set back.
        at: When that was, in monotonic seconds.
    """

    mark: float
    at: float


class LinkOwner(Protocol):
    """What a link needs of all connections to its upstream. `funcmcp._upstreams.links.Links` has it.

    Attributes:
        name: The name of the upstream.
        client_info: The Implementation that the upstream gets; None for that of funcmcp.
        health: Whether the upstream can be reached.
        timeouts: The time that requests may take.
        around: Is called around each request; None for nothing.
        on_message: Receives the notifications that belong to no request, and the link.
    """

    name: str
    client_info: Mapping[str, Any] | None
    health: Health
    timeouts: UpstreamTimeouts
    around: Around | None
    on_message: Callable[[Link, dict[str, Any]], None]

    @property
    def network_transport(self) -> str:
        """How requests are sent, in OpenTelemetry's words."""

    def close_soon(self, link: Link) -> None:
        """Close a link that served its only request."""

    def transport_of(self, link: Link) -> Transport:
        """Return a new transport for a link."""

    def revision_of(self, link: Link) -> str | None:
        """Return the revision of a new session, if it is known; None to ask the upstream."""

    def seconds_to_connect(self, link: Link) -> float | None:
        """Return the seconds that a link may take to open; None for no limit."""

    def opened(self, link: Link, requests: Requests) -> None:
        """Note the era of the upstream; raise HandshakeRefusedError if it has begun no session in its other era."""

    def refused(self, link: Link, error: Exception) -> bool:
        """Note the error of a link that could not be opened, and return whether the upstream refuses the handshake."""

    def forget_eras(self) -> None:
        """Ask the upstream for its revisions again, because it did not accept a connection."""

    def count_lists_as_changed(self, link: Link) -> None:
        """Count the lists that a link shows as possibly changed."""

    def log_error(self, error: BaseException) -> None:
        """Log an answer that is not valid, or a refusal, and note it in the status."""

    async def stored_session(self, link: Link) -> StoredSession | None:
        """Return the session that another instance has begun for the caller of a link; None if there is none."""

    async def store_session(self, link: Link, requests: Requests) -> StoredSession | None:
        """Store a new session for the other instances; return theirs if one of them was quicker."""

    async def replace_session(self, link: Link, requests: Requests) -> None:
        """Store the session that has taken the place of an expired one."""


class Link:
    """One connection to an upstream.

    Args:
        links: All connections to the upstream.
        key: Whose connection it is.
        capabilities: What is declared to the upstream when a session begins.
        caller: The caller whose share of the limits it uses; None for this server itself.
        principal: The principal of the caller.

    Attributes:
        key: Whose connection it is.
        client_capabilities: What is declared to the upstream when a session begins.
        principal: The principal of the caller, as of the last request.
        caller: The caller whose share of the limits it uses.
        used: When it was last used, in the seconds of the upstream's clock.
        noted: The last note in the store of state that this instance uses the session; None if there is none.
        running: The requests of clients that run over the connection, for the messages that belong to them.
        changes: Follows the changes of the upstream; None if another connection does that.
        is_single_use: Whether it is closed when it is not in use any more.
        idle_seconds: Seconds after which it is closed if it is not used; None for never.
        is_counted: Whether it counts for the limits. Those over which this server reads lists do not.
        ended: Whether it was closed, and opens no more.
    """

    def __init__(
        self,
        links: LinkOwner,
        key: LinkKey,
        *,
        capabilities: Mapping[str, Any],
        caller: str | None = None,
        principal: Principal | None = None,
    ) -> None:
        self.key = key
        self.running = RunningRequests(links.name, partial(links.on_message, self))
        self.client_capabilities = capabilities
        self.principal = principal
        self.caller = caller
        self.used = links.health.now()
        self.noted: NotedUse | None = None
        self._under_way = 0
        self.changes: LinkChanges | None = None
        self.is_single_use = False
        self.idle_seconds: float | None = None
        self.is_counted = True
        self.ended = False
        self._links = links
        self._requests: Requests | None = None
        self._new: Requests | None = None  # it may have no session yet
        self._transport: Transport | None = None
        self._session_id: str | None = None
        self._opening: asyncio.Task[Requests] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._limits: dict[str | int, TimeLimit] = {}
        self._stream: asyncio.Event | None = None  # of the present session
        self._needs_stream = False

    @property
    def name(self) -> str:
        """The name of the upstream."""
        return self._links.name

    @property
    def is_open(self) -> bool:
        """Whether the connection is open."""
        return self._requests is not None

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way or waits for the connection, or a resource is watched over it."""
        if self.changes is not None and self.changes.is_watching:
            return True
        return self._under_way > 0 or (self._opening is not None and not self._opening.done())

    @property
    def revision(self) -> Revision:
        """The revision that is used on the connection, which must be open."""
        return self._opened_requests.revision

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities of the upstream."""
        return self._opened_requests.capabilities

    @property
    def server_info(self) -> Mapping[str, Any]:
        """The upstream's Implementation; empty if it does not send one."""
        return self._opened_requests.server_info

    @property
    def instructions(self) -> str | None:
        """The upstream's instructions for the model."""
        return self._opened_requests.instructions

    @property
    def session_id(self) -> str | None:
        """The id of the session at the upstream; None without one."""
        return None if self._requests is None else self._requests.session_id

    @property
    def _is_for_lists(self) -> bool:
        return self.changes is not None or not self.is_counted

    @property
    def _opened_requests(self) -> Requests:
        if self._requests is None:
            raise RuntimeError("The link is not open. Call open() first.")
        return self._requests

    async def open(self) -> Requests:
        """Connect, unless that has happened, and return what sends requests; raise UpstreamError."""
        if self._requests is not None:
            return self._requests
        if self.ended:
            raise UpstreamError(f"The connection to the server {self._links.name!r} is closed, as this server stops.")
        if self._opening is None or self._opening.done():
            # It goes on if this request is cancelled, and so has no other context variables of it.
            caller = present_caller()
            self._opening = asyncio.create_task(self._connect_for(caller), context=Context())
            self._opening.add_done_callback(_retrieve)
        opening = self._opening
        await asyncio.wait({opening})
        if opening.cancelled():
            raise UpstreamError(f"The connection to the server {self._links.name!r} is closed, as this server stops.")
        return opening.result()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        envelope: Mapping[str, Any] | None = None,
        mirrored: tuple[MirroredParameter, ...] | None = None,
    ) -> dict[str, Any]:
        """Send a request in the task of the caller, and return its result.

        Args:
            method: The method.
            params: The params. A progress token in their `_meta` lets progress extend the time limit.
            envelope: Members of `_meta` in 2026-07-28, instead of those of this server.
            mirrored: The arguments of a tool that HTTP requests repeat in headers. None: those in the upstream's list.

        Raises:
            MCPError: The upstream has answered with an error.
            UpstreamError: The upstream did not answer.
        """
        options = {"envelope": envelope, "mirrored": mirrored}
        self.begin_use()
        try:
            around = self._links.around
            if around is None:
                return await self._send(method, params, options)
            return await around(self._call(method, params), lambda: self._send(method, params, options))
        finally:
            self.end_use()

    def begin_use(self) -> None:
        """Keep the connection open until `end_use` is called as often."""
        self._under_way += 1

    def end_use(self) -> None:
        """End a use of the connection, which is closed if it was the last one of a connection for one call."""
        self._under_way -= 1
        self.used = self._links.health.now()
        if self.is_single_use and not self._under_way:
            self._links.close_soon(self)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification, if the connection is open; raise UpstreamError."""
        if self._requests is None:
            return
        try:
            await self._requests.notify(method, params)
        except ClientError as error:
            raise self._failure(error, self._links.health.now()) from error

    async def list_items(self, method: str, member: str) -> list[Any]:
        """Return the items of a list, from all pages."""
        requests = await self.open()
        began = self._links.health.now()
        try:
            return await requests.list_items(method, member)
        except ClientError as error:
            raise self._failure(error, began) from error

    async def aclose(self, *, keep_session: bool = False) -> None:
        """Close the connection, also while it opens.

        Args:
            keep_session: Whether the session at the upstream goes on, because another instance may use it.
        """
        self.ended = True
        opening, self._opening = self._opening, None
        if opening is not None and not opening.done():
            opening.cancel()
            await asyncio.wait({opening})
        if keep_session and self._transport is not None:
            self._transport.session_id = None  # a transport without a session ends none
        self.disconnect()
        if self._closing is not None:
            await asyncio.wait({self._closing})

    def process_ended(self, reason: str) -> None:
        """Note that the process of an open connection has ended by itself."""
        if self._requests is not None:
            self._links.health.failed(reason, self._links.health.now())
            self.disconnect()

    def disconnect(self) -> None:
        """Begin to close the connection. The next one is opened when this one is closed, and its process has ended."""
        requests, self._requests = self._requests, None
        if requests is not None:
            self._links.health.sessions -= 1
            if self.changes is not None and not self.ended:
                self.changes.lost()
            self._closing = asyncio.create_task(self._close(requests), context=Context())

    async def _close(self, requests: Requests) -> None:
        if self.changes is not None:
            await self.changes.aclose()
        await requests.aclose()

    async def _connect_for(self, caller: Caller) -> Requests:
        with calling(caller.principal, caller.context):
            return await self._connect()

    async def _connect(self) -> Requests:
        """Open the connection: a new session, or one that another instance has begun."""
        links, health = self._links, self._links.health
        if self._closing is not None:
            await asyncio.wait({self._closing})
            self._closing = None
        await health.admit()
        began = health.now()
        seconds = links.seconds_to_connect(self)
        scope = asyncio.timeout(seconds)
        try:
            async with scope:
                requests = await self._new_requests()
        except TimeoutError as error:
            if not scope.expired():
                raise
            raise self._failure_in_time(error, seconds or 0, began) from error
        except StoreUnavailableError as error:
            links.log_error(error)
            raise UpstreamError(
                f"Nothing was sent to the server {links.name!r}, because the store of its sessions can't be used. "
                "Try again later."
            ) from error
        except (ClientError, MCPError) as error:
            if isinstance(error, MCPError) and error.code == URL_ELICITATION_REQUIRED:
                raise  # this server itself asks the user to connect an account
            raise self._failure_to_connect(error, began) from error
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            health.failed(f"{type(error).__name__}: {error}", began)
            raise health.away_error() from error
        health.reached()
        health.sessions += 1
        self.used = health.now()
        self._requests = requests
        return requests

    async def _new_requests(self) -> Requests:
        links = self._links
        transport = self._transport = links.transport_of(self)
        requests = Requests(
            transport,
            _TimedAnswers(self),
            revision=links.revision_of(self),
            log_level=None,
            timeout=None,
            on_notification=self._notified,
            on_session=self._session_began,
            client_info=links.client_info,
        )
        self._new, self._stream = requests, None
        try:
            stored = await links.stored_session(self)
            if stored is None:
                await requests.connect()
                stored = await links.store_session(self, requests)
                if stored is not None:  # another instance was quicker
                    await requests.aclose()
            if stored is not None:
                await requests.resume(stored.session_id, stored.revision, stored.capabilities)
            links.opened(self, requests)
        except BaseException:
            await self._close(requests)
            raise
        self._session_id = requests.session_id
        if not self._is_for_lists:  # what the upstream says about itself is read over the others
            requests.server_info, requests.instructions = {}, None
        return requests

    def follow_changes(self, receiver: ChangeReceiver) -> None:
        """Follow resources over the connection, too; the lists are followed over another one."""
        if self.changes is None and self._requests is not None:
            self.changes = LinkChanges(receiver, kinds=())
            self.changes.session_began(self._requests)

    async def open_stream(self) -> None:
        """Open the stream for what the upstream sends outside of responses, also for what belongs to a request.

        Servers of the official TypeScript SDK send most questions and log messages there. Without the stream these are
        lost, and the call that asks waits in vain.
        """
        self._needs_stream = True
        requests = await self.open()
        stream = self._stream
        if stream is None:
            stream = self._stream = requests.open_stream(None)
        if stream is None or stream.is_set():
            return
        try:
            async with asyncio.timeout(_STREAM_SECONDS):
                await stream.wait()
        except TimeoutError:
            stream.set()  # no other request waits for it

    def _session_began(self) -> None:
        self._stream = None
        if self._new is None:
            return
        if self.changes is not None:
            self.changes.session_began(self._new)
        if self._needs_stream:
            self._stream = self._new.open_stream(None)

    async def _send(self, method: str, params: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request; send it again if the process had ended before it was written."""
        try:
            return await self._send_once(method, params, options)
        except UpstreamError as error:
            cause = error.__cause__
            is_unsent = isinstance(cause, ConnectionFailedError) and not cause.was_sent
            if not is_unsent or self.is_http or self.is_open:
                raise
        return await self._send_once(method, params, options)

    async def _send_once(self, method: str, params: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        links, health = self._links, self._links.health
        requests = self._requests or await self.open()
        if health.has_failed:
            await health.admit()
        began = health.now()
        limit = TimeLimit(links.timeouts)
        token = _progress_token(params)
        key = id(limit) if token is None else token
        self._limits[key] = limit
        variable = _current_limit.set(limit)
        try:
            async with limit:
                result = await requests.send(method, params, None, **options)
        except TimeoutError as error:
            if not limit.is_over:
                raise
            raise UpstreamError(
                f"The server {links.name!r} {limit.reason}. The request was cancelled, and may have run there.",
                may_have_run=True,
            ) from error
        except MCPError:
            health.answered()
            raise
        except ClientError as error:
            raise self._failure_of_call(error, began) from error
        finally:
            _current_limit.reset(variable)
            self._limits.pop(key, None)
        health.answered()
        if requests.session_id != self._session_id:
            self._session_id = requests.session_id
            self.running.log_level = "info"  # of a new session
            await links.replace_session(self, requests)
        return result

    def _failure_in_time(self, error: TimeoutError, seconds: float, began: float) -> UpstreamError:
        """Return the error for clients whose requests were not sent, because the time to connect is over."""
        links = self._links
        if links.refused(self, error):
            return HandshakeRefusedError(links.name)
        limit = f"{seconds_text(seconds)} (UpstreamTimeouts.connect)"
        links.health.failed(f"it took more than {limit} to connect", began)
        return UpstreamError(
            f"The server {links.name!r} did not take a connection within {limit}, so nothing was sent to it. "
            "Try again later."
        )

    def _failure_to_connect(self, error: ClientError | MCPError, began: float) -> UpstreamError:
        """Return the error for clients whose requests were not sent, because no connection was possible."""
        links = self._links
        if isinstance(error, HandshakeRefusedError) or links.refused(self, error):
            return HandshakeRefusedError(links.name)
        if self.is_http or not isinstance(error, ConnectionFailedError):
            links.forget_eras()  # but not those of a program that ends when it starts
        failure = self._failure(error, began) if self._is_for_lists else self._failure_of_call(error, began)
        if not failure.may_have_run:
            return failure
        if links.health.is_away:
            return links.health.away_error()
        return UpstreamError(
            f"The server {links.name!r} did not take a connection: its answer is not valid. So nothing was sent to it. "
            "The log of this server has the reason."
        )

    def _failure_of_call(self, error: ClientError | MCPError, began: float) -> UpstreamError:
        """Return the error for clients. An endpoint that goes away may be back with other lists."""
        was_away = self._links.health.is_away
        failure = self._failure(error, began)
        if self.is_http and self._links.health.is_away and not was_away:
            self._links.count_lists_as_changed(self)
        return failure

    def _failure(self, error: ClientError | MCPError, began: float) -> UpstreamError:
        """Return the error for clients, note the reason for operators, and drop a connection that has ended."""
        links, name = self._links, self._links.name
        if isinstance(error, UpstreamError):
            return error
        if isinstance(error, ConnectionFailedError):
            return self._lost(error, began)
        if isinstance(error, HTTPStatusError) and error.status in _AWAY:
            links.health.failed(str(error), began)
            return UpstreamError(
                f"The server {name!r} does not answer now (HTTP status {error.status}). The request may have run: "
                "check its effect before you send it again.",
                may_have_run=True,
            )
        links.log_error(error)
        if isinstance(error, AuthenticationError):
            return UpstreamError(f"The server {name!r} does not accept the credentials of this server.")
        if isinstance(error, HTTPStatusError) and error.status in _REFUSED:
            return UpstreamError(f"The server {name!r} refuses access (HTTP status {error.status}).")
        if isinstance(error, HTTPStatusError) and error.status == _TOO_MANY_REQUESTS:
            return UpstreamError(f"The server {name!r} {_too_many(error.retry_after)}")
        if isinstance(error, SessionEndedError):
            return UpstreamError(f"The server {name!r} has ended the session twice. Try again later.")
        if isinstance(error, MCPError):
            return UpstreamError(f"The server {name!r} refuses the connection. The log of this server has the reason.")
        return UpstreamError(
            f"The server {name!r} sent an answer that is not valid. The request may have run there. The log of this "
            "server has the reason.",
            may_have_run=True,
        )

    def _lost(self, error: ConnectionFailedError, began: float) -> UpstreamError:
        """Return the error for clients whose answers have not arrived, or not completely."""
        links, name = self._links, self._links.name
        if isinstance(error, TooLargeError):
            links.log_error(error)
            return UpstreamError(
                f"The answer of the server {name!r} is larger than this server accepts. The request may have run "
                "there. Request less at once.",
                may_have_run=True,
            )
        links.health.failed(str(error), began)
        if not self.is_http or getattr(self._transport, "has_ended", False):
            self.disconnect()
        if not error.was_sent:
            return links.health.away_error()
        return UpstreamError(
            f"The connection to the server {name!r} ended before its answer. The request may have run there: check "
            "its effect before you send it again.",
            may_have_run=True,
        )

    @property
    def is_http(self) -> bool:
        """Whether the connection, which was opened before, is over HTTP."""
        return self._transport is not None and self._transport.is_http

    def _call(self, method: str, params: Mapping[str, Any]) -> UpstreamCall:
        revision = None if self._requests is None else self._requests.date
        return UpstreamCall(self._links.name, method, params, revision, self._links.network_transport)

    def _notified(self, message: dict[str, Any]) -> Awaitable[None] | None:
        """Extend the time limit of the request of a message, and pass the message on."""
        is_progress = message["method"] == "notifications/progress"
        limit = _current_limit.get()
        if is_progress:
            params = message.get("params")
            token = params.get("progressToken") if isinstance(params, dict) else None
            limit = self._limits.get(token, limit) if isinstance(token, str | int) else limit
        if limit is not None:
            limit.received(is_progress=is_progress)
        return self.running.notified(message)

    def limits_of_question(self) -> list[TimeLimit]:
        """Return the time limits of the request that the present task reads; on a shared stream those of all."""
        limit = _current_limit.get()
        return list(self._limits.values()) if limit is None else [limit]


class _TimedAnswers(UpstreamAnswers):
    """Answers the questions of an upstream. The time of the request that asks stops meanwhile."""

    def __init__(self, link: Link) -> None:
        super().__init__(link.running, link.client_capabilities)
        self._link = link

    def to(self, question: Mapping[str, Any]) -> Coroutine[Any, Any, dict[str, Any]]:
        """Return the coroutine that answers a question."""
        return self._timed(self._link.limits_of_question(), super().to(question))

    async def _timed(self, limits: Sequence[TimeLimit], answer: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        with ExitStack() as stack:
            for limit in limits:
                stack.enter_context(limit.answering())
            return await answer


def _progress_token(params: Mapping[str, Any]) -> str | int | None:
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, str | int) else None


def _too_many(seconds: float | None) -> str:
    """Return what an upstream does that has answered with status 429, and has not begun the request."""
    pause = "later" if seconds is None else f"in {seconds:g} s"
    return f"gets too many requests (HTTP status 429), and did not run this one. Try again {pause}."


def _retrieve(task: asyncio.Task[Requests]) -> None:
    """Retrieve the exception of a task, for which nothing may wait any more."""
    with suppress(asyncio.CancelledError):
        task.exception()
