"""JSON as RFC 8259 has it, and no wider.

Refused on the way in: NaN and Infinity, numbers that overflow a double or have more than 4,300 digits, lone
surrogates, bytes that are not UTF-8, a byte order mark, nesting deeper than `MAX_DEPTH`, and a repeated member
name in an object that the protocol itself reads (the message, its params, `_meta` and arguments), because
whoever checked the message on its way may have read the other one. Inside an author's own values the last one
wins, as RFC 8259 section 4 allows. Never sent on the way out: NaN, Infinity, lone surrogates.

Source: RFC 8259 sections 4, 6, 8; MCP "basic/index": messages are UTF-8.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from pydantic_core import PydanticSerializationError, from_json, to_json

MAX_DEPTH = 64


class InvalidJSONError(ValueError):
    """The bytes are not JSON as the protocol wants it; the text is fit for a client."""


class RepeatedNameError(ValueError):
    """An object that the protocol reads has a member name twice; the text is fit for a client."""


def decode(data: bytes) -> Any:
    """Return the value of a JSON text; raise InvalidJSONError or RepeatedNameError."""
    try:
        value = from_json(data, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        raise InvalidJSONError(_reason(str(error))) from None
    if _count_names(value, MAX_DEPTH - 1) != data.count(b'":') or _has_gap(data):
        # A blank before a colon, a quote and a colon inside a string, or a repeated name: only the slow
        # pass can tell which.
        _refuse_repeated_names(data)
    return value


def _has_gap(data: bytes) -> bool:
    """Tell whether white space stands before a colon."""
    return b" :" in data or b"\t:" in data or b"\n:" in data or b"\r:" in data


def encode(value: object) -> bytes:
    """Return the JSON text of a value, on one line; raise ValueError for what JSON can't say."""
    try:
        data = to_json(value)
    except PydanticSerializationError as error:
        raise ValueError(str(error)) from None
    if b"NaN" in data or b"Infinity" in data:
        json.loads(data, parse_constant=_refuse_constant)
    return data


def _count_names(value: Any, depth: int) -> int:
    """Count the members of all objects in a value; refuse deep nesting and numbers that overflowed."""
    if depth < 0:
        raise InvalidJSONError(f"The JSON is nested more than {MAX_DEPTH} levels deep.")
    kind = type(value)
    if kind is dict:
        count = len(value)
        value = value.values()
    elif kind is list:
        count = 0
    else:
        count, value = 0, (value,)
    for member in value:
        kind = type(member)
        if kind is dict or kind is list:
            count += _count_names(member, depth - 1)
        elif kind is float and member - member != 0.0:
            raise InvalidJSONError("The JSON has a number that is too large.")
    return count


class _Repeating(dict[str, Any]):
    """An object in which a name stood twice."""


def _refuse_repeated_names(data: bytes) -> None:
    value = json.loads(data, object_pairs_hook=_object)
    for message in value if isinstance(value, list) else [value]:
        params = message.get("params") if isinstance(message, dict) else None
        read = [message, params]
        if isinstance(params, dict):
            read += [params.get("arguments"), params.get("_meta")]
        if any(isinstance(member, _Repeating) for member in read):
            raise RepeatedNameError("The message has an object with the same member name twice.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    return value if len(value) == len(pairs) else _Repeating(value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def _reason(report: str) -> str:
    """Turn the parser's report into a sentence that repeats nothing of the input."""
    place = report.rpartition(" at line ")[2]
    return f"The body is not valid JSON (line {place})." if place != report else "The body is not valid JSON."
