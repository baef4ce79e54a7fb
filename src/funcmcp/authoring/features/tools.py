"""Tools from Python functions: `make_tool`, and the marker `tool` for methods."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

from funcmcp.authoring.calling.arguments import input_schema, parts_of
from funcmcp.authoring.calling.feature_context import ToolContext
from funcmcp.authoring.calling.function_call import FunctionCall, Schemas, ToolCall
from funcmcp.authoring.features.decorators import decorate
from funcmcp.authoring.features.permissions import AccessOptions, access_of
from funcmcp.authoring.features.registration_checks import (
    check_common,
    check_parameters,
    feature_name,
    is_interactive,
    shown_errors_of,
)
from funcmcp.authoring.features.ui import page_meta
from funcmcp.authoring.signatures.annotations import never_json, parts_of_type, without_marks
from funcmcp.authoring.signatures.docstring import description, descriptions_in
from funcmcp.authoring.signatures.naming import title_of
from funcmcp.authoring.signatures.signature import Header, JSONRPCResponse, Signature, function_name
from funcmcp.authoring.values.content import icon_list
from funcmcp.authoring.values.handwritten_schema import check_schema, explicit_errors
from funcmcp.protocol.headers import mirrored_parameters
from funcmcp.server.catalog.features import Tool
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Unpack

    from funcmcp.authoring.calling.services import Services
    from funcmcp.authoring.features.permissions import AccessKeywords
    from funcmcp.authoring.features.ui import UI
    from funcmcp.authoring.values.content import Icon
    from funcmcp.protocol.headers import MirroredParameter
    from funcmcp.server.options import ShowErrors

    class ToolKeywords(AccessKeywords, total=False):
        """The options of a tool as keywords; see `ToolOptions`."""

        name: str
        title: str
        description: str
        input_schema: dict[str, Any]
        output_schema: dict[str, Any]
        read_only: bool
        destructive: bool
        idempotent: bool
        open_world: bool
        icons: Sequence[Icon | Mapping[str, Any]]
        meta: Mapping[str, Any]
        timeout: float | None
        show_errors: ShowErrors | None
        lax: bool | None
        ui: str | UI


F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True)
class ToolOptions(AccessOptions):
    """What an author may say of a tool beside its function.

    Attributes:
        name: instead of the function's name in snake_case.
        title: A name for people. By default it is the words of the name.
        description: Replaces the docstring.
        input_schema: a hand-written schema, sent as it stands; the function may then take the arguments as one dict.
        output_schema: a hand-written schema for structured content.
        read_only: the tool changes nothing.
        destructive: what it changes can't be got back.
        idempotent: calling it twice changes no more than calling it once.
        open_world: it deals with things outside of the server's own world.
        icons: `Icon` objects, or dicts as the specification has them.
        meta: a JSON object that is sent as ``_meta``.
        timeout: seconds after which a call is cancelled; None for no limit.
        show_errors: Exceptions whose text clients get: True, False or types; None as the server's option says.
        lax: convert arguments: ``"5"`` to 5, ``"true"`` to True, and strings with JSON to objects and arrays. None
            for what the server's `lax` says.
        ui: the page that shows the tool's result where the client has MCP Apps: its ``ui://`` URI, or a `UI`.
    """

    name: str | None = None
    title: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    icons: Sequence[Icon | Mapping[str, Any]] = ()
    meta: Mapping[str, Any] | None = None
    timeout: float | None = 60.0
    show_errors: ShowErrors | None = None
    lax: bool | None = None
    ui: str | UI | None = None


def make_tool(
    function: Callable[..., Any], options: ToolOptions, services: Services, *, owner: type | None = None
) -> Tool:
    """Make a tool of a function.

    Args:
        function: a function, plain or async, a bound method, a callable object or a `functools.partial`.
        options: what is not to be taken from the function.
        services: types registered here are injected; they may still be registered later.
        owner: the class that is constructed for each call, if the function is a method of it.

    Raises:
        RegistrationError: the function can't be a tool.
    """
    name = feature_name(function, options.name, "tool")
    _check_options(name, options)
    signature = Signature(function, bound=owner is not None)
    check_parameters(name, signature, services)
    _check_returned(name, signature, options)
    schemas = Schemas(options.input_schema, options.output_schema)
    runs = FunctionCall(
        name,
        function,
        signature,
        services=services,
        context=ToolContext,
        explicit=options.input_schema,
        owner=owner,
    )
    lax = services.lax if options.lax is None else options.lax
    call = ToolCall(runs, schemas, lax=lax)
    return Tool(
        name=name,
        describe=functools.cache(lambda: _definition(name, function, options, call)),
        handler=call.run,
        interactive=is_interactive(signature),
        timeout=options.timeout,
        mirrored=_mirrored(name, signature, options.input_schema),
        access=access_of(name, options),
        shown_errors=shown_errors_of(name, options),
    )


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(name: str | None = None, /, **options: Unpack[ToolKeywords]) -> Callable[[F], F]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Mark a method as a tool of its class; add the class, or an object of it, with ``mcp.add(...)``.

    The method stays callable as it was.

    Example:
        ```python
        class OrderTools:
            def __init__(self, orders: OrderService) -> None:
                self.orders = orders

            @tool(read_only=True)
            async def get_order(self, order_id: str) -> Order: ...

        mcp.add(OrderTools)
        ```
    """
    return decorate(function, options, lambda chosen: functools.partial(make_tool, options=ToolOptions(**chosen)))


