"""`run` with the arguments of other frameworks, and ASGI applications of a server with its own routes.

How it works: an application without routes and middleware of the author is the server itself. Otherwise it is one of
Starlette, which the author's routes need anyway, with the server below them.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp._app import launch
from funcmcp._app.mcp_server import MCPServer
from funcmcp._authoring.features.permissions import access_of
from funcmcp._compat.in_process import with_mark
from funcmcp._compat.options import http_options
from funcmcp._protocol.loopback import is_loopback
from funcmcp._server.log_output import write_about_server
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.endpoints.custom_routes import CustomRoute, RouteApplication

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from funcmcp._auth.access import Access
    from funcmcp._compat.auth import AuthProvider
    from funcmcp._compat.server_settings import Settings
    from funcmcp._transports.http.endpoints.application_response import Application

F = TypeVar("F", bound="Callable[..., Any]")

_logger = logging.getLogger("funcmcp.compat")

_OPTION_NAMES = {
    "stateless": "stateless_http",
    "allowed_hosts": "http_allowed_hosts",
    "allowed_origins": "http_allowed_origins",
}
"""Options of `run` and the names of the settings for them."""

_SETTINGS = frozenset(
    {
        *("host", "port", "stateless_http", "json_response", "transport_security", "mount_path", "message_path"),
        *("sse_path", "streamable_http_path", "http_allowed_hosts", "http_allowed_origins"),
    }
)
_SILENT = frozenset({"show_banner", "log_level"})
_WITHOUT_MEANING = _SILENT | {
    *("uvicorn_config", "event_store", "retry_interval", "sockets", "debug"),
    *("session_idle_timeout", "max_request_body_size", "max_sessions"),
}
"""Options of `run` that change nothing here."""

_TRANSPORTS = {"stdio": "stdio", "http": "http", "streamable-http": "http", "streamable_http": "http", "sse": "sse"}


def chosen_transport(
    transport: str | None, server: ServerTransports, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the transport and the address for `launch.run`; change the server's settings as the options say.

    Args:
        transport: The name of the transport in any framework.
        server: The server.
        options: The options of `run`: ``host``, ``port``, ``path``, ``stateless_http``, and others that are ignored.

    Raises:
        ValueError: The transport does not exist.
        TypeError: An option does not exist.
    """
    transport = transport or server.settings.transport
    if transport is not None and transport not in _TRANSPORTS:
        raise ValueError(f"transport must be one of {', '.join(_TRANSPORTS)}; got {transport!r}.")
    settings = server.settings
    kind = None if transport is None else _TRANSPORTS[transport]
    options = {_OPTION_NAMES.get(name, name): value for name, value in options.items() if value is not None}
    note_ignored(server, "run of funcmcp.compat ignores options", _ignored_options(options))
    for name in _SETTINGS & options.keys():
        setattr(settings, name, options[name])
    if _disables_protection(options.get("host_origin_protection", "auto")):
        settings.http_allowed_hosts, settings.http_allowed_origins = ["*"], ["*"]
    if "path" in options:
        setattr(settings, "sse_path" if kind == "sse" else "streamable_http_path", options["path"])
    if kind in {None, "stdio"}:
        return kind, {}
    apply_settings(server, sse=kind == "sse")
    return kind, {name: getattr(settings, name) for name in ("host", "port") if name in settings.chosen}


def _disables_protection(value: object) -> bool:
    """Return whether Host and Origin are not checked; raise ValueError for what the option can't be."""
    if value not in {True, False, "auto"}:
        raise ValueError("host_origin_protection must be True, False, or 'auto'.")
    return value is False


def note_ignored(server: MCPServer, text: str, names: Collection[str]) -> None:
    """Make a server log which options have no effect when it starts.

    Args:
        server: The server.
        text: The text before the names.
        names: The options. Without any, nothing is logged.
    """
    if names:
        runtime_of(server).notices.setdefault(text, set()).update(names)


def _ignored_options(options: Mapping[str, Any]) -> set[str]:
    """Return the options of `run` that change nothing here; raise TypeError for one that does not exist."""
    accepted = _SETTINGS | _WITHOUT_MEANING | {"path", "middleware", "host_origin_protection"}
    unknown = sorted(options.keys() - accepted)
    if unknown:
        valid = ", ".join(sorted(accepted - _WITHOUT_MEANING))
        raise TypeError(f"Unknown option {', '.join(map(repr, unknown))} of run. Valid options: {valid}.")
    return (options.keys() & _WITHOUT_MEANING) - _SILENT


