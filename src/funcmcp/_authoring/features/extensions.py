"""Extensions of the protocol by authors: `Extension`, and methods from Python functions.

A method is a function like those of tools: its parameters are the params of the request, validated by their types, and
its result is validated by the return annotation. In place of a ``CallToolResult`` the result is the object itself.

Source: SEP-2133.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, get_origin

from funcmcp._authoring.calling.arguments import parts_of, reader_of
from funcmcp._authoring.calling.function_call import Always, CallKind, FeatureFunction, FunctionCall
from funcmcp._authoring.calling.unknown_arguments import ArgumentRules, known_arguments
from funcmcp._authoring.features.options import check_common_options, checked_options
from funcmcp._authoring.features.permissions import AccessOptions
from funcmcp._authoring.features.registration_checks import feature_members
from funcmcp._authoring.results.result_writer import ResultWriter, jsonable
from funcmcp._authoring.schemas.json_values import check_json
from funcmcp._authoring.signatures.annotations import awaited, union_members, without_marks
from funcmcp._authoring.signatures.partials import generator_kind
from funcmcp._authoring.signatures.signature import EMPTY
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import decode, encode
from funcmcp._protocol.errors import InvalidParams, ToolError
from funcmcp._protocol.extensions import EXTENSIONS, NOT_PARAMETERS, is_identifier, is_method
from funcmcp._protocol.methods import CLIENT_METHODS, METHODS
from funcmcp._server.catalog.features import ExtensionMethod
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Unpack

    from funcmcp._authoring.calling.arguments import Part, Reader
    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.calling.unknown_arguments import UnknownArguments
    from funcmcp._server.options import ShowErrors

    MethodCall: TypeAlias = "FunctionCall[ArgumentRules, dict[str, Any], dict[str, Any]]"

F = TypeVar("F", bound="Callable[..., Any]")

_OWN_PREFIXES = frozenset(name.partition("/")[0] for name in (*METHODS, *CLIENT_METHODS)) | {"notifications"}
"""The first segments of the methods of the protocol."""

_NOT_OBJECTS = frozenset({bool, bytes, float, frozenset, int, list, set, str, tuple})
"""Types of values that are never a result, which is an object."""


class MethodOptions(AccessOptions, total=False):
    """The options of a method of an extension.

    Attributes:
        extension: The extension that clients must declare. Other clients get the error -32021. With None, all clients
            may use the method.
        timeout: Seconds after which a call is cancelled. None sets no limit. The default is 600.
        max_timeout: Seconds to which `Context.extend` may raise the `timeout`. Without it a call can't be extended.
        show_errors: Exceptions whose text clients get: True, False or types. By default the server's option applies.
        tags: Words by which `MCPServer.enable` and `MCPServer.disable` find the method.
        enabled: Whether the server has the method. False hides it until `MCPServer.enable` shows it.
        lax: Whether params are converted, such as ``"5"`` to 5. By default the server's `lax` applies.
        unknown_arguments: What happens to params that the function does not have, as for tools.
    """

    extension: str | None
    timeout: float | None
    max_timeout: float
    show_errors: ShowErrors | None
    tags: Collection[str]
    enabled: bool
    lax: bool | None
    unknown_arguments: UnknownArguments | None


@public("funcmcp.extensions")
class Extension:
    """An extension of the protocol that a server declares, with methods of its own.

    Args:
        identifier: The name: one that you own, and a slash, such as ``com.example/search``.
        settings: What the server declares with it: a JSON object.

    Attributes:
        identifier: The name.
        settings: What the server declares with it.

    Raises:
        RegistrationError: The identifier is malformed, or one of funcmcp's own; or the settings are not JSON.

    Example:
        ```python
        search = Extension("com.example/search", settings={"languages": ["en"]})


        @search.method("com.example/search/query")
        async def query(text: str, limit: int = 10) -> Results: ...


        mcp = MCPServer("Shop", extensions=[search])
        ```
    """

    def __init__(self, identifier: str, settings: Mapping[str, Any] | None = None) -> None:
        if not is_identifier(identifier):
            raise RegistrationError(
                f"An extension needs a name with a prefix that you own, such as 'com.example/search'; "
                f"got {identifier!r:.80}."
            )
        if identifier in EXTENSIONS:
            raise RegistrationError(f"{identifier} needs no Extension: the server declares it if a feature needs it.")
        if settings is not None and not isinstance(settings, Mapping):
            raise RegistrationError(f"settings of {identifier} must be a dict, not {type(settings).__name__}.")
        self.identifier = identifier
        check_json(dict(settings or {}), f"settings of {identifier}")
        self.settings: dict[str, Any] = decode(encode(dict(settings or {})))  # a later change has no effect
        self._methods: list[tuple[Callable[..., Any], str, MethodOptions]] = []
        self._is_used = False

    def method(self, name: str, /, **options: Unpack[MethodOptions]) -> Callable[[F], F]:
        """Return a decorator for a method of the extension, for clients that declare the extension.

        The arguments are those of `MCPServer.method`. With ``extension=None`` all clients may use the method.

        Raises:
            RegistrationError: The name is malformed, an option does not exist, or a server has the extension already.
        """
        if self._is_used:
            raise RegistrationError(
                f"A server has {self.identifier} already, and would lack this method. Add it before MCPServer(...), "
                f'or write @mcp.method({name!r:.80}, extension="{self.identifier}").'
            )
        checked = checked_options({"extension": self.identifier, **options}, MethodOptions)
        checked_method(name, checked)

        def add(function: F) -> F:
            self._methods.append((function, name, checked))
            return function

        return add


def methods_of(extension: Extension) -> list[tuple[Callable[..., Any], str, MethodOptions]]:
    """Return the methods of an extension for a server. The extension can have no others afterwards."""
    extension._is_used = True  # noqa: SLF001 - a part of it
    return extension._methods  # noqa: SLF001 - as above


def checked_method(name: object, options: MethodOptions) -> str:
    """Return the name of a method; raise RegistrationError if an extension can't have it."""
    if callable(name):
        raise RegistrationError('A method needs a name. Write @mcp.method("com.example/search").')
    if not isinstance(name, str) or not is_method(name):
        raise RegistrationError(f"A method needs a name such as 'com.example/search'; got {name!r:.80}.")
    prefix = name.partition("/")[0]
    if prefix in _OWN_PREFIXES:
        raise RegistrationError(f"{name} is a method of the protocol. Middleware changes what such a method does.")
    if "." not in prefix and not options.get("extension"):
        raise RegistrationError(f"{name} needs a prefix that you own, such as com.example/{name}, or extension=.")
    return name


