"""HTTP-triggered functions of an Azure function app as tools: `funcmcp.azure.tool_from_http_function`.

A call makes the request that the Functions host would make, and runs the function in this process.
"""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass, replace
from datetime import datetime
from keyword import iskeyword
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints, is_typeddict
from urllib.parse import quote, urlencode
from uuid import UUID

import azure.functions as func

from funcmcp._adapters.azure.app_functions import functions_of
from funcmcp._adapters.azure.route_templates import RouteError, Segment, Variable, segments_of, variables_in
from funcmcp._adapters.azure.settings import hostname, is_local, route_prefix
from funcmcp._authoring.calling.arguments import input_schema, parts_of
from funcmcp._authoring.calling.feature_context import Context
from funcmcp._authoring.features.options import checked_options
from funcmcp._authoring.features.tools import ToolOptions, make_tool
from funcmcp._authoring.openapi.http_requests import forwarded, path_text, text_of, written_path
from funcmcp._authoring.openapi.http_responses import Response, result_of
from funcmcp._authoring.results.content import ToolResult
from funcmcp._authoring.signatures.docstring import description
from funcmcp._authoring.signatures.partials import is_async, signature_of, without_partials
from funcmcp._authoring.signatures.signature import EMPTY, Arguments, Parameter, parameter_of
from funcmcp._objects.mappings import only, without
from funcmcp._protocol.codec import encode
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._adapters.azure.route_templates import Constraint
    from funcmcp._authoring.calling.services import Services
    from funcmcp._server.catalog.features import Tool

FunctionApp = func.FunctionApp

_REQUEST_OPTIONS = ("query", "body", "method", "forward_headers")
_BODY = "body"
_CONTEXT = "tool_context_of_the_call"

_TYPES: Mapping[str, Any] = {
    "bool": bool,
    "datetime": datetime,
    "decimal": float,
    "double": float,
    "float": float,
    "guid": UUID,
    "int": int,
    "long": int,
}
_LIMITS: Mapping[str, tuple[str, ...]] = {
    "min": ("ge",),
    "max": ("le",),
    "range": ("ge", "le"),
    "minlength": ("min_length",),
    "maxlength": ("max_length",),
    "length": ("min_length", "max_length"),
}
"""The types and limits that pydantic has for the constraints of routes."""


class HTTPFunctionOptions(ToolOptions, total=False):
    """The options of a tool that calls an HTTP function.

    Attributes:
        query: The types of its query parameters by name, such as ``{"limit": int, "status": str | None}``.
        body: The type of its JSON body. The fields of a model, a dataclass or a TypedDict become arguments of the
            tool. Any other type, or one with a field that has the name of another argument, is the argument `body`.
        method: The method of the request. By default it is the function's only method. If the function has several,
            it is POST for a function with a body and GET for one without.
        forward_headers: Headers of the MCP request that calls repeat, such as ``["x-ms-client-principal"]``.
    """

    query: Mapping[str, Any]
    body: Any
    method: str
    forward_headers: Sequence[str]


class _Function(NamedTuple):
    """A function of an app.

    Attributes:
        name: its name.
        code: what runs.
        request: the parameter that gets the request.
        route: the segments of its route.
        methods: that it is for; none if it is for all.
    """

    name: str
    code: Callable[..., Any]
    request: str
    route: Sequence[Segment]
    methods: list[str]


class _Shape(NamedTuple):
    """What a function takes: the route's variables, query parameters, and what of the arguments is the body."""

    variables: list[Variable]
    query: Mapping[str, Any]
    body: Parameter | None
    members: frozenset[str]


def tool_from_http_function(app: FunctionApp, name: str, options: HTTPFunctionOptions, services: Services) -> Tool:
    """Make a tool of a function.

    Args:
        app: the function app.
        name: the function's name in it.
        options: The options of the tool and of its requests.
        services: the server's.

    Raises:
        RegistrationError: there is no such function, or it can't be a tool.
    """
    function = _function_of(app, name)
    options = checked_options(options, HTTPFunctionOptions)
    if "input_schema" in options:
        raise RegistrationError(f"{name} takes query= and body= instead of input_schema=.")
    if options.get("task") is not None and options.get("forward_headers"):
        raise RegistrationError(
            f"{name} can't have both task= and forward_headers=: a task has no HTTP request, and stores no headers."
        )
    shape = _shape(function, options)
    method = _method(function, options, has_body=shape.body is not None)
    tool_options: Any = without(options, *_REQUEST_OPTIONS)
    if method in function.methods and method == "GET":
        tool_options.setdefault("read_only", True)
    run = _caller(function, shape, method, options, services)
    # The call reads only arguments and headers of its context, so it needs no stream.
    return replace(make_tool(run, tool_options, services), interactive=False)


