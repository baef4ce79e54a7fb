"""The part of an `MCPServer` that serves it: dispatch, sessions, HTTP endpoints and their lifetime.

How it works: each `MCPServer` makes one `ServerRuntime` in its constructor. Authors use the `MCPServer`; ASGI servers,
Azure Functions, stdio and the command line use the `ServerRuntime`, which `runtime_of` returns. Its lifetime has these
steps:

- Made: the endpoints exist, and features may be added at any time.
- `start`: the process is about to serve. The bus to the other instances starts, the log gets warnings about the
  configuration (`begin`), and the author's lifespans are entered. ASGI servers call it in the lifespan; without a
  lifespan the first request does.
- `on_listening`: the address is known. The log gets a warning if other machines can reach a server with a random key,
  and the identity provider of an `OAuthProxy` is looked at beside serving.
- `drain`: the process is about to stop. Streams that would stay open end.
- `aclose`: services with app scope and the bus are closed, and the lifespans are left.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from functools import partial
from threading import Lock
from time import time
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from weakref import WeakSet

from funcmcp._adapters.asgi.application import HTTPRuntime, http_runtime_of
from funcmcp._authoring.calling.lifespans import CannotStartError, LifespanError
from funcmcp._page.page import page_of
from funcmcp._protocol.errors import INTERNAL_ERROR
from funcmcp._protocol.loopback import address_of, is_loopback
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._protocol.server_card import PATH as CARD_PATH
from funcmcp._server.connections.hub import RESOURCES, updated
from funcmcp._server.dispatch import Server
from funcmcp._server.log import log_failure, logger, quote
from funcmcp._server.log_output import is_json, write_as_json
from funcmcp._server.recent_failures import recent_failures
from funcmcp._server.run import require_asyncio
from funcmcp._serving.configuration_checks import (
    check_provider,
    check_proxy,
    check_uploads,
    warn_of_idle_tasks,
    warn_of_metrics_path,
    warn_of_missing_lifespan,
    warn_of_random_key,
    warn_of_restrictions_without_auth,
    warn_of_state_in_memory,
)
from funcmcp._serving.environment import is_on_azure, may_be_one_of_several, task_concurrency, task_queues
from funcmcp._serving.health import store_checks
from funcmcp._state.bus import LocalBus
from funcmcp._state.keys import configured_keys
from funcmcp._state.seal import require_cipher
from funcmcp._state.sessions.signed import SignedSessions
from funcmcp._state.sessions.store import LiveSessions, NoSessions, SessionStore, SharedSessions
from funcmcp._transports.http.admission.loopback_pages import LoopbackPages
from funcmcp._transports.http.endpoints.health import LIVE, READY, Health
from funcmcp._transports.http.endpoints.streamable import StreamableHTTP
from funcmcp._transports.http.options import health_of_environment, proxies_of_environment
from funcmcp._transports.http.status import refuse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Literal, TypeAlias

    from funcmcp._adapters.asgi.application import ASGIApplication, Receive, Scope, Send
    from funcmcp._adapters.prometheus import MetricsPort
    from funcmcp._auth.authenticator import Authenticator
    from funcmcp._auth.grants import Grant
    from funcmcp._auth.policy import Auth
    from funcmcp._auth.protected_resource import ProtectedResource
    from funcmcp._authoring.calling.services import Services
    from funcmcp._grants.tool_grants import ToolGrants
    from funcmcp._oauth_proxy.proxy import OAuthProxy
    from funcmcp._server.calls.upstream_call import Around
    from funcmcp._server.catalog.features import ResourceTemplate, Tool
    from funcmcp._server.load import Budget
    from funcmcp._server.middleware import Middleware
    from funcmcp._server.middleware_results import AuthoredValues
    from funcmcp._server.options import ServerOptions
    from funcmcp._serving.health import Check, UpstreamServer
    from funcmcp._serving.request_log import Write
    from funcmcp._state.caller_values import CallerValues
    from funcmcp._state.key_values import SignInStore, StateStore
    from funcmcp._state.seal import KeyRing
    from funcmcp._state.sessions.memory import MemorySessions
    from funcmcp._state.tasks.store import TaskStore
    from funcmcp._state.uploads import Uploads
    from funcmcp._transports.http.admission.authentication import Authentication
    from funcmcp._transports.http.admission.proofs import RequestProofs
    from funcmcp._transports.http.endpoints.custom_routes import CustomRoute, CustomRoutes
    from funcmcp._transports.http.endpoints.streamable_headers import PageOf
    from funcmcp._transports.http.messages import Exchange, HttpRequest, HttpResponse
    from funcmcp._transports.http.options import HTTPOptions
    from funcmcp._transports.websocket import WebSocket

    Sessions: TypeAlias = SessionStore | Literal["signed", "memory"] | None


def _middleware_values() -> AuthoredValues:
    from funcmcp._authoring.results.middleware_values import MiddlewareValues  # noqa: PLC0415 - loads pydantic

    return MiddlewareValues()


class ServerRuntime(HTTPRuntime):
    """Serves one `MCPServer` on every transport.

    Args:
        options: The options that hold on every transport.
        services: The services of the server's functions.
        http: The options of HTTP.
        auth: Authenticates callers; None lets everybody call everything.
        sessions: The store of sessions, or the name of a built-in one; None for no sessions.
        middleware: Functions around every request, the outermost first.
        tasks: The store of tasks, or the name of the built-in one; None for no tasks.
        state: The store of the callers' values, or the name of the built-in one.

    Attributes:
        server: The dispatcher of requests.
        services: The services of the server's functions.
        path: The path of the Streamable HTTP endpoint.
        http_options: The options of HTTP.
        metadata: The metadata for clients that need a token; None without.
        proxy: The authorization server of the server itself; None without.
        grants: The grants of the callers at other services; None without.
        exchange: Answers every HTTP request.
        mounted: The servers whose features it serves, too.
        above: The server that mounts this one, and whose store of state it uses unless it has one; None for none.
        upload_features: The tool that returns addresses for files, and the template of the files; None without uploads.
        state: The store of the callers' values. None: the memory of the process, once a function needs it.
        notices: What the log says about options when the server starts: the names of options by the text before them.
        on_change: Functions of the servers that mount it. They get the URI of a resource that has changed, or None if
            the list of resources has.
        on_route: Functions of these servers that get each new custom route.
        on_provider: Functions of these servers that are called when it gets its first provider.
        on_close: Functions that export the last spans and metrics. They are called after the lifespans have ended.
        upstreams: Other servers whose features it serves.
        around_upstreams: Functions around each request to these servers, and to those of mounted servers.

    Raises:
        ValueError: The keys, the number of tasks, the time to end or the format of the log in the environment are
            invalid, or *sessions* or *state* is neither a store nor a known name.
    """

    metrics_port: MetricsPort | None = None
    metrics_path: str | None = None
    above: ServerRuntime | None = None
    grants: ToolGrants | None = None
    upload_features: tuple[Tool | None, ResourceTemplate] | None = None
    _routes: CustomRoutes | None = None
    _websocket: WebSocket | None = None
    _entering: asyncio.Task[None] | None = None
    _values: CallerValues | None = None
    _grant_values: CallerValues | None = None
    on_provider: tuple[Callable[[], None], ...] = ()
    _fixed_routes: str | None = None
    _has_warned_of_key = False
    _checking: asyncio.Task[None] | None = None
    _logs_requests = False
    _seals_nonces = False
    _shows_tracebacks = False

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
        state: StateStore | Literal["memory"],
    ) -> None:
        is_json()  # a wrong value in the environment is an error now, and not when the server begins
        keys = self._keys(sessions, options.name)
        self._store = _store(sessions, keys)
        self.services = services
        self.server = self._make_server(options, keys, auth, middleware, tasks)
        self.state = None if state == "memory" else _checked_state(state)
        services.open_values = self.server.open_values = self.open_values
        services.runtime = self
        self.metadata = None if auth is None else auth.resource
        http = _completed(http, self.metadata)
        self.http_options, self.path, self._sse = http, http.path, http.sse
        self.proxy = None if auth is None else _proxy_in(auth)
        self._auth = auth
        self._authentication = self._make_authentication()
        self.mounted: list[ServerRuntime] = []
        self.notices: dict[str, set[str]] = {}
        self.on_change: list[Callable[[str | None], None]] = []
        self.on_route: list[Callable[[CustomRoute], None]] = []
        self.on_close: list[Callable[[], Awaitable[None]]] = []
        self.upstreams: list[UpstreamServer] = []
        self.around_upstreams: list[Around] = []
        self._opening = Lock()  # event loops of several threads may use one server
        self._health = self._make_health()
        self._wrappers: list[Callable[[Exchange], Exchange]] = []
        self._make_endpoints()
        self._open_uploads(http.uploads)
        super().__init__(self._make_exchange(), options.limits)
        self._entered: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        services.lifespans.listeners.append(self._use_lifespans)
        if auth is not None and auth.grants:
            self._open_grants(auth)
        self.has_websocket = http.websocket is not None

    def _make_server(
        self,
        options: ServerOptions,
        keys: KeyRing,
        auth: Auth | None,
        middleware: Sequence[Middleware],
        tasks: TaskStore | Literal["memory"] | None,
    ) -> Server:
        return Server(
            options,
            [REVISIONS[date] for date in sorted(options.protocol.revisions)],
            keys=keys,
            auth=auth,
            bus=getattr(self._store, "bus", None),
            middleware=middleware,
            middleware_values=_middleware_values,
            tasks=_new_memory_tasks if tasks == "memory" else tasks,
            task_concurrency=task_concurrency(os.environ),
            task_queues=task_queues(os.environ),
        )

    def _open_grants(self, auth: Auth) -> None:
        """Make the grants of the callers, and add the pages on which users connect accounts."""
        from funcmcp._grants.tool_grants import ToolGrants  # noqa: PLC0415 - few servers have grants

        self.services.uses_state = self.services.uses_state or self.proxy is None or self.proxy.store is None
        self.grants = ToolGrants(
            auth,
            None if self.proxy is None else self.proxy.visits,
            server_name=lambda: self.server.options.info.title or self.name,
            open_values=self._open_grant_values,
        )
        for route in self.grants.routes:
            self.add_route(route)

    def _open_grant_values(self) -> CallerValues:
        """Return the values of the callers' grants: in the store of the proxy, or else in the state of the server."""
        store = None if self.proxy is None else self.proxy.store
        if store is None:
            return self.open_values()
        with self._opening:
            if self._grant_values is None:
                self._grant_values = self._new_values(store)
            return self._grant_values

    def _new_values(self, store: SignInStore) -> CallerValues:
        """Return the values of callers in a store."""
        from funcmcp._state.caller_values import CallerValues  # noqa: PLC0415 - few servers have state

        return CallerValues(
            store,
            self.server.keys,
            self.name,
            owner_bytes=self.limits.share_of("state_bytes"),
            owner_values=self.limits.state_values_per_principal,
        )

    def _needed_grants(self) -> list[tuple[str, Grant]]:
        """Return what the tools of this server and of the mounted ones need, with their names."""
        needed = list(self.services.needed_grants)
        for mounted in self.mounted:
            needed += mounted._needed_grants()  # noqa: SLF001 - of the same class
        return needed

    def check_grants(self, *, has_callers: bool = True) -> None:
        """Log what an operator registers at the services of grants.

        Args:
            has_callers: Whether the transport knows its callers.

        Raises:
            RuntimeError: A tool needs a grant that its callers can't give.
        """
        needed = self._needed_grants()
        if needed and not has_callers:
            raise RuntimeError(
                f"The tool {needed[0][0]!r} has grant=, which needs a user who has signed in, and stdio has no "
                'sign-in. Serve it over HTTP: mcp.run("http").'
            )
        if needed and self.grants is None:
            tool, grant = needed[0]
            raise RuntimeError(
                f"The tool {tool!r} needs a grant of {grant.provider!r}. Write MCPServer(auth=Auth(..., grants=["
                f"GrantProvider({grant.provider!r}, ...)])); see docs/guides/grants.md."
            )
        if self.grants is not None:
            self.grants.check(needed)
            for name, uri in self.grants.redirect_uris.items():
                logger.info("%s has grants of %s. Redirect URI to register there: %s.", self.name, name, uri)

    def _open_uploads(self, options: Uploads | None) -> None:
        """Make the store of uploads, and add the tool that returns addresses, and the files as resources."""
        if options is None:
            return
        from funcmcp._serving.upload_features import upload_resource, upload_tool  # noqa: PLC0415 - few servers take files
        from funcmcp._state.uploads import UploadStore  # noqa: PLC0415 - as above

        store = self.services.uploads = UploadStore(options)
        template = upload_resource(store, self.services)
        self.server.catalog.add(template)
        self.upload_features = None, template
        if options.tool_name is not None:
            keys = self.server.keys
            tool = upload_tool(
                options.tool_name,
                store,
                self.services,
                keys=keys,
                endpoint=lambda: self.path,
                url=lambda: options.url or self._url_of_auth(),
            )
            self.server.catalog.add(tool)
            self.upload_features = tool, template

    def _keys(self, sessions: Sessions, name: str) -> KeyRing:
        """Return the keys of the sessions or of the environment. Seals of other keys than a random one are logged."""
        keys: KeyRing = (getattr(sessions, "keys", None) or configured_keys(os.environ)).of(name)
        if not keys.shared:
            keys.on_foreign = partial(
                self._warn_of_random_key,
                "a client sent a session id or an answer that another process or an earlier start sealed",
            )
        return keys

    @property
    def top(self) -> ServerRuntime:
        """The runtime that serves the requests: of the server that mounts this one, or this."""
        return self if self.above is None else self.above.top

    @property
    def all_upstreams(self) -> list[UpstreamServer]:
        """The other servers whose features it serves, also those of mounted servers."""
        upstreams = list(self.upstreams)
        for mounted in self.mounted:
            upstreams += [upstream for upstream in mounted.all_upstreams if upstream not in upstreams]
        return upstreams

    def _statuses(self) -> list[Any]:
        """Return the status of each of these servers."""
        return [upstream.status for upstream in self.all_upstreams]

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
    def takes_uploads(self) -> bool:
        """Whether the server has a place for files below the endpoint."""
        return self.http_options.uploads is not None

    @property
    def has_card(self) -> bool:
        """Whether the server has a card below the endpoint."""
        return self.http_options.server_card is not None

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
        paths = self._endpoint_paths()
        if path in paths or path.rstrip("/") in paths:
            raise ValueError(f"The server has an endpoint at {path!r}. Choose another path for the custom route.")

    def _endpoint_paths(self) -> list[str]:
        """Return the paths of the endpoints, without those of probes and custom routes."""
        folder = self.path.rstrip("/")
        paths = [self.path, folder, self._sse, self.http_options.websocket]
        if self.services.uploads is not None:
            paths.append(f"{folder}/uploads")
        if self.has_card:
            paths.append(folder + CARD_PATH)
        if self.metadata is not None:
            paths += self.metadata.paths
        if self.proxy is not None:
            paths += self.proxy.paths
        return [path for path in paths if path is not None]

    @property
    def paths(self) -> list[str]:
        """The paths of HTTP requests that the server answers, see `MCPServer.paths`."""
        folder = self.path.rstrip("/")
        paths = [*self._endpoint_paths(), f"{folder}/", *(route.path for route in self.routes)]
        if self.services.uploads is not None:
            paths.append(f"{folder}/uploads/{{file:path}}")
        if self.has_health:
            paths += [LIVE, READY]
        return [path for path in dict.fromkeys(paths) if path and path != self.http_options.websocket]

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
        http = _completed(http, self.metadata)
        self.http_options, self.path, self._sse = http, http.path, http.sse
        if self._routes is not None:
            self._routes = self._routes.with_options(http)
        self._make_endpoints()
        self.exchange = self._make_exchange()
        self.has_websocket = http.websocket is not None

    @property
    def auth(self) -> Auth | None:
        """How callers are authenticated; None lets everybody call everything."""
        return self._auth

    def accepting(self, authenticator: Authenticator) -> AbstractContextManager[None]:
        """Accept the principals of another authenticator, too, inside a ``with`` block; raise ValueError without auth.

        For tests, which sign in users of their own.
        """
        if self._authentication is None:
            raise ValueError(f"{self.name} has no auth, so it does not know its callers.")
        return self._authentication.accepting(authenticator)

    def change_auth(self, auth: Auth) -> None:
        """Change how callers are authenticated before the server begins. What they may do remains as it is."""
        self.metadata, self.proxy, self._auth = auth.resource, _proxy_in(auth), auth
        self._authentication = self._make_authentication()
        routes, self._routes = self._routes, None
        if routes is not None:
            from funcmcp._transports.http.endpoints.custom_routes import CustomRoutes  # noqa: PLC0415 - few servers have them

            self._routes = CustomRoutes(self.server, self.http_options, self._authentication)
            of_grants = set() if self.grants is None else {route.path for route in self.grants.routes}
            for route in routes.routes:
                if route.path not in of_grants:
                    self._routes.add(route)
        self._make_endpoints()
        self.exchange = self._make_exchange()
        if auth.grants:  # their pages are at the URL of the proxy, and find out who is at a browser by it
            self._open_grants(auth)

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
            warn_of_idle_tasks(self.name, self.server.tasks)
        if self.proxy is not None:
            check_proxy(self.name, self.proxy)
        if self.above is None:
            self.check_grants()
        self._check_what_other_processes_find()
        self.warn_of_state_with_random_key()
        if may_be_one_of_several():
            self._warn_of_random_key("this is one of several processes")
            if self.metrics_path is not None and not self.has_predecessor:  # which has said so
                warn_of_metrics_path(self.name, self.metrics_path)
        warn_of_restrictions_without_auth(self.server)
        if self.keeps_sessions:
            logger.info(
                "%s stores sessions in this process's memory: all requests of a session must reach this process.",
                self.name,
            )

    def _check_what_other_processes_find(self) -> None:
        """Warn of what callers store in the memory of this process; raise RuntimeError if uploads are among it."""
        if self.services.uploads is not None:
            check_uploads(self.name, self.services.uploads)
        if self.has_state_in_memory() and (may_be_one_of_several() or is_on_azure()):
            warn_of_state_in_memory(self.name)

    def warn_of_state_with_random_key(self) -> None:
        """Warn once if later processes could not read the values of callers in the store."""
        if self.state is not None and self.state.shared:
            self._warn_of_random_key("a store has the state of its callers")

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
        """Warn of a random key if other machines can reach the server, and look at the identity provider."""
        self._check_sign_in()
        is_network_address = address_of(address) is not None  # and not the path of a Unix socket
        if is_network_address and not is_loopback(address):
            self._warn_of_random_key("other machines can reach it")

    def _check_sign_in(self) -> None:
        """Begin to look whether the identity provider can be used, once. Serving does not wait for it."""
        if self.proxy is not None and self._checking is None:
            self._checking = asyncio.create_task(check_provider(self.name, self.proxy))

    async def _end_check(self) -> None:
        """Cancel what looks at the identity provider, if it runs in this event loop."""
        checking = self._checking
        if checking is not None and checking.get_loop() is asyncio.get_running_loop():
            self._checking = None
            checking.cancel()
            await asyncio.wait({checking})

    def show_tracebacks(self) -> None:
        """Allow the page to show the tracebacks of failures, if there is a page and no proxy is declared."""
        from funcmcp._transports.http.endpoints.tracebacks import Tracebacks  # noqa: PLC0415 - most servers have no page
        from funcmcp._transports.http.endpoints.upstream_states import UpstreamStates  # noqa: PLC0415 - as above

        has_page = page_of(self.http_options) is not None and not self.http_options.proxies
        if has_page and not self._shows_tracebacks:
            self._shows_tracebacks = recent_failures.is_kept = True
            self.wrap_exchange(partial(Tracebacks, self.path))
            self.wrap_exchange(partial(UpstreamStates, self.path, self._statuses))

    def on_first_request(self, address: str | None) -> None:
        """Begin and warn if the application around the server does not run its lifespan."""
        if not self.has_begun:
            require_asyncio()
            self.begin()
            if self.services.has_app_scope or self.services.lifespans or not isinstance(self.server.bus, LocalBus):
                warn_of_missing_lifespan(self.name)
        self._check_sign_in()
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
            await self._end_check()
            if self.grants is not None:
                await self.grants.finish(self.server.drain.remaining())
            if self.proxy is not None:
                await self.proxy.aclose(self.server.drain.remaining())
            for state in self._states():
                await state.aclose()
            if self.services.uploads is not None:
                self.services.uploads.close()
            await self.server.close_middleware()

    def open_values(self) -> CallerValues:
        """Return the values of callers, and make them unless that has happened. From any thread."""
        store = self.open_state()
        with self._opening:
            if self._values is None:
                self._values = self._new_values(store)
            return self._values

    @property
    def has_shared_state(self) -> bool:
        """Whether other processes reach the callers' values, in the store of this server or of one above."""
        if self.state is None:
            return self.above is not None and self.above.has_shared_state
        return self.state.shared

    def has_state_in_memory(self) -> bool:
        """Return whether this server, or a mounted one, stores values of callers in the memory of the process."""
        stores_values = self.services.uses_state or self.server.budgets is not None
        if stores_values and not self.has_shared_state:
            return True
        return any(mounted.has_state_in_memory() for mounted in self.mounted)

    def _states(self) -> list[StateStore]:
        """Return the stores of the callers' values that this server and the mounted ones have, each once."""
        states = [] if self.state is None else [self.state]
        for mounted in self.mounted:
            states += [state for state in mounted._states() if state not in states]  # noqa: SLF001 - of the same class
        return states

    def open_state(self) -> StateStore:
        """Return the store of the callers' values: that of this server, of one above, or the memory of the process."""
        from funcmcp._state.key_values import MemoryState  # noqa: PLC0415 - few servers have state

        if self.state is None and self.above is not None:
            return self.above.open_state()
        with self._opening:
            if self.state is None:
                self.state = MemoryState(limit_bytes=self.limits.state_bytes)
            return self.state

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
        from funcmcp._auth.dpop import dpop_of  # noqa: PLC0415 - as above
        from funcmcp._transports.http.admission.authentication import Authentication  # noqa: PLC0415 - not without `auth`

        resource = self.metadata
        dpop = dpop_of(self._auth.authenticator)
        return Authentication(
            self.server,
            self.server.guard,
            self._auth.authenticator,
            metadata_url=None if resource is None else resource.metadata_url,
            dpop=dpop,
            proofs=None if dpop is None or resource is None else self._make_proofs(resource.resource),
        )

    def _make_proofs(self, url: str) -> RequestProofs:
        """Return what checks the proofs that tokens are presented by those to whose keys they are bound."""
        from funcmcp._auth.dpop import needs_nonces  # noqa: PLC0415 - as above
        from funcmcp._auth.tokens.proofs import Proofs  # noqa: PLC0415 - few servers take such tokens
        from funcmcp._state.replays import Nonces, Replays  # noqa: PLC0415 - as above
        from funcmcp._transports.http.admission.proofs import RequestProofs  # noqa: PLC0415 - as above

        auth = cast("Auth", self._auth)
        store = self.state if self.state is not None and self.state.shared else None
        nonces = None if self.proxy is None else self.proxy.nonces
        if nonces is None and needs_nonces(auth.authenticator):
            nonces = Nonces(self.server.keys.of("dpop"), time)
            self._seals_nonces = True
        proofs = Proofs(Replays(self.server.load.proofs, time, store), time, nonces)
        return RequestProofs(proofs, url, lambda: self.path)

    def _make_endpoints(self) -> None:
        http = self.http_options
        self._streamable = StreamableHTTP(
            self.server,
            self._store,
            http,
            path=http.path,
            authentication=self._authentication,
            page=self._page(has_sign_in=self._authentication is not None),
        )
        self._websocket = None

    def _page(self, *, has_sign_in: bool) -> PageOf | None:
        """Return what answers browsers; None if the page is off."""
        servers = self.metadata.authorization_servers if has_sign_in and self.metadata is not None else ()
        page = page_of(self.http_options, has_sign_in=has_sign_in, authorization_servers=servers)
        return None if page is None else page.answer

    def _make_exchange(self) -> Exchange:
        """Return the function that answers HTTP requests: CORS and metadata around the endpoints."""
        exchange: Exchange = self._streamable
        if self._sse is not None:
            from funcmcp._transports.http.endpoints.http_sse import HTTPSSE  # noqa: PLC0415 - few servers have it

            exchange = HTTPSSE(
                self.server, self.http_options, path=self._sse, otherwise=exchange, authentication=self._authentication
            )
        if self.services.uploads is not None:
            from funcmcp._transports.http.endpoints.uploads import UploadEndpoint  # noqa: PLC0415 - few servers take files

            exchange = UploadEndpoint(
                self.server,
                self.http_options,
                self.services.uploads,
                authentication=self._authentication,
                otherwise=exchange,
            )
        if self._auth is not None:
            from funcmcp._transports.http.endpoints.resource_metadata import ResourceMetadata  # noqa: PLC0415 - not without `auth`

            exchange = ResourceMetadata(self._auth.resource, self.http_options, otherwise=exchange)
        if self.proxy is not None:
            from funcmcp._transports.http.endpoints.sign_in_endpoints import SignInEndpoints  # noqa: PLC0415 - few servers have a proxy

            exchange = SignInEndpoints(self.proxy, self.server, self.http_options, otherwise=exchange)
        exchange = LoopbackPages(self.http_options, otherwise=exchange)
        if self._routes is not None:
            self._routes.otherwise = exchange
            exchange = self._routes
        if self.http_options.allowed_origins:
            from funcmcp._transports.http.admission.cors import CORS  # noqa: PLC0415 - few servers need it

            exchange = CORS(self.http_options, otherwise=exchange)
        if self.services.lifespans:
            exchange = partial(self._start_and_answer, exchange)
        exchange = self._with_card(exchange)
        for wrap in self._wrappers:
            exchange = wrap(exchange)
        if self.has_health:
            self._health.otherwise = exchange  # probes come often, and have no lines in the log of requests
            return self._health
        return exchange

    def _with_card(self, otherwise: Exchange) -> Exchange:
        """Return what also answers the requests for the card, outside of CORS: pages of every origin may read it."""
        card = self.http_options.server_card
        if card is None:
            return otherwise
        from funcmcp._transports.http.endpoints.server_card import ServerCardEndpoint  # noqa: PLC0415 - few servers have one

        return ServerCardEndpoint(self.server, self.http_options, card, url=self._url_of_auth(), otherwise=otherwise)

    def _url_of_auth(self) -> str | None:
        """Return the URL of the endpoint in the metadata for clients that need a token; None if it is not there."""
        if self.metadata is None or not self.metadata.resource.endswith(self.path):
            return None
        return self.metadata.resource

    def exchange_for_user(self) -> Exchange:
        """Return what answers requests of the user of this process, who has access to everything, as on stdio."""
        endpoint = StreamableHTTP(
            self.server, self._store, self.http_options, path=self.path, page=self._page(has_sign_in=False)
        )

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

    def _readiness_checks(self) -> list[Check]:
        """Return the functions that have to succeed before the server can serve."""
        checks = [*self.http_options.ready, *store_checks(self._store, self.server.tasks, self.proxy, self._states())]
        if self.services.lifespans and not self.services.lifespans.is_running:
            checks.append(self._enter_in_background)
        else:
            checks += [upstream.check for upstream in self.all_upstreams]
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
        from funcmcp._serving.request_log import logging_exchange, noting  # noqa: PLC0415 - few servers log requests

        if self._logs_requests:
            return
        self._logs_requests = True
        self.server.add_middleware(noting(write), is_outermost=True)
        self.wrap_exchange(partial(logging_exchange, write=write, proxies=self.http_options.proxies))

    def log_as_json(self) -> None:
        """Write the log as JSON, with a record for each request."""
        from funcmcp._serving.request_log import write_json_record  # noqa: PLC0415 - as above

        write_as_json()
        self.log_requests(write_json_record)

    def _use_lifespans(self) -> None:
        """Make the first request enter the lifespans, where no ASGI server does."""
        self.exchange = self._make_exchange()

    async def _start_and_answer(self, exchange: Exchange, request: HttpRequest) -> HttpResponse:
        """Answer a request after the lifespans have been entered."""
        if not self.services.lifespans.is_running:
            try:
                await self.enter_lifespans()
            except CannotStartError as error:
                logger.error("%s", quote(str(error), 2000))
                return refuse(503, INTERNAL_ERROR, "The server can't start; its log has the reason.")
            except LifespanError as error:
                log_failure(error, os.urandom(8).hex(), "add_lifespan")
                return refuse(503, INTERNAL_ERROR, "The server can't start; its log has the reason.")
        return await exchange(request)

    def _warn_of_random_key(self, reason: str) -> None:
        """Warn once that what the server seals belongs to this process."""
        if not self._has_warned_of_key:
            uploads = self.services.uploads
            self._has_warned_of_key = warn_of_random_key(
                self.server, self._store, self.state, uploads, reason, has_nonces=self._seals_nonces
            )