def make_method(function: Callable[..., Any], name: str, options: MethodOptions, services: Services) -> ExtensionMethod:
    """Return a method that calls a function.

    Args:
        function: Returns an object: a dict, a dataclass, a model or a TypedDict. None stands for an empty one.
        name: The name, which `checked_method` has returned.
        options: The options.
        services: Types that are registered here are injected. They may still be registered later.

    Raises:
        RegistrationError: The function can't be a method, or an option is not valid.
    """
    check_common_options(name, options)
    rules = services.argument_rules.with_options(name, options)
    call: MethodCall = FunctionCall(FeatureFunction(name, function, services), METHOD_CALL, rules)
    _check_function(name, call)
    members: Any = feature_members(call, {**options}, services)  # type: ignore[typeddict-item]  # fewer options
    return ExtensionMethod(name, call.run, options.get("extension"), **members)


def _check_function(name: str, call: MethodCall) -> None:
    """Raise RegistrationError for a function whose parameters or results a method can't have."""
    if generator_kind(call.function) is not None:
        raise RegistrationError(f"{name} is a generator. Return an object instead of yielding.")
    for parameter in NOT_PARAMETERS & call.signature.defaults.keys():
        raise RegistrationError(f"{name} can't have the parameter {parameter!r}, which is a member of the protocol.")
    for member in union_members(awaited(call.signature.try_hints().get("return"))):
        kind = without_marks(member)
        if (get_origin(kind) or kind) in _NOT_OBJECTS:
            raise RegistrationError(f"{name} must return an object, such as a dict, and is annotated {member!r:.80}.")


def _parts(call: MethodCall) -> list[Part]:
    return parts_of(call.plan.arguments, call.name, lax=call.settings.lax)


def _new_reader(call: MethodCall) -> Reader:
    known = known_arguments(call.parts, call.settings.unknown)
    validate = reader_of(call.parts, lax=call.settings.lax, schema=call.input_schema, known=known)

    def read(params: dict[str, Any]) -> dict[str, Any]:
        try:
            return validate(params)
        except ToolError as error:
            raise InvalidParams(str(error)) from None

    return read


def _new_renderer(call: MethodCall) -> Always[dict[str, Any]]:
    annotation = awaited(call.signature.returns())
    is_open = without_marks(annotation) in {EMPTY, Any, object, None, type(None)}
    writer = None if is_open else ResultWriter(annotation, call.name)

    def render(value: Any) -> dict[str, Any]:
        if value is None:
            return {}
        result = decode(encode(jsonable(value)) if writer is None else writer.write(value))
        if not isinstance(result, dict):
            raise TypeError(f"{call.name} must return an object, such as a dict; it returned {type(value).__name__}.")
        return result

    return Always(render)


METHOD_CALL = CallKind(_new_reader, _new_renderer, _parts)
