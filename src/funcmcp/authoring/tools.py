"""From a Python function to a tool."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, overload

from funcmcp.authoring.calls import Call
from funcmcp.authoring.formats import Header
from funcmcp.authoring.names import humanise, snake_case
from funcmcp.protocol.codec import encode
from funcmcp.protocol.headers import mirrored_parameters
from funcmcp.server.features import Tool
from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Unpack

    from funcmcp.authoring.calls import Environment
    from funcmcp.protocol.headers import MirroredParameter

F = TypeVar("F", bound="Callable[..., Any]")

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MARK = "__funcmcp_tool__"


class ToolKeywords(TypedDict, total=False):
    """`ToolOptions` as keyword arguments."""

    name: str | None
    title: str | None
    description: str | None
    input_schema: Mapping[str, Any] | None
    output_schema: Mapping[str, Any] | None
    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    icons: Sequence[Mapping[str, Any]]
    meta: Mapping[str, Any] | None
    timeout: float | None
    lax: bool


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """What an author may say of a tool beside its function.

    Attributes:
        name: by default the function's name in snake_case.
        title: a name for people; by default the function's name in words.
        description: by default the docstring's first paragraph.
        input_schema: sent as it stands; the function then takes the arguments as one dict, or by name.
        output_schema: sent in place of the one made from the return annotation.
        read_only: whether the tool changes nothing. Each of these four hints is sent only where it is set.
        destructive: whether what it changes may be lost.
        idempotent: whether calling it again with the same arguments changes nothing more.
        open_world: whether it deals with things outside, such as the web.
        icons: Icon objects as the specification has them.
        meta: the tool's `_meta`.
        timeout: seconds that a call may take; None for no limit.
        lax: take arguments that can be converted, such as "5" for an integer.
    """

    name: str | None = None
    title: str | None = None
    description: str | None = None
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    icons: Sequence[Mapping[str, Any]] = ()
    meta: Mapping[str, Any] | None = None
    timeout: float | None = 60.0
    lax: bool = False

    def annotations(self) -> dict[str, Any]:
        """Return the ToolAnnotations that are set."""
        hints = {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }
        return {name: value for name, value in hints.items() if value is not None}


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(name: str | None = None, /, **options: Unpack[ToolKeywords]) -> Callable[[F], F]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Mark a method of a class as a tool; ``mcp.add(TheClass)`` registers it. Takes what ``@mcp.tool`` takes.

    ```python
    class OrderTools:
        def __init__(self, orders: OrderService) -> None:
            self.orders = orders

        @tool(read_only=True)
        async def get_order(self, order_id: str) -> Order: ...
    ```
    """
    if callable(function) or isinstance(function, staticmethod | classmethod):
        return _mark(function, ToolOptions(**options))
    chosen = options_of(function, options)
    return lambda decorated: _mark(decorated, chosen)


def options_of(name: str | None, options: dict[str, Any]) -> ToolOptions:
    """Return the options of a decorator that was called with a name by position, or without."""
    if name is not None and "name" in options:
        raise RegistrationError("Give the tool's name once: by position or as name=.")
    return ToolOptions(**options if name is None else {**options, "name": name})


def make_tool(function: Callable[..., Any], options: ToolOptions, environment: Environment) -> Tool:
    """Make a tool of a function.

    Raises:
        RegistrationError: the name, the signature, a pattern, a header or the metadata is not what it must be.
    """
    return _make(Call(function, environment, schema=options.input_schema, lax=options.lax), function, options)


def tools_of(owner: object, environment: Environment) -> list[Tool]:
    """Make tools of the marked methods of a class, which is constructed for each call, or of an object."""
    found = []
    kind = owner if inspect.isclass(owner) else type(owner)
    for name in dict.fromkeys(name for base in reversed(kind.__mro__) for name in vars(base)):
        static = inspect.getattr_static(kind, name)
        options = getattr(getattr(static, "__func__", static), _MARK, None)
        if options is None:
            continue
        bound = not inspect.isclass(owner) or isinstance(static, staticmethod | classmethod)
        function = getattr(owner, name)
        call = Call(function, environment, schema=options.input_schema, lax=options.lax, owner=None if bound else kind)
        found.append(_make(call, function, options))
    return found


def _mark(function: Any, options: ToolOptions) -> Any:
    setattr(getattr(function, "__func__", function), _MARK, options)
    return function


def _make(call: Call, function: Callable[..., Any], options: ToolOptions) -> Tool:
    own_name = _own_name(function)
    name = options.name or snake_case(own_name)
    if not _NAME.fullmatch(name):
        raise RegistrationError(
            f"{name!r} is no name for a tool: take 1 to 128 letters, digits, '_', '-' or '.', for instance by name=."
        )
    _check_json(name, options)
    call.check()
    title = options.title or humanise(own_name if options.name is None else name)
    described: list[dict[str, Any]] = []

    def describe() -> dict[str, Any]:
        if not described:
            described.append(_definition(name, title, call, options))
        return described[0]

    mirrored: tuple[MirroredParameter, ...] = ()
    if options.input_schema is not None or call.mentions(Header):
        try:
            mirrored = mirrored_parameters(options.input_schema or call.input_schema())
        except ValueError as error:
            raise RegistrationError(f"{name}: {error}") from error
    return Tool(name, describe, call.handler(name), call.interactive, options.timeout, mirrored)


def _definition(name: str, title: str, call: Call, options: ToolOptions) -> dict[str, Any]:
    output_schema = options.output_schema if options.output_schema is not None else call.output_schema()
    members = {
        "title": title,
        "description": options.description if options.description is not None else call.summary(),
        "inputSchema": options.input_schema if options.input_schema is not None else call.input_schema(),
        "outputSchema": output_schema,
        "annotations": options.annotations() or None,
        "icons": list(options.icons) or None,
        "_meta": options.meta,
    }
    return {"name": name, **{member: value for member, value in members.items() if value is not None}}


def _check_json(name: str, options: ToolOptions) -> None:
    given = {"input_schema": options.input_schema, "output_schema": options.output_schema, "meta": options.meta}
    for option, value in given.items():
        if value is None:
            continue
        try:
            encode(value)
        except ValueError as error:
            raise RegistrationError(f"{name}: {option} must be JSON; {error}") from error
    if options.input_schema is not None and options.input_schema.get("type") != "object":
        raise RegistrationError(f"{name}: input_schema must have 'type': 'object'.")


def _own_name(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    own: str = getattr(function, "__name__", None) or type(function).__name__
    return own