def apply_settings(server: ServerTransports, *, sse: bool = False) -> None:
    """Give the endpoints the paths and sessions of the settings, which programs may change until the server runs."""
    runtime, settings = runtime_of(server), server.settings
    provider = server.auth_provider
    if provider is not None and provider.mcp_path != settings.streamable_http_path:
        runtime.change_auth(provider.native_auth(settings.streamable_http_path))
    changed = settings.chosen & {
        *("streamable_http_path", "transport_security", "http_allowed_hosts", "http_allowed_origins")
    }
    http = http_options(settings, runtime.http_options) if changed else runtime.http_options
    if sse:
        # FastMCP serves only one of the two endpoints, so programs may give both the same path.
        path = f"{http.path}/streamable" if http.path == settings.sse_path else http.path
        http = replace(http, path=path, sse=settings.sse_path)
    if settings.stateless_http:
        runtime.change_endpoints(http, sessions=None)
    elif http != runtime.http_options:
        runtime.change_endpoints(http)


def application(server: ServerTransports, middleware: Sequence[Any] | None) -> Any:
    """Return the ASGI application of a server with its routes and with Starlette's middleware.

    The routes are for the paths of the server only, so that another application can have them beside its own. The
    server itself answers all paths that no route of this application has.

    Raises:
        ModuleNotFoundError: There is middleware, and Starlette is not installed.
    """
    try:
        starlette, route_class = _starlette_classes()
    except ModuleNotFoundError:
        if middleware:
            raise
        return server
    served = [
        route_class(
            route.path, server, methods=route.methods, name=route.name, include_in_schema=route.include_in_schema
        )
        for route in server.served_routes
    ]
    runtime = runtime_of(server)
    endpoints = [path for path in (runtime.path, runtime.http_options.sse) if path]
    routes = [*served, *(route_class(path, server, name=server.name) for path in endpoints)]
    paths = {route.path for route in routes}
    others = [_route_behind_others(path, server) for path in server.paths if path not in paths]
    has_sdk_default = server.is_of_sdk and is_loopback(server.settings.host)
    only_localhost = has_sdk_default or bool(runtime.http_options.allowed_hosts)
    app = _application_class(starlette, only_localhost=only_localhost)(
        routes=[*routes, *others],
        middleware=list(middleware or ()),
        lifespan=server.lifespan,
    )
    app.router.default = server
    app.router.redirect_slashes = False
    app.state.fastmcp_server = server
    app.state.path = runtime.path
    return app


def _route_behind_others(path: str, server: ServerTransports) -> Any:
    """Return a route to a server for a path, such as that of a probe, which any other route of the path goes before."""
    from starlette.routing import Match, Route  # noqa: PLC0415 - an author's own dependency

    class RouteBehindOthers(Route):
        def matches(self, scope: Any) -> Any:
            match, child_scope = super().matches(scope)
            return Match.PARTIAL if match is Match.FULL else match, child_scope

    return RouteBehindOthers(path, server)


def _starlette_classes() -> tuple[Any, Any]:
    """Return Starlette's classes of applications and routes; raise ModuleNotFoundError if it is not installed."""
    try:
        from starlette.applications import Starlette  # noqa: PLC0415 - an author's own dependency
        from starlette.routing import Route  # noqa: PLC0415 - an author's own dependency
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Custom routes and middleware of HTTP are Starlette's. pip install starlette", name=error.name
        ) from None
    return Starlette, Route


def _application_class(starlette: Any, *, only_localhost: bool) -> Any:
    """Return the class of an application.

    Args:
        starlette: Starlette's class.
        only_localhost: Whether a test in its own process is answered under the name "localhost" only, as by the
            official SDK on a loopback address, and by a server that names its hosts.
    """

    class Application(starlette):  # type: ignore[misc] # Starlette is not known here
        """A Starlette application with the attribute ``lifespan``, which other applications take as theirs."""

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await super().__call__(with_mark(scope, only_localhost=only_localhost), receive, send)

        @property
        def lifespan(self) -> Any:
            return self.router.lifespan_context

    return Application


