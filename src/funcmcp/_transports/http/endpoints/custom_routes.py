"""Custom routes: the author's own HTTP functions beside the endpoints, such as ``/health``.

How it works: `CustomRoutes` answers requests whose path belongs to a route, and passes on all others. A request passes
the same admission as one to an endpoint: sizes, Host and Origin, load, credentials and rate. Two admissions differ only
in the credentials: routes with ``allow_anonymous`` do not read them. What a function returns becomes a response.

A path is split into segments as the client has sent it, and each segment is decoded once: an encoded slash is a part of
a value and leads to no other route. A value that a program may read as a path to another folder is refused.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import decode, encode
from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._protocol.uri_template import is_safe
from funcmcp._server.limits import LimitReachedError
from funcmcp._server.run import is_failure
from funcmcp._transports.http.admission.admission import Admission, HeaderCheck
from funcmcp._transports.http.admission.body import answer_body
from funcmcp._transports.http.endpoints.application_response import ApplicationResponse
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import JSON, authored_response, failed, limit_reached, refuse, wrong_method

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from funcmcp._auth.access import Access
    from funcmcp._auth.principal import Principal
    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.admission.authentication import Authentication
    from funcmcp._transports.http.endpoints.application_response import Application
    from funcmcp._transports.http.messages import Exchange, HttpRequest
    from funcmcp._transports.http.options import HTTPOptions

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_CACHE = "cache-control"
_VARIABLE = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}")
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")
_UNSAFE = "The path has a segment that is not allowed: '.', '..', an absolute path, a backslash or a control character."


@public("funcmcp.http")
class Request:
    """The request of a custom route.

    Attributes:
        method: The HTTP method, in upper case.
        path: The path below the mount path, percent-decoded, without the query.
        path_params: The values of the variables in the route's path, by name.
        body: The body.
        principal: The principal that sent it; None on a server without `auth`, and on routes with `allow_anonymous`.
    """

    def __init__(self, request: HttpRequest, body: bytes, path_params: Mapping[str, str]) -> None:
        self._request = request
        self.method: str = request.method
        self.path: str = request.path
        self.path_params: Mapping[str, str] = path_params
        self.body: bytes = body
        self.principal: Principal | None = request.principal

    @property
    def url(self) -> str:
        """The absolute URL, with the Host header of the client."""
        return self._request.url

    @property
    def headers(self) -> Mapping[str, str]:
        """Header values by name, in any case."""
        return self._request.headers

    @property
    def query_params(self) -> Mapping[str, str]:
        """Query parameters. Of a repeated name, the last value counts."""
        return self._request.query_params

    @property
    def cookies(self) -> Mapping[str, str]:
        """Cookies by name."""
        return self._request.cookies

    @property
    def client(self) -> str | None:
        """The IP address of the client, behind `HTTPOptions(proxies=)` the forwarded one; None if unknown."""
        return self._request.client_address

    def text(self) -> str:
        """Return the body as UTF-8 text; raise ValueError if it is not."""
        return self.body.decode()

    def json(self) -> Any:
        """Return the body's JSON value; raise ValueError if it is not JSON."""
        return decode(self.body)


@public("funcmcp.http")
class Response:
    """The response of a custom route.

    Args:
        body: A string is sent as ``text/plain``, bytes as ``application/octet-stream``, and None as an empty body. Any
            other value is sent as JSON.
        status: The HTTP status.
        headers: Header fields. ``content-type`` replaces the type of the body. A list of pairs may repeat names.
    """

    def __init__(
        self, body: Any = None, status: int = 200, headers: Mapping[str, str] | Sequence[tuple[str, str]] = ()
    ) -> None:
        self.body = body
        self.status = status
        self.headers = headers


class RouteApplication(NamedTuple):
    """An ASGI application that answers the requests to a route. It reads their bodies itself."""

    application: Application


