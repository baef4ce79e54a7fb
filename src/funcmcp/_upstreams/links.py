"""The connections to one upstream: which request uses which.

How it works: 2026-07-28 has no sessions, so one link carries the requests of all clients; with an identity for each
caller there is one link for each principal. In the handshake era there is a session for each session of a client
(`sessions="client"`), for each call, or one for all. Clients without sessions have one for each principal, and without
credentials for each connection or address. The capabilities of the client are declared when a session begins, so a
session also belongs to the capabilities.

An upstream that speaks both eras (`eras.py`) gets the requests of a client in the era of the client, because servers
ask their clients differently in each. Lists are read in 2026-07-28, in which one connection shows what each client
sees, and so the calls that are tasks are sent in it, too.

Everything that belongs to an event loop is in a `LoopLinks` and an HTTP pool of that loop: a server may run in several
loops, one after the other or at once. They are made by the first request, and closed when the loop's lifespan ends.
The `Health` of the upstream, and the number of its sessions, count for all loops.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from funcmcp._auth.owner import owner_of
from funcmcp._client.answers import Answers
from funcmcp._client.errors import AuthenticationError
from funcmcp._client.requests import Requests
from funcmcp._client.target_transports import check_kind, transport_for
from funcmcp._client.targets import HTTPEndpoint, StdioCommand
from funcmcp._client.transport import Transport
from funcmcp._protocol.errors import METHOD_NOT_FOUND, MCPError
from funcmcp._server.calls.upstream_call import around_all
from funcmcp._server.load import Budget, principal_caller
from funcmcp._server.log import quote
from funcmcp._state.line_limit import LineLimit
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._upstreams.auth import check_target, identify, transport_of
from funcmcp._upstreams.connection import Link, LinkKey
from funcmcp._upstreams.eras import FIRST_SESSION_SECONDS, Eras, HandshakeRefusedError
from funcmcp._upstreams.limits import UpstreamLimits, UpstreamTimeouts
from funcmcp._upstreams.link_changes import LinkChanges
from funcmcp._upstreams.questions import passable_capabilities
from funcmcp._upstreams.sessions import LoopLinks, StoredSessions
from funcmcp._upstreams.status import Health, StderrLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._auth.principal import Principal
    from funcmcp._client.http_exchange import HTTPTransport
    from funcmcp._client.stdio import StdioTransport
    from funcmcp._client.target_transports import Target
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.upstream_call import Around
    from funcmcp._server.connections.client import ConnectedClient
    from funcmcp._serving.composition import ServerRuntime
    from funcmcp._upstreams.auth import UpstreamAuth
    from funcmcp._upstreams.connection import StoredSession
    from funcmcp._upstreams.eras import Era
    from funcmcp._upstreams.link_changes import ChangeReceiver

    SessionMode: TypeAlias = Literal["client", "shared", "call"]

LINK_BYTES = 3 * 1024
"""Bytes of memory of a link that is not used."""

PROBE_SECONDS = 5.0
"""Seconds after which a link that was opened to read lists is closed."""

CHECK_SECONDS = 10.0
"""Seconds without a request after which a check of the readiness sends one."""

_BASE = "this server"
_CREDENTIALS = (
    "Pass valid credentials: HTTPEndpoint(url, headers=...) or Upstream(auth=...) in Python, --bearer, --header or "
    "--sign-in for funcmcp run."
)
_STORED = ("session ", "principal ", "address ")
"""What the subjects of links begin with whose sessions other instances can go on with."""


class Links:
    """The connections to one upstream, for all callers.

    Args:
        target: The server.
        on_message: Receives the notifications that belong to no request, and the link.
        changes: Receives the changes that the connections over which lists are read report.
        auth: Says who calls it; None for nobody.
        name: The name of the upstream.
        sessions: Which requests share a session.
        optional: Whether the server is ready without the upstream.
        timeouts: The time that requests may take.
        limits: The number of sessions.
        era: The only era that is used; None for that of each client.
        client_info: The Implementation that the upstream gets; None for that of funcmcp.

    Attributes:
        client_info: The Implementation that the upstream gets; None for that of funcmcp.
        name: The name of the upstream.
        health: Whether the upstream can be reached.
        timeouts: The time that requests may take.
        around: Is called around each request; None for nothing.
        on_message: Receives the notifications that belong to no request, and the link.
        changes: Receives the changes that the connections over which lists are read report.
    """

    def __init__(  # noqa: PLR0913 - keyword-only options of `Upstream`
        self,
        target: Target,
        *,
        on_message: Callable[[Link, dict[str, Any]], None],
        changes: ChangeReceiver,
        auth: UpstreamAuth | None = None,
        name: str | None = None,
        sessions: SessionMode = "client",
        optional: bool = False,
        timeouts: UpstreamTimeouts | None = None,
        limits: UpstreamLimits | None = None,
        era: Era | None = None,
        client_info: Mapping[str, Any] | None = None,
    ) -> None:
        check_kind(target)
        self.client_info = client_info
        self.name = name or name_of(target)
        self.health = Health(self.name, optional=optional)
        self.timeouts = timeouts or UpstreamTimeouts()
        self.around: Around | None = None
        self.on_message = on_message
        self.changes = changes
        if auth is not None:
            check_target(target)
        if isinstance(target, str) and urlsplit(target).scheme not in {"http", "https"}:
            raise ValueError(f"{target!r:.200} is not a URL of an endpoint, such as http://127.0.0.1:8000/mcp.")
        self._auth = auth
        self._target = HTTPEndpoint(target) if isinstance(target, str) else target
        self._mode: SessionMode = "shared" if isinstance(target, Transport) else sessions
        self._limits = limits or UpstreamLimits()
        self._runtime: ServerRuntime | None = None
        self._eras = Eras(era)
        self._budget: Budget | None = None
        self._stored: StoredSessions | None = None
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopLinks] = WeakKeyDictionary()
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, HTTPTransport] = WeakKeyDictionary()
        self._opening = Lock()
        self._errors = LineLimit()
        self._stderr = StderrLog(self.name)

    def attach(self, runtime: ServerRuntime) -> None:
        """Connect the links with the server that they belong to."""
        self._runtime = runtime

    def begin(self) -> None:
        """Note that the server serves: functions around requests are not added any more."""
        functions: list[Around] = []
        runtime = self._runtime
        while runtime is not None:
            functions[:0] = runtime.around_upstreams
            runtime = runtime.above
        self.around = around_all(functions)

    @property
    def network_transport(self) -> str:
        """How requests are sent, in OpenTelemetry's words."""
        return "tcp" if isinstance(self._target, HTTPEndpoint) else "pipe"

    async def for_lists(self, caller: Principal | None, capabilities: Mapping[str, Any] | None = None) -> Link:
        """Return an open link over which lists are read; raise UpstreamError.

        Args:
            caller: The caller whose lists are read; None for those of all callers.
            capabilities: What is declared to the upstream when a session begins.
        """
        base = await self._base(caller)
        if not capabilities or base.revision.per_request or self._mode == "shared":
            return base
        key = base.key._replace(capabilities=_text_of(capabilities))
        links = self._of_loop()
        link = links.find(key)
        if link is None:
            link = Link(self, key, capabilities=capabilities, principal=caller)
            link.idle_seconds = PROBE_SECONDS
            link.is_counted = False
            link = await links.add(link)
        await link.open()
        return link

    async def for_call(self, context: RequestContext) -> Link:
        """Return an open link for a request of a client, which has to end its use; raise UpstreamError."""
        if await self._takes_session(context) and self._eras.is_unsure:
            async with self._of_loop().first_session:
                if self._eras.is_unsure:
                    return await self._open_for_call(context)
        return await self._open_for_call(context)

    async def _open_for_call(self, context: RequestContext) -> Link:
        """Return an open link in the era of the client, or in the only one of the upstream."""
        if await self._takes_session(context):
            link = await self._session_for_call(context)
            try:
                return await self._begin_use(link)
            except HandshakeRefusedError:
                self.close_soon(link)
        return await self._begin_use(await self._base(context.principal))

    async def _begin_use(self, link: Link) -> Link:
        """Open a link for a request, and return it."""
        link.begin_use()
        try:
            requests = await link.open()
            stored = self._store_of(link)
            if stored is not None and stored.is_use_due(link):
                await self.replace_session(link, requests)
        except BaseException:
            link.end_use()
            raise
        return link

    async def _takes_session(self, context: RequestContext) -> bool:
        """Return whether a request of a client is sent in a session of the handshake era; raise UpstreamError."""
        if self._mode == "shared":
            return False  # that of this server itself, whatever its era
        per_request = self._eras.per_request
        if per_request is None:
            base = await self._base(context.principal)
            per_request = base.revision.per_request
        if not per_request:
            return True
        is_of_handshake = not context.client.revision.per_request and context.task_id is None
        return is_of_handshake and not self._eras.refuses_handshake

    async def _session_for_call(self, context: RequestContext) -> Link:
        """Return the link with the session for a request of a client, which may have to be opened."""
        capabilities = passable_capabilities(context.client)
        key = LinkKey(subject_of(context), owner_of(context.principal), _text_of(capabilities))
        links = self._of_loop()
        link = None if self._mode == "call" else links.find(key)
        if link is None:
            link = Link(self, key, capabilities=capabilities, caller=context.caller, principal=context.principal)
            if self._mode == "call":
                link.is_single_use = True
                await links.add_single_use(link)
            else:
                link = await links.add(link)
        link.principal = context.principal
        return link

    async def for_watch(self, context: RequestContext) -> Link:
        """Return an open link over which changes of resources are reported to a client; raise UpstreamError.

        It is that of its requests, because an upstream may report what happens in the same session only.
        """
        if self._mode == "call":
            return await self.for_lists(context.principal)
        link = await self.for_call(context)
        link.follow_changes(self.changes)
        link.end_use()  # what is watched over it keeps it open
        return link

    async def check(self) -> bool:
        """Return whether the upstream can be reached, as a check of the readiness of the server."""
        if self.health.optional:
            return True
        if self._is_per_caller:  # no caller is there to connect as
            return not self.health.is_away
        link = await self._base(None)
        if self.health.is_away or self.health.now() > link.used + CHECK_SECONDS:
            try:
                await link.request("server/discover" if link.revision.per_request else "ping", {})
            except MCPError as error:
                if error.code != METHOD_NOT_FOUND:  # a server without `ping` has answered as well
                    self.log_error(error)
                    return False
        return not self.health.is_away

    def end(self, subject: str) -> None:
        """End the links of a session or connection of a client that has ended. Called in an event loop."""
        self._end_soon(self._of_loop(), subject)
        current = asyncio.get_running_loop()
        for loop, links in list(self._by_loop.items()):
            if loop is not current and not loop.is_closed():
                loop.call_soon_threadsafe(self._end_soon, links, subject)

    async def aclose(self) -> None:
        """Close all connections of the running event loop. Later requests open others."""
        loop = asyncio.get_running_loop()
        links = self._by_loop.pop(loop, None)
        if links is not None:
            await links.aclose(keep_sessions=self._sessions_in_store() is not None)
        pool = self._pools.pop(loop, None)
        if pool is not None:
            await pool.aclose()

    # What the links themselves need.

    def close_soon(self, link: Link) -> None:
        """Close a link that served its only request."""
        self._of_loop().close_soon(link)

    def release(self, link: Link) -> None:
        """Close a link that was opened to read lists."""
        if link.idle_seconds is not None:
            self.close_soon(link)

    def transport_of(self, link: Link) -> Transport:
        """Return a new transport for a link."""
        if isinstance(self._target, StdioCommand):
            return self._process(self._target, link)
        if isinstance(self._target, HTTPEndpoint):
            return self._over_http(self._target, link)
        return transport_of(self._target, self._auth)

    def revision_of(self, link: Link) -> str | None:
        """Return the revision of a new session, if it is known; None to ask the upstream."""
        return self._eras.first_revision if _is_of_server(link) else self._eras.session_revision

    def seconds_to_connect(self, link: Link) -> float | None:
        """Return the seconds that a link may take to open; None for no limit."""
        seconds = self.timeouts.connect
        if _is_of_server(link) or not self._eras.is_unsure:
            return seconds
        return FIRST_SESSION_SECONDS if seconds is None else min(seconds, FIRST_SESSION_SECONDS)

    def opened(self, link: Link, requests: Requests) -> None:
        """Note the era of the upstream; raise HandshakeRefusedError if it has begun no session in its other era."""
        eras = self._eras
        if _is_of_server(link) or requests.revision.per_request or not eras.per_request:
            eras.agreed(requests)
        elif link.is_http and requests.session_id is None:
            eras.session_refused()
            raise HandshakeRefusedError(self.name)
        else:
            eras.session_began(requests.date)

    def refused(self, link: Link, error: Exception) -> bool:
        """Note the error of a link that could not be opened, and return whether the upstream refuses the handshake."""
        is_refusal = not _is_of_server(link) and self._eras.is_refusal(error, is_http=link.is_http)
        if is_refusal:
            self._eras.session_refused()
        return is_refusal

    def reopen(self, link: Link) -> None:
        """Ask the upstream for its revisions again, because its lists can't be read as before.

        An endpoint may be served by another version of the server than before. A process is connected to when it
        starts, and so stays the same.
        """
        if link.is_http:
            self._eras.forget()
            link.disconnect()

    def forget_eras(self) -> None:
        """Ask the upstream for its revisions again, because it did not accept a connection."""
        self._eras.forget()

    def count_lists_as_changed(self, link: Link) -> None:
        """Count the lists that a link shows as possibly changed."""
        self.changes.lost(link.key.owner if self._is_per_caller else None)

    def log_error(self, error: BaseException) -> None:
        """Log an answer that is not valid, or a refusal, at most once in a minute, and note it in the status."""
        text = quote(str(error), 300)
        if isinstance(error, AuthenticationError):
            text = f"{text.removesuffix('.')}. {_CREDENTIALS}"
        if not isinstance(error, StoreUnavailableError):
            self.health.not_valid(text)
        self._errors.write("The server %s: %s", quote(repr(self.name)), text)

    async def stored_session(self, link: Link) -> StoredSession | None:
        """Return the session that another instance has begun for the caller of a link; None if there is none."""
        stored = self._store_of(link)
        return None if stored is None else await stored.find(link)

    async def store_session(self, link: Link, requests: Requests) -> StoredSession | None:
        """Store a new session for the other instances; return theirs if one of them was quicker."""
        stored = self._store_of(link)
        if stored is None or requests.session_id is None:
            return None
        return await stored.take(link, requests)

    async def replace_session(self, link: Link, requests: Requests) -> None:
        """Store the session that has taken the place of an expired one, or note that this instance uses it."""
        stored = self._store_of(link)
        if stored is not None and requests.session_id is not None:
            try:
                await stored.replace(link, requests)
            except StoreUnavailableError as error:
                self.log_error(error)

    async def _base(self, caller: Principal | None) -> Link:
        """Return the open link of this server itself; with an identity of callers that of the caller."""
        owner = owner_of(caller) if self._is_per_caller else None
        links = self._of_loop()
        key = LinkKey(_BASE, owner)
        link = links.find(key)
        if link is None:
            payer = None if owner is None else principal_caller(owner)
            link = Link(self, key, capabilities={}, caller=payer, principal=caller)
            link.changes = LinkChanges(self.changes, owner)
            if owner is None:
                links.pin(link)
            else:
                link = await links.add(link)
        if owner is not None:
            link.principal = caller
        if not link.is_open:
            await link.open()
        return link

    @property
    def _is_per_caller(self) -> bool:
        """Whether the upstream knows the callers."""
        return self._auth is not None and self._auth.per_caller

    def _of_loop(self) -> LoopLinks:
        loop = asyncio.get_running_loop()
        links = self._by_loop.get(loop)
        if links is None:
            with self._opening:
                links = LoopLinks(loop, self._open_budget(), self._limits, self.health.now, self._end_idle)
                self._by_loop[loop] = links
        return links

    @property
    def _identity(self) -> str:
        """What tells the upstream from others whose sessions are in the same store."""
        return f"{self.name} {self._target.url}" if isinstance(self._target, HTTPEndpoint) else self.name

    def _open_budget(self) -> Budget:
        """Return what counts the sessions of callers in all event loops."""
        if self._budget is None:
            load = None if self._runtime is None else self._runtime.top.server.load
            limits = self._limits
            is_process = isinstance(self._target, StdioCommand)
            option, limit = ("processes", limits.processes) if is_process else ("sessions", limits.sessions)
            self._budget = Budget(
                limit,
                min(limits.sessions_per_caller, limit),
                full=f"The server {self.name!r} has {limit} {option} in use, which is the limit "
                f"(UpstreamLimits.{option}). Try again later.",
                own_full=f"You have {limits.sessions_per_caller} sessions of the server {self.name!r} in use, which is "
                "the limit (UpstreamLimits.sessions_per_caller). End one, or try again later.",
                memory=None if load is None else load.memory,
                unit=LINK_BYTES,
            )
        return self._budget

    def _process(self, command: StdioCommand, link: Link) -> StdioTransport:
        from funcmcp._client.stdio import StdioTransport  # noqa: PLC0415 - for commands alone

        return StdioTransport(command, on_stderr=self._stderr.write, on_end=link.process_ended)

    def _over_http(self, endpoint: HTTPEndpoint, link: Link) -> Transport:
        """Return a transport that uses the pool of connections of the event loop."""
        from funcmcp._client.http_exchange import PooledTransport  # noqa: PLC0415 - for URLs alone

        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = cast("HTTPTransport", transport_for(endpoint, {}))
            pool.open_pool()
        transport = PooledTransport(pool)
        transport.on_end = link.disconnect
        identify(transport, endpoint, self._auth)
        return transport

    def _sessions_in_store(self) -> StoredSessions | None:
        """Return the sessions that other instances can go on with; None if no other process reaches the store."""
        runtime = self._runtime
        if self._stored is None and runtime is not None and runtime.has_shared_state:
            seconds = self._limits.idle_seconds
            self._stored = StoredSessions(runtime.open_values(), self._identity, seconds, self.health.now)
        return self._stored

    def _store_of(self, link: Link) -> StoredSessions | None:
        is_process = isinstance(self._target, StdioCommand)  # which no other instance can go on with
        if is_process or link.is_single_use or not link.key.subject.startswith(_STORED):
            return None
        return self._sessions_in_store()

    async def _end_idle(self, link: Link) -> None:
        """Close a link that is idle. Its session goes on if another instance has used it."""
        stored = self._store_of(link)
        keep_session = False
        if stored is not None:
            try:
                keep_session = not await stored.remove(link)
            except StoreUnavailableError:
                keep_session = True
        await link.aclose(keep_session=keep_session)

    def _end_soon(self, links: LoopLinks, subject: str) -> None:
        links.run(self._end(subject))

    async def _end(self, subject: str) -> None:
        """Close the links of a subject in the running event loop, and end its sessions that other instances began."""
        ended = self._of_loop().take(subject)
        session_ids = {link.session_id for link in ended}
        stored = self._sessions_in_store() if subject.startswith(_STORED) else None
        for link in ended:
            await link.aclose()
        if stored is None:
            return
        try:
            sessions = await stored.take_all(subject)
        except StoreUnavailableError as error:
            self.log_error(error)
            return
        if not self._is_per_caller:  # otherwise the upstream ends what only its caller may end
            for session in sessions:
                if session.session_id not in session_ids:
                    await self._end_at_upstream(session)

    async def _end_at_upstream(self, session: StoredSession) -> None:
        transport = self.transport_of(Link(self, LinkKey(_BASE), capabilities={}))
        answers = Answers(None, None, None)
        requests = Requests(
            transport,
            answers,
            revision=None,
            log_level=None,
            timeout=None,
            on_notification=lambda _: None,
            client_info=self.client_info,
        )
        await requests.resume(session.session_id, session.revision, session.capabilities)
        await requests.aclose()


