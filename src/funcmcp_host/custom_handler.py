"""Custom handlers: a program of the app answers HTTP requests, and the host starts it and hands the requests on.

How it works: a task starts the program, waits until its port accepts connections, and starts it again when it ends: at
once the first time, later after a delay. A program that listens too late is ended, and the next one gets twice the
time, up to `_MAX_START_SECONDS`. Requests wait meanwhile, until the host stops. A request whose connection is refused
has not begun, so it is sent again, to the next process if there is one. After the last of `_PAUSES` it is answered with
502. A request whose connection breaks may have had an effect, and is answered with 502 at once. A request without an
answer in the time of a call is answered with 504, and the program is ended, as on Azure: it may hang.

Source: "Azure Functions custom handlers"; azure-functions-host, HttpWorkerOptions (InitializationTimeout),
HttpWorkerOptionsSetup and HttpWorkerProcess (the variables), DefaultHttpWorkerService (AddProxyingHeaders),
RetryProxyHandler (tries and delays) and HostConfigurationProfile; the samples for self-hosted MCP servers
(configurationProfile, port, defaultAuthorizationLevel).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
import weakref
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx2

from funcmcp import HTTPOptions, MCPServer
from funcmcp._adapters.asgi.application import ClientDisconnectedError, HTTPRuntime
from funcmcp._adapters.azure.route_templates import folded
from funcmcp._objects.mappings import without
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_REQUEST
from funcmcp._protocol.loopback import is_loopback
from funcmcp._server.limits import LimitReachedError
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.admission.admission import Admission, HeaderCheck
from funcmcp._transports.http.admission.body import answer_body
from funcmcp._transports.http.admission.cors import CORS
from funcmcp._transports.http.endpoints.health import LIVE, READY, Health
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.options import health_of_environment
from funcmcp._transports.http.status import checked_status, limit_reached, refuse, wrong_method
from funcmcp_host.app_rules.handler_rules import forwarding, routes_in
from funcmcp_host.app_rules.model import read_app
from funcmcp_host.app_rules.table import breaches_of
from funcmcp_host.bindings import BindingError
from funcmcp_host.folder import Folder, FolderError, read_folder
from funcmcp_host.handler_program import HandlerProgram, accepts, free_port, listens, read_program
from funcmcp_host.home_page import home_page
from funcmcp_host.http_proxy import forwarded_headers, response_headers
from funcmcp_host.invocation import FunctionRequest, drop_front_end_headers
from funcmcp_host.keys import MASTER_KEY, NAMES_BY_LEVEL, VARIABLE, Keys
from funcmcp_host.paths import canonical, target_of
from funcmcp_host.reload import reload_on_change
from funcmcp_host.route_patterns import (
    FunctionRoute,
    RouteTemplate,
    check_route,
    function_template,
    is_of_the_host,
    shadowing,
)
from funcmcp_host.routes import CROSS_SITE, is_cross_site
from funcmcp_host.workers.child_process import ChildProcess
from funcmcp_host.workers.worker import LoadFailed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from pathlib import Path

    from funcmcp._server.load import Budget
    from funcmcp._transports.http.messages import Exchange, HttpRequest
    from funcmcp_host.app_rules.model import App
    from funcmcp_host.served import HostSettings

_log = logging.getLogger("funcmcp.host")


_MAX_START_SECONDS = 600.0
_WITHOUT_BODY = {"GET", "HEAD"}
_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
_AWAY = "The custom handler does not start; try again later."
_STOPPING = "The server is stopping. The request was not processed; try again later."
_INVOCATION_ID = "x-azure-functions-invocationid"
_OF_THE_HOST = (_INVOCATION_ID, "x-azure-functions-hostversion")
"""Headers that only the host sets."""

_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
"""A connection for each request: one of a process that has ended would break after a request was written to it."""

_END_SECONDS = 2.0
"""How long the answer to a request that broke off waits for the end of the process: a process that is ending still
accepts connections, and the client's next request would break off as well."""

_PAUSES = (0.05, 0.1, 0.2, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25)
"""Seconds after which a request whose connection is refused is sent again."""

