"""Checks of a feature's name, function and options when the feature is registered.

Type hints may not be resolvable yet, and services may be registered later. These checks find the mistakes that show
without either; the others show when the feature is first listed or called.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypedDict

from funcmcp._authoring.calling.arguments import input_schema, parts_of
from funcmcp._authoring.calling.feature_context import Context
from funcmcp._authoring.calling.function_call import FeatureFunction, special_type
from funcmcp._authoring.calling.tool_call import result_type_of
from funcmcp._authoring.features.options import (
    FeatureOptions,
    check_common_options,
    shown_errors_of,
    tags_of,
    time_limit_of,
    version_of,
)
from funcmcp._authoring.features.permissions import access_of
from funcmcp._authoring.results.content import icon_list
from funcmcp._authoring.signatures.annotations import parts_of_type, union_members, unsupported_type, without_marks
from funcmcp._authoring.signatures.naming import is_name, is_text, snake_case, title_of
from funcmcp._authoring.signatures.partials import generator_kind, without_partials
from funcmcp._authoring.signatures.signature import EMPTY, Header, JSONRPCResponse, function_name
from funcmcp._objects.mappings import without_none
from funcmcp._protocol.headers import mirrored_parameters
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._auth.access import Access
    from funcmcp._authoring.calling.function_call import AnyCall
    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.calling.tool_call import ToolCall
    from funcmcp._authoring.signatures.signature import Parameter, Signature
    from funcmcp._protocol.headers import MirroredParameter
    from funcmcp._server.calls.feature import TimeLimit

_SIMPLE: dict[Any, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float), str: (str,), bytes: (bytes,)}
"""Types whose defaults are checked at registration, with the types of the values that fit."""

_CONTEXT = re.compile(r"\bContext\b")
_NAME_RULE = "1 to 128 letters, digits, '_', '-' and '.'"
_TEXT_RULE = "a text without line breaks and control characters"


def feature_name(function: Any, name: str | None, kind: str) -> str:
    """Return a feature's name: the author's, the function's in snake_case, or the function's unchanged.

    Args:
        function: The function.
        name: The name that the author chose, if any.
        kind: "tool", "resource", "prompt" or "resource list". Names of tools have fewer characters.

    Raises:
        RegistrationError: The name is not allowed, or the function can't be a feature.
    """
    inner = without_partials(function)
    if isinstance(inner, type):
        raise RegistrationError(f"{inner.__name__} is a class. Add its marked methods with mcp.add(...).")
    if name is None:
        of_function = function_name(function)
        if is_name(snake_case(of_function)):
            name = snake_case(of_function)
        elif is_name(of_function):
            name = of_function
        else:
            raise _invalid_name(snake_case(of_function), kind, _NAME_RULE)
    elif kind == "tool":
        if not isinstance(name, str) or not is_name(name):
            raise _invalid_name(name, kind, _NAME_RULE)
    elif not isinstance(name, str) or not is_text(name):
        raise _invalid_name(name, kind, _TEXT_RULE)
    if kind != "tool" and generator_kind(function) is not None:
        raise RegistrationError(f"{name} is a generator. Return a list instead of yielding.")
    return name


def _invalid_name(name: object, kind: str, rule: str) -> RegistrationError:
    return RegistrationError(f"{name!r} is not a valid name of a {kind}. Pass name= with {rule}.")


def named_function(
    kind: str, function: Callable[..., Any], options: FeatureOptions, services: Services, owner: type | None
) -> FeatureFunction:
    """Return a function with its feature's name. Check the options that all kinds of features have.

    Args:
        kind: As for `feature_name`.
        function: The function.
        options: The feature's options.
        services: The server's services.
        owner: The class that is constructed for each call, if the function is one of its methods.

    Raises:
        RegistrationError: The name or an option is not allowed, or the function can't be a feature.
    """
    name = feature_name(function, options.get("name"), kind)
    check_common_options(name, options)
    return FeatureFunction(name, function, services, owner)


def feature_definition(
    call: AnyCall, options: FeatureOptions, description: str, members: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a feature's definition in the newest revision's shape.

    Args:
        call: The calls of the feature's function.
        options: The feature's options.
        description: The description. An empty one is left out, because some APIs of models refuse it.
        members: The members that only features of this kind have. None stands for a missing one. A ``_meta`` is added
            to that of the options.
    """
    definition: dict[str, Any] = {
        "name": call.name,
        "title": options.get("title") or title_of(options.get("name"), function_name(call.function)) or call.name,
        "description": description or None,
    }
    definition.update(members)
    definition["icons"] = icon_list(options.get("icons", ())) or None
    meta = options.get("meta")
    if meta is not None:
        definition["_meta"] = {**meta, **(members.get("_meta") or {})}
    return without_none(definition)


