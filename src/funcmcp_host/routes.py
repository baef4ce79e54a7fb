"""The HTTP triggers of an app, beside its MCP endpoint.

Source: "Azure Functions HTTP trigger" (routes, constraints, authLevel, ``routePrefix`` of host.json); W3C "Fetch
Metadata Request Headers" (``Sec-Fetch-Site``). The whole body of a request is sent to the worker in one message, and so
is the response; a worker that serves HTTP itself gets the request there and streams its response (`http_proxy`).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp import HTTPOptions
from funcmcp._adapters.azure.route_templates import folded
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_REQUEST
from funcmcp._server.limits import LimitReachedError
from funcmcp._transports.http.admission.admission import Admission, HeaderCheck
from funcmcp._transports.http.admission.body import answer_body
from funcmcp._transports.http.admission.origin import is_on_loopback
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import authored_response, limit_reached, refuse, wrong_method
from funcmcp_host.bindings import BindingError, HTTPTrigger
from funcmcp_host.blobs import BlobError
from funcmcp_host.expressions import ExpressionError
from funcmcp_host.extras import Extras, plan_extras
from funcmcp_host.invocation import FunctionRequest, http_metadata, http_trigger
from funcmcp_host.keys import MASTER_KEY, NAMES_BY_LEVEL
from funcmcp_host.route_patterns import (
    FunctionRoute,
    check_route,
    function_template,
    is_of_the_host,
    shadowing,
)
from funcmcp_host.workers.worker import FunctionFailed, Invocation, Value, WorkerGone, text_for_log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.messages import HttpRequest
    from funcmcp_host.bindings import Function
    from funcmcp_host.extras import Storage
    from funcmcp_host.features import LeftOut
    from funcmcp_host.http_proxy import HTTPProxy
    from funcmcp_host.invocation import Trigger
    from funcmcp_host.keys import Keys
    from funcmcp_host.workers.supervised import WorkerPool
    from funcmcp_host.workers.worker import Outcome

_log = logging.getLogger("funcmcp.host")

_OF_THE_CONNECTION = {"connection", "content-length", "date", "keep-alive", "transfer-encoding", "upgrade"}
_FETCH_SITE = b"sec-fetch-site"
CROSS_SITE = (
    "A page of another site has sent this request to a program on this machine. If that is what you want, start "
    "funcmcp host with --allow-cross-site."
)
_LATE = "The function did not finish in time. It may have had an effect."
_FAILURES = (FunctionFailed, BlobError, ExpressionError, TimeoutError, WorkerGone)


class _Entry(NamedTuple):
    route: FunctionRoute
    trigger: HTTPTrigger
    extras: Extras

    @property
    def function(self) -> str:
        """The name of the function."""
        return self.route.function


class _RouteMatch(NamedTuple):
    entry: _Entry
    params: dict[str, str]


def is_cross_site(request: HttpRequest) -> bool:
    """Return whether a page of another site made a browser on this machine send a request.

    Browsers send no Origin with a GET for a link, an image or a redirect. The Origin of other requests was checked.
    """
    fields = request.fields
    return fields.get(_FETCH_SITE) == b"cross-site" and b"origin" not in fields and is_on_loopback(request)


class ClosedFunction(NamedTuple):
    """A function whose level needs a key that is not set.

    Attributes:
        name: The function's name.
        level: The level of its trigger.
        key: The name of the key that would open it.
    """

    name: str
    level: str
    key: str


def _key_names(trigger: HTTPTrigger) -> Sequence[str]:
    """Return the names of the keys that open a trigger; none if everyone may call it."""
    return NAMES_BY_LEVEL.get(trigger.level, (MASTER_KEY,))


class HTTPTriggers:
    """Answers the requests for an app's HTTP triggers.

    Args:
        server: Its limits hold for these requests, too.
        worker: Runs the functions.
        keys: The keys of the app.
        allows_cross_site: Whether pages of other sites may run the functions of an app on a loopback address.
        seconds: The time that a call may take; None for any time.
        origins: The origins whose pages may run the functions.

    Attributes:
        seconds: The argument, which may change.
    """

    def __init__(
        self,
        server: Server,
        worker: WorkerPool,
        *,
        keys: Keys,
        allows_cross_site: bool,
        seconds: float | None,
        origins: Sequence[str] = (),
    ) -> None:
        self._server = server
        self._worker = worker
        # Not the options of the MCP endpoint, which accepts the name 0.0.0.0: there browsers send no Sec-Fetch-Site.
        options = HTTPOptions(allowed_origins=list(origins))
        self._admission: Admission[bool] = Admission(server, options, HeaderCheck(lambda _: True), None)
        self._keys = keys
        self._allows_cross_site = allows_cross_site
        self.seconds = seconds
        self._proxy: HTTPProxy | None = None
        self._entries: list[_Entry] = []

    async def aclose(self) -> None:
        """Close the connections to the workers."""
        if self._proxy is not None:
            await self._proxy.aclose()

    def update(self, functions: Sequence[Function], prefix: str, storage: Storage) -> list[LeftOut]:
        """Serve these functions and no others; return those that can't be served."""
        from funcmcp_host.features import LeftOut  # noqa: PLC0415 - features.py imports much

        entries: list[_Entry] = []
        left_out = []
        for function in sorted(functions, key=lambda function: folded(function.name)):
            trigger = function.trigger
            if not isinstance(trigger, HTTPTrigger):
                continue
            try:
                template = function_template(prefix, trigger.route or function.name)
                route = FunctionRoute(function.name, template, trigger.methods)
                check_route(route, [entry.route for entry in entries])
                entries.append(_Entry(route, trigger, plan_extras(function.extras, storage)))
            except BindingError as error:
                left_out.append(LeftOut(function.name, str(error)))
        self._entries = entries
        return left_out

    @property
    def endpoints(self) -> dict[str, list[str]]:
        """The paths of the routes, each with its methods; without methods, all are accepted."""
        endpoints: dict[str, list[str]] = {}
        for entry in sorted(self._entries, key=lambda entry: entry.route.template.order):
            methods = endpoints.setdefault(f"/{entry.route.template.text}", [])
            methods += [method for method in entry.trigger.methods if method not in methods]
        return endpoints

    @property
    def shadowing(self) -> list[str]:
        """Sentences about functions whose requests another function gets."""
        return list(shadowing([entry.route for entry in self._entries]))

    @property
    def open_functions(self) -> list[str]:
        """The functions that everyone may call."""
        return sorted(entry.function for entry in self._entries if not _key_names(entry.trigger))

    @property
    def closed_functions(self) -> list[ClosedFunction]:
        """The functions that nobody can call, because the key of their level is not set."""
        if not self._keys.are_required:
            return []
        closed = []
        for entry in self._entries:
            names = _key_names(entry.trigger)
            if names and not self._keys.has_any(names):
                closed.append(ClosedFunction(entry.function, entry.trigger.level, names[0]))
        return closed

    async def __call__(self, request: HttpRequest) -> HttpResponse | None:
        """Answer one request; return None if its path is that of no trigger."""
        match = self._find(request)
        if match is None:
            return None
        checked = await self._admission.admit(request)
        if isinstance(checked, HttpResponse):
            return checked
        if isinstance(match, HttpResponse):
            return match
        refusal = self._refusal(request, _key_names(match.entry.trigger))
        if refusal is not None:
            return refusal
        try:
            answer = partial(self._invoke, request, match)
            return await answer_body(request, self._server.options.limits, self._server.load, answer)
        except LimitReachedError as error:
            return limit_reached(error)

    async def check(self, request: HttpRequest, names: Sequence[str]) -> HttpResponse | None:
        """Return the refusal of a request that needs one of these keys, or None if it may pass."""
        checked = await self._admission.admit(request)
        return checked if isinstance(checked, HttpResponse) else self._refusal(request, names)

    def _refusal(self, request: HttpRequest, names: Sequence[str]) -> HttpResponse | None:
        """Return the refusal of a request without one of these keys, or of a page of another site."""
        refusal = self._keys.refusal(request, names)
        has_sent_key = bool(names) and self._keys.are_required
        if refusal is None and not has_sent_key and not self._allows_cross_site and is_cross_site(request):
            return refuse(403, INVALID_REQUEST, CROSS_SITE)
        return refusal

    def _find(self, request: HttpRequest) -> _RouteMatch | HttpResponse | None:
        allowed: list[str] = []
        if is_of_the_host(request.path):
            return None
        for entry in self._entries:
            params = entry.route.template.match(request.path)
            if params is None:
                continue
            if not entry.trigger.methods or request.method in entry.trigger.methods:
                return _RouteMatch(entry, params)
            allowed += entry.trigger.methods
        if not allowed:
            return None
        return wrong_method(dict.fromkeys(allowed))

    async def _invoke(self, request: HttpRequest, match: _RouteMatch, body: bytes) -> HttpResponse:
        entry, params = match
        request = FunctionRequest(request, self._keys.without_key(request.query_string))
        value = Value("http", _request_data(request, params, body))
        trigger = http_trigger(request, params)
        try:
            inputs = {entry.trigger.parameter: value, **await entry.extras.read(trigger)}
            invocation = Invocation(entry.function, inputs, http_metadata(request, params))
            worker = await self._worker.available()
            if worker.http_url is not None:
                finish = partial(_write_outputs, entry, trigger)
                proxy = self._proxy = self._proxy or _make_proxy()
                return await proxy.exchange(worker, invocation, request, body, seconds=self.seconds, finish=finish)
            outcome = await self._worker.invoke(invocation, self.seconds)
            response = _response_of(outcome.value)
            await entry.extras.write(trigger, outcome.outputs)
        except _FAILURES as error:
            _log.error("The function %s failed. %s", entry.function, text_for_log(error))
            if isinstance(error, TimeoutError):
                return refuse(504, INTERNAL_ERROR, _LATE)
            return refuse(500, INTERNAL_ERROR, "The function failed.")
        return response


