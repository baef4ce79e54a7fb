"""A function's signature, read once: which of its parameters a caller fills, and which the server does."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeAlias,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from funcmcp.authoring.context import CancellationToken, ToolContext
from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.authoring.services import Services

T = TypeVar("T")


class _Spread:
    """Marks a parameter whose fields are the arguments."""


SPREAD = _Spread()

Arguments: TypeAlias = Annotated[T, SPREAD]
"""``request: Arguments[CreateOrder]``: the fields of the model are the tool's own arguments.

The model may be a pydantic model, a dataclass or a TypedDict. Without the marker, a parameter of such a type is one
argument of type object under its own name.
"""


class JSONRPCRequest(TypedDict, total=False):
    """Annotate a parameter with it to get the whole JSON-RPC request."""

    jsonrpc: str
    id: str | int
    method: str
    params: dict[str, Any]


class JSONRPCResponse(TypedDict, total=False):
    """Annotate the return value with it to answer with a whole JSON-RPC response, sent as it stands."""

    jsonrpc: str
    id: str | int
    result: dict[str, Any]
    error: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function.

    Attributes:
        name: its name.
        annotation: its type hint with all annotations; Any if it has none.
        default: its default, or `inspect.Parameter.empty`.
    """

    name: str
    annotation: Any
    default: Any

    @property
    def type(self) -> Any:
        """The type hint without annotations and without `| None`."""
        return bare_type(self.annotation)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with each parameter.

    Attributes:
        arguments: filled from the call's arguments, one each.
        spread: filled with a model made of the call's arguments; at most one.
        services: filled with services.
        special: filled with the context, the raw request or a cancellation token, by name.
        returns: the return annotation; `inspect.Signature.empty` if there is none.
    """

    arguments: tuple[Parameter, ...]
    spread: Parameter | None
    services: tuple[Parameter, ...]
    special: dict[str, type]
    returns: Any


SPECIAL: tuple[Any, ...] = (ToolContext, JSONRPCRequest, CancellationToken)


class Signature:
    """The parameters of a function.

    Args:
        function: any callable that `inspect` can read.
        skip_self: leave the first parameter out: the function is a method that will be bound later.

    Raises:
        RegistrationError: the function takes parameters that no caller could fill.
    """

    def __init__(self, function: Callable[..., Any], *, skip_self: bool = False) -> None:
        self._function = function
        parameters = list(inspect.signature(function).parameters.values())[1 if skip_self else 0 :]
        for parameter in parameters:
            if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
                raise RegistrationError(
                    f"{_name(function)}: the parameter {str(parameter)!r} has no name that a caller could use; "
                    "write each parameter out and without '/'."
                )
        self._parameters = parameters
        self._hints: dict[str, Any] | None = None
        try:
            self.resolve()
        except RegistrationError:
            if not _has_text_hints(function):
                raise  # otherwise a name that is defined further down the module; it is looked up again when needed

    def resolve(self) -> dict[str, Any]:
        """Return the type hints; raise RegistrationError if one of them names nothing."""
        if self._hints is None:
            try:
                self._hints = get_type_hints(_hinted(self._function), include_extras=True)
            except NameError as error:
                raise RegistrationError(
                    f"{_name(self._function)}: the type hint {error.name!r} is not defined. Import it outside of "
                    "'if TYPE_CHECKING', and define it at the top of a module."
                ) from error
        return self._hints

    @property
    def resolved(self) -> bool:
        """Whether every type hint could be looked up."""
        return self._hints is not None

    def parameters(self) -> list[Parameter]:
        """Return the parameters with their resolved type hints."""
        hints = self.resolve()
        return [Parameter(p.name, hints.get(p.name, Any), p.default) for p in self._parameters]

    @property
    def interactive(self) -> bool:
        """Whether the function takes a ToolContext. Before its hints are resolved, the text of the hints decides."""
        if self._hints is None:
            return any("ToolContext" in str(p.annotation) for p in self._parameters)
        return any(bare_type(hint) is ToolContext for hint in self._hints.values())

    def plan(self, services: Services) -> Plan:
        """Decide who fills each parameter, now that it is known which types are services."""
        arguments: list[Parameter] = []
        injected: list[Parameter] = []
        spread: list[Parameter] = []
        special: dict[str, type] = {}
        for parameter in self.parameters():
            if parameter.type in SPECIAL:
                special[parameter.name] = parameter.type
            elif SPREAD in getattr(parameter.annotation, "__metadata__", ()):
                spread.append(parameter)
            elif parameter.type in services:
                injected.append(parameter)
            else:
                arguments.append(parameter)
        if len(spread) > 1:
            raise RegistrationError(f"{_name(self._function)}: only one parameter can be Arguments[...].")
        returns = self.resolve().get("return", inspect.Signature.empty)
        return Plan(tuple(arguments), spread[0] if spread else None, tuple(injected), special, returns)


def bare_type(annotation: Any) -> Any:
    """Return a type without `Annotated` around it and without `None` beside it."""
    if get_origin(annotation) is Annotated:
        return bare_type(get_args(annotation)[0])
    members = [member for member in get_args(annotation) if member is not type(None)]
    if len(members) == 1 and allows_none(annotation):
        return bare_type(members[0])
    return annotation


def allows_none(annotation: Any) -> bool:
    """Tell whether a type hint is a union with None, or None itself."""
    if get_origin(annotation) is Annotated:
        return allows_none(get_args(annotation)[0])
    if annotation is None or annotation is type(None):
        return True
    return _is_union(annotation) and any(allows_none(member) for member in get_args(annotation))


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in {Union, UnionType}


def _hinted(function: Any) -> Any:
    """Return the object whose annotations are those of a callable."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isroutine(function):
        return inspect.unwrap(function)
    return function.__init__ if inspect.isclass(function) else type(function).__call__


def _has_text_hints(function: Any) -> bool:
    return any(isinstance(hint, str) for hint in getattr(_hinted(function), "__annotations__", {}).values())


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__qualname__
