"""Tools from operations of an OpenAPI document, for remote APIs and for applications in the process.

How it works: `chosen_operations` selects and names operations. `operation_tool` makes the tool of one. Its schemas are
made when it is first listed or called, because a document may have thousands of operations. A schema that is not valid
in the document is replaced by one that only names the arguments, so that one fault does not cost the tool.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._authoring.calling.feature_context import Context
from funcmcp._authoring.calling.unknown_arguments import unknown_arguments
from funcmcp._authoring.features.permissions import AccessOptions
from funcmcp._authoring.features.tools import ToolOptions, make_tool
from funcmcp._authoring.openapi.http_requests import forwarded
from funcmcp._authoring.openapi.http_responses import result_of, with_object
from funcmcp._authoring.openapi.operations import Operation, OperationSchemas, free_name, tool_name
from funcmcp._authoring.openapi.pages import next_page_note
from funcmcp._authoring.results.content import ToolResult
from funcmcp._protocol.codec import encode
from funcmcp._server.catalog.registry import RegistrationError, normalized
from funcmcp._text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.openapi.http_responses import Response
    from funcmcp._authoring.openapi.operations import OperationPlan, Target
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Tool

    Send: TypeAlias = Callable[[Operation, Target, Context, Any], Awaitable[Response]]
    Selection: TypeAlias = Collection[str] | Callable[[Operation], bool]
    Names: TypeAlias = Mapping[str, str] | Callable[[Operation], str | None]

_logger = logging.getLogger("funcmcp")
_MAX_EXAMPLES = 5
"""How many tags and paths an error names."""

_HINTS: dict[str, ToolOptions] = {
    "GET": {"read_only": True},
    "PUT": {"read_only": False, "idempotent": True},
    "DELETE": {"read_only": False, "destructive": True, "idempotent": True},
}
"""The properties of methods (RFC 9110, section 9.2). POST and PATCH have none."""


class OperationToolsOptions(AccessOptions, total=False):
    """The options of all tools of a document.

    Attributes:
        select: The operations that become tools. Words: tags, methods (``"GET"``), paths (``"/orders/*"``), or both
            (``"GET /orders/*"``); an operation that one of them matches is selected. Or a function that gets an
            `Operation`. All by default.
        names: The names of tools, by the operation's id or by ``"GET /orders"``; or a function that gets an
            `Operation` and returns a name, or None for the default.
        forward_headers: Headers of the MCP request that calls repeat, such as ``["x-request-id"]``.
        tags: Words by which `MCPServer.enable` and `MCPServer.disable` find the tools, beside the operations' own tags.
        timeout: Seconds after which a call is cancelled. None sets no limit. The default is 600.
    """

    select: Selection
    names: Names
    forward_headers: Sequence[str]
    tags: Collection[str]
    timeout: float | None


class OperationCall(NamedTuple):
    """How the tool of an operation is called.

    Attributes:
        operation: The operation, with the tool's name.
        plan: The arguments.
        send: Sends a request. It gets the operation, the request, the call's context and the connection.
        connection: The type of the service that `send` gets.
    """

    operation: Operation
    plan: OperationPlan
    send: Send
    connection: type[Any]


def chosen_operations(operations: Iterable[Operation], options: OperationToolsOptions) -> list[Operation]:
    """Return the selected operations, with the names of their tools, which differ.

    Raises:
        RegistrationError: A name is not valid, or a name is for an operation that does not exist.
    """
    listed = list(operations)
    select, names = options.get("select"), options.get("names")
    if names is not None and not callable(names):
        existing = {key for operation in listed for key in _keys(operation)}
        unknown = sorted(names.keys() - existing)
        if unknown:
            raise RegistrationError(
                f"names= has {unknown[0]!r}, but the document has no such operation. Use its operationId, or a method "
                "and a path, such as 'GET /orders'."
            )
    if select is not None:
        if isinstance(select, str):
            raise RegistrationError(f"select= is a list of words or a function. Write select=[{select!r}].")
        selected = [operation for operation in listed if _matches(operation, select)]
        if listed and not selected:
            raise RegistrationError(_nothing_selected(listed))
        listed = selected
    named, taken = [], set()
    for operation in listed:
        name = free_name(_name_of(operation, names), lambda name: normalized(name) in taken)
        taken.add(normalized(name))
        named.append(replace(operation, name=name))
    return named


def _nothing_selected(operations: Sequence[Operation]) -> str:
    """Return the error for a selection that matches no operation, with some words that do."""
    tags = sorted({tag for operation in operations for tag in operation.tags})[:_MAX_EXAMPLES]
    paths = [f"{operation.method} {operation.path}" for operation in operations[:_MAX_EXAMPLES]]
    examples = ", ".join(map(repr, [*tags, *paths]))
    return (
        f"The OpenAPI document has no operation that is to be a tool: select= matches none of {len(operations)}. "
        f"Words that match are tags, methods and paths, such as {examples}."
    )


def _keys(operation: Operation) -> tuple[str, str]:
    return operation.operation_id, f"{operation.method} {operation.path}"


def _name_of(operation: Operation, names: Names | None) -> str:
    if callable(names):
        chosen = names(operation)
    else:
        chosen = next((names[key] for key in _keys(operation) if key in names), None) if names else None
    if chosen is None:
        return operation.name
    if not isinstance(chosen, str) or tool_name(chosen) != chosen or not chosen:
        raise RegistrationError(
            f"names= gives {operation.method} {operation.path} the name {chosen!r}, which is not valid. "
            "Names have 1 to 64 letters, digits, '_' and '-'."
        )
    return chosen


def _matches(operation: Operation, select: Selection) -> bool:
    if callable(select):
        return bool(select(operation))
    for word in select:
        method, _, path = word.rpartition(" ")
        if path.startswith("/"):
            if method.upper() in {"", operation.method} and fnmatchcase(operation.path, path):
                return True
        elif word in operation.tags or word.upper() == operation.method:
            return True
    return False


def operation_tool(call: OperationCall, options: OperationToolsOptions, services: Services) -> Tool:
    """Return the tool of an operation. Raise RegistrationError if an option is not valid."""
    plan = call.plan

    def made_with(schemas: OperationSchemas) -> Tool:
        is_described = schemas.output_schema is not None and not plan.validates_output
        run = _function_of(call, options, is_described=is_described)
        tool = make_tool(run, _tool_options(call, options, schemas), services)
        tool.describe()  # compiles the schemas
        return tool

    @cache
    def complete() -> Tool:
        try:
            return made_with(plan.schemas)
        except RegistrationError as error:
            _logger.warning(
                "Parts of the schemas of the tool %s are not valid: %s", call.operation.name, visible(error)
            )
            return made_with(plan.plain_schemas())

    async def handler(context: RequestContext, arguments: dict[str, Any]) -> Any:
        return await complete().handler(context, arguments)

    without_schemas = OperationSchemas({"type": "object", "properties": {}}, None)
    shell = make_tool(_function_of(call, options), _tool_options(call, options, without_schemas), services)
    return replace(
        shell,
        describe=lambda: complete().describe(),
        handler=handler,
        interactive=False,  # the call reads only headers of its context, so it needs no stream
        left_out=lambda: plan.schemas.left_out,
    )


def _function_of(
    call: OperationCall, options: OperationToolsOptions, *, is_described: bool = False
) -> Callable[..., Any]:
    """Return the function of an operation's tool.

    Args:
        call: How the operation is called.
        options: The options of all tools.
        is_described: Whether the output schema only describes members, so that every result is an object.
    """
    operation, plan = call.operation, call.plan
    names = tuple(name.lower() for name in options.get("forward_headers", ()))
    parameters = {place.name: place.argument for place, _ in plan.places if place.location == "query"}

    async def run(context: Context, connection: Any) -> ToolResult:
        unknown = context.arguments.keys() - plan.arguments
        if unknown:
            raise unknown_arguments(sorted(unknown), plan.arguments - context.arguments.keys())
        target = plan.target(context.arguments)
        target = target._replace(headers={**target.headers, **forwarded(context, names)})
        response = await call.send(operation, target, context, connection)
        result = result_of(response, operation.name)
        value = result.structured_content
        if operation.method == "GET" and value is not None:
            note = next_page_note(value, response.link, operation.name, parameters, context.arguments)
            if note is not None:
                result = ToolResult([encode(value).decode(), note], structured_content=value)
        return with_object(result) if is_described else result

    run.__annotations__ = {"context": Context, "connection": call.connection, "return": ToolResult}
    return run


def _tool_options(call: OperationCall, options: OperationToolsOptions, schemas: OperationSchemas) -> ToolOptions:
    operation = call.operation
    description = operation.description or f"{operation.method} {operation.path}"  # some APIs require one
    if operation.deprecated:
        description = f"Deprecated. {description}"
    tool_options: ToolOptions = {
        "name": operation.name,
        "title": operation.title,
        "description": description,
        "input_schema": schemas.input_schema,
        "tags": (*operation.tags, *options.get("tags", ())),
        "allow_anonymous": options.get("allow_anonymous", False),
        "scopes": options.get("scopes", ()),
        "authorize": options.get("authorize"),
    }
    if "timeout" in options:
        tool_options["timeout"] = options["timeout"]
    if schemas.output_schema is not None:
        tool_options["output_schema"] = schemas.output_schema
    tool_options.update(_HINTS.get(operation.method, {}))
    return tool_options
