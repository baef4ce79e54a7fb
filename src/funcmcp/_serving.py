"""The part of an `MCPServer` that serves it: dispatch, sessions, HTTP endpoints and their lifetime.

How it works: each `MCPServer` makes one `Serving` in its constructor. Authors use the `MCPServer`; ASGI servers, Azure
Functions, stdio and the command line use the `Serving`, which `serving_of` returns. Its lifetime has these steps:

- Made: the endpoints exist, and features may be added at any time.
- `start`: the process is about to serve. The bus to the other instances starts, the log gets warnings about the
  configuration (`begin`), and the author's lifespans are entered. ASGI servers call it in the lifespan; without a
  lifespan the first request does.
- `on_listening`: the address is known. The log gets a warning if other machines can reach a server with a random key.
- `drain`: the process is about to stop. Streams that would stay open end.
- `aclose`: services with app scope and the bus are closed, and the lifespans are left.
"""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, cast
from weakref import WeakSet

from funcmcp._adapters.asgi.application import Served, served_by
from funcmcp._auth.access import PRINCIPALS_ONLY
from funcmcp._authoring.calling.lifespans import LifespanError
from funcmcp._protocol.errors import INTERNAL_ERROR
from funcmcp._protocol.loopback import address_of, is_loopback
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.connections.hub import RESOURCES, updated
from funcmcp._server.dispatch import Server
from funcmcp._server.log import log_failure, logger
from funcmcp._server.log_output import is_json, write_as_json
from funcmcp._server.recent_failures import recent_failures
from funcmcp._server.run import require_asyncio
from funcmcp._state.bus import LocalBus
from funcmcp._state.keys import VARIABLE, configured_keys
from funcmcp._state.sessions.signed import SignedSessions
from funcmcp._state.sessions.store import LiveSessions, NoSessions, SessionStore, SharedSessions
from funcmcp._transports.http.endpoints.health import Health
from funcmcp._transports.http.endpoints.streamable import StreamableHTTP
from funcmcp._transports.http.options import health_of_environment
from funcmcp._transports.http.status import refuse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Literal, TypeAlias

    from funcmcp._adapters.asgi.application import ASGIApplication, Receive, Scope, Send
    from funcmcp._adapters.prometheus import MetricsPort
    from funcmcp._auth.policy import Auth
    from funcmcp._authoring.calling.services import Services
    from funcmcp._oauth_proxy.proxy import OAuthProxy
    from funcmcp._request_log import Write
    from funcmcp._server.load import Budget
    from funcmcp._server.middleware import Middleware
    from funcmcp._server.middleware_results import AuthoredValues
    from funcmcp._server.options import ServerOptions
    from funcmcp._server.tasks.service import Tasks
    from funcmcp._state.seal import KeyRing
    from funcmcp._state.sessions.memory import MemorySessions
    from funcmcp._state.tasks.store import TaskStore
    from funcmcp._transports.http.admission.authentication import Authentication
    from funcmcp._transports.http.endpoints.custom_routes import CustomRoute, CustomRoutes
    from funcmcp._transports.http.messages import Exchange, HttpRequest, HttpResponse
    from funcmcp._transports.http.options import HTTPOptions
    from funcmcp._transports.websocket import WebSocket

    Sessions: TypeAlias = SessionStore | Literal["signed", "memory"] | None

_NO_ID = "0" * 44
"""The id of no session and no task. To look for it shows whether a store can be used."""

TASK_CONCURRENCY_VARIABLE = "FUNCMCP_TASK_CONCURRENCY"
"""The environment variable with the number of tasks that a process runs at once."""

TASK_QUEUES_VARIABLE = "FUNCMCP_TASK_QUEUES"
"""The environment variable with the queues whose tasks a process runs, separated by commas."""


def _middleware_values() -> AuthoredValues:
    from funcmcp._authoring.values.middleware_values import MiddlewareValues  # noqa: PLC0415 - loads pydantic

    return MiddlewareValues()


