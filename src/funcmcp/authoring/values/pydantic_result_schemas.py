"""pydantic's core schemas, changed so that results are written as the output schema describes them.

Decimals are numbers, bytes are base64, and named tuples are objects.

This module loads pydantic. It is imported when a feature is first listed or called.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticKnownError, PydanticSerializationUnexpectedValue, core_schema

from funcmcp.authoring.values.pydantic_schemas import adapted, core_schema_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.authoring.values.pydantic_schemas import Node

_FROM_URL_ALPHABET = str.maketrans("-_", "+/")
_MAX_EXPONENT = 307
"""Larger decimals are written as floats, because a reader whose numbers are doubles can't read more digits."""


def result_schema(annotation: Any, place: str) -> Node:
    """Return the core schema that writes results of a type.

    Args:
        annotation: The type.
        place: The type's place, for errors, such as "What get_order returns".

    Raises:
        RegistrationError: JSON can't carry the type.
    """
    return adapted(core_schema_of(annotation, place), _result)


def _result(node: Node) -> Node:
    kind = node.get("type")
    if "serialization" in node:
        return node  # the author chose a serializer
    if kind == "decimal":
        node["serialization"] = _serialized(_number, {"type": "any", "metadata": _NUMBER})
    elif kind == "bytes":
        return _binary(node)
    elif kind == "named-tuple":
        fields = {
            field["name"]: {"type": "typed-dict-field", "schema": field["schema"], "required": True}
            for field in node["fields"]
        }
        node["serialization"] = _serialized(_members, {"type": "typed-dict", "fields": fields})
    return node


_NUMBER: Any = {"pydantic_js_updates": {"type": "number"}}
_BASE64: Any = {"pydantic_js_updates": {"contentEncoding": "base64"}}


def _binary(node: Node) -> Node:
    """Return a node for bytes that are base64 in JSON, both as output and in a dict that is returned for a model."""
    without_ref: Any = {key: member for key, member in node.items() if key != "ref"}
    from_json = core_schema.no_info_before_validator_function(_from_base64, without_ref)
    serialization = _serialized(_base64, {"type": "str", "metadata": _BASE64})
    return dict(
        core_schema.json_or_python_schema(from_json, without_ref, ref=node.get("ref"), serialization=serialization)
    )


def _serialized(function: Callable[[Any], Any], schema: Node) -> Any:
    return core_schema.plain_serializer_function_ser_schema(function, return_schema=schema, when_used="json")


def _number(value: Any) -> Any:
    """Return a decimal as an int if it has no fraction, and otherwise as the nearest float."""
    if not isinstance(value, Decimal):
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value  # an assignment to a model's attribute is not validated
        raise PydanticSerializationUnexpectedValue(f"Expected a number, not {type(value).__name__}")
    if value.is_finite() and value.adjusted() <= _MAX_EXPONENT and value == value.to_integral_value():
        return int(value)
    return float(value)


def _base64(value: Any) -> Any:
    return b64encode(value).decode("ascii") if isinstance(value, bytes) else value


def _from_base64(text: Any) -> Any:
    """Return the bytes of base64. The alphabet of URLs is also accepted, because pydantic writes it by default."""
    if not isinstance(text, str):
        return text
    try:
        return b64decode(text.translate(_FROM_URL_ALPHABET), validate=True)
    except ValueError:
        raise PydanticKnownError("bytes_invalid_encoding", {"encoding": "base64", "encoding_error": ""}) from None


def _members(value: Any) -> Any:
    return value._asdict()
