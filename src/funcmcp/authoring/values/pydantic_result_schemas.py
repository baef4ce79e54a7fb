"""pydantic's core schemas, changed so that results are written as the JSON schema says that clients read.

Loaded when a tool is first listed or called.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticKnownError, PydanticSerializationUnexpectedValue, core_schema

from funcmcp.authoring.values.pydantic_schemas import adapted

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.authoring.values.pydantic_schemas import Node

_OF_URLS = str.maketrans("-_", "+/")
_MOST_DIGITS = 307
"""Of a whole number, so that a reader whose numbers are doubles can read it."""


def for_results(schema: Node) -> Node:
    """Return the schema by which results are written.

    Decimals are numbers in it, bytes are base64, and named tuples are objects.
    """
    return adapted(schema, _result)


def _result(node: Node) -> Node:
    kind = node.get("type")
    if "serialization" in node:
        return node  # the author's own
    if kind == "decimal":
        node["serialization"] = _written(_number, {"type": "any", "metadata": _NUMBER})
    elif kind == "bytes":
        return _binary(node)
    elif kind == "named-tuple":
        fields = {
            field["name"]: {"type": "typed-dict-field", "schema": field["schema"], "required": True}
            for field in node["fields"]
        }
        node["serialization"] = _written(_members, {"type": "typed-dict", "fields": fields})
    return node


_NUMBER: Any = {"pydantic_js_updates": {"type": "number"}}
_BASE64: Any = {"pydantic_js_updates": {"contentEncoding": "base64"}}


def _binary(node: Node) -> Node:
    """Return a node for bytes that are base64 in JSON: in what is written, and in a dict that stands for a model."""
    own: Any = {key: member for key, member in node.items() if key != "ref"}
    read = core_schema.no_info_before_validator_function(_from_base64, own)
    written = _written(_base64, {"type": "str", "metadata": _BASE64})
    return dict(core_schema.json_or_python_schema(read, own, ref=node.get("ref"), serialization=written))


def _written(function: Callable[[Any], Any], schema: Node) -> Any:
    return core_schema.plain_serializer_function_ser_schema(function, return_schema=schema, when_used="json")


def _number(value: Any) -> Any:
    """Return a decimal as a number: a whole one with all its digits, any other as the nearest double."""
    if not isinstance(value, Decimal):
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value  # as an assignment that nobody checked may have left it
        raise PydanticSerializationUnexpectedValue(f"Expected a number, not {type(value).__name__}")
    whole = value.is_finite() and value.adjusted() <= _MOST_DIGITS and value == value.to_integral_value()
    return int(value) if whole else float(value)


def _base64(value: Any) -> Any:
    return b64encode(value).decode("ascii") if isinstance(value, bytes) else value


def _from_base64(text: Any) -> Any:
    """Return the bytes of base64, in the alphabet of URLs, too: values that no type describes have it."""
    if not isinstance(text, str):
        return text
    try:
        return b64decode(text.translate(_OF_URLS), validate=True)
    except ValueError:
        raise PydanticKnownError("bytes_invalid_encoding", {"encoding": "base64", "encoding_error": ""}) from None


def _members(value: Any) -> Any:
    return value._asdict()
