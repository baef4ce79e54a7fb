"""JSON as RFC 8259 has it, and no wider.

Refused on the way in: NaN and Infinity, numbers that overflow a double or have more than 4,300 digits, lone
surrogates, bytes that are not UTF-8, a byte order mark, nesting deeper than `MAX_DEPTH` at most, more values than are
allowed (they cost far more than the bytes of a long text), and a repeated member
name in an object that the protocol itself reads (the message, its params, `_meta` and arguments), because
whoever checked the message on its way may have read the other one. Inside an author's own values the last one
wins, as RFC 8259 section 4 allows. Never sent on the way out: NaN, Infinity, lone surrogates.

Source: RFC 8259 sections 4, 6, 8; MCP "basic/index": messages are UTF-8.
"""

from __future__ import annotations

import json
import math
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from pydantic_core import PydanticSerializationError, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_DEPTH = 64
_REASONS = {
    "recursion limit": f"The JSON is nested more than {MAX_DEPTH} levels deep.",
    "number out of range": "The JSON has a number with more than 4,300 digits.",
    "hex escape": "The JSON has a \\u escape that is no character, such as a lone surrogate.",
}
"""What the parser refuses beside what is no JSON, by words in its report."""

_N, _I = b"NI"


class InvalidJSONError(ValueError):
    """The bytes are not JSON as the protocol wants it; the text is fit for a client."""


class RepeatedNameError(ValueError):
    """An object that the protocol reads has a member name twice; the text is fit for a client."""


def decode(data: bytes, nesting: int = MAX_DEPTH, values: int | None = None) -> Any:
    """Return the value of a JSON text.

    The parser itself reports neither repeated names nor numbers that overflow a double. Written again, the value has a
    name less for each repeated one, and says Infinity for each such number. Comparing is faster than walking the value.

    Args:
        data: The JSON text.
        nesting: Levels of objects and arrays that it may have.
        values: Values that it may have, counted by its commas and opening brackets outside of texts; None for any
            number.

    Raises:
        InvalidJSONError: It is not JSON as the protocol wants it.
        RepeatedNameError: An object that the protocol reads has a member name twice.
    """
    if values is not None and len(data) > values and has_more_values(data, values):
        raise InvalidJSONError(f"The JSON has more than {values} values.")
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidJSONError(_reason(str(error))) from None
    if data.count(b"[") + data.count(b"{") > nesting:
        _check_depth(value, nesting)
    again = to_json(value)
    if again != data and not _says_the_same(again, data):
        _compare_closely(again, data)
    return value


def has_more_values(data: bytes, values: int) -> bool:
    """Return whether a text has more commas and opening brackets than it may have, outside of texts."""
    if _count_values(data) <= values:
        return False
    return _count_values(_without_texts(data)) > values


def _count_values(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _without_texts(data: bytes) -> bytes:
    """Return a JSON text without what stands between quotes."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(data.split(b'"')[::2])


def _says_the_same(again: bytes, data: bytes) -> bool:
    """Tell whether a text has the same names and no other Infinity when it is written again, as far as counting tells.

    It does not where a name came twice or a number overflowed, nor where a colon or a quote stands in a text or after
    white space, and where anything is escaped.
    """
    names = data.count(b'":')
    counted = names == again.count(b'":') == data.count(b":") and again.count(b"I") == data.count(b"I")
    return counted and b"\\" not in data


def encode(value: object, *, binary: Literal["utf8", "base64"] = "utf8") -> bytes:
    """Return the JSON text of a value, on one line; raise ValueError for what JSON can't say.

    Args:
        value: made of JSON's types, or anything that pydantic can write by its type, such as a model or a date.
        binary: what bytes in it are written as.
    """
    try:
        data = to_json(value, bytes_mode=binary)
    except PydanticSerializationError as error:
        raise ValueError(str(error)) from None
    if (_N in data and b"NaN" in data) or (_I in data and b"Infinity" in data):  # single bytes are found far sooner
        json.loads(data, parse_constant=_refuse_constant)
    return data


def encode_text(text: str) -> bytes:
    """Return a text as JSON; raise ValueError for lone surrogates."""
    try:
        return to_json(text)
    except PydanticSerializationError as error:
        raise ValueError(str(error)) from None


def _check_depth(value: Any, limit: int) -> None:
    """Raise InvalidJSONError if a value is nested more deeply than it may be."""
    level = [value]
    for _ in range(limit + 1):
        level = [container for container in level if type(container) is dict or type(container) is list]
        if not level:
            return
        level = list(chain.from_iterable(map(_members, level)))
    raise InvalidJSONError(f"The JSON is nested more than {limit} levels deep.")


def _members(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if type(container) is dict else container


def _compare_closely(again: bytes, data: bytes) -> None:
    """Refuse numbers that overflow; look for repeated names where the value has fewer names than the text."""
    again = _without_texts(again)
    if b"I" in again:
        raise InvalidJSONError("The JSON has a number that is too large.")
    if again.count(b":") != _without_texts(data).count(b":"):
        _refuse_repeated_names(data)


class _Repeating(dict[str, Any]):
    """An object in which a name stood twice."""


def _refuse_repeated_names(data: bytes) -> None:
    """Refuse repeated names where the protocol reads them, and numbers that overflow among those that are dropped."""
    value = json.loads(data, object_pairs_hook=_object, parse_float=_finite)
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


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InvalidJSONError("The JSON has a number that is too large.")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def _reason(report: str) -> str:
    """Turn the parser's report into a sentence that repeats nothing of the input."""
    for known, reason in _REASONS.items():
        if known in report:
            return reason
    place = report.rpartition(" at line ")[2]
    return f"The message is not valid JSON (line {place})." if place != report else "The message is not valid JSON."
