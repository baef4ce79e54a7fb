"""Whether a default fits its own schema. Authors may use others, such as 0 for an argument that is at least 1.

pydantic does not validate defaults, so such a default is not wrong, but a client that sends it would be rejected.
Therefore it is not in the schema. Only keywords of generated schemas are checked.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from funcmcp._authoring.signatures.choices import json_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TYPES: dict[str, type | tuple[type, ...]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": (int, float),
    "object": dict,
    "string": str,
}
_TIMES = frozenset({"date-time", "time"})
_OFFSET = re.compile(r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})$")
"""The end of a time in RFC 3339."""

_NUMBERS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": operator.ge,
    "exclusiveMinimum": operator.gt,
    "maximum": operator.le,
    "exclusiveMaximum": operator.lt,
}
_LENGTHS: dict[Any, dict[str, Callable[[Any, Any], bool]]] = {
    str: {"minLength": operator.ge, "maxLength": operator.le},
    list: {"minItems": operator.ge, "maxItems": operator.le},
    dict: {"minProperties": operator.ge, "maxProperties": operator.le},
}


def fits(value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> bool:
    """Return whether a JSON value fits a schema.

    Args:
        value: The value.
        schema: The schema.
        definitions: The definitions to which it refers, by name.
    """
    if not (_fits_other_schemas(value, schema, definitions) and _is_choice(value, schema)):
        return False
    if not _is_of_type(value, schema.get("type")):
        return False
    if isinstance(value, str):
        has_form = _matches(value, schema.get("pattern")) and _has_format(value, schema.get("format"))
        return has_form and _has_length(value, schema)
    if isinstance(value, list):
        items = schema.get("items", {})
        return _has_length(value, schema) and all(fits(element, items, definitions) for element in value)
    if isinstance(value, dict):
        return _has_length(value, schema) and _members_fit(value, schema, definitions)
    if value is None or isinstance(value, bool):
        return True
    return _are_limits_kept(value, schema, _NUMBERS)


def _fits_other_schemas(value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> bool:
    """Return whether a JSON value fits the schema to which another one refers, and one of its alternatives."""
    if "$ref" in schema and not fits(value, definitions[schema["$ref"].removeprefix("#/$defs/")], definitions):
        return False
    return "anyOf" not in schema or any(fits(value, member, definitions) for member in schema["anyOf"])


def _is_choice(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a JSON value is one of those that a schema lists, if it lists any."""
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    return choices is None or json_key(value) in map(json_key, choices)


def _is_of_type(value: Any, name: Any) -> bool:
    if not isinstance(name, str):
        return True  # none, or several in a document of another author
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name]) or (name == "integer" and isinstance(value, float) and value.is_integer())


def _has_length(value: Any, schema: Mapping[str, Any]) -> bool:
    return _are_limits_kept(len(value), schema, _LENGTHS[type(value)])


def _are_limits_kept(number: Any, schema: Mapping[str, Any], checks: Mapping[str, Callable[[Any, Any], bool]]) -> bool:
    """Return whether a number is within the limits of a schema.

    Args:
        number: The number.
        schema: The schema.
        checks: The keywords of limits, and how a number is compared with each.
    """
    return all(is_within(number, schema[keyword]) for keyword, is_within in checks.items() if keyword in schema)


def _matches(value: str, pattern: str | None) -> bool:
    if pattern is None:
        return True
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern)).validate_python(value)
    except SchemaError:
        return True  # the linear engine does not have each construct of ECMA-262
    except ValidationError:
        return False
    return True


def _has_format(value: str, name: Any) -> bool:
    """Return whether a time has the offset that its format requires. Other formats are not checked."""
    return name not in _TIMES or _OFFSET.search(value) is not None


def _members_fit(value: dict[str, Any], schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> bool:
    if not value.keys() >= set(schema.get("required", ())):
        return False
    properties = schema.get("properties", {})
    additional = schema.get("additionalProperties", {})
    return all(fits(member, properties.get(name, additional), definitions) for name, member in value.items())