def subject_of(context: RequestContext) -> str:
    """Return whose session the requests of a client use: of its session, its connection, its principal or its address.

    A session has its principal in `LinkKey.owner`, so that the id of an anonymous session is of no use to others.
    """
    subject = subject_of_client(context.client)
    if subject is not None:
        return subject
    principal = owner_of(context.principal)
    if principal is not None:
        return f"principal {principal}"
    if context.by_user or context.network_transport is None:
        return "user"
    return f"address {context.caller}"


def subject_of_client(client: ConnectedClient) -> str | None:
    """Return the session or the connection of a client; None if it has neither. The id of a session is a secret."""
    if client.session_id is not None:
        return f"session {hashlib.sha256(client.session_id.encode()).hexdigest()}"
    return None if client.connection_id is None else f"connection {client.connection_id}"


def _is_of_server(link: Link) -> bool:
    """Return whether a link is one of this server itself, over which it reads lists."""
    return link.key.subject.startswith(_BASE)


def name_of(target: Target) -> str:
    """Return the name of an upstream that the author has not named: its host, its command, or its own name."""
    if isinstance(target, str | HTTPEndpoint):
        url = target if isinstance(target, str) else target.url
        return urlsplit(url).netloc.rpartition("@")[2] or "upstream"
    if isinstance(target, StdioCommand):
        return " ".join(Path(part).name for part in target.command[:2])
    return str(getattr(target, "name", type(target).__name__))


def _text_of(capabilities: Mapping[str, Any]) -> str:
    return json.dumps(capabilities, sort_keys=True)
