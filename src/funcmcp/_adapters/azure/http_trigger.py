"""Azure Functions: an MCP server behind HTTP triggers of a function app.

The Functions host hands a request over as a whole and takes a response as a whole, with one line for each header name.
Where HTTP streams are on (`azure_streams`), the worker serves HTTP itself and a body goes out as it comes.

Source: the Python programming model v2 of Azure Functions; measured with azure-functions-runtime 1.3.0.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

try:
    import azure.functions as func
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Function apps need: pip install "funcmcp[azure]"', name=error.name) from None

from funcmcp._adapters.azure.app_functions import functions_of
from funcmcp._adapters.azure.application_call import called
from funcmcp._adapters.azure.settings import hostname, is_local, route_prefix
from funcmcp._adapters.azure.task_trigger import check_store
from funcmcp._adapters.azure.task_trigger import register as register_tasks
from funcmcp._adapters.azure.worker_lifetime import HasLifetime, WorkerLifetime
from funcmcp._auth.well_known import WELL_KNOWN
from funcmcp._protocol.server_card import PATH as CARD_PATH
from funcmcp._transports.http.endpoints.application_response import ApplicationResponse
from funcmcp._transports.http.endpoints.health import LIVE, READY
from funcmcp._transports.http.messages import READ_METHODS, HttpRequest, HttpResponse
from funcmcp._transports.http.streams.event_queue import EventQueue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from funcmcp._auth.protected_resource import ProtectedResource
    from funcmcp._oauth_proxy.proxy import OAuthProxy
    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.endpoints.custom_routes import CustomRoute
    from funcmcp._transports.http.messages import Exchange

AuthLevel = func.AuthLevel
FunctionApp = func.FunctionApp

_SET_COOKIE = "set-cookie"
_RESERVED = ("admin", "runtime")
"""What no route may begin with: there the host has routes of its own."""
_OK = 200
_LONGEST_NAME = 100
_SIGN_IN = "oauth/{*step}"
_ROOT_METADATA = WELL_KNOWN[1:]
"""Where clients look that guess."""


class FunctionAppServer(HasLifetime, Protocol):
    """A server, as far as a function app needs it."""

    server: Server
    exchange: Exchange
    path: str
    metadata: ProtectedResource | None
    proxy: OAuthProxy | None

    @property
    def has_health(self) -> bool:
        """Whether it has health endpoints."""

    @property
    def takes_uploads(self) -> bool:
        """Whether it has a place for files below the endpoint."""

    @property
    def has_card(self) -> bool:
        """Whether it has a card below the endpoint."""

    @property
    def routes(self) -> list[CustomRoute]:
        """The custom routes."""

    def fix_routes(self, function: str) -> None:
        """Refuse further custom routes."""

    def on_first_request(self, address: str | None) -> None:
        """Take note of the first request, and of the address that it came to, if that is known."""


class StreamedRequest(func.HttpRequest):
    """A request that reached the worker over HTTP, so that its response can be a stream.

    Args:
        request: method, path and header lines, as they came.
        url: the absolute URL.
        body: all of it.
        gone: returns when the client has left.
    """

    def __init__(self, request: HttpRequest, url: str, body: bytes, gone: Callable[[], Awaitable[None]]) -> None:
        super().__init__(request.method, url, headers=request.headers, params=request.query_params, body=body)
        self.pairs = request.pairs
        self.server = request.server
        self.gone = gone
        self.route_values: dict[str, str] = {}

    @property
    def route_params(self) -> dict[str, str]:
        """What the host found in the URL for the variables of the route."""
        return self.route_values


class StreamedResponse(func.HttpResponse):
    """A response whose body may be sent as it comes.

    Args:
        wire: the response.
    """

    def __init__(self, wire: HttpResponse) -> None:
        super().__init__(status_code=wire.status)
        self.wire = wire


class AzureRequest(HttpRequest):
    """A request as the Functions host hands it over.

    Args:
        req: the host's request.
        path: what it asks of the server, whatever the function's own route is.
    """

    __slots__ = ("_parts", "_req")

    def __init__(self, req: func.HttpRequest, path: str) -> None:
        if isinstance(req, StreamedRequest):
            super().__init__(req.method, path, req.pairs, req.server)
        else:
            pairs = [(name.encode(), value.encode()) for name, value in req.headers.items()]
            # Only on a developer's machine is it sure that the connection came in on a loopback address.
            super().__init__(req.method, path, pairs, "127.0.0.1" if is_local(hostname()) else None)
        self.body = req.get_body()
        self._req = req
        self._parts: SplitResult = urlsplit(req.url)

    @property
    def can_stream(self) -> bool:
        """Whether HTTP streams are on."""
        return isinstance(self._req, StreamedRequest)

    @property
    def is_hosted(self) -> bool:
        """True: the Functions host accepts the connections."""
        return True

    async def disconnected(self) -> None:
        """Return when the client has gone; never, where the host does not say."""
        if isinstance(self._req, StreamedRequest):
            await self._req.gone()
        else:
            await super().disconnected()

    @property
    def scheme(self) -> str:
        """What the client used: the platform ends TLS in front of the app, and says so."""
        forwarded = self.headers.get("x-forwarded-proto", "").partition(",")[0].strip()
        if forwarded in {"http", "https"}:
            return forwarded
        return self._parts.scheme

    @property
    def raw_path(self) -> str:
        """The path as the client has sent it, without the route prefix; made from `path` if the URL has another one."""
        path: str = self._parts.path.removeprefix(route_prefix())
        return path if unquote(path) == self.path else super().raw_path

    @property
    def query_string(self) -> str:
        """What stands behind the `?`."""
        query: str = self._parts.query
        return query

    @property
    def url(self) -> str:
        """The absolute URL as the client wrote it, as far as the Host header tells."""
        host = self.headers.get("host", self._parts.netloc)
        return urlunsplit(self._parts._replace(scheme=self.scheme, netloc=host))


class AzureStreamedRequest(AzureRequest):
    """A request that reached the worker over HTTP.

    How it works: the exchange runs in a task of its own, because a function returns its response once. If the exchange
    sends a part of its response early, the function returns a stream of these parts, which ends with the response.
    """

    __slots__ = ("_early_headers", "_early_parts")
    begins_early = True

    def __init__(self, req: StreamedRequest, path: str) -> None:
        super().__init__(req, path)
        self._early_headers: tuple[tuple[str, str], ...] = ()
        self._early_parts = EventQueue()

    async def answered_by(self, exchange: Exchange) -> HttpResponse:
        """Return the response of an exchange as soon as it has begun."""
        task = asyncio.ensure_future(exchange(self))
        task.add_done_callback(lambda _: self._early_parts.end())
        try:
            await self._early_parts.ready()
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not self.has_early_response:
            return await task
        return HttpResponse(_OK, self._early_headers, self._early_response(task))

    async def send_early(self, headers: tuple[tuple[str, str], ...], part: bytes) -> None:
        """Send a part of the response before the exchange returns it."""
        if not self.has_early_response:
            self.has_early_response = True
            self._early_headers = headers
        await self._early_parts.put(part)

    async def _early_response(self, task: asyncio.Future[HttpResponse]) -> AsyncIterator[bytes]:
        """Yield the parts that were sent early, and the end of the response."""
        try:
            while await self._early_parts.ready():
                part = self._early_parts.take()
                if part is None:
                    break
                yield part
            response = await task
            if isinstance(response.body, bytes):
                yield response.body
        finally:
            self._early_parts.close()


class Site:
    """A server in a worker.

    Args:
        server: answers the requests.
    """

    def __init__(self, server: FunctionAppServer) -> None:
        self._server = server
        self._lifetime = WorkerLifetime(server)
        self._has_begun = False

    @property
    def has_health(self) -> bool:
        """Whether the server has health endpoints."""
        return self._server.has_health

    @property
    def takes_uploads(self) -> bool:
        """Whether the server has a place for files."""
        return self._server.takes_uploads

    async def begin(self) -> None:
        """Begin, unless that has happened."""
        await self._lifetime.begin()
        if not self._has_begun:
            self._has_begun = True
            self._server.on_first_request(None)  # the host knows the address

    async def answer(self, req: func.HttpRequest, path: str) -> func.HttpResponse:
        """Answer a request of the host."""
        await self.begin()
        if isinstance(req, StreamedRequest):
            return StreamedResponse(await self._answer_over_http(req, path))
        request = AzureRequest(req, path)
        response = await self._server.exchange(request)
        if isinstance(response, ApplicationResponse):
            response = await called(response, request)
        return await _complete_response(response)

    async def _answer_over_http(self, req: StreamedRequest, path: str) -> HttpResponse:
        request = AzureStreamedRequest(req, path)
        response = await request.answered_by(self._server.exchange)
        if isinstance(response, ApplicationResponse):
            response = await called(response, request)
        return response

    def custom_function(self) -> Callable[[func.HttpRequest], Awaitable[func.HttpResponse]]:
        """Return a function for a custom route, which serves the path below the app's route prefix."""

        async def custom(req: func.HttpRequest) -> func.HttpResponse:
            return await self.answer(req, unquote(urlsplit(req.url).path).removeprefix(route_prefix()))

        return custom

    def uploads_function(self, route: str) -> Callable[[func.HttpRequest], Awaitable[func.HttpResponse]]:
        """Return a function for the place for files below the route of the endpoint."""

        async def uploads(req: func.HttpRequest) -> func.HttpResponse:
            below = unquote(urlsplit(req.url).path).removeprefix(f"{route_prefix()}/{route}")
            return await self.answer(req, self._server.path + below)

        return uploads

    def function_at(self, path: str) -> Callable[[func.HttpRequest], Awaitable[func.HttpResponse]]:
        """Return a function for one path of the server."""

        async def answer(req: func.HttpRequest) -> func.HttpResponse:
            return await self.answer(req, path)

        return answer


