"""Calls of functions that read resources and that list them.

A resource's function gets the variables of a URI, and its call returns a ``ReadResourceResult``. A lister's function
gets no arguments, and its call returns definitions of resources.

Source: 2026-07-28 "server/resources".
"""

from __future__ import annotations

import functools
from collections.abc import Sequence, Set
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_origin

from funcmcp._authoring.calling.arguments import is_field, reader_of
from funcmcp._authoring.calling.function_call import Always, CallKind
from funcmcp._authoring.results.content import ResourceInfo
from funcmcp._authoring.results.resource_contents import ContentsWriter
from funcmcp._authoring.signatures.annotations import marks_of, union_members, without_marks
from funcmcp._authoring.signatures.signature import EMPTY
from funcmcp._protocol.errors import InvalidParams, ToolError
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from funcmcp._authoring.calling.function_call import FunctionCall
    from funcmcp._authoring.signatures.signature import Parameter
    from funcmcp._protocol.uri_template import URITemplate, Values
    from funcmcp._server.catalog.features import EncodedResult

    ListerCall: TypeAlias = "FunctionCall[str, list[dict[str, Any]]]"
    """Its settings are the scheme of the resources' URIs."""

    ResourceRead: TypeAlias = "FunctionCall[ResourceSettings, EncodedResult | dict[str, Any], str, Values]"


class ResourceSettings(NamedTuple):
    """What the author of a resource or a template chose.

    Attributes:
        template: The template of the URIs; one resource has a template without variables.
        mime_type: The media type, if any.
        ui: The ``_meta.ui`` of the contents.
    """

    template: URITemplate
    mime_type: str | None
    ui: Mapping[str, Any] | None


def _new_reader(call: ResourceRead) -> Callable[[str, Values], dict[str, Any]]:
    template = call.settings.template
    parameters = call.plan.arguments
    for parameter in parameters:
        if parameter.name not in template.variables and parameter.default is EMPTY:
            raise RegistrationError(
                f"{call.name} has a parameter {parameter.name!r}, which is not a variable of {template.text}. "
                "Add the variable, give the parameter a default, or register its type as a service."
            )
    check_lists(call.name, template, parameters)
    texts = {parameter.name for parameter in parameters if parameter.bare is str}
    paths = texts & template.exploded  # the function takes the parts of a path as one text, so they are joined again
    validate = reader_of(call.parts, lax=True)

    def read(uri: str, values: Values) -> dict[str, Any]:
        arguments: dict[str, Any] = {**values}
        for name in paths:
            if name in arguments:
                arguments[name] = "/".join(arguments[name])
        try:
            return validate(arguments)
        except ToolError as error:
            raise InvalidParams(f"The URI does not fit: {error}", {"uri": uri}) from None

    return read


def _new_renderer(call: ResourceRead) -> Callable[..., Callable[[Any], EncodedResult | dict[str, Any]]]:
    _, mime_type, ui = call.settings
    writer = ContentsWriter(call.name, call.signature.returns(), mime_type=mime_type, ui=ui)
    return lambda _context, uri, _values: functools.partial(writer.result, uri)


def _context_members(uri: str, _values: Values) -> dict[str, Any]:
    return {"uri": uri}


RESOURCE_CALL = CallKind(_new_reader, _new_renderer, context_members=_context_members)


def _new_lister_reader(call: ListerCall) -> Callable[[], dict[str, Any]]:
    if call.plan.arguments:
        parameter = call.plan.arguments[0].name
        raise TypeError(
            f"{call.name} lists resources, so it takes only a context and services. "
            f"Remove the parameter {parameter!r}, or register its type as a service."
        )
    return dict


def _new_lister_renderer(call: ListerCall) -> Always[list[dict[str, Any]]]:
    scheme = call.settings

    def render(value: Any) -> list[dict[str, Any]]:
        if not isinstance(value, list | tuple) or not all(isinstance(resource, ResourceInfo) for resource in value):
            raise TypeError(f"{call.name} must return a list of ResourceInfo objects.")
        definitions: list[dict[str, Any]] = [resource.wire for resource in value]
        for definition in definitions:
            if not definition["uri"].startswith(f"{scheme}:"):
                raise ValueError(f"{call.name} lists resources of the scheme {scheme!r}, not {definition['uri']!r}.")
        return definitions

    return Always(render)


LISTER_CALL = CallKind(_new_lister_reader, _new_lister_renderer)


def check_lists(name: str, template: URITemplate, parameters: Iterable[Parameter]) -> None:
    """Check that variables with several values are lists, and that others are not.

    Raises:
        RegistrationError: A parameter and its variable differ in this. The text says how to write the template.
    """
    multiple = template.exploded | template.repeated | template.joined
    for parameter in parameters:
        variable, annotation = parameter.name, parameter.annotation
        if variable in template.variables and variable not in multiple and _is_list(annotation):
            expression = f"{{?{variable}*}}" if variable in template.optional else f"{{{variable}*}}"
            raise RegistrationError(f"{name}: {variable!r} is a list, so write {expression} in the URI.")
        if variable in template.repeated and _is_single(annotation):
            raise RegistrationError(f"{name}: {{?{variable}*}} takes several values, so {variable!r} must be a list.")


def lists_in(parameters: Iterable[Parameter]) -> set[str]:
    """Return the names of the parameters for which only a list fits."""
    return {parameter.name for parameter in parameters if _is_list(parameter.annotation)}


def _is_list(annotation: Any) -> bool:
    """Return whether only a list fits a type. A mark of the author's may make a list of a text."""
    if get_origin(annotation) is Annotated and not all(map(_is_description, marks_of(annotation))):
        return False
    members = [member for member in union_members(annotation) if member is not type(None)]
    if members != [annotation]:
        return all(map(_is_list, members))
    return _is_kind_of(annotation, (list, tuple, set, frozenset, Sequence, Set)) and not _is_single(annotation)


def _is_description(mark: Any) -> bool:
    """Return whether a mark leaves a type unchanged."""
    return isinstance(mark, str) or is_field(mark)


def _is_single(annotation: Any) -> bool:
    if any(not isinstance(mark, str) for mark in marks_of(annotation)):
        return False
    return _is_kind_of(without_marks(annotation), (str, bytes, int, float, Enum))


def _is_kind_of(bare: Any, kinds: tuple[type, ...]) -> bool:
    origin = get_origin(bare) or bare
    return isinstance(origin, type) and issubclass(origin, kinds)
