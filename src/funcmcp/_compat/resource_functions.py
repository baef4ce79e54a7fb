"""Functions of resources and templates as FastMCP takes them: what it refuses, and how it reads values of a URI."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from funcmcp._authoring.signatures.annotations import union_members, without_marks
from funcmcp._authoring.signatures.partials import is_async, signature_of
from funcmcp._authoring.signatures.signature import Signature, function_name
from funcmcp._compat.functions import adapted, set_signature
from funcmcp._protocol.errors import InvalidParams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from inspect import Parameter

_EXPRESSION = re.compile(r"\{([^}]+)\}")
_NAME = re.compile(r"[\w-]+\*?")
_NORMAL = re.compile(r"(?!(?:https?|wss?|ftp|file):)[a-z][a-z0-9+-]*://[a-z0-9_-][a-z0-9/_-]*")
"""URIs that `AnyUrl` leaves as they are."""
_OPERATOR = re.compile(r"\{([+#./;])")
_NAMES_IN_PATH = re.compile(r"\{([A-Za-z_][\w-]*,[^}]+)\}")
_TRUE, _FALSE = frozenset({"true", "1", "yes"}), frozenset({"false", "0", "no"})


def check_template(function: Callable[..., Any], uri: str, name: str | None) -> None:
    """Check that a function can read the resources of a template, as FastMCP does.

    Raises:
        ValueError: FastMCP refuses the function or the template. The text is FastMCP's.
    """
    if name is None and function_name(function) == "<lambda>":
        raise ValueError("You must provide a name for lambda functions")
    parameters = signature_of(function).parameters.values()
    _check_kinds(parameters)
    _check_operators(uri)
    path, query = _names_in(uri)
    variables = _variables(path | query)
    if not variables:
        raise ValueError("URI template must contain at least one parameter")
    visible = signature_of(adapted(function)).parameters
    keywords = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    _check_parameters(visible, {_variable(name) for name in path}, {_variable(name) for name in query})
    _check_lists(function, visible, uri)
    names = {name for name, parameter in visible.items() if parameter.kind is not parameter.VAR_KEYWORD}
    if not keywords and not set(variables) <= names:
        raise ValueError(f"URI parameters {set(variables)} must be a subset of the function arguments: {names}")


def with_named_variables(function: Callable[..., Any], uri: str) -> Callable[..., Any]:
    """Return the function of a template that takes ``**kwargs`` with a parameter for each variable of the path."""
    parameters = signature_of(function).parameters
    keywords = [name for name, parameter in parameters.items() if parameter.kind is parameter.VAR_KEYWORD]
    path, _ = _names_in(uri)
    names = sorted({_variable(name) for name in path} - parameters.keys())
    if not keywords or not names:
        return function

    def call(**arguments: Any) -> Any:
        return function(**arguments)

    async def call_async(**arguments: Any) -> Any:
        return await function(**arguments)

    wrapper: Any = call_async if is_async(function) else call
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError):  # a name that is not known yet, or an object that is called
        hints = {}
    of_variables = dict.fromkeys(names, hints.get(keywords[0], str))
    set_signature(wrapper, function, {**hints, **of_variables}, keywords)
    added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    wrapper.__signature__ = inspect.Signature([*wrapper.__signature__.parameters.values(), *added])
    return cast("Callable[..., Any]", wrapper)


def normalized_uri(uri: str) -> str:
    """Return the URI of a resource as pydantic's `AnyUrl` writes it, as which FastMCP lists it and its clients send it.

    Raises:
        ValueError: The text is not a URI.
    """
    if _NORMAL.fullmatch(uri):
        return uri
    from pydantic_core import Url, ValidationError  # noqa: PLC0415 - few URIs need it

    try:
        return str(Url(uri))
    except ValidationError:
        raise ValueError(f"Input should be a valid URL with a scheme, such as 'menu://today', not {uri!r}.") from None


def needs_template(function: Callable[..., Any], uri: str) -> bool:
    """Return whether a function takes arguments though its URI has no variables, which FastMCP refuses."""
    if "{" in uri:
        return False
    visible = signature_of(adapted(function)).parameters
    return any(name != "scope_of_dependencies" for name in visible)


def read_values(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a URI with numbers and booleans in the place of their texts, as FastMCP reads them.

    Raises:
        ValueError: A text is not a value of the parameter's type.
    """
    hints = Signature(function).try_hints()
    return {
        name: _read_value(name, value, hints.get(name)) if isinstance(value, str) else value
        for name, value in values.items()
    }


