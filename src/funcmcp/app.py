"""`MCPServer`: what an author holds in hand. It puts the rooms together and is an ASGI application itself."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from funcmcp.adapters.asgi.application import ASGIApplication
from funcmcp.adapters.asgi.websocket import serve_websocket
from funcmcp.auth.access import PRINCIPALS_ONLY
from funcmcp.auth.policy import Auth
from funcmcp.authoring.calling.services import Services
from funcmcp.authoring.features.decorators import features_of, with_name
from funcmcp.authoring.features.options import checked_options
from funcmcp.authoring.features.prompts import PromptOptions, make_prompt
from funcmcp.authoring.features.resources import (
    ResourceOptions,
    checked_scheme,
    checked_uri,
    make_lister,
    make_resource,
)
from funcmcp.authoring.features.tools import ToolOptions, make_tool
from funcmcp.authoring.values.content import icon_list
from funcmcp.protocol.revisions import REVISIONS
from funcmcp.server.catalog.registry import RegistrationError
from funcmcp.server.connections.hub import RESOURCES, updated
from funcmcp.server.dispatch import Server
from funcmcp.server.limits import Limits
from funcmcp.server.log import logger
from funcmcp.server.options import ListOptions, ServerInfo, ServerOptions
from funcmcp.state.bus import LocalBus
from funcmcp.state.keys import VARIABLE, configured_keys
from funcmcp.state.sessions.memory import MemorySessions
from funcmcp.state.sessions.signed import SignedSessions
from funcmcp.state.sessions.store import LiveSessions, NoSessions, SessionStore, SharedSessions
from funcmcp.transports.http.admission.authentication import Identity
from funcmcp.transports.http.admission.cors import CORS
from funcmcp.transports.http.endpoints.http_sse import HTTPSSE
from funcmcp.transports.http.endpoints.resource_metadata import Protected
from funcmcp.transports.http.endpoints.streamable import StreamableHTTP
from funcmcp.transports.http.options import PORT_VARIABLE, HTTPOptions
from funcmcp.transports.websocket import WebSocket

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from types import ModuleType
    from typing import Literal, TypeAlias, Unpack

    from opentelemetry.trace import TracerProvider

    from funcmcp.adapters.asgi.application import Receive, Scope, Send
    from funcmcp.adapters.asgi.in_process_calls import Application
    from funcmcp.adapters.asgi.openapi_tools import ASGIToolsOptions, Document
    from funcmcp.adapters.azure.http_function_tools import FunctionApp, HTTPFunctionOptions
    from funcmcp.auth.authenticator import Authenticator
    from funcmcp.authoring.features.permissions import AccessOptions
    from funcmcp.server.middleware import Middleware
    from funcmcp.server.options import ShowErrors
    from funcmcp.state.seal import KeyRing

    Maker = Callable[..., Any]
    Transport: TypeAlias = Literal["stdio", "http", "streamable-http", "sse"]
    from funcmcp.transports.http.messages import Exchange

F = TypeVar("F", bound="Callable[..., Any]")


def on_instance(method: F) -> F:
    """Make a method say so where the author wrote ``mcp = MCPServer`` without parentheses."""

    @wraps(method)
    def checked(*args: Any, **options: Any) -> Any:
        if not args or not isinstance(args[0], MCPServer):
            raise TypeError(
                f'MCPServer.{method.__name__} was called on the class, not on a server: write mcp = MCPServer("name").'
            )
        return method(*args, **options)

    return cast("F", checked)


_OPTIONS_ELSEWHERE = {
    "bus": "sessions=SignedSessions(bus=...) or a store that has a bus, such as RedisSessions",
    "host": "mcp.run(host=...)",
    "keys": "sessions=SignedSessions(keys=...), or keys= of another store",
    "lifespan": "mcp.services for what functions need, and mcp.lifespan() in the lifespan of an application around it",
    "mask_error_details": "show_errors=",
    "port": "mcp.run(port=...)",
    "sse_path": "http=HTTPOptions(sse=...)",
    "stateless_http": "sessions=None",
    "streamable_http_path": "http=HTTPOptions(path=...)",
    "strict_input_validation": "lax=",
    "token_verifier": "auth=",
    "transport": "mcp.run(...)",
    **{option: f"http=HTTPOptions({option}=...)" for option in HTTPOptions.__slots__},
    **{option: f"info=ServerInfo({option}=...)" for option in ServerInfo.__slots__},
    **{option: f"lists=ListOptions({option}=...)" for option in ListOptions.__slots__},
}
"""What funcmcp has for options that are in another place, and for options of other frameworks."""


def explains_options(init: F) -> F:
    """Make the constructor reject an unknown option with an error that names the right one."""
    valid = [name for name in inspect.signature(init).parameters if name not in {"self", "name"}]

    @wraps(init)
    def checked(self: MCPServer, *args: Any, **options: Any) -> None:
        if len(args) > 1:
            raise TypeError(
                f"MCPServer takes only its name by position. Write MCPServer({args[0]!r}, instructions={args[1]!r})."
            )
        for option in options:
            if option in _OPTIONS_ELSEWHERE:
                raise TypeError(f"MCPServer has no option {option!r}. Use {_OPTIONS_ELSEWHERE[option]}.")
            if option not in {"name", *valid}:
                raise TypeError(f"MCPServer has no option {option!r}. Valid options: {', '.join(valid)}.")
        init(self, *args, **options)

    return cast("F", checked)


_OPTION_TYPES = {"info": ServerInfo, "http": HTTPOptions, "lists": ListOptions, "limits": Limits}
_FOREIGN = "a client came with what another process or an earlier start has sealed"
_HTTP_TRANSPORTS = {"http", "streamable-http", "sse"}
_LOOPBACK = "127.0.0.1"
_MAX_PORT = 65535


class MCPServer(ASGIApplication):
    """An MCP server, and the ASGI application that serves it: ``uvicorn server:mcp``.

    Args:
        name: The server's name, as clients see it.
        instructions: Guidance for the client's model on how to use the server.
        version: The server's own version.
        info: Title, description, icons, website and protocol revisions of the server.
        http: Options of HTTP: paths of the endpoints, accepted hosts and origins, proxies, rates.
        auth: Authenticates the callers: an authenticator such as `funcmcp.auth.APIKeys`, or `Auth` with one and more
            options. None lets everybody call everything.
        sessions: Where sessions of the handshake revisions are kept. ``"signed"`` keeps them in their ids, which every
            process with the same keys can check. ``"memory"`` keeps them in this process, which also allows
            subscriptions, `list_changed` and resuming broken streams. A store, such as `funcmcp.redis.RedisSessions`,
            does the same for several instances. None is the stateless mode: there are no session ids, clients need no
            `initialize`, and tools can't ask clients of these revisions anything.
        lists: Page size, caching and visibility of the lists of tools, resources and prompts.
        limits: How much one process accepts; see docs/guides/limits.md.
        lax: Convert arguments of tools, such as ``"5"`` to 5 and strings with JSON to objects. ``lax=`` of a tool
            overrides it.
        show_errors: Exceptions whose text clients get when a tool, resource or prompt raises them: True for all
            exceptions, an exception type, or a list of types. Clients get a neutral sentence with an error id for all
            others; the log has the traceback under the same id. The text of `ToolError` is always sent.
        middleware: Functions around every request, the outermost first. See `funcmcp.middleware`.

    Raises:
        ValueError: An option has an invalid value, or the keys in the environment are invalid.
        TypeError: An option is unknown or has the wrong type.
    """

    @explains_options
    def __init__(  # noqa: PLR0913 - one parameter for each concern
        self,
        name: str,
        *,
        instructions: str | None = None,
        version: str = "0.1.0",
        info: ServerInfo | None = None,
        http: HTTPOptions | None = None,
        auth: Authenticator | Auth | None = None,
        sessions: SessionStore | Literal["signed", "memory"] | None = "signed",
        lists: ListOptions | None = None,
        limits: Limits | None = None,
        lax: bool = False,
        show_errors: ShowErrors = False,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        _check_types(name, auth, {"info": info, "http": http, "lists": lists, "limits": limits})
        info, http = info or ServerInfo(), http or HTTPOptions()
        options = ServerOptions(
            name,
            version,
            instructions,
            info=replace(info, icons=icon_list(info.icons)),
            lists=lists or ListOptions(),
            limits=limits or Limits(),
            show_errors=show_errors,
        )
        self.path = http.path
        self.services = Services(lax=lax)
        """What functions need and callers don't send: register it here, by type."""
        keys = (getattr(sessions, "keys", None) or configured_keys(os.environ)).of(name)
        self._warned_of_key = False
        if not keys.shared:
            keys.on_foreign = partial(self._warn_of_random_key, _FOREIGN)
        store = _store(sessions, keys)
        auth = auth if auth is None or isinstance(auth, Auth) else Auth(auth)
        self.server = Server(
            options,
            [REVISIONS[date] for date in sorted(info.revisions)],
            keys=keys,
            auth=auth,
            bus=getattr(store, "bus", None),
            middleware=middleware,
        )
        self._store = store
        self.metadata = None if auth is None else auth.resource
        """What clients are told of where to get tokens; None if nothing."""
        identity = None if auth is None else _identity(self.server, auth)
        self._streamable = StreamableHTTP(self.server, store, http, path=http.path, identity=identity)
        self._http, self._auth, self._identity, self._sse = http, auth, identity, http.sse
        super().__init__(self._make_exchange(http.sse))
        self._has_websocket = http.websocket is not None
        self._websocket = WebSocket(self.server, http, path=http.websocket, identity=identity)

    @property
    def keeps_sessions(self) -> bool:
        """Whether sessions of the handshake era live in this process."""
        return isinstance(self._store, LiveSessions) and not isinstance(self._store, SharedSessions)

    @property
    def has_websocket(self) -> bool:
        """Whether there is an endpoint for WebSockets."""
        return self._has_websocket

    @property
    def name(self) -> str:
        """The program's name."""
        return self.server.options.name

    @property
    def limits(self) -> Limits:
        """How much one process takes on."""
        return self.server.options.limits

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, name: str | None = None, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...

    @on_instance
    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Make a tool of a function; use it as ``@mcp.tool``, ``@mcp.tool("name", ...)`` or ``mcp.tool(function)``.

        The function stays callable as it was. Its name, docstring and type hints become the tool's name, title,
        description and schemas; keyword options override them.

        Raises:
            RegistrationError: the function can't be a tool, or the name is taken.
        """
        return self._register(
            function, options, lambda chosen: partial(make_tool, options=checked_options(chosen, ToolOptions))
        )

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(self, name: str | None = None, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...

    @on_instance
    def prompt(self, function: Any = None, /, **options: Any) -> Any:
        """Make a prompt of a function; use it as ``@mcp.prompt`` or ``@mcp.prompt("name", ...)``.

        The function's parameters are the prompt's arguments. It returns a text, a content block, a `Message`, a list of
        these, or a `PromptResult`.

        Raises:
            RegistrationError: the function can't be a prompt, or the name is taken.
        """
        return self._register(
            function, options, lambda chosen: partial(make_prompt, options=checked_options(chosen, PromptOptions))
        )

    @on_instance
    def resource(self, uri: str, /, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Make a resource of a function: ``@mcp.resource("menu://today")``.

        A URI with variables, such as ``menu://categories/{category_id}``, is a template; the function's parameters are
        its variables. The function returns a text, bytes, a value that is sent as JSON, `Contents`, a list of
        `Contents`, or None where there is nothing.

        Raises:
            RegistrationError: the function can't be a resource, or the URI is taken.
        """
        return self._registering(
            partial(make_resource, uri=checked_uri(uri), options=checked_options(options, ResourceOptions))
        )

    @on_instance
    def resource_list(self, scheme: str, /, **access: Unpack[AccessOptions]) -> Callable[[F], F]:
        """Make a function list resources of a scheme, each time that a client asks; it returns `ResourceInfo` objects.

        What reads them is registered as a resource or, mostly, as a template. Options say for whom it is called.

        Raises:
            RegistrationError: the scheme is none, or has a list already.
        """
        return self._registering(partial(make_lister, scheme=checked_scheme(scheme), options=access))

    @on_instance
    def add(self, owner: object) -> None:
        """Add every method of a class or an object that is marked with ``@tool``, ``@resource`` or ``@prompt``.

        A class is constructed for each request, its constructor's parameters injected from `services`.

        Raises:
            RegistrationError: nothing in it is marked, or a name is taken.
        """
        if inspect.isroutine(owner):
            raise RegistrationError(
                "mcp.add takes a class or an object with marked methods. "
                f"Write mcp.tool({owner.__name__}) for a function."
            )
        features = features_of(owner, self.services)
        if not features:
            raise RegistrationError(f"{owner!r} has no method marked with @tool, @resource or @prompt of funcmcp.")
        for feature in features:
            self.server.catalog.add(feature)

    @on_instance
    def tools_from_asgi(
        self, app: Application, openapi: Document = "/openapi.json", **options: Unpack[ASGIToolsOptions]
    ) -> None:
        """Make tools of the operations of an ASGI application, by its OpenAPI document or where it gives that itself.

        Calls stay in this process. `ASGIToolsOptions` says which operations, and how they are called. Raises
        RegistrationError: there is no document, an operation can't be a tool, or a name is taken.
        """
        from funcmcp.adapters.asgi.openapi_tools import tools_from_asgi  # noqa: PLC0415 - few servers do this

        for tool in tools_from_asgi(app, openapi, options, self.services):
            self.server.catalog.add(tool)

    @on_instance
    def tool_from_http_function(
        self, app: FunctionApp, function: str, /, **options: Unpack[HTTPFunctionOptions]
    ) -> None:
        """Make a tool of an HTTP-triggered function of an Azure function app, by its name there.

        Calls stay in this process. Variables of the route are arguments; `HTTPFunctionOptions` says what others there
        are. Raises RegistrationError: there is no such function, it can't be a tool, or a name is taken.
        """
        from funcmcp.adapters.azure.http_function_tools import tool_from_http_function  # noqa: PLC0415 - vendor code

        self.server.catalog.add(tool_from_http_function(app, function, options, self.services))

    def remove_tool(self, name: str) -> None:
        """Remove a tool; raise KeyError if there is none of that name."""
        self.server.catalog.tools.remove(name)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt; raise KeyError if there is none of that name."""
        self.server.catalog.prompts.remove(name)

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a template; raise KeyError if there is none of that URI."""
        catalog = self.server.catalog
        if catalog.resources.get(uri) is not None:
            catalog.resources.remove(uri)
        else:
            catalog.templates.remove(uri)

    async def resource_updated(self, uri: str) -> None:
        """Tell the clients that subscribed to a resource that it has changed."""
        self.server.hub.publish(updated(uri))

    async def resource_list_changed(self) -> None:
        """Tell the clients that a function of `resource_list` has other resources to list than before."""
        self.server.hub.publish(RESOURCES)

    def _register(self, function: Any, options: dict[str, Any], make: Callable[[dict[str, Any]], Maker]) -> Any:
        if callable(function):
            return self._registering(make(options))(function)
        return self._registering(make(with_name(function, options)))

    def _registering(self, make: Maker) -> Callable[[F], F]:
        def register(function: F) -> F:
            self.server.catalog.add(make(function, services=self.services))
            return function

        return register

    @on_instance
    def run(self, transport: Transport | None = None, *, host: str | None = None, port: int | None = None) -> None:
        """Serve until the process gets a signal to stop, or, on stdio, until the client closes stdin.

        Args:
            transport: "stdio" serves one client on this process's stdin and stdout. "http" (also "streamable-http")
                serves Streamable HTTP. "sse" does so too, with an HTTP+SSE endpoint beside it: at `sse`, or at /sse
                without it. By default stdio, as MCP clients start servers; but HTTP where a host or a port is given,
                or where the Azure Functions host started the process. HTTP needs ``pip install "funcmcp[server]"``.
            host: the address that HTTP listens on; 127.0.0.1 by default.
            port: the port that HTTP listens on; 0 for a free one. By default the one on which the Azure Functions host
                expects the server, or 8000.

        Raises:
            ValueError: The transport is unknown, the host or port is invalid, or one is given for stdio.
            RuntimeError: An event loop is running in this thread; use `run_async` there.
            OSError: Stdin or stdout is not open.
            SystemExit: The address can't be listened on, or uvicorn is not installed. A line on stderr says so.
        """
        chosen = _chosen_transport(transport, host, port)
        _check_no_loop_runs()
        if chosen == "stdio":
            from funcmcp.transports import stdio  # noqa: PLC0415 - only servers on stdio need it

            stdio.run(self.server, self.aclose)
            return
        uvicorn, endpoint = _uvicorn_adapter(), self._endpoint(transport)
        port = uvicorn.default_port() if port is None else port
        try:
            uvicorn.serve(
                self, host=host or _LOOPBACK, port=port, on_ready=lambda origin: uvicorn.announce(origin + endpoint)
            )
        except uvicorn.AddressError as error:
            sys.stderr.write(f"{error.strerror}. Choose another address with host= and port=.\n")
            raise SystemExit(1) from None  # without the text: a thread that ends so would not show it

    @on_instance
    async def run_async(
        self, transport: Transport | None = None, *, host: str | None = None, port: int | None = None
    ) -> None:
        """Serve as `run` does, in an event loop that runs already.

        Arguments and errors are those of `run`, but an address that can't be listened on is an OSError.
        """
        if _chosen_transport(transport, host, port) == "stdio":
            from funcmcp.transports import stdio  # noqa: PLC0415 - only servers on stdio need it

            await stdio.run_async(self.server, self.aclose)
            return
        uvicorn, endpoint = _uvicorn_adapter(), self._endpoint(transport)
        port = uvicorn.default_port() if port is None else port
        await uvicorn.serve_async(
            self, host=host or _LOOPBACK, port=port, on_ready=lambda origin: uvicorn.announce(origin + endpoint)
        )

    def _endpoint(self, transport: Transport | None) -> str:
        """Return the path to announce for a transport; add the HTTP+SSE endpoint if it is asked for and missing."""
        if transport != "sse":
            return self.path
        if self._sse is None:
            self._sse = "/sse"
            self.exchange = self._make_exchange(self._sse)
        return self._sse

    def _make_exchange(self, sse: str | None) -> Exchange:
        """Return what answers HTTP requests: CORS and metadata around the endpoints."""
        exchange: Exchange = self._streamable
        if sse is not None:
            exchange = HTTPSSE(self.server, self._http, path=sse, otherwise=exchange, identity=self._identity)
        if self._auth is not None:
            exchange = Protected(self._auth.resource, self._http, otherwise=exchange)
        return CORS(self._http, otherwise=exchange) if self._http.allowed_origins else exchange

    def begin(self) -> None:
        """Log warnings for the operator, and subscribe to the messages of other instances."""
        self.server.bus.start()
        if _may_be_one_of_several():
            self._warn_of_random_key("this is one of several processes")
        if self.server.guard is None and any(
            feature.access != PRINCIPALS_ONLY for feature in self.server.catalog.features()
        ):
            logger.warning(
                "%s has features with allow_anonymous, scopes or authorize, which mean nothing without auth: "
                "everybody may use everything.",
                self.name,
            )
        if self.keeps_sessions:
            logger.info("%s keeps sessions in this process's memory: clients must come back to it.", self.name)

    def on_listening(self, address: str) -> None:
        """Warn of a random key where other machines can reach the server: this is not a trial on one machine."""
        if not _is_loopback(address):
            self._warn_of_random_key("other machines can reach it")

    def on_first_request(self, scope: Scope, *, has_lifespan: bool) -> None:
        """Begin, and say what is missing, where the application around the server does not run its lifespan."""
        if not has_lifespan:
            self.begin()
            if self.services.has_app_scope or not isinstance(self.server.bus, LocalBus):
                logger.warning(
                    "%s is served without its lifespan, so its services with scope='app' and its connections are not "
                    "closed at the end. Enter `async with mcp.lifespan():` in the lifespan of the application around "
                    "it; see docs/guides/transports.md.",
                    self.name,
                )
        if scope.get("server"):
            self.on_listening(scope["server"][0])

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:  # noqa: ARG002 - frameworks pass themselves
        """Begin, and close app-scope services and connections at the end of the block.

        An application in which the server is mounted enters it in its own lifespan, or takes it as such:
        ``Starlette(routes=[Mount("/shop", mcp)], lifespan=mcp.lifespan)``. ASGI servers that serve the MCPServer itself
        need none of this.

        Args:
            app: not used; Starlette and FastAPI pass the application.
        """
        self._has_begun = True
        self.begin()
        try:
            yield
        finally:
            await self.aclose()

    def _warn_of_random_key(self, reason: str) -> None:
        """Warn once that sessions or questions are sealed with a key that no other process has."""
        sealed = self._sealed()
        if self._warned_of_key or self.server.keys.shared or not sealed:
            return
        self._warned_of_key = True
        logger.warning(
            "%s has a random key, and %s: its %s belong to this process and end with it. "
            "To share a key with other processes and later starts, set %s.",
            self.name,
            reason,
            " and its ".join(sealed),
            VARIABLE,
        )

    def _sealed(self) -> list[str]:
        """Return what is sealed with the server's keys, in words."""
        eras = {revision.per_request for revision in self.server.revisions.values()}
        asks = any(feature.interactive for feature in self.server.catalog.features())
        found = {
            "sessions": isinstance(self._store, SignedSessions) and False in eras,
            "questions to clients": asks and True in eras,
        }
        return [words for words, is_sealed in found.items() if is_sealed]

    def drain(self) -> None:
        """End the streams on which clients listen: the server is about to stop. From any thread."""
        self.server.hub.close()

    @on_instance
    def add_middleware(self, middleware: Middleware) -> None:
        """Add a function around every request, inside of the middleware that is there already.

        Args:
            middleware: An async function ``(context, call_next) -> Reply``. See `funcmcp.middleware`.

        Raises:
            TypeError: It is not callable.
        """
        self.server.add_middleware(middleware)

    @on_instance
    def trace(self, tracer_provider: TracerProvider | None = None) -> None:
        """Make an OpenTelemetry span of every request; call it once, before serving. See docs/guides/telemetry.md.

        Needs ``pip install "funcmcp[otel]"``. A server on which it is not called loads nothing of OpenTelemetry.

        Args:
            tracer_provider: makes the spans; the process's global one by default.
        """
        from funcmcp.adapters.opentelemetry import tracing  # noqa: PLC0415 - vendor code is loaded by those who trace

        self.server.add_middleware(tracing(tracer_provider))

    async def aclose(self) -> None:
        """Close the services that live as long as the server, and the way to other instances."""
        await self.services.aclose()
        await self.server.bus.aclose()

    async def serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a scope of an ASGI server that is not HTTP."""
        if scope["type"] == "websocket":
            await serve_websocket(self._websocket, scope, receive, send, seconds=self.limits.write_seconds)
        else:
            await super().serve_other(scope, receive, send)


def _check_types(name: object, auth: object, options: Mapping[str, object]) -> None:
    """Raise TypeError for an argument of the wrong type, which would fail later or in each request."""
    if not isinstance(name, str) or not name.strip():
        raise TypeError(f'MCPServer needs a name, such as MCPServer("shop"); got {name!r:.60}.')
    for option, value in options.items():
        expected = _OPTION_TYPES[option]
        if value is not None and not isinstance(value, expected):
            raise TypeError(f"{option} must be {expected.__name__}(...); got {type(value).__name__}.")
    if auth is not None and not isinstance(auth, Auth) and not callable(auth):
        secret_type = type(auth).__name__  # The value may be a secret, which must not get into a log.
        raise TypeError(f"auth must be an authenticator, such as APIKeys({{...}}), or Auth(...); got {secret_type}.")


def _identity(server: Server, auth: Auth) -> Identity | None:
    if server.guard is None:
        return None
    metadata_url = None if auth.resource is None else auth.resource.metadata_url
    return Identity(server, server.guard, auth.authenticator, metadata_url=metadata_url)


def _is_loopback(address: str) -> bool:
    """Return whether only this machine can reach an address, which may be the path of a socket."""
    import ipaddress  # noqa: PLC0415 - most starts of a server need not wait for it

    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return True
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


def _may_be_one_of_several() -> bool:
    """Return whether a program such as gunicorn or `uvicorn --workers` has started this process to serve."""
    if os.environ.get("SERVER_SOFTWARE", "").startswith("gunicorn"):
        return True
    multiprocessing = sys.modules.get("multiprocessing.process")  # a worker process has it loaded
    is_worker = multiprocessing is not None and multiprocessing.parent_process() is not None
    return is_worker and "--reload" not in sys.argv  # a reloader's process is the only one


def _chosen_transport(transport: Transport | None, host: str | None, port: int | None) -> Literal["stdio", "http"]:
    """Return the kind of transport to serve; raise ValueError if it does not exist, or its arguments don't fit."""
    has_address = host is not None or port is not None
    if host is not None and not isinstance(host, str):
        raise ValueError(f"host must be a string, such as '127.0.0.1'; got {host!r}.")
    if port is not None and (type(port) is not int or not 0 <= port <= _MAX_PORT):
        raise ValueError(f"port must be an integer from 0 to {_MAX_PORT}; got {port!r}.")
    if transport is None:
        return "http" if has_address or PORT_VARIABLE in os.environ else "stdio"
    if transport == "stdio":
        if has_address:
            raise ValueError('host and port are for HTTP. Leave them out, or use the transport "http".')
        return "stdio"
    if transport not in _HTTP_TRANSPORTS:
        raise ValueError(f"transport must be 'stdio', 'http', 'streamable-http' or 'sse'; got {transport!r}.")
    return "http"