def _check_options(name: str, options: ToolOptions) -> None:
    if options.input_schema is not None:
        check_schema(options.input_schema, f"input_schema of {name}", objects_only=True)
    if options.output_schema is not None:
        check_schema(options.output_schema, f"output_schema of {name}", objects_only=False)
    check_common(name, options)


def _check_returned(name: str, signature: Signature, options: ToolOptions) -> None:
    """Refuse a returned type that can't be JSON, as far as that can be told at once."""
    returned = (signature.try_hints() or {}).get("return")
    if options.output_schema is None and without_marks(returned) is not JSONRPCResponse:
        words = never_json(returned)
        if words:
            raise RegistrationError(f"{name} is annotated to return {words}.")


def _mirrored(name: str, signature: Signature, explicit: Mapping[str, Any] | None) -> tuple[MirroredParameter, ...]:
    """Check the marks and patterns in a signature, and return the arguments that stand in headers, too.

    Only parameters that carry a mark cost a schema here.
    """
    marked = []
    hints = signature.try_hints() or {}
    for parameter in signature.parameters() if hints else ():
        has_header = False
        for part in parts_of_type(parameter.annotation):
            has_header = has_header or isinstance(part, Header)
            _check_pattern(part, f"The parameter {parameter.name!r} of {name}")
        if has_header:
            marked.append(parameter)
    try:
        if explicit is not None:
            return mirrored_parameters(explicit)
        if not marked:
            return ()
        return mirrored_parameters(input_schema(parts_of(marked, name, lax=False), name, {}))
    except RegistrationError:
        raise
    except ValueError as error:
        raise RegistrationError(f"{name}: {error}") from None


def _check_pattern(part: Any, what: str) -> None:
    """Refuse a pattern that can't be checked in time that is linear in the length of the text."""
    for mark in (part, *_metadata(part)):
        pattern = getattr(mark, "pattern", None)
        if not isinstance(pattern, str | re.Pattern):
            continue
        from funcmcp.authoring.values.pydantic_schemas import compiles, linear_pattern  # noqa: PLC0415 - only where a pattern is

        if not compiles(linear_pattern(pattern)):
            raise RegistrationError(
                f"{what} has a pattern that the linear regular expression engine can't compile: "
                "leave out look-around and back-references."
            )


def _metadata(part: Any) -> Sequence[Any]:
    metadata = getattr(part, "metadata", None)
    return metadata if isinstance(metadata, list | tuple) else ()


def _definition(name: str, function: Any, options: ToolOptions, call: ToolCall) -> dict[str, Any]:
    """Return the tool's definition in the newest revision's shape."""
    for option, schema in (("input_schema", options.input_schema), ("output_schema", options.output_schema)):
        if schema is not None:
            explicit_errors(schema, f"{option} of {name}")  # no client should read a schema that is none
    arguments = call.input_schema()
    text = description(function, descriptions_in(arguments)) if options.description is None else options.description
    definition: dict[str, Any] = {
        "name": name,
        "title": options.title or title_of(options.name, function_name(function)) or name,
        "description": text,
        "inputSchema": arguments,
    }
    output = call.output_schema()
    if output is not None:
        definition["outputSchema"] = output
    hints = {
        "title": options.title,
        "readOnlyHint": options.read_only,
        "destructiveHint": options.destructive,
        "idempotentHint": options.idempotent,
        "openWorldHint": options.open_world,
    }
    annotations = {hint: value for hint, value in hints.items() if value is not None}
    if annotations:
        definition["annotations"] = annotations
    if options.icons:
        definition["icons"] = icon_list(options.icons)
    meta = {**(options.meta or {}), **page_meta(options.ui)}
    if meta or options.meta is not None:
        definition["_meta"] = meta
    return definition