def _checked_routes(server: FunctionAppServer, app: func.FunctionApp, endpoint: str) -> list[tuple[CustomRoute, str]]:
    """Return the custom routes of a server with their routes in the app; raise ValueError if one can't be served."""
    routes = []
    for custom_route in server.routes:
        path = _checked(_of_platform(custom_route.path.strip("/")))
        if path.lower() == endpoint.lower() or _has_route(app, path):
            raise ValueError(f"The function app has a function at the route {path!r} already. Choose another path.")
        routes.append((custom_route, path))
    return routes


def _register_uploads(site: Site, add: Callable[..., None], endpoint: str, level: func.AuthLevel | str) -> None:
    """Register the place for files, if there is one. An address that a tool has returned needs no key."""
    if site.takes_uploads:
        function = site.uploads_function(endpoint)
        add(function, "_uploads", f"{endpoint}/uploads/{{*name}}", level, "POST", "PUT")
        add(function, "_addresses", f"{endpoint}/uploads/to/{{*ticket}}", AuthLevel.ANONYMOUS, "POST", "PUT")


def _register_card(server: FunctionAppServer, site: Site, add: Callable[..., None], endpoint: str) -> None:
    """Register the card, if there is one. It needs no key, as it needs no credentials elsewhere."""
    if server.has_card:
        function = site.function_at(server.path.rstrip("/") + CARD_PATH)
        add(function, "_card", endpoint + CARD_PATH, AuthLevel.ANONYMOUS, *READ_METHODS, "OPTIONS")