def _function_of(app: FunctionApp, name: str) -> _Function:
    if not isinstance(app, FunctionApp):
        raise RegistrationError(f"Give the FunctionApp that {name} is in, not {type(app).__name__}.")
    functions = functions_of(app)
    function = functions.get(name)
    if function is None:
        raise RegistrationError(f"The app has no function {name!r}; it has {', '.join(functions) or 'none'}.")
    if not function.is_http_function():
        raise RegistrationError(f"{name} has no HTTP trigger.")
    trigger: Any = function.get_trigger()
    code = function.get_user_function()
    _check_parameters(name, code, trigger.name)
    methods = [str(getattr(method, "value", method)).upper() for method in trigger.methods or ()]
    try:
        route = segments_of(trigger.route)
    except RouteError as error:
        raise RegistrationError(f"{name}: {error}") from None
    return _Function(name, code, trigger.name, route, methods)


def _check_parameters(name: str, code: Callable[..., Any], request: str) -> None:
    """Refuse other bindings, which are the host's to fill."""
    parameters = signature_of(code, follow_wrapped=False).parameters.values()
    any_kinds = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    bindings = [
        parameter.name for parameter in parameters if parameter.name != request and parameter.kind not in any_kinds
    ]
    if bindings:
        raise RegistrationError(
            f"{name} takes {', '.join(bindings)}, which only the Functions host can give it; "
            "move what it does into a function of its own, and make a tool of that."
        )


def _shape(function: _Function, options: HTTPFunctionOptions) -> _Shape:
    variables = variables_in(function.route)
    hinted_query, hinted_body = _hinted(function, {variable.name for variable in variables})
    query = options.get("query", hinted_query)
    body = options.get("body", hinted_body)
    taken = {variable.name for variable in variables}
    twice = taken & query.keys()
    if twice:
        raise RegistrationError(f"{function.name} has {', '.join(sorted(twice))} in its route and in query=.")
    if body is None:
        return _Shape(variables, query, None, frozenset())
    taken |= query.keys()
    if _has_fields(body):
        spread = parameter_of(_BODY, Arguments[body])  # type: ignore[valid-type, misc] # a type at run time
        fields = input_schema(parts_of([spread], function.name, lax=False), function.name, {})["properties"].keys()
        if not fields & taken:
            while spread.name in taken | fields:
                spread = spread._replace(name=f"{spread.name}_")
            return _Shape(variables, query, spread, frozenset(fields))
    if _BODY in taken:
        raise RegistrationError(f"{function.name} has an argument named {_BODY!r} beside its body; rename it.")
    return _Shape(variables, query, parameter_of(_BODY, body), frozenset())


def _hinted(function: _Function, variables: set[str]) -> tuple[dict[str, Any], Any]:
    """Return query parameters and body that a typed function has inside of a decorator, which calls it with them."""
    typed = inspect.unwrap(without_partials(function.code))
    if typed is function.code:
        return {}, None
    hints = get_type_hints(typed, include_extras=True)
    query: dict[str, Any] = {}
    body = None
    for name, parameter in signature_of(function.code).parameters.items():
        hint = hints.get(name, str)
        if name in variables or name == function.request:
            continue
        if _has_fields(hint):
            body = hint
        else:
            query[name] = hint if parameter.default is EMPTY else hint | None
    return query, body


def _has_fields(annotation: Any) -> bool:
    return is_typeddict(annotation) or is_dataclass(annotation) or hasattr(annotation, "model_fields")


def _method(function: _Function, options: HTTPFunctionOptions, *, has_body: bool) -> str:
    methods = function.methods
    if "method" in options:
        method = options["method"].upper()
        if methods and method not in methods:
            raise RegistrationError(f"{function.name} has no method {method}; it has {', '.join(methods)}.")
        return method
    if len(methods) == 1:
        return methods[0]
    method = "POST" if has_body else "GET"
    if methods and method not in methods:
        raise RegistrationError(f"{function.name} has the methods {', '.join(methods)}; choose one with method=.")
    return method