def checked_reads(component: Any, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return the handler of a template that answers with an error for values that FastMCP does not read.

    Args:
        component: The template, whose method ``read_values`` raises ValueError.
        handler: Its handler.
    """

    async def handle(context: Any, uri: str, values: Mapping[str, Any]) -> Any:
        try:
            component.read_values(values)
        except ValueError as error:
            raise InvalidParams(f"The URI does not fit: {error}", {"uri": uri}) from None
        return await handler(context, uri, values)

    return handle


def texts_of(arguments: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the arguments of a prompt with values that are not texts as JSON, as FastMCP sends them."""
    from pydantic_core import to_json  # noqa: PLC0415 - only direct calls need it

    return {
        name: value if isinstance(value, str) else to_json(value, fallback=str).decode()
        for name, value in (arguments or {}).items()
    }


def _read_value(name: str, text: str, hint: Any) -> Any:
    if hint is bool:
        if text.lower() in _TRUE:
            return True
        if text.lower() not in _FALSE:
            raise ValueError(f"Invalid boolean value for {name}: {text!r}")
        return False
    return hint(text) if hint is int or hint is float else text


def _check_kinds(parameters: Any) -> None:
    for parameter in parameters:
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ValueError(
                "Functions with positional-only parameters are not supported as resource templates because URI "
                "template parameters are passed by name. Replace them with standard parameters that can be passed as "
                "keywords."
            )
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise ValueError("Functions with *args are not supported as resource templates")


def _check_operators(uri: str) -> None:
    operators = sorted(set(_OPERATOR.findall(uri)))
    if operators:
        raise ValueError(
            f"RFC 6570 level-3 operators {{{', '.join(operators)}...}} are not supported. Use {{?param}} or {{&param}} "
            "for query parameters or {param} for path parameters."
        )
    lists = _NAMES_IN_PATH.findall(uri)
    if lists:
        examples = ", ".join(f"{{{names}}}" for names in lists[:2])
        raise ValueError(
            f"Set expansion syntax like {examples} is not supported. Use {{?param1,param2}} for multiple query "
            "parameters."
        )


def _names_in(uri: str) -> tuple[set[str], set[str]]:
    """Return the names in the expressions of the path, and those in the expressions of the query."""
    path: set[str] = set()
    query: set[str] = set()
    for names in _EXPRESSION.findall(uri):
        if names[0] in "?&":
            query.update(name.strip().removesuffix("*") for name in names[1:].split(","))
        elif _NAME.fullmatch(names):
            path.add(names.removesuffix("*"))
    return path, query


def _variable(name: str) -> str:
    return name.replace("-", "_")


def _variables(names: set[str]) -> dict[str, str]:
    """Return names in a template by the variables that they are; raise ValueError for two of one variable."""
    variables: dict[str, str] = {}
    for name in sorted(names):
        previous = variables.setdefault(_variable(name), name)
        if previous != name:
            raise ValueError(
                f"URI template parameters '{previous}' and '{name}' both normalize to '{_variable(name)}'. "
                "Use one or the other, not both."
            )
    return variables


def _check_parameters(visible: Mapping[str, Parameter], path: set[str], query: set[str]) -> None:
    """Check which parameters have defaults."""
    named = {
        name: parameter.default is parameter.empty
        for name, parameter in visible.items()
        if parameter.kind is not parameter.VAR_KEYWORD and name != "scope_of_dependencies"
    }
    optional = {name for name, is_required in named.items() if not is_required}
    if not query <= optional:
        raise ValueError(
            f"Query parameters {query - optional} must be optional function parameters with default values"
        )
    required = named.keys() - optional
    if not required <= path:
        raise ValueError(f"Required function arguments {required} must be a subset of the URI path parameters {path}")


def _check_lists(function: Callable[..., Any], visible: Mapping[str, Parameter], uri: str) -> None:
    """Check that a parameter of the query with several values takes a list."""
    hints = Signature(function).try_hints()
    for names in _EXPRESSION.findall(uri):
        if names[0] not in "?&":
            continue
        for name in names[1:].split(","):
            variable = _variable(name.strip().removesuffix("*"))
            if name.strip().endswith("*") and variable in visible and not _takes_list(hints.get(variable, Any)):
                raise ValueError(
                    f"Query parameter '{variable}' uses the RFC 6570 explode modifier, so its function parameter must "
                    f"accept a list: use '{{?{variable}}}' for a scalar value"
                )


def _takes_list(hint: Any) -> bool:
    members = [without_marks(member) for member in union_members(hint)]
    return any(member in {Any, object} or (getattr(member, "__origin__", member) is list) for member in members)