class Serving(Served):
    """Serves one `MCPServer` on every transport.

    Args:
        options: The options that hold on every transport.
        services: The services of the server's functions.
        http: The options of HTTP.
        auth: Authenticates callers; None lets everybody call everything.
        sessions: The store of sessions, or the name of a built-in one; None for no sessions.
        middleware: Functions around every request, the outermost first.
        tasks: The store of tasks, or the name of the built-in one; None for no tasks.

    Attributes:
        server: The dispatcher of requests.
        services: The services of the server's functions.
        path: The path of the Streamable HTTP endpoint.
        http_options: The options of HTTP.
        metadata: The metadata for clients that need a token; None without.
        proxy: The authorization server of the server itself; None without.
        exchange: Answers every HTTP request.
        mounted: The servers whose features it serves, too.
        notices: What the log says about options when the server starts: the names of options by the text before them.
        on_change: Functions of the servers that mount it. They get the URI of a resource that has changed, or None if
            the list of resources has.
        on_route: Functions of these servers that get each new custom route.
        on_close: Functions that export the last spans and metrics. They are called after the lifespans have ended.

    Raises:
        ValueError: The keys, the number of tasks, the time to end or the format of the log in the environment are
            invalid, or *sessions* is neither a store nor a known name.
    """

    def __init__(  # noqa: PLR0913 - one parameter for each concern
        self,
        options: ServerOptions,
        services: Services,
        *,
        http: HTTPOptions,
        auth: Auth | None,
        sessions: Sessions,
        middleware: Sequence[Middleware],
        tasks: TaskStore | Literal["memory"] | None,
    ) -> None:
        is_json()  # a wrong value in the environment is an error now, and not when the server begins
        keys = (getattr(sessions, "keys", None) or configured_keys(os.environ)).of(options.name)
        if not keys.shared:
            keys.on_foreign = partial(
                self._warn_of_random_key,
                "a client sent a session id or an answer that another process or an earlier start sealed",
            )
        self._has_warned_of_key = False
        self._store = _store(sessions, keys)
        self.services = services
        self.server = Server(
            options,
            [REVISIONS[date] for date in sorted(options.protocol.revisions)],
            keys=keys,
            auth=auth,
            bus=getattr(self._store, "bus", None),
            middleware=middleware,
            middleware_values=_middleware_values,
            tasks=_new_memory_tasks if tasks == "memory" else tasks,
            task_concurrency=_task_concurrency(os.environ),
            task_queues=task_queues(os.environ),
        )
        self.path = http.path
        self.metadata = None if auth is None else auth.resource
        self.proxy = None if auth is None else _proxy_in(auth)
        self.http_options = http
        self._auth = auth
        self._authentication = self._make_authentication()
        self._sse = http.sse
        self.mounted: list[Serving] = []
        self.notices: dict[str, set[str]] = {}
        self.on_change: list[Callable[[str | None], None]] = []
        self.on_route: list[Callable[[CustomRoute], None]] = []
        self.on_close: list[Callable[[], Awaitable[None]]] = []
        self._routes: CustomRoutes | None = None
        self._fixed_routes: str | None = None
        self._websocket: WebSocket | None = None
        self.metrics_port: MetricsPort | None = None
        self.metrics_path: str | None = None
        self._health = self._make_health()
        self._wrappers: list[Callable[[Exchange], Exchange]] = []
        self._logs_requests = False
        self._shows_tracebacks = False
        self._entering: asyncio.Task[None] | None = None
        self._make_endpoints()
        super().__init__(self._make_exchange(), options.limits)
        self._entered: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        services.lifespans.listeners.append(self._use_lifespans)
        self.has_websocket = http.websocket is not None

    @property
    def name(self) -> str:
        """The server's name."""
        return self.server.options.name

    @property
    def endpoint(self) -> str:
        """The path of the Streamable HTTP endpoint."""
        return self.path

    @property
    def headers(self) -> Budget:
        """The memory of headers that have not ended."""
        return self.server.load.headers

    @property
    def has_proxies(self) -> bool:
        """Whether connections come from proxies."""
        return bool(self.http_options.proxies)

    @property
    def keeps_sessions(self) -> bool:
        """Whether sessions of the handshake era live in this process."""
        return isinstance(self._store, LiveSessions) and not isinstance(self._store, SharedSessions)

    @property
    def sessions_in_memory(self) -> MemorySessions | None:
        """The sessions, if they live in this process; else None."""
        from funcmcp._state.sessions.memory import MemorySessions  # noqa: PLC0415 - few servers use them

        return self._store if isinstance(self._store, MemorySessions) else None

    @property
    def routes(self) -> list[CustomRoute]:
        """The custom routes."""
        return [] if self._routes is None else self._routes.routes

    def add_route(self, route: CustomRoute) -> None:
        """Serve a custom route; raise ValueError if its path is taken, RuntimeError if routes are fixed."""
        if self._fixed_routes is not None:
            raise RuntimeError(
                f"{self._fixed_routes} has registered the server's routes already. Call mcp.custom_route before it."
            )
        self.check_route(route.path)
        if self._routes is None:
            from funcmcp._transports.http.endpoints.custom_routes import CustomRoutes  # noqa: PLC0415 - few servers have them

            self._routes = CustomRoutes(self.server, self.http_options, self._authentication)
            self._routes.add(route)
            self.exchange = self._make_exchange()
        else:
            self._routes.add(route)
        for add_route in self.on_route:
            add_route(route)

    def publish(self, uri: str | None) -> None:
        """Notify clients that a resource, or with None the list of resources, has changed. From any thread."""
        self.server.hub.publish(RESOURCES if uri is None else updated(uri))
        for publish in self.on_change:
            publish(uri)

    def check_route(self, path: str) -> None:
        """Raise ValueError if an endpoint of the server has a path."""
        paths = [self.path, self.path.rstrip("/"), self._sse, self.http_options.websocket]
        if self.metadata is not None:
            paths += self.metadata.paths
        if self.proxy is not None:
            paths += self.proxy.paths
        if path in paths or path.rstrip("/") in paths:
            raise ValueError(f"The server has an endpoint at {path!r}. Choose another path for the custom route.")

    def fix_routes(self, function: str) -> None:
        """Refuse further custom routes, because a function has registered the existing ones."""
        self._fixed_routes = function

    def open_sse(self) -> str:
        """Return the path of the HTTP+SSE endpoint; open one at /sse if there is none.

        Raises:
            ValueError: A custom route has this path.
        """
        if self._sse is None:
            if self._routes is not None and self._routes.serves("/sse"):
                raise ValueError("A custom route has the path '/sse'. Choose another one: HTTPOptions(sse='/events').")
            self._sse = "/sse"
            self.exchange = self._make_exchange()
        return self._sse

    def change_endpoints(self, http: HTTPOptions, *, sessions: Literal["same"] | None = "same") -> None:
        """Change the options of HTTP before the server begins.

        Args:
            http: The new options.
            sessions: None for the stateless mode; otherwise the store of sessions remains.
        """
        if sessions is None:
            self._store = NoSessions()
        self.http_options, self.path, self._sse = http, http.path, http.sse
        self._make_endpoints()
        self.exchange = self._make_exchange()
        self.has_websocket = http.websocket is not None

    def begin(self) -> None:
        """Start the bus, and log warnings about the configuration."""
        super().begin()
        if is_json():
            self.log_as_json()
        self.log_notices()
        self.server.drain.reset()
        self.server.hub.open()
        self.server.bus.start()
        if self.metrics_port is not None:
            self.metrics_port.open(has_predecessor=self.has_predecessor)
        if self.server.tasks is not None:
            self.server.tasks.start_shared()
            self._warn_of_idle_tasks(self.server.tasks)
        if self.proxy is not None:
            self._check_proxy(self.proxy)
        if _may_be_one_of_several():
            self._warn_of_random_key("this is one of several processes")
            self._warn_of_metrics_path()
        if self.server.guard is None and any(
            feature.access != PRINCIPALS_ONLY for feature in self.server.catalog.features()
        ):
            logger.warning(
                "%s has features with allow_anonymous, scopes or authorize, which have no effect without auth: "
                "every caller may use every feature.",
                self.name,
            )
        if self.keeps_sessions:
            logger.info(
                "%s stores sessions in this process's memory: all requests of a session must reach this process.",
                self.name,
            )

    async def start(self) -> None:
        """Begin, and enter the author's lifespans; raise LifespanError if one of them fails."""
        require_asyncio()
        self.begin()
        try:
            await self.enter_lifespans()
        except BaseException:
            await self.aclose()
            raise

    def log_notices(self) -> None:
        """Log what there is to say about the options of this server and of the mounted ones, once."""
        for text, names in self.notices.items():
            logger.warning("%s: %s.", text, ", ".join(sorted(names)))
        self.notices.clear()
        for mounted in self.mounted:
            mounted.log_notices()

    async def enter_lifespans(self) -> None:
        """Enter the author's lifespans until `aclose`; raise LifespanError if one of them fails."""
        self.log_notices()
        loop = asyncio.get_running_loop()
        await self.services.lifespans.enter()
        if loop in self._entered:  # another request has entered them in the meantime
            await self.services.lifespans.leave()
        self._entered.add(loop)

    def on_listening(self, address: str) -> None:
        """Warn of a random key if other machines can reach the server."""
        is_network_address = address_of(address) is not None  # and not the path of a Unix socket
        if is_network_address and not is_loopback(address):
            self._warn_of_random_key("other machines can reach it")

    def show_tracebacks(self) -> None:
        """Let the page show the tracebacks of failures, if there is a page and no proxy is declared."""
        from funcmcp._transports.http.endpoints.page import page_of  # noqa: PLC0415 - most servers have no page
        from funcmcp._transports.http.endpoints.tracebacks import Tracebacks  # noqa: PLC0415 - as above

        has_page = page_of(self.http_options, ()) is not None and not self.http_options.proxies
        if has_page and not self._shows_tracebacks:
            self._shows_tracebacks = recent_failures.is_kept = True
            self.wrap_exchange(partial(Tracebacks, self.path))

    def on_first_request(self, address: str | None) -> None:
        """Begin and warn if the application around the server does not run its lifespan."""
        if not self.has_begun:
            self.begin()
            if self.services.has_app_scope or self.services.lifespans or not isinstance(self.server.bus, LocalBus):
                logger.warning(
                    "%s is served without its lifespan, so its services with scope='app' and its connections are not "
                    "closed at the end. Enter `async with mcp.lifespan():` in the lifespan of the application around "
                    "it; see docs/guides/transports.md.",
                    self.name,
                )
        if address is not None:
            self.on_listening(address)

    def drain(self) -> None:
        """Begin to stop: end the streams on which clients listen, and begin no more tasks. From any thread."""
        self.server.drain.begin()
        if self.server.tasks is not None:
            self.server.tasks.drain()
        self.server.hub.close()

    def hurry(self) -> None:
        """End the time that tasks have, after a second signal. From any thread."""
        self.server.hurry()

    async def aclose(self) -> None:
        """Stop the tasks, close the services with app scope, leave the lifespans and close the bus."""
        loop = asyncio.get_running_loop()
        self.server.drain.begin()
        try:
            if self.server.tasks is not None:
                await self.server.tasks.stop(self.server.drain.remaining())
            if loop in self._entered:
                self._entered.discard(loop)
                await self.services.lifespans.leave()
            else:
                await self.services.aclose()
        finally:
            for flush in self.on_close:
                await flush()
            if self.metrics_port is not None:
                await asyncio.to_thread(self.metrics_port.close)
            await self.server.bus.aclose()
            if self.proxy is not None:
                await self.proxy.aclose()

    def open_websocket(self) -> WebSocket:
        """Return the endpoint for WebSocket, which refuses every request if `HTTPOptions.websocket` is None."""
        from funcmcp._transports.websocket import WebSocket  # noqa: PLC0415 - few servers have one

        if self._websocket is None:
            self._websocket = WebSocket(
                self.server,
                self.http_options,
                path=self.http_options.websocket,
                authentication=self._authentication,
            )
        return self._websocket

    async def serve_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a WebSocket of an ASGI server, or refuse it."""
        from funcmcp._adapters.asgi.websocket import serve_websocket  # noqa: PLC0415 - as above

        if self.has_websocket and self.services.lifespans and not self.services.lifespans.is_running:
            await self.enter_lifespans()
        await serve_websocket(self.open_websocket(), scope, receive, send, seconds=self.limits.write_seconds)

    def _make_authentication(self) -> Authentication | None:
        if self._auth is None or self.server.guard is None:
            return None
        from funcmcp._transports.http.admission.authentication import Authentication  # noqa: PLC0415 - not without `auth`

        metadata_url = None if self.metadata is None else self.metadata.metadata_url
        return Authentication(self.server, self.server.guard, self._auth.authenticator, metadata_url=metadata_url)

    def _make_endpoints(self) -> None:
        http = self.http_options
        self._streamable = StreamableHTTP(
            self.server,
            self._store,
            http,
            path=http.path,
            authentication=self._authentication,
            authorization_servers=() if self.metadata is None else self.metadata.authorization_servers,
        )
        self._websocket = None

    def _make_exchange(self) -> Exchange:
        """Return the function that answers HTTP requests: CORS and metadata around the endpoints."""
        exchange: Exchange = self._streamable
        if self._sse is not None:
            from funcmcp._transports.http.endpoints.http_sse import HTTPSSE  # noqa: PLC0415 - few servers have it

            exchange = HTTPSSE(
                self.server, self.http_options, path=self._sse, otherwise=exchange, authentication=self._authentication
            )
        if self._auth is not None:
            from funcmcp._transports.http.endpoints.resource_metadata import ResourceMetadata  # noqa: PLC0415 - not without `auth`

            exchange = ResourceMetadata(self._auth.resource, self.http_options, otherwise=exchange)
        if self.proxy is not None:
            from funcmcp._transports.http.endpoints.sign_in_endpoints import SignInEndpoints  # noqa: PLC0415 - few servers have a proxy

            exchange = SignInEndpoints(self.proxy, self.server, self.http_options, otherwise=exchange)
        if self._routes is not None:
            self._routes.otherwise = exchange
            exchange = self._routes
        if self.http_options.allowed_origins:
            from funcmcp._transports.http.admission.cors import CORS  # noqa: PLC0415 - few servers need it

            exchange = CORS(self.http_options, otherwise=exchange)
        if self.services.lifespans:
            exchange = partial(self._start_and_answer, exchange)
        for wrap in self._wrappers:
            exchange = wrap(exchange)
        if self.has_health:
            self._health.otherwise = exchange  # probes come often, and have no lines in the log of requests
            return self._health
        return exchange

    def exchange_for_user(self) -> Exchange:
        """Return what answers requests of the user of this process, who has access to everything, as on stdio."""
        endpoint = StreamableHTTP(self.server, self._store, self.http_options, path=self.path)

        async def exchange(request: HttpRequest) -> HttpResponse:
            request.by_user = True
            return await endpoint(request)

        return exchange

    @property
    def has_health(self) -> bool:
        """Whether the server has health endpoints."""
        is_on = health_of_environment()
        return self.http_options.health if is_on is None else is_on

    def _make_health(self) -> Health:
        health = Health(self.name, self._readiness_checks, self._stops_without_successor)
        health.is_taken = self._is_taken
        return health

    def _stops_without_successor(self) -> bool:
        """Return whether the server stops, and no other process serves in its place."""
        return self.server.drain.has_begun and not self.has_successor

    def _is_taken(self, path: str) -> bool:
        """Return whether a path belongs to an endpoint or a custom route."""
        return path in (self.path, self._sse) or (self._routes is not None and self._routes.serves(path))

    def _readiness_checks(self) -> list[Callable[[], Awaitable[object]]]:
        """Return the functions that have to succeed before the server can serve."""
        checks: list[Callable[[], Awaitable[object]]] = [*self.http_options.ready]
        if not isinstance(self._store, NoSessions | SignedSessions):
            checks.append(partial(self._store.get, _NO_ID))
        tasks = self.server.tasks
        if tasks is not None and tasks.store.shared:
            from funcmcp._state.tasks.record import TaskKey  # noqa: PLC0415 - few servers have tasks

            checks += [partial(tasks.store.read, TaskKey(None, _NO_ID)), *_write_checks(tasks.store)]
        if self.proxy is not None and self.proxy.store is not None:
            checks += [partial(self.proxy.store.get, _NO_ID), *_write_checks(self.proxy.store)]
        if self.services.lifespans and not self.services.lifespans.is_running:
            checks.append(self._enter_in_background)
        return checks

    async def _enter_in_background(self) -> None:
        """Enter the lifespans. They may take longer than a check, whose end must not cancel them."""
        if self._entering is None or self._entering.done():
            self._entering = asyncio.create_task(self.enter_lifespans())
        await asyncio.shield(self._entering)

    def wrap_exchange(self, wrap: Callable[[Exchange], Exchange]) -> None:
        """Answer HTTP requests with what *wrap* makes of the function that answers them, outside existing wrappers."""
        self._wrappers.append(wrap)
        self.exchange = self._make_exchange()

    def log_requests(self, write: Write) -> None:
        """Pass an entry for each request to a function, unless requests are logged already."""
        from funcmcp._request_log import logging_exchange, noting  # noqa: PLC0415 - few servers log requests

        if self._logs_requests:
            return
        self._logs_requests = True
        self.server.add_middleware(noting(write), is_outermost=True)
        self.wrap_exchange(partial(logging_exchange, write=write, proxies=self.http_options.proxies))

    def log_as_json(self) -> None:
        """Write the log as JSON, with a record for each request."""
        from funcmcp._request_log import write_json_record  # noqa: PLC0415 - as above

        write_as_json()
        self.log_requests(write_json_record)

    def _use_lifespans(self) -> None:
        """Let the first request enter the lifespans, where no ASGI server does."""
        self.exchange = self._make_exchange()

    async def _start_and_answer(self, exchange: Exchange, request: HttpRequest) -> HttpResponse:
        """Answer a request after the lifespans have been entered."""
        if not self.services.lifespans.is_running:
            try:
                await self.enter_lifespans()
            except LifespanError as error:
                log_failure(error, os.urandom(8).hex(), "add_lifespan")
                return refuse(503, INTERNAL_ERROR, "The server can't start; its log has the reason.")
        return await exchange(request)

    def _check_proxy(self, proxy: OAuthProxy) -> None:
        """Log what an operator has to know of the sign-in; raise RuntimeError if other processes can't continue it."""
        if not proxy.has_shared_keys and (_may_be_one_of_several() or _is_on_azure()):
            raise RuntimeError(
                f"{self.name} has an OAuthProxy and a random key, so a sign-in that one process begins would fail in "
                f"the next one. Set {VARIABLE} to the same value for all processes; see docs/guides/scaling.md."
            )
        if proxy.store is not None and not proxy.store.shared and (_may_be_one_of_several() or _is_on_azure()):
            raise RuntimeError(
                f"{self.name} has an OAuthProxy whose store is the memory of this process, so other processes would "
                "not know its sign-ins. Use a store that all of them reach; see docs/guides/sign-in.md."
            )
        logger.info(
            "%s signs users in. Redirect URI to register at the identity provider: %s.", self.name, proxy.callback
        )
        if proxy.store is None:
            logger.info(
                "The OAuthProxy of %s has no store, so a sign-in is renewed for %d minutes at most.",
                self.name,
                proxy.refresh_seconds // 60,
            )
        if not proxy.has_shared_keys:
            logger.warning(
                "%s has an OAuthProxy and a random key: registrations of clients and sign-ins end with this process. "
                "To keep them, set %s.",
                self.name,
                VARIABLE,
            )

    def _warn_of_idle_tasks(self, tasks: Tasks) -> None:
        """Warn that no process runs some of the tasks of this server, or that it has no tasks of a queue."""
        served, existing = tasks.queues, set(tasks.queues_of_tools.values())
        if served is not None and tasks.has_tools:
            for name in sorted(served - existing):
                logger.warning(
                    "%s runs the tasks of the queue %s, and none of its tools has this queue. Their queues: %s.",
                    self.name,
                    name,
                    ", ".join(sorted(existing)),
                )
            idle = existing - served
            if idle and not tasks.store.shared:
                logger.warning(
                    "%s stores tasks in this process's memory, and this process does not run those of some queues: "
                    "they never end (%s).",
                    self.name,
                    ", ".join(sorted(idle)),
                )
        if tasks.has_tools and not tasks.store.shared and not tasks.concurrency:
            logger.warning(
                "%s stores tasks in this process's memory, and this process runs none: its tasks never end. Unset %s, "
                "or use a store that other processes reach; see docs/guides/tasks.md.",
                self.name,
                TASK_CONCURRENCY_VARIABLE,
            )

    def _warn_of_random_key(self, reason: str) -> None:
        """Warn once that sessions or questions are sealed with a key that no other process has."""
        sealed = self._sealed_things()
        if self._has_warned_of_key or self.server.keys.shared or not sealed:
            return
        self._has_warned_of_key = True
        logger.warning(
            "%s has a random key, and %s: its %s belong to this process and end with it. "
            "To share a key with other processes and later starts, set %s.",
            self.name,
            reason,
            " and its ".join(sealed),
            VARIABLE,
        )

    def _warn_of_metrics_path(self) -> None:
        """Warn that a path shows the metrics of one process. One that replaces another has no need to repeat it."""
        if self.metrics_path is not None and not self.has_predecessor:
            logger.warning(
                "%s may be served by several processes: a request to %s gets the metrics of one of them. To have those "
                "of all, send them to an OpenTelemetry collector with mcp.measure(); see docs/guides/telemetry.md.",
                self.name,
                self.metrics_path,
            )

    def _sealed_things(self) -> list[str]:
        """Return the names of what is sealed with the server's keys."""
        eras = {revision.per_request for revision in self.server.revisions.values()}
        sealed = []
        if isinstance(self._store, SignedSessions) and False in eras:
            sealed.append("sessions")
        if True in eras and any(feature.interactive for feature in self.server.catalog.features()):
            sealed.append("questions to clients")
        return sealed