def check_parameters(name: str, signature: Signature, services: Services) -> None:
    """Check the types and defaults of a function's parameters.

    Raises:
        RegistrationError: JSON can't carry a parameter's type, or a default is not of its parameter's type.
    """
    types = signature.try_types()
    if types is None:
        return
    for parameter in types.parameters:
        if parameter.bare not in services:
            unsupported = unsupported_type(parameter.annotation)
            if unsupported is not None:
                raise RegistrationError(f"The parameter {parameter.name!r} of {name} is {unsupported}.")
        if parameter.default is not EMPTY and parameter.default is not None:
            _check_default(name, parameter)


def _check_default(name: str, parameter: Parameter) -> None:
    """Check that the default of a parameter with a simple type is of that type."""
    default = parameter.default
    fitting: tuple[type, ...] = ()
    members = [without_marks(member) for member in union_members(parameter.bare)]
    for member in members:
        if member not in _SIMPLE:
            return
        fitting += _SIMPLE[member]
    if type(default) in _SIMPLE and not isinstance(default, fitting):
        types = " | ".join(member.__name__ for member in members)
        raise RegistrationError(
            f"The parameter {parameter.name!r} of {name} has the default {default!r}, which is not of its type "
            f"{types}. Change the default or the annotation."
        )


def check_return_type(name: str, call: ToolCall) -> None:
    """Raise RegistrationError if JSON can't carry what a function is annotated to return."""
    types = call.signature.try_types()
    if types is None or without_marks(types.returns) is JSONRPCResponse:
        return
    unsupported = unsupported_type(result_type_of(call, types.returns))
    if unsupported is not None:
        raise RegistrationError(f"{name} is annotated to return {unsupported}.")


class FeatureMembers(TypedDict):
    """The members that tools, resources and prompts have in common."""

    interactive: bool
    time_limit: TimeLimit | None
    access: Access
    shown_errors: tuple[type[BaseException], ...] | None
    tags: frozenset[str]
    enabled: bool
    version: str | None


def feature_members(call: AnyCall, options: FeatureOptions, services: Services) -> FeatureMembers:
    """Return the members that a feature's options and its function's parameters set.

    Raises:
        RegistrationError: An option or a parameter is wrong.
    """
    name = call.name
    check_parameters(name, call.signature, services)
    interactive = is_interactive(call.signature)
    names = getattr(getattr(call.function, "__code__", None), "co_names", ())
    if "set_state" in names or (interactive and "state" in names):  # which may be another attribute with this name
        services.uses_state = True
    return {
        "interactive": call.generator is not None or interactive,
        "time_limit": time_limit_of(options),
        "access": access_of(name, options),
        "shown_errors": shown_errors_of(name, options),
        "tags": tags_of(name, options),
        "enabled": options.get("enabled", True),
        "version": version_of(name, options),
    }


def is_interactive(signature: Signature) -> bool:
    """Return whether a function takes a context. If a hint can't be resolved yet, its text decides."""
    types = signature.try_types()
    if types is None:
        return any(_CONTEXT.search(str(hint)) for hint in signature.raw_annotations().values())
    return any(special_type(parameter) is Context for parameter in types.parameters)


def mirrored_arguments(
    name: str, signature: Signature, handwritten_schema: Mapping[str, Any] | None
) -> tuple[MirroredParameter, ...]:
    """Return the arguments that clients repeat in headers; check patterns and the names of headers.

    Args:
        name: The tool's name.
        signature: The tool's signature. A schema is generated only for parameters that are marked with `Header`.
        handwritten_schema: The tool's hand-written schema, which replaces the parameters' own if there is one.

    Raises:
        RegistrationError: A pattern can't be checked in linear time, or a mark is not valid.
    """
    marked = []
    types = signature.try_types()
    for parameter in types.parameters if types is not None else ():
        parts = list(parts_of_type(parameter.annotation))
        for part in parts:
            _check_pattern(part, f"The parameter {parameter.name!r} of {name}")
        if any(isinstance(part, Header) for part in parts):
            marked.append(parameter)
    try:
        if handwritten_schema is not None:
            return mirrored_parameters(handwritten_schema)
        if not marked:
            return ()
        return mirrored_parameters(input_schema(parts_of(marked, name, lax=False), name, {}))
    except RegistrationError:
        raise
    except ValueError as error:
        raise RegistrationError(f"{name}: {error}") from None


def _check_pattern(part: Any, place: str) -> None:
    """Raise RegistrationError for a pattern that can't be checked in time that is linear in the text's length."""
    metadata = getattr(part, "metadata", None)
    marks = [part, *metadata] if isinstance(metadata, list | tuple) else [part]
    for mark in marks:
        pattern = getattr(mark, "pattern", None)
        if not isinstance(pattern, str | re.Pattern):
            continue
        from funcmcp._authoring.schemas.pydantic_schemas import (  # noqa: PLC0415 - loads pydantic, if there is a pattern
            linear_pattern,
            pattern_error,
        )

        reason = pattern_error(linear_pattern(pattern))
        if reason is not None:
            advice = " Write \\z for the end of the text." if "\\Z" in linear_pattern(pattern) else ""
            raise RegistrationError(
                f"{place} has a pattern that the linear regular expression engine can't compile: {reason}.{advice}"
            )
