"""A function's signature: its parameters, their types, its docstring, and the marks that types may have.

How it works: the signature is read when the function is registered. Postponed annotations may name classes that are
defined later, so names that can't be resolved are tried again at each use, until they can. The local names around a
local function exist only while the function around it runs, so they are copied at registration if a name is missing.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, TypedDict, TypeVar, get_type_hints

from funcmcp._authoring.signatures.annotations import without_marks
from funcmcp._authoring.signatures.late_annotations import annotations_of
from funcmcp._authoring.signatures.partials import signature_of, without_partials
from funcmcp._objects.public_names import public
from funcmcp._protocol.jsonrpc import Request as JSONRPCRequest
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

__all__ = [
    "Arguments",
    "Header",
    "JSONRPCRequest",
    "JSONRPCResponse",
    "Parameter",
    "Signature",
    "Types",
    "function_name",
    "parameter_of",
]

T = TypeVar("T")
EMPTY = inspect.Parameter.empty


class Spread:
    """The mark that `Arguments` puts on a type."""

    __slots__ = ()


Arguments: TypeAlias = Annotated[T, Spread()]
"""Spreads the fields of a pydantic model, a dataclass or a TypedDict as the tool's own arguments.

Example:
    ```python
    @mcp.tool
    async def create_order(request: Arguments[CreateOrder]) -> Order: ...
    ```
"""


@public("funcmcp")
class Header:
    """Marks an argument that 2026-07-28 clients repeat in the header ``Mcp-Param-<name>``.

    Gateways can then route by it without reading the body. The argument must be a string, an integer or a boolean.

    Example:
        ```python
        @mcp.tool
        def stock(region: Annotated[str, Header("Region")]) -> int: ...
        ```

    Source: 2026-07-28 "server/tools, x-mcp-header".
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: str = name

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Put the mark into the argument's schema."""
        return {**handler(schema), "x-mcp-header": self.name}


@public("funcmcp.content")
class JSONRPCResponse(TypedDict, total=False):
    """A whole JSON-RPC response. If a tool is annotated to return one, it is sent unchanged.

    Example:
        ```python
        @mcp.tool(input_schema={"type": "object"})
        async def raw(request: JSONRPCRequest) -> JSONRPCResponse:
            return {"jsonrpc": "2.0", "id": request.id, "result": {"content": []}}
        ```
    """

    jsonrpc: str
    id: str | int
    result: dict[str, Any]
    error: dict[str, Any]


class Parameter(NamedTuple):
    """One parameter of a function.

    Attributes:
        name: The name.
        annotation: The resolved annotation, or EMPTY.
        default: The default, or EMPTY.
        bare: The type that the annotation means without its marks and without None, or EMPTY.
    """

    name: str
    annotation: Any
    default: Any
    bare: Any


def parameter_of(name: str, annotation: Any, default: Any = EMPTY) -> Parameter:
    """Return a parameter with a resolved annotation."""
    return Parameter(name, annotation, default, without_marks(annotation))


class Types(NamedTuple):
    """The resolved types of a function.

    Attributes:
        parameters: All parameters.
        returns: The return annotation, or EMPTY.
        hints: The annotations of the parameters that have one, and "return".
    """

    parameters: tuple[Parameter, ...]
    returns: Any
    hints: dict[str, Any]