class CustomRoute(NamedTuple):
    """A route of the author.

    Attributes:
        path: The path below the mount path. ``{name}`` stands for one segment.
        methods: The HTTP methods.
        handler: Returns the value of the response, or is an ASGI application that answers.
        access: Who may use it, on a server with `auth`.
        timeout: Seconds after which the handler is cancelled; None for no limit.
        pattern: What a path fits, if the variables of the path have another form, as with Starlette's converters.
    """

    path: str
    methods: tuple[str, ...]
    handler: Callable[[Request], Awaitable[Any]] | RouteApplication
    access: Access
    timeout: float | None = 60.0
    pattern: re.Pattern[str] | None = None

    def match(self, path: str, segments: Sequence[str]) -> dict[str, str] | None:
        """Return the values of the variables if a path fits, or None.

        Args:
            path: The path, percent-decoded; a pattern is matched against it, as Starlette does.
            segments: The segments of the path, each of them decoded.
        """
        if self.pattern is not None:
            match = self.pattern.match(path)
            return None if match is None else match.groupdict()
        names = self.path.split("/")
        if len(names) != len(segments):
            return None
        variables: dict[str, str] = {}
        for name, value in zip(names, segments, strict=True):
            if name.startswith("{") and value:
                variables[name[1:-1]] = value
            elif name != value:
                return None
        return variables


class RouteMatch(NamedTuple):
    """A route whose path a request has.

    Attributes:
        route: The route.
        values: The values of the variables in its path.
    """

    route: CustomRoute
    values: dict[str, str]


class CustomRoutes:
    """Answers the requests to custom routes.

    Args:
        server: The server, whose load and limits count.
        options: The options of the HTTP endpoints.
        authentication: Authenticates callers; None admits every caller.

    Attributes:
        routes: The routes.
        otherwise: Answers the requests to all other paths.
    """

    def __init__(self, server: Server, options: HTTPOptions, authentication: Authentication | None) -> None:
        limits = server.options.limits
        self.routes: list[CustomRoute] = []
        self.otherwise: Exchange
        self._server = server
        self._limits = limits
        self._authentication = authentication
        self._open: Admission[RouteMatch] = Admission(server, options, HeaderCheck(self._examine), None)
        self._guarded: Admission[RouteMatch] = Admission(
            server, options, HeaderCheck(self._examine), authentication, checks_messages=True
        )

    def add(self, route: CustomRoute) -> None:
        """Add a route; raise ValueError if another one has its path and one of its methods."""
        for existing in self.routes:
            same_path = _shape(existing.path) == _shape(route.path)
            methods = [method for method in route.methods if method in existing.methods]
            if same_path and methods:
                raise ValueError(
                    f"The path {route.path!r} has a route for {', '.join(methods)} already. Choose another path."
                )
        self.routes.append(route)

    def with_options(self, options: HTTPOptions) -> CustomRoutes:
        """Return the same routes with other options of the HTTP endpoints."""
        routes = CustomRoutes(self._server, options, self._authentication)
        routes.routes = list(self.routes)
        return routes

    def serves(self, path: str) -> bool:
        """Return whether a route has a path."""
        return bool(self._matches(path, path.split("/")))

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        matches = self._matches_of(request)
        if not matches:
            return await self.otherwise(request)
        match = _match_for(request.method, matches)
        admission = self._guarded
        if self._authentication is None or (match is not None and match.route.access.allow_anonymous):
            admission = self._open
        admitted = await admission.admit(request)
        if isinstance(admitted, HttpResponse):
            return admitted
        if admission is self._guarded and self._authentication is not None:
            refusal = await self._authentication.check_access(admitted.route.access, request)
            if refusal is not None:
                return refusal
        try:
            handler = admitted.route.handler
            if isinstance(handler, RouteApplication):
                return self._application_response(request, admitted.route, handler)
            answer = partial(self._answer, request, admitted, handler)
            response = await answer_body(request, self._limits, self._server.load, answer)
        except LimitReachedError as error:
            return limit_reached(error)
        if admission is self._guarded and _CACHE not in dict(response.headers):
            return response.with_headers((_CACHE, "no-store"))
        return response

    def _application_response(
        self, request: HttpRequest, route: CustomRoute, handler: RouteApplication
    ) -> ApplicationResponse:
        """Return the response of a route's application; raise LimitReachedError if too many requests are under way."""
        requests = self._server.load.requests
        requests.take(request.caller)
        give_back = partial(requests.give_back, request.caller)
        return ApplicationResponse(handler.application, self._limits, f"{request.method} {route.path}", give_back)

    def _examine(self, request: HttpRequest) -> RouteMatch | HttpResponse:
        """Return the route of a request, or the refusal of its path or of a method that its path does not have."""
        matches = self._matches_of(request)
        match = _match_for(request.method, matches)
        if match is None:
            return wrong_method([method for other in matches for method in other.route.methods])
        return match if all(map(_is_segment, match.values.values())) else refuse(400, INVALID_REQUEST, _UNSAFE)

    def _matches_of(self, request: HttpRequest) -> list[RouteMatch]:
        """Return the routes that have the path of a request."""
        return self._matches(request.path, [unquote(segment) for segment in request.raw_path.split("/")])

    def _matches(self, path: str, segments: Sequence[str]) -> list[RouteMatch]:
        matches = [(route, route.match(path, segments)) for route in self.routes]
        return [RouteMatch(route, values) for route, values in matches if values is not None]

    async def _answer(
        self, request: HttpRequest, match: RouteMatch, handler: Callable[[Request], Awaitable[Any]], body: bytes
    ) -> HttpResponse:
        """Call a route's handler, and return its response, or the one for its failure."""
        route = match.route
        try:
            async with asyncio.timeout(route.timeout) as deadline:
                value = await handler(Request(request, body, match.values))
            return response_of(value)
        except BaseException as error:
            if not is_failure(error):
                raise
            if route.timeout is not None and deadline.expired():
                error.add_note(
                    f"It did not finish within {seconds_text(route.timeout)} (timeout= of the custom route)."
                )
            return failed(error, f"{request.method} {route.path}", request.method)