def _caller(
    function: _Function, shape: _Shape, method: str, options: HTTPFunctionOptions, services: Services
) -> Callable[..., Any]:
    """Return a function whose signature has what the HTTP function takes, so that it is listed and checked as any."""
    names = tuple(name.lower() for name in options.get("forward_headers", ()))

    async def run(**values: Any) -> ToolResult:
        context: Context = values[_CONTEXT]
        request = _request(function.route, shape, method, context.arguments, forwarded(context, names))
        if is_async(function.code):
            returned = await function.code(**{function.request: request})
        else:
            returned = await services.threads.run(function.code, {function.request: request})
            if inspect.isawaitable(returned):
                returned = await returned
        return result_of(_response(returned), context.name)

    parameters = [parameter_of(_CONTEXT, Context)]
    for variable in shape.variables:
        is_required = not (variable.optional or variable.catch_all) and variable.default is None
        default = EMPTY if is_required else None
        parameters.append(parameter_of(_argument_name(variable), annotation_of(variable), default))
    for name, annotation in shape.query.items():
        parameters.append(parameter_of(name, annotation))
    if shape.body is not None:
        parameters.append(shape.body)
    kind = inspect.Parameter.KEYWORD_ONLY
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # functions may have one
        [inspect.Parameter(parameter.name, kind, default=parameter.default) for parameter in parameters]
    )
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__annotations__["return"] = ToolResult
    run.__name__, run.__doc__ = function.name, description(function.code)
    return run


def _argument_name(variable: Variable) -> str:
    if not variable.name.isidentifier() or iskeyword(variable.name):
        raise RegistrationError(f"The route's variable {variable.name!r} can't be the name of an argument. Rename it.")
    return variable.name


def annotation_of(variable: Variable) -> Any:
    """Return the type of the values of a route's variable, with the limits of its constraints.

    Raises:
        RegistrationError: A constraint can't be read.
    """
    annotation: Any = str
    limits: dict[str, Any] = {}
    for constraint in variable.constraints:
        annotation = _TYPES.get(constraint.name, annotation)
        limits |= _limits(constraint)
    if limits:
        from pydantic import Field  # noqa: PLC0415 - few routes have limits

        annotation = Annotated[annotation, Field(**limits)]
    return annotation


def _limits(constraint: Constraint) -> dict[str, Any]:
    """Return a constraint as limits; one that says nothing of values, or is the app's own, has none."""
    argument = constraint.argument or ""
    if constraint.name == "alpha":
        return {"pattern": "^[A-Za-z]*$"}
    if constraint.name == "regex":
        return {"pattern": argument}
    names = _LIMITS.get(constraint.name, ())
    try:
        numbers = [int(number) for number in argument.split(",")] if names else []
        if constraint.name == "length" and len(numbers) == 1:
            numbers *= 2
        return dict(zip(names, numbers, strict=True))
    except ValueError:
        raise RegistrationError(f"The route's constraint {constraint} can't be read.") from None


def path_of(route: Sequence[Segment], values: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the percent-encoded path of a route with *values*, and the variables as the host would read them from it.

    Raises:
        ToolError: A value would change the route.
    """
    values_by_name: dict[str, str] = {}
    texts: list[str] = []
    for segment in route:
        text = ""
        for part in segment.parts:
            if isinstance(part, str):
                text += part
                continue
            value = values.get(part.name)
            if value is None:
                value = part.default
            if value is not None:
                text += path_text(part.name, value, many_segments=part.catch_all)
                values_by_name[part.name] = text_of(value)
            elif segment.variable is None:
                text = text.removesuffix(".")  # the dot before a variable without a value is not in the path
        texts.append(text)
    return written_path("/".join(texts).strip("/")), values_by_name


def _request(
    route: Sequence[Segment], shape: _Shape, method: str, arguments: Mapping[str, Any], headers: Mapping[str, str]
) -> func.HttpRequest:
    path, route_params = path_of(route, arguments)
    # The host gives a parameter that comes several times as one text with commas.
    params = {
        name: ",".join(map(text_of, value)) if isinstance(value, list) else text_of(value)
        for name in shape.query
        if (value := arguments.get(name)) is not None
    }
    body = b""
    if shape.body is not None:
        content = arguments.get(_BODY)
        if shape.members:
            content = only(arguments, shape.members)
        body = encode(content)
        headers = {**headers, "content-type": "application/json", "content-length": str(len(body))}
    host = hostname()
    origin = f"{'http' if is_local(host) else 'https'}://{host}{route_prefix()}"
    url = f"{origin}/{path}{'?' if params else ''}{urlencode(params, quote_via=quote)}"
    return func.HttpRequest(
        method, url, headers={"host": host, **headers}, params=params, route_params=route_params, body=body
    )


def _response(returned: Any) -> Response:
    if isinstance(returned, str):
        return Response(200, "text/plain; charset=utf-8", returned.encode())
    if not isinstance(returned, func.HttpResponse):
        raise TypeError(f"The function returned {type(returned).__name__}, which is no HttpResponse and no text.")
    content_type = returned.headers.get("content-type") or f"{returned.mimetype}; charset={returned.charset}"
    return Response(returned.status_code, content_type, returned.get_body())
