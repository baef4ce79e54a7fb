"""Equal forms of JSON schemas that more clients accept: no list of types, and no ``allOf``.

Documents of OpenAPI have both, and so may schemas of authors' types. A list of types becomes an ``anyOf``. The schemas
of an ``allOf`` become one schema if their keywords do not meet; otherwise the ``allOf`` stays.

Source: JSON Schema 2020-12 "Core, Keyword Independence" and "Validation, type".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import only

if TYPE_CHECKING:
    from collections.abc import Sequence

ANNOTATIONS = frozenset(
    {"$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"}
)
_NUMBERS = frozenset({"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"})
_KEYWORDS = {
    "array": frozenset(
        {
            *("additionalItems", "contains", "items", "maxContains", "maxItems", "minContains", "minItems"),
            *("prefixItems", "unevaluatedItems", "uniqueItems"),
        }
    ),
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "object": frozenset(
        {
            *("additionalProperties", "dependentRequired", "dependentSchemas", "maxProperties", "minProperties"),
            *("patternProperties", "properties", "propertyNames", "required", "unevaluatedProperties"),
        }
    ),
    "string": frozenset(
        {"contentEncoding", "contentMediaType", "contentSchema", "format", "maxLength", "minLength", "pattern"}
    ),
}
"""By type, the keywords that other types ignore."""

_TYPED = frozenset().union(*_KEYWORDS.values())
_DEPENDENT = frozenset(
    {
        *("additionalItems", "additionalProperties", "contains", "else", "if", "items", "maxContains", "minContains"),
        *("patternProperties", "prefixItems", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
"""Keywords whose meaning depends on other keywords of the same schema."""


def without_type_list(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that has an ``anyOf`` instead of a list of types."""
    types = schema.get("type")
    if not isinstance(types, list) or "anyOf" in schema:
        return schema
    annotations = only(schema, ANNOTATIONS)
    alternatives = [part for name in types if (part := _of_type(schema, name)) is not None]
    if not alternatives:
        return schema
    if len(alternatives) == 1:
        return {**alternatives[0], **annotations}
    return {"anyOf": alternatives, **annotations}


def _of_type(schema: dict[str, Any], name: Any) -> dict[str, Any] | None:
    """Return what a schema says about values of one type. Return None if it allows none of them."""
    ignored = _TYPED - _KEYWORDS.get(name, frozenset())
    part = {
        keyword: value for keyword, value in schema.items() if keyword not in ignored and keyword not in ANNOTATIONS
    }
    part["type"] = name
    if "enum" in part:
        part["enum"] = [value for value in part["enum"] if _has_type(value, name)]
        if not part["enum"]:
            return None
        if part["enum"] == [None]:
            del part["enum"]
    if "const" in part and not _has_type(part["const"], name):
        return None
    return part


def _has_type(value: Any, name: str) -> bool:
    if value is None or isinstance(value, bool):
        return name == ("null" if value is None else "boolean")
    if isinstance(value, int | float):
        return name == "number" or (name == "integer" and value == int(value))
    return (name, type(value)) in (("string", str), ("array", list), ("object", dict))


def combined(schemas: Sequence[Any]) -> dict[str, Any] | None:
    """Return one schema that says what several say together. Return None if that takes an ``allOf``.

    Args:
        schemas: The schemas. Annotations of a later one replace those of earlier ones.
    """
    if not all(isinstance(schema, dict) for schema in schemas):
        return None
    constraining = [schema for schema in schemas if schema.keys() - ANNOTATIONS]
    if len(constraining) > 1 and any("$ref" in schema or _depends(schema) for schema in constraining):
        return None
    result: dict[str, Any] = {}
    for schema in schemas:
        for keyword, value in schema.items():
            if keyword in ANNOTATIONS or keyword not in result or _is_same(result[keyword], value):
                result[keyword] = value
                continue
            together = _together(keyword, result[keyword], value)
            if together is None:
                return None
            result[keyword] = together
    return result


def _together(keyword: str, old: Any, new: Any) -> Any:
    """Return the value of a keyword that says what two different values say together; None if there is none."""
    if keyword == "required":
        return list(dict.fromkeys([*old, *new]))
    if keyword == "properties" and _are_compatible(old, new):
        return {**old, **new}
    return None


def _depends(schema: dict[str, Any]) -> bool:
    """Return whether a keyword would mean something else beside keywords of another schema."""
    return any(keyword in _DEPENDENT and not isinstance(value, bool) for keyword, value in schema.items())


def _are_compatible(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether two objects describe their common properties alike."""
    return all(_is_same(old[name], schema) for name, schema in new.items() if name in old)


def _is_same(first: Any, second: Any) -> bool:
    """Return whether two JSON values are the same: in Python, 1 equals True."""
    return first == second and repr(first) == repr(second)
