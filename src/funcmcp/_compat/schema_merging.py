"""Schemas of changed tools: what FastMCP takes from the other tool, from its changes, and from their function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._compat.output_schemas import compressed
from funcmcp._objects.mappings import without

if TYPE_CHECKING:
    from collections.abc import Collection

_DESCRIBING = frozenset(
    {"default", "deprecated", "description", "example", "examples", "readOnly", "title", "writeOnly"}
)
"""Members of a schema that do not say which values are valid, beside those whose names begin with ``x-``."""

_TYPES = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string"}


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a schema that do not say which values are valid."""
    return {name: value for name, value in schema.items() if _describes(name)}


def _describes(name: str) -> bool:
    return name in _DESCRIBING or name.startswith("x-")


def schema_of_arguments(
    properties: dict[str, Any], required: Collection[str], definitions: dict[str, Any]
) -> dict[str, Any]:
    """Return the schema of a tool's arguments."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": [*(name for name in properties if name in required), *sorted(set(required) - properties.keys())],
        "additionalProperties": False,
    }
    return compressed({**schema, "$defs": definitions}) if definitions else schema


def merged(
    function: dict[str, Any],
    changed: dict[str, Any],
    typed: Collection[str] = (),
    required: Collection[str] = (),
) -> dict[str, Any]:
    """Return the schema of the arguments of a tool that a function changes.

    Args:
        function: The schema of the function's arguments.
        changed: The schema of the other tool's arguments with their changes, which has precedence.
        typed: Arguments whose type a change decides.
        required: Arguments that a change makes required.
    """
    properties = dict(function.get("properties", {}))
    changes = changed.get("properties", {})
    for name, schema in changes.items():
        if name not in properties:
            properties[name] = dict(schema)
        elif name in typed:
            own = described(properties[name])
            if name in required:
                own.pop("default", None)
            properties[name] = {**without(schema, *described(schema)), **own, **described(schema)}
        else:
            properties[name] = _with_change(properties[name], schema)
    names = set(changed.get("required", ()))
    for name in function.get("required", ()):
        if name not in changes or "default" not in properties[name]:
            names.add(name)
    names -= {name for name, schema in properties.items() if "default" in schema}
    return schema_of_arguments(properties, names, _definitions(function, changed))


def _with_change(own: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one argument: the function's, with what the changed one adds to it."""
    has_structure = any(not _describes(name) for name in own)
    if has_structure and _kind(own) != _kind(changed):
        return {**own, **described(changed)}
    if "enum" in own or "const" in own:
        changed = without(changed, "enum", "const")
    return {**own, **changed}


def _definitions(function: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    definitions = dict(function.get("$defs", {}))
    for name, definition in changed.get("$defs", {}).items():
        definitions[name] = {**definitions.get(name, {}), **definition}
    return definitions


def _kind(schema: Any) -> Any:
    """Return which type of values a schema describes, without its limits, as a value that can be compared."""
    if not isinstance(schema, dict):
        return schema
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            return _kind_of_alternatives(keyword, schema[keyword])
    if "$ref" in schema:
        return "$ref", schema["$ref"]
    kind = schema.get("type")
    if kind is None:
        return _kind_of_values(schema)
    if isinstance(kind, list):
        return "anyOf", frozenset(_kind({**schema, "type": name}) for name in kind)
    if kind == "array":
        return "type", "array", _kind(schema.get("items", {})), tuple(map(_kind, schema.get("prefixItems", ())))
    if kind == "object":
        return "type", "object", frozenset(map(_kind, _values_of(schema)))
    return "type", kind


def _kind_of_alternatives(keyword: str, members: list[Any]) -> Any:
    kinds: set[Any] = set()
    for member in members:
        kind = _kind(member)
        if keyword == "anyOf" and kind and kind[0] == "anyOf":
            kinds |= kind[1]
        else:
            kinds.add(kind)
    if keyword == "anyOf" and len(kinds) == 1:
        return kinds.pop()
    return keyword, frozenset(kinds)


def _kind_of_values(schema: dict[str, Any]) -> Any:
    """Return the type of a schema that lists its values."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if any(type(value) not in _TYPES for value in values):
        return ()
    kinds = frozenset(("type", _TYPES[type(value)]) for value in values)
    if len(kinds) == 1:
        return next(iter(kinds))
    return ("anyOf", kinds) if kinds else ()


def _values_of(schema: dict[str, Any]) -> list[Any]:
    """Return the schemas of an object's values. Patterns of names do not change the types of values."""
    values = list(schema.get("patternProperties", {}).values())
    if not values or "additionalProperties" in schema:
        values.append(schema.get("additionalProperties", True))
    return values
