"""Tools from Python functions: `make_tool`, the marker `tool` for methods, and `tools_of` for classes of them."""

from __future__ import annotations

import functools
import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from funcmcp.authoring.arguments import input_schema, parts_of
from funcmcp.authoring.calls import Schemas, ToolCall, special_type
from funcmcp.authoring.content import icon_list
from funcmcp.authoring.context import ToolContext
from funcmcp.authoring.docstring import summary
from funcmcp.authoring.explicit import check_json, check_schema, explicit_errors
from funcmcp.authoring.hints import never_json, parts_of_type, without_marks
from funcmcp.authoring.naming import humanised, is_name, snake_case
from funcmcp.authoring.option_types import check_option_types
from funcmcp.authoring.signature import Header, JSONRPCResponse, Signature, function_name
from funcmcp.protocol.headers import mirrored_parameters
from funcmcp.server.features import Tool
from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypedDict, Unpack

    from funcmcp.authoring.content import Icon
    from funcmcp.authoring.services import Services
    from funcmcp.protocol.headers import MirroredParameter

    class ToolKeywords(TypedDict, total=False):
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
        lax: bool


F = TypeVar("F", bound="Callable[..., Any]")

_MARK = "__funcmcp_tool__"


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """What an author may say of a tool beside its function.

    Attributes:
        name: instead of the function's name in snake_case.
        title: a name for people, instead of the function's name in words.
        description: instead of the docstring's first paragraph.
        input_schema: a hand-written schema, sent as it stands; the function may then take the arguments as one dict.
        output_schema: a hand-written schema for structured content.
        read_only: the tool changes nothing.
        destructive: what it changes can't be got back.
        idempotent: calling it twice changes no more than calling it once.
        open_world: it deals with things outside of the server's own world.
        icons: `Icon` objects, or dicts as the specification has them.
        meta: a JSON object that is sent as ``_meta``.
        timeout: seconds after which a call is cancelled; None for no limit.
        lax: convert arguments as pydantic does by default, such as ``"5"`` to 5.
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
    lax: bool = False

    def __new__(cls, **given: Any) -> Self:
        """Refuse options that do not exist, in words for authors, before Python does."""
        unknown = given.keys() - cls.__dataclass_fields__.keys()
        if unknown:
            of = f" of {given['name']}" if "name" in given else ""
            known = ", ".join(cls.__dataclass_fields__)
            raise RegistrationError(f"{', '.join(sorted(unknown))}{of} is no option of a tool; there are {known}.")
        return object.__new__(cls)


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
    if isinstance(function, type):
        raise RegistrationError(f"{function.__name__} is a class; add its marked methods with mcp.add(...).")
    name = _name(function, options.name)
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise RegistrationError(f"{name} is a generator; return a list instead of yielding.")
    _check_options(name, options)
    signature = Signature(function, bound=owner is not None)
    _check_types(name, signature, options, services)
    schemas = Schemas(options.input_schema, options.output_schema)
    call = ToolCall(name, function, signature, services=services, schemas=schemas, lax=options.lax, owner=owner)
    return Tool(
        name=name,
        describe=functools.cache(lambda: _definition(name, function, options, call)),
        handler=call.run,
        interactive=_is_interactive(signature),
        timeout=options.timeout,
        mirrored=_mirrored(name, signature, options.input_schema),
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
    if callable(function) or isinstance(function, classmethod):
        return _marked(function, ToolOptions(**options))
    if function is not None:
        if "name" in options:
            raise RegistrationError("Give the tool's name once: by position or as name=.")
        options["name"] = function
    return functools.partial(_marked, options=ToolOptions(**options))


def _marked(function: Any, options: ToolOptions) -> Any:
    setattr(getattr(function, "__func__", function), _MARK, options)
    return function


def tools_of(owner: object, services: Services) -> list[Tool]:
    """Make tools of the marked methods of a class or an object, base classes first, in the order of definition.

    A class is constructed for each call, its constructor's parameters injected; an object is used as it is.
    """
    cls = owner if isinstance(owner, type) else type(owner)
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        members.update(vars(base))
    made = []
    for name, member in members.items():
        options = getattr(getattr(member, "__func__", member), _MARK, None)
        if not isinstance(options, ToolOptions):
            continue
        if isinstance(owner, type) and not isinstance(member, staticmethod | classmethod):
            made.append(make_tool(member, options, services, owner=owner))
        else:
            made.append(make_tool(getattr(owner, name), options, services))
    return made


def _name(function: Any, given: str | None) -> str:
    """Return the tool's name: the one given, the function's in snake_case, or as it is."""
    own = function_name(function)
    candidates = (snake_case(own), own) if given is None else (given,)
    for name in candidates:
        if isinstance(name, str) and is_name(name):
            return name
    raise RegistrationError(
        f"{candidates[0]!r} can't be a tool's name; give one with name=: 1 to 128 letters, digits, '_', '-' and '.'."
    )


def _check_options(name: str, options: ToolOptions) -> None:
    check_option_types(name, options)
    if options.input_schema is not None:
        check_schema(options.input_schema, f"input_schema of {name}", objects_only=True)
    if options.output_schema is not None:
        check_schema(options.output_schema, f"output_schema of {name}", objects_only=False)
    if options.meta is not None:
        if not isinstance(options.meta, dict):
            raise RegistrationError(f"meta of {name} must be a dict, not {type(options.meta).__name__}.")
        check_json(options.meta, f"meta of {name}")
    if options.icons:
        check_json(icon_list(options.icons), f"icons of {name}")
    timeout = options.timeout
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise RegistrationError(f"timeout of {name} must be a number of seconds above 0, or None.")


def _check_types(name: str, signature: Signature, options: ToolOptions, services: Services) -> None:
    """Refuse types that can't be JSON, as far as that can be told at once."""
    hints = dict(signature.try_hints() or {})
    returned = hints.pop("return", None)
    for parameter, hint in hints.items():
        words = None if without_marks(hint) in services else never_json(hint)
        if words:
            raise RegistrationError(f"The parameter {parameter!r} of {name} is {words}.")
    if options.output_schema is None and without_marks(returned) is not JSONRPCResponse:
        words = never_json(returned)
        if words:
            raise RegistrationError(f"{name} is annotated to return {words}.")


def _is_interactive(signature: Signature) -> bool:
    """Tell whether a function takes a ToolContext; of a hint that can't be resolved yet, its text has to tell."""
    hints = signature.try_hints()
    if hints is None:
        return any(ToolContext.__name__ in str(hint) for hint in signature.raw_annotations().values())
    return any(special_type(hint) is ToolContext for name, hint in hints.items() if name != "return")


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
        from funcmcp.authoring.core import compiles, linear_pattern  # noqa: PLC0415 - only where a pattern is

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
    own = function_name(function)
    for option, schema in (("input_schema", options.input_schema), ("output_schema", options.output_schema)):
        if schema is not None:
            explicit_errors(schema, f"{option} of {name}")  # no client should read a schema that is none
    definition: dict[str, Any] = {
        "name": name,
        "title": options.title or humanised(own if own.isidentifier() else name) or name,
        "description": summary(function) if options.description is None else options.description,
        "inputSchema": call.input_schema(),
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
    if options.meta is not None:
        definition["_meta"] = dict(options.meta)
    return definition
