"""The HTTP triggers of an app, beside its MCP endpoint.

Source: "Azure Functions HTTP trigger" (routes, constraints, authLevel, ``routePrefix`` of host.json); W3C "Fetch
Metadata Request Headers" (``Sec-Fetch-Site``). The whole body of a request is sent to the worker in one message, and so
is the response; a worker that serves HTTP itself gets the request there and streams its response (`http_proxy`).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

from funcmcp._adapters.azure.route_templates import ROUTE_VARIABLE, Variable, variables_of
from funcmcp._functions_host.bindings import BindingError, HTTPTrigger
from funcmcp._functions_host.blobs import BlobError
from funcmcp._functions_host.expressions import ExpressionError
from funcmcp._functions_host.extras import Extras, plan_extras
from funcmcp._functions_host.invocation import FunctionRequest, http_metadata, http_trigger
from funcmcp._functions_host.keys import MASTER_KEY, NAMES_BY_LEVEL
from funcmcp._functions_host.workers.worker import FunctionFailed, Invocation, Value, WorkerGone
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_REQUEST
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.limits import LimitReachedError
from funcmcp._transports.http.admission.admission import Admission
from funcmcp._transports.http.admission.body import answer_body
from funcmcp._transports.http.admission.header_checks import HeaderChecks
from funcmcp._transports.http.admission.origin import is_on_loopback
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.options import HTTPOptions
from funcmcp._transports.http.status import authored_response, limit_reached, refuse, wrong_method

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._functions_host.bindings import Function
    from funcmcp._functions_host.extras import Storage
    from funcmcp._functions_host.features import LeftOut
    from funcmcp._functions_host.http_proxy import HTTPProxy
    from funcmcp._functions_host.invocation import Trigger
    from funcmcp._functions_host.keys import Keys
    from funcmcp._functions_host.workers.supervised import WorkerPool
    from funcmcp._functions_host.workers.worker import Outcome
    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.messages import HttpRequest

_log = logging.getLogger("funcmcp.host")

_OF_THE_CONNECTION = {"connection", "content-length", "date", "keep-alive", "transfer-encoding", "upgrade"}
_FETCH_SITE = b"sec-fetch-site"
CROSS_SITE = (
    "A page of another site has sent this request to a program on this machine. If that is what you want, start "
    "funcmcp host with --allow-cross-site."
)
_FAILURES = (FunctionFailed, BlobError, ExpressionError, TimeoutError, WorkerGone)


class RouteTemplate:
    """A route such as ``orders/{id:int}/{*rest}`` or ``files/{name}.{ext}``, which matches paths as in ASP.NET Core.

    Source: dotnet/aspnetcore, RoutePatternMatcher and RoutePrecedence.

    Args:
        text: The route, without the app's prefix.

    Raises:
        BindingError: The route can't be read.
    """

    def __init__(self, text: str) -> None:
        try:
            variables = variables_of(text)
        except RegistrationError as error:
            raise BindingError(str(error)) from error
        self._variables = {variable.name: variable for variable in variables}
        self._segments = [self._segment(part) for part in _split(text)]
        self._checks: dict[str, Any] = {}

    def _segment(self, text: str) -> _Segment:
        """Return a segment of the route; raise BindingError if ASP.NET Core rejects it."""
        parts: list[str | Variable] = []
        end = 0
        for match in ROUTE_VARIABLE.finditer(text):
            if match.start() > end:
                parts.append(_folded(text[end : match.start()]))
            parts.append(self._variables[match[2]])
            end = match.end()
        if end < len(text):
            parts.append(_folded(text[end:]))
        segment = _Segment(parts)
        segment.check(text)
        return segment

    @property
    def order(self) -> tuple[int, ...]:
        """The sort key of the route: the ranks of its segments, of which lower ones come first."""
        return tuple(segment.rank for segment in self._segments)

    def match(self, path: str) -> dict[str, str] | None:
        """Return the values of the variables for a canonical path, or None if it does not match.

        A slash at the end is ignored. An empty segment matches nothing but the variable for the rest of a path.
        """
        values: dict[str, str] = {}
        remaining = path.removeprefix("/")
        for segment in self._segments:
            variable = segment.variable
            if variable is not None and variable.catch_all:
                if remaining.startswith("/"):
                    return None
                values[variable.name] = remaining or variable.default or ""
                remaining = ""
            elif remaining:
                text, _, remaining = remaining.partition("/")
                segment_values = segment.match(text)
                if segment_values is None:
                    return None
                values |= segment_values
            elif variable is None or not variable.optional:
                return None
            elif variable.default is not None:
                values[variable.name] = variable.default
        if remaining:
            return None
        return values if all(self._is_valid(name, value) for name, value in values.items()) else None

    def _is_valid(self, name: str, value: str) -> bool:
        """Return whether a value meets the constraints of its variable."""
        annotation = self._variables[name].annotation
        if annotation is str:
            return True
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - few routes have constraints

        check = self._checks.setdefault(name, TypeAdapter(annotation))
        try:
            check.validate_python(value)
        except TypeError:  # min, max and range without a type are about integers
            return self._is_valid_integer(name, value)
        except ValidationError:
            return False
        return True

    def _is_valid_integer(self, name: str, value: str) -> bool:
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - as above

        limits = get_args(self._variables[name].annotation)[1:]
        try:
            TypeAdapter(Annotated[(int, *limits)]).validate_python(value)
        except ValidationError:
            return False
        return True


class _Segment(NamedTuple):
    """One segment of a route.

    Attributes:
        parts: Texts in lower case and variables, of which no two of a kind follow each other.
    """

    parts: list[str | Variable]

    def check(self, text: str) -> None:
        """Raise BindingError for parts that ASP.NET Core rejects; *text* is the segment."""
        for index, part in enumerate(self.parts):
            if isinstance(part, str) or len(self.parts) == 1:
                continue
            if part.catch_all:
                raise BindingError(f"The route's segment {text!r} has more than a variable for the rest of the path.")
            if index and not isinstance(self.parts[index - 1], str):
                raise BindingError(f"The route's segment {text!r} has two variables without a text between them.")
            is_behind_dot = index == len(self.parts) - 1 and self.parts[index - 1] == "."
            if part.may_be_missing and not is_behind_dot:
                raise BindingError(f"The route's segment {text!r} has an optional variable that is not behind a dot.")

    @property
    def variable(self) -> Variable | None:
        """The variable that is the whole segment, or None."""
        part = self.parts[0]
        return None if len(self.parts) > 1 or isinstance(part, str) else part

    @property
    def rank(self) -> int:
        """1 for a text, 2 for several parts or a constraint, 3 for a variable, 4 and 5 for the rest of the path."""
        variable = self.variable
        if variable is None:
            return 1 if len(self.parts) == 1 else 2
        return (5 if variable.catch_all else 3) - variable.is_constrained

    def match(self, text: str) -> dict[str, str] | None:
        """Return the values of the variables in a segment of a path, or None if it does not match."""
        if not text:
            return None
        if len(self.parts) == 1:
            [part] = self.parts
            if isinstance(part, str):
                return {} if _folded(text) == part else None
            return {part.name: text}
        values = _match_parts(self.parts, text)
        last = self.parts[-1]
        if values is None and isinstance(last, Variable) and last.may_be_missing and not text.endswith("."):
            without_optional = self.parts[:-2]  # and without the dot before it
            return _match_parts(without_optional, text)
        return values


def _match_parts(parts: list[str | Variable], text: str) -> dict[str, str] | None:
    """Return the values of variables with texts between them, or None if *text* does not match.

    As in ASP.NET Core, each text is searched once, from the right; a match further left is not tried.
    """
    values: dict[str, str] = {}
    folded = _folded(text)
    end = len(text)
    variable: Variable | None = None  # the one behind the part that is searched
    for part in reversed(parts):
        if isinstance(part, Variable):
            variable = part
            continue
        start = folded.rfind(part, 0, end if variable is None else end - 1)
        if start < 0 or (part is parts[-1] and start + len(part) < len(text)):
            return None
        if variable is not None:
            values[variable.name] = text[start + len(part) : end]
            variable = None
        end = start
    if variable is not None:
        values[variable.name] = text[:end]
        return values if end else None
    return None if end else values


def _folded(text: str) -> str:
    """Return a text in lower case, with as many characters."""
    return "".join(character.lower()[0] for character in text)


class _Entry(NamedTuple):
    route: RouteTemplate
    trigger: HTTPTrigger
    function: str
    extras: Extras


class _Found(NamedTuple):
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
        checks: HeaderChecks[bool] = HeaderChecks(options, server.options.limits, lambda _: True)
        self._admission = Admission(server, options, checks, None)
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
        from funcmcp._functions_host.features import LeftOut  # noqa: PLC0415 - features.py imports much

        entries, left_out = [], []
        for function in functions:
            trigger = function.trigger
            if not isinstance(trigger, HTTPTrigger):
                continue
            try:
                route = RouteTemplate("/".join(part for part in (prefix, trigger.route or function.name) if part))
                entries.append(_Entry(route, trigger, function.name, plan_extras(function.extras, storage)))
            except BindingError as error:
                left_out.append(LeftOut(function.name, str(error)))
        self._entries = sorted(entries, key=lambda entry: entry.route.order)
        return left_out

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
        found = self._find(request)
        if found is None:
            return None
        checked = await self._admission.admit(request)
        if isinstance(checked, HttpResponse):
            return checked
        if isinstance(found, HttpResponse):
            return found
        refusal = self._refusal(request, found.entry.trigger)
        if refusal is not None:
            return refusal
        try:
            answer = partial(self._invoke, request, found)
            return await answer_body(request, self._server.options.limits, self._server.load, answer)
        except LimitReachedError as error:
            return limit_reached(error)

    def _refusal(self, request: HttpRequest, trigger: HTTPTrigger) -> HttpResponse | None:
        """Return the refusal of a request that may not run a function, or None if it may."""
        names = _key_names(trigger)
        refusal = self._keys.refusal(request, names)
        has_sent_key = bool(names) and self._keys.are_required
        if refusal is None and not has_sent_key and not self._allows_cross_site and is_cross_site(request):
            return refuse(403, INVALID_REQUEST, CROSS_SITE)
        return refusal

    def _find(self, request: HttpRequest) -> _Found | HttpResponse | None:
        allowed: list[str] = []
        for entry in self._entries:
            params = entry.route.match(request.path)
            if params is None:
                continue
            if not entry.trigger.methods or request.method in entry.trigger.methods:
                return _Found(entry, params)
            allowed += entry.trigger.methods
        if not allowed:
            return None
        return wrong_method(dict.fromkeys(allowed))

    async def _invoke(self, request: HttpRequest, found: _Found, body: bytes) -> HttpResponse:
        entry, params = found
        request = FunctionRequest(request, self._keys.without_key(request.query_string))
        value = Value("http", _request_data(request, params, body))
        trigger = http_trigger(request, params)
        try:
            inputs = {entry.trigger.parameter: value, **await entry.extras.read(trigger)}
            worker = await self._worker.available()
            if worker.http_url is not None:
                invocation = Invocation(entry.function, inputs, http_metadata(request, params))
                finish = partial(_write_outputs, entry, trigger)
                proxy = self._proxy = self._proxy or _make_proxy()
                return await proxy.exchange(worker, invocation, request, body, seconds=self.seconds, finish=finish)
            outcome = await self._worker.invoke(Invocation(entry.function, inputs), self.seconds)
            response = _response_of(outcome.value)
            await entry.extras.write(trigger, outcome.outputs)
        except _FAILURES as error:
            _log.error("The function %s failed. %s", entry.function, error)
            return refuse(500, INTERNAL_ERROR, "The function failed.")
        return response


def _make_proxy() -> HTTPProxy:
    from funcmcp._functions_host.http_proxy import HTTPProxy  # noqa: PLC0415 - few apps need it, and httpx2 is large

    return HTTPProxy()


async def _write_outputs(entry: _Entry, trigger: Trigger, outcome: Outcome) -> None:
    """Store the outputs of a function whose response was sent; what fails is logged."""
    try:
        await entry.extras.write(trigger, outcome.outputs)
    except (BlobError, ExpressionError) as error:
        _log.error("The function %s failed. %s", entry.function, error)


def _split(route: str) -> list[str]:
    """Return the segments of a route; a slash inside braces belongs to a constraint."""
    segments, depth = [""], 0
    for character in route.strip("/"):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "/" and depth == 0:
            segments.append("")
        else:
            segments[-1] += character
    return [segment for segment in segments if segment]


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