class Signature:
    """A function's signature.

    Args:
        function: Any callable that is not a class.
        bound: Leave out the first parameter, because the function is a method that is bound for each call.

    Attributes:
        name: The function's name.
        defaults: The defaults of all parameters by name, EMPTY where there is none.

    Raises:
        RegistrationError: The function takes parameters that JSON arguments can't fill.
    """

    __slots__ = ("_annotated", "_function", "_namespace", "_parameters", "_types", "defaults", "name")

    def __init__(self, function: Callable[..., Any], *, bound: bool = False) -> None:
        self.name = function_name(function)
        self._function = function
        self._annotated = _annotated(function)
        self._parameters = _parameters(function, self.name, bound=bound)
        self.defaults = {parameter.name: parameter.default for parameter in self._parameters}
        self._namespace: Mapping[str, Any] | None = None
        self._types: Types | None = None
        try:
            self._types = self._read_types()
        except NameError:
            self._namespace = _enclosing_names(self._annotated)
            self.try_types()

    def try_types(self) -> Types | None:
        """Return the resolved types, which are read once, or None while a name in them is unknown."""
        if self._types is None:
            try:
                self._types = self._read_types()
            except NameError:
                return None
        return self._types

    def try_hints(self) -> dict[str, Any]:
        """Return the resolved annotations by parameter name, and "return"; none while a name in them is unknown."""
        types = self.try_types()
        return {} if types is None else types.hints

    def _read_types(self) -> Types:
        """Return the resolved types; raise NameError where a name is unknown.

        A decorator may set ``__signature__`` on a function and leave its ``__annotations__`` as they are, so the
        annotations of the signature's own parameters count as well.
        """
        all_hints = get_type_hints(self._annotated, localns=self._namespace, include_extras=True)
        hints: dict[str, Any] = {}
        parameters = []
        for parameter in self._parameters:
            annotation = parameter.annotation
            if isinstance(annotation, str):
                annotation = EMPTY
            annotation = all_hints.get(parameter.name, annotation)
            if annotation is not EMPTY:
                hints[parameter.name] = annotation
            parameters.append(parameter_of(parameter.name, annotation, parameter.default))
        returns = all_hints.get("return", EMPTY)
        if returns is not EMPTY:
            hints["return"] = returns
        return Types(tuple(parameters), returns, hints)

    def raw_annotations(self) -> Mapping[str, Any]:
        """Return the annotations without resolving postponed ones, which are strings."""
        return annotations_of(self._annotated)

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters with resolved annotations; raise RegistrationError while a name is unknown."""
        return self._resolved().parameters

    def description(self, schema: Any = None) -> str:
        """Return the docstring without the entries whose text clients read in a JSON schema."""
        # A server may start, and answer calls, long before a client reads a list.
        from funcmcp._authoring.signatures.docstring import description, descriptions_in  # noqa: PLC0415

        return description(self._function, descriptions_in(schema))

    def parameter_descriptions(self) -> dict[str, str]:
        """Return the docstring's text about each parameter that it documents."""
        from funcmcp._authoring.signatures.docstring import parameter_descriptions  # noqa: PLC0415 - as above

        return parameter_descriptions(self._function)

    def returns(self) -> Any:
        """Return the resolved return annotation, or EMPTY."""
        return self._resolved().returns

    def _resolved(self) -> Types:
        types = self.try_types()
        if types is not None:
            return types
        try:
            return self._read_types()
        except NameError as error:
            raise RegistrationError(
                f"An annotation of {self.name} uses the unknown name {error.name!r}. "
                "Import it at run time, not only under TYPE_CHECKING."
            ) from None


def function_name(function: Any) -> str:
    """Return a callable's name: its own, that of the function inside, or that of a callable object's class."""
    while isinstance(function, functools.partial) and not hasattr(function, "__name__"):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _annotated(function: Any) -> Any:
    """Return the function that carries a callable's annotations."""
    function = without_partials(function)
    if inspect.isroutine(function):
        return function
    return type(function).__call__


def _parameters(function: Any, name: str, *, bound: bool) -> list[inspect.Parameter]:
    try:
        parameters = list(signature_of(function).parameters.values())
    except ValueError:
        raise RegistrationError(f"{name} has no signature that Python can read. Wrap it in a def.") from None
    except TypeError as error:
        raise RegistrationError(f"The signature of {name} can't be read: {error}.") from None
    if bound:
        if not parameters:
            raise RegistrationError(f"{name} is a method without self. Add self, or make it a staticmethod.")
        del parameters[0]
    for parameter in parameters:
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            remedy = "Name each parameter, because the arguments' schema lists them."
            if parameter.kind is parameter.VAR_KEYWORD:
                remedy += " In a tool with input_schema=, one parameter may take all arguments: arguments: dict."
            raise RegistrationError(f"{name} takes {parameter}. {remedy}")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise RegistrationError(
                f"{name} takes {parameter.name!r} by position only, but arguments have names. Remove the '/'."
            )
    if parameters and parameters[0].name in {"self", "cls"} and parameters[0].annotation is EMPTY:
        raise RegistrationError(
            f"{name} looks like a method. Mark it with @funcmcp.tool and add its class with mcp.add(...)."
        )
    return parameters


def _enclosing_names(function: Any) -> Mapping[str, Any] | None:
    """Return the local names of the function around a local function; postponed annotations may use them."""
    function = inspect.unwrap(function)
    outer, separator, _ = getattr(function, "__qualname__", "").rpartition(".<locals>.")
    module_names = getattr(function, "__globals__", None)
    frame = sys._getframe() if separator else None  # noqa: SLF001 - the interpreter offers no other way
    while frame is not None:
        if frame.f_code.co_qualname == outer and frame.f_globals is module_names:
            return dict(frame.f_locals)
        frame = frame.f_back
    return None