_DRAIN_SECONDS = 10.0
"""How long the end of a process whose files have changed waits for the answers that it has begun with."""

_REFUSING = "The custom handler runs and refuses connections. The request was not processed."
_BROKEN = "The custom handler ended or broke off the connection before it answered. The request may have had an effect."
_INVALID = (
    "The custom handler's response has a status or header that can't be sent. The request may have had an effect."
)
_LATE = "The custom handler did not answer in time. It is started again. The request may have had an effect."


class HandlerRoute(NamedTuple):
    """A route whose requests the program answers.

    Attributes:
        route: The route of the function.
        level: The level of the function.
    """

    route: FunctionRoute
    level: str


@dataclass(frozen=True, slots=True)
class CustomHandler:
    """A custom handler that answers HTTP requests.

    Attributes:
        program: How it is started.
        routes: What it answers: the levels of routes in function.json files, or of every path.
    """

    program: HandlerProgram
    routes: Sequence[HandlerRoute]


def read_custom_handler(app: App, route_prefix: str = "api") -> CustomHandler:
    """Return the custom handler of an app.

    Args:
        app: The app.
        route_prefix: The first part of the paths of HTTP triggers.

    Raises:
        FolderError: The app has none, it breaks a rule for custom handlers, or host.json has an invalid value.
    """
    program = read_program(app)
    uses_host = forwarding(app.host) == "routes"
    return CustomHandler(program, _routes_of_host(app, route_prefix) if uses_host else _routes(app, route_prefix))


def _routes_of_host(app: App, prefix: str) -> list[HandlerRoute]:
    """Return the routes in host.json, the most literal ones first."""
    routes: list[HandlerRoute] = []
    for text in routes_in(app):
        try:
            template = RouteTemplate("/".join(part for part in (prefix, text.route) if part))
            route = FunctionRoute(f"route {text.route}", template, ())
            check_route(route, [other.route for other in routes])
        except BindingError as error:
            raise FolderError(f"host.json: customHandler.http.routes: {error}") from error
        routes.append(HandlerRoute(route, text.level))
    return sorted(routes, key=lambda route: route.route.template.order)


def _routes(app: App, prefix: str) -> list[HandlerRoute]:
    """Return the routes of the HTTP triggers in function.json files, in the order in which they are tried."""
    routes: list[HandlerRoute] = []
    names = {folder.name for folder in app.folders}
    for function in sorted(app.functions, key=lambda function: folded(function.name)):
        binding = function.http_trigger
        if binding is None or function.name not in names:
            continue
        methods = tuple(text.upper() for text in _texts(binding.get("methods")))
        try:
            template = function_template(prefix, str(binding.get("route") or function.name))
            route = FunctionRoute(function.name, template, methods)
            check_route(route, [other.route for other in routes])
        except BindingError as error:
            raise FolderError(f"{function.name}/function.json: {error}") from error
        routes.append(HandlerRoute(route, str(binding.get("authlevel") or "function").lower()))
    return routes


def _texts(values: Any) -> list[str]:
    return [str(value) for value in values] if isinstance(values, list) else []


