"""Input schemas of tools as FastMCP writes them: those that pydantic makes of a function's parameters."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from pydantic import Field, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from funcmcp._authoring.calling.services import Scope
from funcmcp._authoring.signatures.signature import Signature
from funcmcp._compat.output_schemas import compressed, definition_at, without_unused_definitions
from funcmcp._objects.mappings import without

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MAX_PARTS = 10_000
"""Parts of a schema with definitions in the place of references. A schema that would be larger keeps them."""


def input_schema_of(function: Callable[..., Any]) -> dict[str, Any] | None:
    """Return the schema of a function's arguments; None if pydantic can't describe them.

    Args:
        function: A function that takes arguments only, as `adapted` returns it.
    """
    signature = Signature(function)
    hints = {name: _with_description(hint) for name, hint in signature.try_hints().items()}
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(_stand_in(function, hints))
        schema = adapter.json_schema()
    except (PydanticUserError, NameError, KeyError):
        return None
    cleaned: dict[str, Any] = _with_base64(compressed(schema))
    _restore_titles(cleaned, schema.get("properties", {}))
    for name, description in signature.parameter_descriptions().items():
        if name in cleaned.get("properties", {}):
            cleaned["properties"][name].setdefault("description", description)
    for name, argument in cleaned.get("properties", {}).items():
        for mark in get_args(hints.get(name)):
            if hasattr(mark, "completed"):
                argument["description"] = mark.completed(argument.get("description"))
    return cleaned


def _with_base64(node: Any) -> Any:
    """Return a schema that says of bytes how funcmcp reads them."""
    if isinstance(node, list):
        return [_with_base64(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("format") == "binary" and node.get("type") == "string":
        node = {**without(node, "format"), "contentEncoding": "base64"}
    return {name: _with_base64(value) for name, value in node.items()}


def _stand_in(function: Callable[..., Any], hints: Mapping[str, Any]) -> Any:
    """Return a function with the parameters of another one that clients fill."""

    def stand_in(**_: Any) -> None: ...

    parameters = [
        parameter.replace(annotation=hints.get(name, Any))
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.annotation is not Scope and hints.get(name) is not Scope
    ]
    described: Any = stand_in
    described.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    described.__signature__ = inspect.Signature(parameters)
    return stand_in


def _with_description(hint: Any) -> Any:
    """Return ``Annotated[int, "text"]`` with the text as the description."""
    if get_origin(hint) is not Annotated:
        return hint
    arguments = get_args(hint)
    is_described = len(arguments) == 2 and isinstance(arguments[1], str)  # noqa: PLR2004 - a type and a mark
    return Annotated[arguments[0], Field(description=arguments[1])] if is_described else hint


def _restore_titles(schema: dict[str, Any], generated: Mapping[str, Any]) -> None:
    """Add the titles of arguments that their author has written."""
    title_of_name = GenerateJsonSchema().get_title_from_name
    for name, argument in generated.items():
        title = argument.get("title")
        if isinstance(title, str) and title != title_of_name(name):
            schema["properties"][name]["title"] = title


def dereferenced(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its definitions in the place of references.

    A schema that refers to itself, or would become too large, keeps its references.
    """
    definitions = schema.get("$defs")
    if not definitions:
        return schema
    expansion = _Expansion(schema)
    try:
        expanded = expansion.of(without(schema, "$defs"), ())
    except _TooLargeError:
        return compressed(schema)
    result: dict[str, Any] = without_unused_definitions({**expanded, "$defs": definitions})
    return result


_REFERRING = frozenset({"$ref", "discriminator"})
"""Members that name definitions. The schema is the same without a ``discriminator`` of OpenAPI."""


class _TooLargeError(Exception):
    """A schema refers to itself, or would become too large."""


class _Expansion:
    """Puts definitions in the place of references.

    Args:
        schema: The schema with the definitions.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._parts = 0

    def of(self, node: Any, inside: tuple[str, ...]) -> Any:
        """Return a part of the schema.

        Args:
            node: The part.
            inside: The references that led to it.

        Raises:
            _TooLargeError: It refers to itself, or is too large.
        """
        if isinstance(node, list):
            return [self.of(item, inside) for item in node]
        if not isinstance(node, dict):
            return node
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise _TooLargeError
        expanded = {name: self.of(value, inside) for name, value in node.items() if name not in _REFERRING}
        reference = node.get("$ref")
        if reference is None:
            return expanded
        target = definition_at(self._schema, reference) if isinstance(reference, str) else None
        if reference in inside or not isinstance(target, dict):
            raise _TooLargeError
        return {**self.of(target, (*inside, reference)), **expanded}