def _write_checks(store: object) -> list[Callable[[], Awaitable[object]]]:
    """Return the check that a store can be written, if it has one. A file on a full disk can still be read."""
    check = getattr(store, "check_writable", None)
    return [] if check is None else [check]


def _proxy_in(auth: Auth) -> OAuthProxy | None:
    """Return the proxy that an authenticator is or contains."""
    from funcmcp._auth.policy import token_issuer_in  # noqa: PLC0415 - not without `auth`

    return cast("OAuthProxy | None", token_issuer_in(auth.authenticator))


def serving_of(mcp: ASGIApplication) -> Serving:
    """Return what serves an `MCPServer`."""
    return cast("Serving", served_by(mcp))


def _store(sessions: Sessions, keys: KeyRing) -> SessionStore:
    """Return the store of sessions, whose ids are signed by the server's own keys."""
    if sessions is None:
        return NoSessions()
    if sessions == "signed":
        return SignedSessions(keys)
    if sessions == "memory":
        from funcmcp._state.sessions.memory import MemorySessions  # noqa: PLC0415 - few servers use them

        return MemorySessions()
    if not isinstance(sessions, SessionStore):
        raise ValueError(  # noqa: TRY004 - any other string is as wrong as another type
            f"sessions must be 'signed', 'memory', None or a session store; got {sessions!r}."
        )
    if isinstance(sessions, SignedSessions):
        return sessions.signed_by(keys)
    return sessions