def _check_no_loop_runs() -> None:
    """Raise RuntimeError if an event loop is running in this thread, as in a coroutine or a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("mcp.run() can't start while an event loop is running. Write: await mcp.run_async(...)")


def _uvicorn_adapter() -> ModuleType:
    """Return the module that serves with uvicorn; end the process with one line if uvicorn is not installed."""
    try:
        return importlib.import_module(
            "funcmcp.adapters.uvicorn.server"
        )  # vendor code, which only servers on HTTP need
    except ModuleNotFoundError as error:
        if error.name != "uvicorn":
            raise
        raise SystemExit('uvicorn is not installed. To serve HTTP: pip install "funcmcp[server]"') from None


def _store(sessions: SessionStore | Literal["signed", "memory"] | None, keys: KeyRing) -> SessionStore:
    """Return the store of sessions, whose ids are signed by the server's own keys."""
    if sessions is None:
        return NoSessions()
    if sessions == "signed":
        return SignedSessions(keys)
    if sessions == "memory":
        return MemorySessions()
    if not isinstance(sessions, SessionStore):
        raise ValueError(  # noqa: TRY004 - any other text is as wrong as another type
            f"sessions must be 'signed', 'memory', None or a session store; got {sessions!r}."
        )
    if isinstance(sessions, SignedSessions):
        return sessions.signed_by(keys)
    return sessions