def _completed(http: HTTPOptions, metadata: ProtectedResource | None) -> HTTPOptions:
    """Return the options with the number of proxies in the environment, and with the host of the server's own URL.

    The operator has written that host into the code as the name of the server, so that no page of another site can
    have it. A loopback name is allowed on loopback addresses only, whoever names it.
    """
    proxies = proxies_of_environment()
    if proxies is not None:
        http = replace(http, proxies=proxies)
    parts = urlsplit("" if metadata is None else metadata.resource)
    if not parts.hostname or is_loopback(parts.hostname):
        return http
    return replace(http, allowed_hosts=[*http.allowed_hosts, parts.netloc.lower()])


def _proxy_in(auth: Auth) -> OAuthProxy | None:
    """Return the proxy that an authenticator is or contains."""
    from funcmcp._auth.policy import token_issuer_in  # noqa: PLC0415 - not without `auth`

    return cast("OAuthProxy | None", token_issuer_in(auth.authenticator))


def runtime_of(mcp: ASGIApplication) -> ServerRuntime:
    """Return the runtime of an `MCPServer`."""
    return cast("ServerRuntime", http_runtime_of(mcp))


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


def _checked_state(state: StateStore) -> StateStore:
    """Return a store of the callers' values; raise ValueError for anything else."""
    from funcmcp._state.key_values import MemoryKeyValues, StateStore  # noqa: PLC0415 - few servers have state

    if not isinstance(state, StateStore):
        raise ValueError(  # noqa: TRY004 - any other string is as wrong as another type
            f"state must be 'memory' or a store, such as funcmcp.state.SQLiteState; got {state!r}."
        )
    if not isinstance(state, MemoryKeyValues):
        require_cipher(type(state).__name__)
    return state


def _new_memory_tasks() -> TaskStore:
    from funcmcp._state.tasks.memory import MemoryTasks  # noqa: PLC0415 - few servers have tools with task=

    return MemoryTasks()
