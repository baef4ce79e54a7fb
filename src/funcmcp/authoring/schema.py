"""JSON schemas of Python types: inlined, without generated titles, in a fixed order of keys.

Source: "server/tools, Input schema": JSON Schema 2020-12 with `type: object` at the root.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import core_schema

_FIRST = ("$schema", "type", "description", "properties", "items", "required")
_LAST = ("default", "examples", "$defs")


class _Generator(GenerateJsonSchema):
    """Pydantic's generator without titles of its own."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - the base class's signature
        """Leave titles out unless an author wrote them."""
        return False

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:  # noqa: ARG002 - as above
        """Leave the order alone; `_ordered` makes it."""
        return value


class _InputGenerator(_Generator):
    """For arguments: `T | None` may be left out, and its schema is that of T; decimals are numbers."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """Return a number with the constraints of a Decimal."""
        return self.float_schema({**schema, "type": "float"})  # type: ignore[typeddict-item]

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Return the schema without null."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Leave a default of None out."""
        generated = super().default_schema(schema)
        if generated.get("default", 0) is None:
            generated = {name: value for name, value in generated.items() if name != "default"}
        return generated


def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return pydantic's adapter of a type; raise RegistrationError for a type that JSON can't carry."""
    try:
        return TypeAdapter(kind)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        reason = str(error).splitlines()[0].split(". Set `arbitrary")[0]
        raise RegistrationError(f"{reason}. If it is a service, register it with mcp.services.") from error


def input_schema(kind: Any) -> dict[str, Any]:
    """Return the schema of what a client may send for a type."""
    return _finish(adapter(kind).json_schema(schema_generator=_InputGenerator, mode="validation"))


def output_schema(kind: Any) -> dict[str, Any]:
    """Return the schema of what a value of a type looks like when it is sent."""
    return _finish(adapter(kind).json_schema(schema_generator=_Generator, mode="serialization"))


def _finish(schema: dict[str, Any]) -> dict[str, Any]:
    definitions = schema.pop("$defs", {})
    for definition in definitions.values():
        definition.pop("title", None)
    schema.pop("title", None)
    inlined = _inline(schema, definitions, ())
    kept = _referenced(inlined, definitions)
    if kept:
        if "$ref" in inlined and len(inlined) == 1:  # the root itself is recursive, but must be an object
            inlined = deepcopy(definitions[inlined["$ref"].rpartition("/")[2]])
        inlined["$defs"] = kept
    ordered: dict[str, Any] = ordered_schema(inlined)
    return ordered


def _inline(node: Any, definitions: dict[str, Any], path: tuple[str, ...]) -> Any:
    """Put definitions in the place of references, except where a definition contains itself."""
    if isinstance(node, list):
        return [_inline(item, definitions, path) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in path or _is_recursive(name, definitions):
            return dict(node)
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        inner = _inline(definitions[name], definitions, (*path, name))
        return {**inner, **_inline(siblings, definitions, path)}
    return {key: _inline(value, definitions, path) for key, value in node.items()}


def _is_recursive(name: str, definitions: dict[str, Any]) -> bool:
    seen: set[str] = set()
    waiting = list(_references(definitions[name]))
    while waiting:
        current = waiting.pop()
        if current == name:
            return True
        if current not in seen:
            seen.add(current)
            waiting.extend(_references(definitions[current]))
    return False


def _references(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(_references, node)) if node else set()
    if not isinstance(node, dict):
        return set()
    found = set().union(*map(_references, node.values())) if node else set()
    reference = node.get("$ref")
    return found | {reference.rpartition("/")[2]} if isinstance(reference, str) else found


def _referenced(schema: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the definitions that are still referred to, themselves inlined as far as they go."""
    kept: dict[str, Any] = {}
    waiting = sorted(_references(schema))
    while waiting:
        name = waiting.pop(0)
        if name not in kept:
            kept[name] = _inline(definitions[name], definitions, (name,))
            waiting += sorted(_references(kept[name]))
    return kept


def ordered_schema(node: Any) -> Any:
    """Return a schema with its keywords in a fixed order; properties keep the order in which they were written."""
    if isinstance(node, list):
        return [ordered_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    middle = [key for key in node if key not in _FIRST and key not in _LAST]
    keys = [*(key for key in _FIRST if key in node), *middle, *(key for key in _LAST if key in node)]
    ordered: dict[str, Any] = {}
    for key in keys:
        value = node[key]
        if key in {"properties", "$defs"} and isinstance(value, dict):
            ordered[key] = {name: ordered_schema(member) for name, member in value.items()}
        elif key in {"default", "examples", "enum", "const"}:
            ordered[key] = value
        else:
            ordered[key] = ordered_schema(value)
    return ordered