def run(server: ServerTransports, transport: str | None, options: dict[str, Any]) -> None:
    """Serve until the process ends."""
    kind, address = chosen_transport(transport, server, options)
    if address and options.get("middleware"):
        app, uvicorn = application(server, options.get("middleware")), launch.uvicorn_adapter()
        try:
            uvicorn.serve(app, **address, on_ready=_announcement(server, uvicorn))
        except uvicorn.AddressError as error:
            write_about_server(f"{error.strerror}. Choose another address with host= and port=.", logging.ERROR)
            raise SystemExit(1) from None
        return
    launch.run(server, kind, host=address.get("host"), port=address.get("port"))


async def run_async(server: ServerTransports, transport: str | None, options: dict[str, Any]) -> None:
    """Serve in the running event loop."""
    kind, address = chosen_transport(transport, server, options)
    if address and options.get("middleware"):
        app, uvicorn = application(server, options.get("middleware")), launch.uvicorn_adapter()
        await uvicorn.serve_async(app, **address, on_ready=_announcement(server, uvicorn))
        return
    await launch.run_async(server, kind, host=address.get("host"), port=address.get("port"))


def _starlette_route(server: ServerTransports, route: Any) -> Application:
    """Return an ASGI application that answers the requests to one of a server's routes.

    Another Starlette application around the server keeps what it has put into the scope: itself, for ``request.app``
    and the URLs of its routes, and the handlers of its exceptions.
    """
    from starlette.middleware.exceptions import ExceptionMiddleware  # noqa: PLC0415 - an author's own dependency
    from starlette.requests import ClientDisconnect  # noqa: PLC0415 - as above

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        app = server.route_application
        scope.setdefault("app", app)
        scope.setdefault("router", app.router)
        _, matched = route.matches(scope)
        scope.update(matched)
        try:
            await route.handle(scope, receive, send)
        except ClientDisconnect:
            return

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        of_exceptions, of_statuses = scope.get("starlette.exception_handlers", ({}, {}))
        await ExceptionMiddleware(handle, {**of_exceptions, **of_statuses})(scope, receive, send)

    return answer


def _announcement(server: ServerTransports, uvicorn: Any) -> Any:
    path = runtime_of(server).path
    return lambda origin: uvicorn.announce(origin + path)