def _match_for(method: str, matches: Sequence[RouteMatch]) -> RouteMatch | None:
    """Return the first match whose route has a method; None if there is none."""
    return next((match for match in matches if method in match.route.methods), None)


def response_of(value: Any) -> HttpResponse:
    """Return the response for what a custom route's function has returned.

    Raises:
        TypeError: The value is not a response, text, bytes or JSON.
        ValueError: The status or a header is invalid.
    """
    response = value if isinstance(value, Response) else Response(value, 204 if value is None else 200)
    fields = response.headers.items() if hasattr(response.headers, "items") else response.headers
    headers = [(name.lower(), text) for name, text in fields]
    body, content_type = _encoded_body(response.body)
    if content_type is not None and "content-type" not in dict(headers):
        headers.insert(0, ("content-type", content_type))
    return authored_response(response.status, headers, body)


def _encoded_body(body: Any) -> tuple[bytes, str | None]:
    if body is None:
        return b"", None
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    if isinstance(body, bytes):
        return body, "application/octet-stream"
    try:
        return encode(body), JSON
    except ValueError as error:
        raise TypeError(
            f"A custom route can't return {type(body).__module__}.{type(body).__qualname__}: {error} "
            "Return a funcmcp.http.Response, text, bytes, a JSON value or None."
        ) from None


def _is_segment(value: str) -> bool:
    """Return whether a value is read as a name by programs that append it to a path."""
    return is_safe(value) and "." not in value.split("/") and not _CONTROL.search(value)


def _shape(path: str) -> list[str]:
    """Return the segments of a path, without the names of variables."""
    return ["{}" if segment.startswith("{") else segment for segment in path.split("/")]


def checked_path(path: object) -> str:
    """Return the path of a custom route; raise ValueError if it can't be one."""
    if not isinstance(path, str) or not path.startswith("/"):
        raise ValueError(f"The path of a custom route must begin with a slash, such as '/health'; got {path!r}.")
    variables = [segment for segment in path.split("/") if "{" in segment or "}" in segment]
    for variable in variables:
        if not _VARIABLE.fullmatch(variable):
            raise ValueError(f"The path {path!r} is malformed. A variable is {{name}}, and stands for a whole segment.")
    if len(set(variables)) < len(variables):
        raise ValueError(f"The path {path!r} has two variables of the same name. Rename one of them.")
    return path


def checked_methods(methods: object) -> tuple[str, ...]:
    """Return the HTTP methods of a custom route, HEAD with GET; raise ValueError if one can't be served."""
    if isinstance(methods, str) or not isinstance(methods, list | tuple | set | frozenset) or not methods:
        raise ValueError(f'methods must be a list of HTTP methods, such as ["GET"]; got {methods!r}.')
    names = [str(method).upper() for method in methods]
    unknown = [name for name in names if name not in METHODS]
    if "OPTIONS" in unknown:
        raise ValueError(
            "Custom routes have no method OPTIONS. Leave it out: the server answers the preflight requests of browsers "
            "from the origins in HTTPOptions(allowed_origins=...)."
        )
    if unknown:
        raise ValueError(f"Custom routes have no method {unknown[0]}. Valid methods: {', '.join(METHODS)}.")
    if "GET" in names and "HEAD" not in names:
        names.append("HEAD")
    return tuple(name for name in METHODS if name in names)