def _make_proxy() -> HTTPProxy:
    from funcmcp_host.http_proxy import HTTPProxy  # noqa: PLC0415 - few apps need it, and httpx2 is large

    return HTTPProxy()


async def _write_outputs(entry: _Entry, trigger: Trigger, outcome: Outcome) -> None:
    """Store the outputs of a function whose response was sent; what fails is logged."""
    try:
        await entry.extras.write(trigger, outcome.outputs)
    except (BlobError, ExpressionError) as error:
        _log.error("The function %s failed. %s", entry.function, text_for_log(error))


def _request_data(request: FunctionRequest, params: Mapping[str, str], body: bytes) -> dict[str, Any]:
    return {
        "method": request.method,
        "url": request.url,
        "headers": dict(request.headers),
        "query": request.query_params,
        "params": dict(params),
        "body": body,
    }


def _response_of(value: Value) -> HttpResponse:
    """Return the response for what a function returned; raise FunctionFailed if a server can't send it."""
    if value.kind == "http":
        headers = [
            (str(name), str(text)) for name, text in value.data["headers"] if name.lower() not in _OF_THE_CONNECTION
        ]
        try:
            return authored_response(value.data["status"], headers, value.data["body"])
        except ValueError as error:
            raise FunctionFailed(f"Its response can't be sent: {error}") from error
    if value.kind == "null":
        return HttpResponse(204, ())
    if value.kind == "bytes":
        return HttpResponse(200, (("content-type", "application/octet-stream"),), value.data)
    kind = "application/json" if value.kind == "json" else "text/plain; charset=utf-8"
    return HttpResponse(200, (("content-type", kind),), str(value.data).encode())