class CustomHandlerHost(HTTPRuntime):
    """A function app with a custom handler, served.

    Args:
        path: The app's folder.
        environment: The environment variables of this process.
        settings: How it is served.

    Raises:
        FolderError: The folder has no custom handler, or one of its files can't be read.
        KeysError: The keys in the environment can't be used.

    Attributes:
        breaches: What the rules for apps on Azure find.
    """

    def __init__(self, path: Path, environment: Mapping[str, str], settings: HostSettings) -> None:
        self.settings = settings
        self.folder: Folder = read_folder(path, environment, has_worker=True)
        app = read_app(self.folder.path, {})
        self.handler = handler = read_custom_handler(app, self.folder.options.route_prefix)
        self.breaches = breaches_of(app)
        self._is_public = not is_loopback(settings.host)
        self._keys = Keys.of_environment(environment, required=self._is_public)
        cross_origin = settings.cross_origin or self.folder.cross_origin
        options = HTTPOptions(allowed_origins=cross_origin.origins)
        self._server = runtime_of(MCPServer(self.folder.path.name)).server
        self._admission: Admission[bool] = Admission(self._server, options, HeaderCheck(lambda _: True), None)
        answer: Exchange = self._answer
        if cross_origin.origins:
            answer = CORS(options, otherwise=answer, methods=_METHODS, credentials=cross_origin.credentials)
        super().__init__(canonical(answer), self._server.options.limits)
        self._transport = httpx2.AsyncHTTPTransport(trust_env=False, limits=_LIMITS)
        self._process: ChildProcess | None = None
        self._ended: asyncio.Task[None] | None = None
        self._url = ""
        self._ready = asyncio.Event()
        self._unfinished = 0
        self._all_finished = asyncio.Event()
        self._first_start: asyncio.Future[str | None] | None = None
        self._start_seconds = handler.program.start_seconds
        self._stopping = asyncio.Event()
        self._health = Health(self.folder.path.name, lambda: [self._check_program], self._stopping.is_set)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def headers(self) -> Budget:
        """The memory of headers that have not ended."""
        return self._server.load.headers

    @property
    def has_proxies(self) -> bool:
        """Whether connections come from proxies."""
        return self.settings.trusts_proxy

    @property
    def pid(self) -> int | None:
        """The process of the program; None while there is none."""
        return None if self._process is None else self._process.pid

    @property
    def needs_keys(self) -> bool:
        """Whether other machines reach the app, it has no keys, and not all of its routes are open to everyone."""
        return self._is_public and not self._keys and any(_key_names(route.level) for route in self.handler.routes)

    async def start(self) -> None:
        """Start the program, and wait until it accepts connections.

        Raises:
            LoadFailed: The program can't be started, ends, or does not listen on its port in time.
        """
        if self.has_begun:
            return
        self._first_start = asyncio.get_running_loop().create_future()
        self._tasks.append(asyncio.create_task(self._supervise()))
        failure = await self._first_start
        if failure is not None:
            raise LoadFailed(failure)
        if self._is_public and any(not _key_names(route.level) for route in self.handler.routes):
            _log.warning("The custom handler is open to every machine that reaches %s.", self.settings.host)
        for line in shadowing([route.route for route in self.handler.routes]):
            _log.warning("%s", line)
        if self.settings.reload:
            self._tasks.append(asyncio.create_task(reload_on_change(self.folder.path, self._restart)))
        self.begin()

    async def _check_program(self) -> bool:
        """Return whether the program accepts connections."""
        return self._ready.is_set()

    def drain(self) -> None:
        """Note that the server is about to stop: requests that wait for the program are answered."""
        self._stopping.set()

    async def aclose(self) -> None:
        """End the program."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is not None:
            await self._process.aclose(0)
        await self._transport.aclose()

    async def _restart(self) -> None:
        """End the process when its calls have finished, so that the next one starts with the changed files."""
        self._ready.clear()
        process = self._process
        if self._unfinished:
            self._all_finished.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await self._all_finished.wait()
        if process is not None:
            await process.aclose(0)

    async def _end_hanging(self, process: ChildProcess | None) -> None:
        """End a process that does not answer, unless another one runs already."""
        if process is not None and process is self._process:
            self._ready.clear()
            await process.aclose(0)

    async def _supervise(self) -> None:
        """Start the program, again and again."""
        delay = 0.0
        loop = asyncio.get_running_loop()
        while True:
            ready_at = await self._run_once()
            self._ready.clear()
            if ready_at is not None and loop.time() - ready_at > self.settings.restart.stable_seconds:
                delay = 0.0
            await asyncio.sleep(delay)
            delay = min(max(2 * delay, self.settings.restart.first_delay), self.settings.restart.longest_delay)

    async def _run_once(self) -> float | None:
        """Run the program until it ends; return when it has begun to listen, or None if it has not."""
        port = self.handler.program.port or free_port()
        if await accepts(port):
            self._note_start(f"Another program listens on port {port}, which host.json gives to the custom handler.")
            return None
        settings = self.settings
        address = f"localhost:{settings.port}"
        command = self.handler.program.command(self.folder, port, address, python=settings.python, node=settings.node)
        self._process = process = ChildProcess(command)
        try:
            await process.start([])
        except LoadFailed as error:
            self._note_start(str(error))
            return None
        self._ended = ended = asyncio.create_task(process.wait())
        try:
            if not await listens(port, ended, self._start_seconds):
                self._note_start(self.handler.program.start_failure(process.exit_code, port, self._start_seconds))
                if process.exit_code is None:  # it gets more time at its next start
                    self._start_seconds = max(self._start_seconds, min(2 * self._start_seconds, _MAX_START_SECONDS))
                return None
            ready_at = asyncio.get_running_loop().time()
            self._start_seconds = self.handler.program.start_seconds
            self._url = f"http://127.0.0.1:{port}"
            self._ready.set()
            self._note_start(None)
            await ended
            if self._ready.is_set():
                _log.error("The custom handler ended (exit code %s). It is started again.", process.exit_code)
            return ready_at
        finally:
            ended.cancel()
            await process.aclose(0)

    def _note_start(self, failure: str | None) -> None:
        """Tell `start` how the first start went; log why a later one failed."""
        if self._first_start is not None and not self._first_start.done():
            self._first_start.set_result(failure)
        elif failure is not None:
            _log.error("%s", failure)

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if not self.settings.trusts_proxy:
            drop_front_end_headers(request)
        route = self._route_of(request)
        if route is None:
            page = await self._home_or_health(request)
            if page is not None:
                return page
        checked = await self._admission.admit(request)
        if isinstance(checked, HttpResponse):
            return checked
        if route is None:
            return refuse(404, INVALID_REQUEST, "No HTTP trigger of the app has this path.")
        if isinstance(route, HttpResponse):
            return route
        names = _key_names(route.level)
        refusal = self._keys.refusal(request, names)
        if refusal is not None:
            return refusal
        has_sent_key = bool(names) and self._keys.are_required
        if not has_sent_key and not self.settings.allows_cross_site and is_cross_site(request):
            return refuse(403, INVALID_REQUEST, CROSS_SITE)
        try:
            limits = self._server.options.limits
            return await answer_body(request, limits, self._server.load, partial(self._forward, request))
        except LimitReachedError as error:
            return limit_reached(error)

    async def _home_or_health(self, request: HttpRequest) -> HttpResponse | None:
        """Return the home page or an answer about the app's health, for which no Host and no key counts; or None."""
        if request.path in (LIVE, READY) and health_of_environment() is not False:
            return await self._health(request)
        return home_page(request, self.folder.settings)

    def _route_of(self, request: HttpRequest) -> HandlerRoute | HttpResponse | None:
        """Return the route of a request, the refusal of its method, or None if its path has no route."""
        allowed: list[str] = []
        if is_of_the_host(request.path):
            return None
        for route in self.handler.routes:
            if route.route.template.match(request.path) is None:
                continue
            if not route.route.methods or request.method in route.route.methods:
                return route
            allowed += route.route.methods
        return wrong_method(dict.fromkeys(allowed)) if allowed else None

    async def _forward(self, request: HttpRequest, body: bytes) -> HttpResponse:
        """Return the program's response. A request whose connection is refused is sent again, also to a new process."""
        request = FunctionRequest(request, self._keys.without_key(request.query_string))
        for pause in (*_PAUSES, None):
            if not await self._wait_until_ready():
                reason = _STOPPING if self._stopping.is_set() else _AWAY
                return refuse(503, INTERNAL_ERROR, reason, headers=(("retry-after", "5"),))
            try:
                return await self._response_to(request, body)
            except httpx2.ConnectError:
                if pause is not None:
                    await _sleep(pause)
        _log.error("The custom handler refuses connections. %s was not answered.", request.method)
        return refuse(502, INTERNAL_ERROR, _REFUSING)

    async def _wait_until_ready(self) -> bool:
        """Return whether the program accepts connections before the time is over or the server stops."""
        if self._ready.is_set():
            return True
        waiting = [asyncio.ensure_future(event.wait()) for event in (self._ready, self._stopping)]
        try:
            seconds = self.settings.restart.wait_seconds
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        return self._ready.is_set()

    async def _response_to(self, request: HttpRequest, body: bytes) -> HttpResponse:
        """Return the response of the running process; raise httpx2.ConnectError if it refuses the connection."""
        process = self._process
        ended = self._ended
        seconds = self.settings.seconds(self.folder)
        try:
            async with asyncio.timeout(seconds):
                response = await self._send(request, body)
        except TimeoutError:
            _log.error("The custom handler did not answer %s in %s s. It is ended.", request.method, seconds)
            await self._end_hanging(process)
            return refuse(504, INTERNAL_ERROR, _LATE)
        except httpx2.ConnectError:
            raise
        except httpx2.TransportError as error:
            _log.error("The custom handler did not answer %s (%s).", request.method, type(error).__name__)
            await _wait_for_end(ended)
            return refuse(502, INTERNAL_ERROR, _BROKEN)
        if response is None:
            return HttpResponse(204, ())  # nobody reads it
        parts = _parts(response, ended)
        weakref.finalize(parts, self._finish, request.method)  # whether they are read to the end or not at all
        return await _checked_response(response, parts)

    async def _send(self, request: HttpRequest, body: bytes) -> httpx2.Response | None:
        """Send a request, and return the response once its head is there; None if the client has left."""
        headers = list(without(forwarded_headers(request), *_OF_THE_HOST).items())
        headers += [
            (_INVOCATION_ID, str(uuid.uuid4())),
            ("x-forwarded-host", request.headers.get("host", "")),
            ("x-forwarded-proto", request.scheme),
        ]
        content = None if request.method in _WITHOUT_BODY else body
        extensions = {"target": target_of(request)}
        outgoing = httpx2.Request(request.method, self._url, headers=headers, content=content, extensions=extensions)
        sending = asyncio.create_task(self._transport.handle_async_request(outgoing))
        leaving = asyncio.create_task(request.disconnected())
        response = None
        self._unfinished += request.method not in _WITHOUT_BODY
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            response = await sending if sending.done() else None
            return response
        finally:
            if response is None:
                self._finish(request.method)
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    def _finish(self, method: str) -> None:
        """Count a call as finished. A GET is not counted: its stream may have no end."""
        self._unfinished -= method not in _WITHOUT_BODY
        if not self._unfinished:
            self._all_finished.set()