class SessionManager:
    """The lifespan and the endpoint of a server, with the names of the official SDK's session manager."""

    def __init__(self, server: ServerTransports) -> None:
        self._server = server

    def run(self) -> AbstractAsyncContextManager[None]:
        """Return the lifespan of the server. It may be entered several times."""
        return self._server.lifespan()

    async def handle_request(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer an ASGI request."""
        await self._server(scope, receive, send)


class ServerTransports(MCPServer):
    """A server with the methods of other frameworks that run it.

    Attributes:
        settings: The address, the paths and the mode of sessions.
        served_routes: Routes of the author, which the server itself serves.
        auth_provider: The provider of authentication whose URLs have the path of the endpoint; None without one.
        is_of_sdk: Whether the class is that of the official SDK 2.x, and not FastMCP's.
    """

    auth_provider: AuthProvider | None = None
    is_of_sdk: bool
    _form: tuple[str, bool] | None = None

    settings: Settings
    served_routes: list[Any]

    @cached_property
    def route_application(self) -> Any:
        """An application of Starlette with all routes of the author, which is ``request.app`` for the server's own."""
        starlette, _ = _starlette_classes()
        return starlette()

    @property
    def session_manager(self) -> SessionManager:
        """What applications of the official SDK's users run in their lifespan."""
        return SessionManager(self)

    def run(self, transport: Any = None, **options: Any) -> None:
        """Serve until the process ends.

        Args:
            transport: ``"stdio"``, ``"http"``, ``"streamable-http"`` or ``"sse"``. The default is stdio, and HTTP if
                the Azure Functions host started the process.
            options: ``host``, ``port``, ``path``, ``stateless_http``, and Starlette's ``middleware``. Options of logs
                and banners are ignored.
        """
        run(self, transport, options)

    async def run_async(self, transport: Any = None, **options: Any) -> None:
        """Serve as `run` does, in a running event loop."""
        await run_async(self, transport, options)

    async def run_stdio_async(self, **options: Any) -> None:
        """Serve on stdio in a running event loop."""
        await self.run_async("stdio", **options)

    async def run_http_async(self, transport: str = "http", **options: Any) -> None:
        """Serve Streamable HTTP in a running event loop."""
        await self.run_async(transport, **options)

    async def run_streamable_http_async(self, **options: Any) -> None:
        """Serve Streamable HTTP in a running event loop."""
        await self.run_async("http", **options)

    async def run_sse_async(self, mount_path: str | None = None, **options: Any) -> None:  # noqa: ARG002 - the path of the mount counts
        """Serve HTTP+SSE in a running event loop."""
        await self.run_async("sse", **options)

    def http_app(
        self,
        path: str | None = None,
        middleware: Sequence[Any] | None = None,
        *,
        transport: str = "http",
        **options: Any,
    ) -> Any:
        """Return an ASGI application that serves the server and its custom routes.

        It is Starlette's application if Starlette is installed, and otherwise the server itself.

        Args:
            path: The path of the endpoint.
            middleware: Starlette's middleware.
            transport: ``"http"``, ``"streamable-http"`` or ``"sse"``.
            options: ``stateless_http``, ``host`` and others of `run`.
        """
        chosen_transport(transport, self, {**options, "path": path})
        self._note_another_application()
        return application(self, middleware)

    def _note_another_application(self) -> None:
        """Log a warning if an earlier application of the server has to answer at another path, or without sessions."""
        form = (runtime_of(self).path, self.settings.stateless_http)
        if self._form not in {None, form}:
            _logger.warning(
                "http_app of the server %r was called before with another path or another stateless_http. All its "
                "applications have the last ones now: the endpoint is %s.",
                *(self.name, form[0]),
            )
        self._form = form

    def streamable_http_app(self, **options: Any) -> Any:
        """Return an ASGI application that serves Streamable HTTP."""
        path = options.pop("streamable_http_path", None) or options.pop("path", None)
        return self.http_app(path, **options)

    def sse_app(self, mount_path: str | None = None, **options: Any) -> Any:  # noqa: ARG002 - the path of the mount counts
        """Return an ASGI application that serves HTTP+SSE."""
        path = options.pop("sse_path", None) or options.pop("path", None)
        return self.http_app(path, transport="sse", **options)

    def _serve_routes_of(self, provider: AuthProvider | None) -> None:
        """Serve the routes of a provider of authentication, if there is one."""
        for route in () if provider is None else provider.served_routes(self.settings.streamable_http_path):
            methods = sorted(set(route.methods or ("GET",)) - {"HEAD"})
            self.custom_route(route.path, methods)(route.endpoint)

    def custom_route(  # type: ignore[override] # other options
        self,
        path: str,
        methods: Sequence[str] = ("GET",),
        name: str | None = None,
        include_in_schema: bool = True,  # noqa: FBT001, FBT002 - as in the frameworks
    ) -> Callable[[F], F]:
        """Return a decorator for a function that answers HTTP requests of a path with Starlette's classes.

        The server itself serves the route, after its checks of sizes, Host and Origin, and without credentials.

        Raises:
            ModuleNotFoundError: Starlette is not installed.
        """
        access = access_of(path, {"allow_anonymous": True})

        def register(function: F) -> F:
            options = {"methods": list(methods), "name": name, "include_in_schema": include_in_schema}
            add_starlette_route(self, path, function, access=access, **options)
            return function

        return register


def add_starlette_route(
    server: ServerTransports, path: str, function: Callable[..., Any], *, access: Access, **options: Any
) -> None:
    """Serve a function at a path.

    Args:
        server: The server.
        path: The path, in the form of Starlette.
        function: The function, which gets Starlette's request.
        access: Who may use the route.
        options: Options of Starlette's route.

    Raises:
        ModuleNotFoundError: Starlette is not installed.
    """
    _, route_class = _starlette_classes()
    route = route_class(path, function, **options)
    handler = RouteApplication(_starlette_route(server, route))
    methods = tuple(sorted(route.methods))
    runtime_of(server).add_route(CustomRoute(path, methods, handler, access, None, route.path_regex))
    server.served_routes.append(route)
    server.route_application.router.routes.append(route)