def _new_memory_tasks() -> TaskStore:
    from funcmcp._state.tasks.memory import MemoryTasks  # noqa: PLC0415 - few servers have tools with task=

    return MemoryTasks()


def _task_concurrency(environment: Mapping[str, str]) -> int | None:
    """Return how many tasks this process runs at once, if the environment says so."""
    text = environment.get(TASK_CONCURRENCY_VARIABLE)
    if not text:
        return None
    if not text.isascii() or not text.isdecimal():
        raise ValueError(f"{TASK_CONCURRENCY_VARIABLE} must be a number of tasks, or 0 for none; got {text!r}.")
    return int(text)


def task_queues(environment: Mapping[str, str]) -> frozenset[str] | None:
    """Return the queues whose tasks this process runs, if the environment says so; None for all."""
    text = environment.get(TASK_QUEUES_VARIABLE)
    if not text:
        return None
    from funcmcp._state.tasks.queues import check_queue  # noqa: PLC0415 - few processes serve some queues only

    names = [name.strip() for name in text.split(",")]
    for name in names:
        try:
            check_queue(name)
        except ValueError as error:
            raise ValueError(f"{TASK_QUEUES_VARIABLE}: {error}") from None
    return frozenset(names)


def _is_on_azure() -> bool:
    """Return whether Azure runs this process, which may start it on further instances at any time."""
    return any(os.environ.get(variable) for variable in ("WEBSITE_INSTANCE_ID", "CONTAINER_APP_NAME"))


def _may_be_one_of_several() -> bool:
    """Return whether a program such as gunicorn or `uvicorn --workers` has started this process beside others."""
    is_of_gunicorn = os.environ.get("SERVER_SOFTWARE", "").startswith("gunicorn")
    multiprocessing = sys.modules.get("multiprocessing.process")  # A worker process has it loaded.
    is_worker = multiprocessing is not None and multiprocessing.parent_process() is not None
    if not is_of_gunicorn and (not is_worker or "--reload" in sys.argv):  # The process of a reloader is the only one.
        return False
    return not _is_only_worker(sys.argv, os.environ)


def _is_only_worker(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Return whether the command line of a server, which its workers have as well, asks for one worker.

    Without the option, gunicorn and uvicorn may read the number elsewhere; granian starts one worker.
    """
    number = ""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument in {"-w", "--workers"}:
            number = following
        elif argument.startswith(("-w", "--workers=")):
            number = argument.removeprefix("--workers=").removeprefix("-w")
    is_granian = bool(arguments) and os.path.basename(arguments[0]) == "granian"  # noqa: PTH119 - any text
    if not number and is_granian:
        number = environment.get("GRANIAN_WORKERS") or "1"
    return number == "1"