async def _sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def _checked_response(response: httpx2.Response, parts: AsyncGenerator[bytes]) -> HttpResponse:
    """Return a response of the program, or a 502 if it has a status or a header that no server may send."""
    headers = response_headers(response)
    try:
        checked_status(response.status_code, headers)
    except ValueError as error:
        _log.error("The response of the custom handler can't be sent: %s", error)
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - as in _parts
        await response.stream.aclose()
        return refuse(502, INTERNAL_ERROR, _INVALID)
    return HttpResponse(response.status_code, headers, parts)


async def _wait_for_end(ended: asyncio.Task[None] | None) -> None:
    """Wait for the end of a process that broke off a connection, if it ends."""
    if ended is not None:
        await asyncio.wait({ended}, timeout=_END_SECONDS)


async def _parts(response: httpx2.Response, ended: asyncio.Task[None] | None) -> AsyncGenerator[bytes]:
    """Yield the body of a response; close it if nobody reads on."""
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - narrows the type of the transport's answer
    try:
        async for part in stream:
            yield part
    except httpx2.TransportError as error:
        _log.error("The custom handler broke off a response (%s).", type(error).__name__)
        await _wait_for_end(ended)
        raise ClientDisconnectedError from error  # the connection closes, so that the client sees an incomplete body
    finally:
        await stream.aclose()


def _key_names(level: str) -> Sequence[str]:
    return NAMES_BY_LEVEL.get(level, (MASTER_KEY,))


MISSING_KEYS = f"Other machines can reach the app, so it needs keys. Set {VARIABLE}=default=KEY with 16 characters."