def _register_health(site: Site, app: func.FunctionApp, name: str, taken: list[str]) -> None:
    """Register the health endpoints that are on and whose route no function of the app has."""
    routes = {route.lower() for route in taken}
    for path in (LIVE, READY) if site.has_health else ():
        route = path.strip("/")
        if route not in routes and not _has_route(app, route):
            function = app.function_name(f"{name}_{route}")(site.function_at(path))
            app.route(route=route, methods=READ_METHODS, auth_level=AuthLevel.ANONYMOUS)(function)


def _of_platform(path: str) -> str:
    """Return a path with the platform's words for Starlette's converters."""
    path = re.sub(r"\{(\w+):path\}", r"{*\1}", path)
    return re.sub(r"\{(\w+):uuid\}", r"{\1:guid}", path)


async def _complete_response(response: HttpResponse) -> func.HttpResponse:
    """Return a response as the host accepts it: complete, and with one line for each header name except Set-Cookie."""
    body = response.body if isinstance(response.body, bytes) else await _gathered(response.body)
    answer = func.HttpResponse(body, status_code=response.status)
    for name, value in response.headers:
        if name == _SET_COOKIE or name not in answer.headers:
            answer.headers.add(name, value)
        else:
            answer.headers[name] = f"{answer.headers[name]}, {value}"
    return answer


async def _gathered(body: AsyncIterator[bytes]) -> bytes:
    return b"".join([part async for part in body])


def register(
    server: FunctionAppServer, app: func.FunctionApp, *, route: str, auth_level: func.AuthLevel | str | None = None
) -> None:
    """Register the functions of a server on an app: endpoint, preflight requests, metadata, health and tasks.

    Args:
        server: answers the requests.
        app: the app.
        route: of the endpoint, below the app's route prefix.
        auth_level: which of the platform's keys callers need; by default none if the server itself asks who calls.

    Raises:
        ValueError: the route can't be one, clients would not find the server's metadata where it says that it is, or
            its tasks can't run in a function app.
    """
    check_store(server.server)
    site, route = Site(server), _checked(route.strip("/"))
    name = _name(route)
    sign_in_routes = _sign_in_routes(server.proxy, app)
    metadata_route = None if server.metadata is None else _metadata_route(server.metadata, route_prefix())
    auth_level = auth_level or _default_level(server)

    async def endpoint(req: func.HttpRequest) -> func.HttpResponse:
        return await site.answer(req, server.path)

    async def preflight(req: func.HttpRequest) -> func.HttpResponse:
        return await site.answer(req, server.path)

    async def metadata(req: func.HttpRequest) -> func.HttpResponse:
        return await site.answer(req, WELL_KNOWN + unquote(urlsplit(req.url).path).partition(WELL_KNOWN)[2])

    def add(function: Callable[..., Any], suffix: str, route: str, level: func.AuthLevel | str, *methods: str) -> None:
        named = app.function_name(name + suffix)(function)
        app.route(route=route, methods=methods, auth_level=level)(named)

    custom_routes = _checked_routes(server, app, route)
    server.fix_routes("funcmcp.azure.http_app")
    add(endpoint, "", route, auth_level, "POST", "GET", "DELETE")
    for number, (custom_route, path) in enumerate(custom_routes, 1):
        level = AuthLevel.ANONYMOUS if custom_route.access.allow_anonymous else auth_level
        add(site.custom_function(), f"_route_{number}", path, level, *custom_route.methods)
    _register_uploads(site, add, route, auth_level)
    _register_card(server, site, add, route)
    add(preflight, "_preflight", route, AuthLevel.ANONYMOUS, "OPTIONS")  # browsers send no key with it
    if metadata_route is not None:
        add(metadata, "_metadata", metadata_route, AuthLevel.ANONYMOUS, *READ_METHODS)
        if not route_prefix() and not _has_route(app, _ROOT_METADATA):  # of several servers the first one has it
            add(metadata, "_metadata_root", _ROOT_METADATA, AuthLevel.ANONYMOUS, *READ_METHODS)
    for number, path in enumerate(sign_in_routes, 1):
        add(site.custom_function(), f"_sign_in_{number}", path, AuthLevel.ANONYMOUS, *READ_METHODS, "POST", "OPTIONS")
    _register_health(site, app, name, [route, *(path for _, path in custom_routes)])
    if server.server.tasks is not None:
        register_tasks(server.server.tasks, app, name=f"{name}_tasks", begin=site.begin)


def _default_level(server: FunctionAppServer) -> func.AuthLevel:
    return AuthLevel.FUNCTION if server.metadata is None else AuthLevel.ANONYMOUS


def _checked(route: str) -> str:
    """Return the route; raise ValueError if the host would serve it elsewhere, or not at all."""
    if not route:
        raise ValueError(
            "The endpoint needs a route: without one the Functions host takes the function's name. "
            'For a short URL write route="mcp", and "routePrefix": "" in host.json.'
        )
    if route.partition("/")[0].lower() in _RESERVED:
        raise ValueError(f"The Functions host has routes of its own below {' and '.join(_RESERVED)}; got {route!r}.")
    return route


def _name(route: str) -> str:
    """Return a name for the functions of a route; the host wants a letter first, and keeps `host` for itself."""
    name = re.sub("[^0-9A-Za-z]+", "_", route).strip("_")[:_LONGEST_NAME]
    if name[:1].isalpha() and name.lower() != "host":
        return name
    return f"mcp_{name}".rstrip("_")


def _metadata_route(resource: ProtectedResource, prefix: str) -> str:
    """Return the route of the metadata; raise ValueError if its URL is not below the prefix, where functions are."""
    path = urlsplit(resource.metadata_url).path
    if path != prefix + WELL_KNOWN and not path.startswith(f"{prefix}{WELL_KNOWN}/"):
        raise ValueError(
            f"Clients would look for the metadata at {resource.metadata_url}, but the functions of this app are below "
            f'"{prefix}/". Make it with funcmcp.azure.protected_resource(), or set "routePrefix": "" in host.json.'
        )
    return path.removeprefix(prefix).strip("/")


def _sign_in_routes(proxy: OAuthProxy | None, app: func.FunctionApp) -> list[str]:
    """Return the routes of a proxy; raise ValueError if clients would not find them, or another function has them."""
    if proxy is None:
        return []
    prefix = route_prefix()
    if prefix:
        raise ValueError(
            f'Clients look for the sign-in at the root of the host, but the functions of the app are below "{prefix}/".'
            ' Set "routePrefix": "" in host.json.'
        )
    if "/oauth/token" not in proxy.paths:
        raise ValueError("A function app has its sign-in at the root of the host. Leave out OAuthProxy(issuer=...).")
    routes = list(dict.fromkeys(_SIGN_IN if path.startswith("/oauth/") else path.strip("/") for path in proxy.paths))
    for route in routes:
        if _has_route(app, route):
            raise ValueError(
                f"The function app has a function at the route {route!r} already. A host has one OAuthProxy."
            )
    return routes


def _has_route(app: func.FunctionApp, route: str) -> bool:
    triggers = (function.get_trigger() for function in functions_of(app).values() if function.is_http_function())
    return any(str(getattr(trigger, "route", "")).strip("/").lower() == route for trigger in triggers)
