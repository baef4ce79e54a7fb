"""JSON exactly as RFC 8259 defines it.

`decode` rejects:

- NaN and Infinity, numbers that overflow a double, and numbers with more than 4,300 digits;
- lone surrogates, bytes that are not UTF-8, and a byte order mark;
- nesting deeper than `MAX_DEPTH`, and more values than the caller allows: values cost far more memory than the same
  bytes in one long string;
- a repeated member name in an object that the protocol reads (the message, its params, `_meta` and arguments): a proxy
  that checked the message may have read the other member. Inside the values of an author the last member counts, as
  RFC 8259 section 4 allows.

`encode` never writes NaN or Infinity, and writes U+FFFD for each lone surrogate.

Source: RFC 8259 sections 4, 6, 8; MCP "basic/index": messages are UTF-8.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from funcmcp._objects.mappings import is_nested_deeper

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 64
_N, _I = b"NI"
_SHORT = 1024
"""Bytes of a JSON text whose value is not measured."""

_CONTAINER_BYTES, _VALUE_BYTES = 130, 60
"""Bytes of memory of an object or array, and of another value, besides its text."""

_BEYOND_16_BITS = re.compile(rb"[\xf0-\xf4]")

_REASONS = {
    "recursion limit": f"The JSON is nested more than {MAX_DEPTH} levels deep.",
    "number out of range": "The JSON has a number with more than 4,300 digits.",
    "hex escape": "The JSON has a \\u escape that is not a character, such as a lone surrogate.",
}
"""Sentences for the client, by words in the error message of the parser."""


class InvalidJSONError(ValueError):
    """The bytes are not valid JSON, or exceed a limit. The text is safe to send to the client."""


class RepeatedNameError(ValueError):
    """An object that the protocol reads has two members with the same name. The text is safe to send to the client."""


def decode(json_text: bytes, nesting: int = MAX_DEPTH, values: int | None = None) -> Any:
    """Return the value of a JSON text.

    Args:
        json_text: The text in UTF-8.
        nesting: Maximum number of nested objects and arrays.
        values: Maximum number of values, counted as commas and opening brackets outside of strings. None: no limit.

    Raises:
        InvalidJSONError: The text is not valid JSON, or exceeds a limit.
        RepeatedNameError: An object that the protocol reads has two members with the same name.
    """
    if values is not None and len(json_text) > values and has_more_values(json_text, values):
        raise InvalidJSONError(f"The JSON has more than {values} values.")
    try:
        value = from_json(json_text, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidJSONError(_reason_for(str(error))) from None
    if json_text.count(b"[") + json_text.count(b"{") > nesting and is_nested_deeper(value, nesting):
        raise InvalidJSONError(f"The JSON is nested more than {nesting} levels deep.")
    # from_json() silently keeps the last of two equal member names and turns 1e999 into Infinity. Encoding the value
    # again exposes both: a duplicate name shrinks the text, an overflow becomes "Infinity". This is cheaper than
    # walking the value. Where the quick comparison is inconclusive (escapes, odd white space), the slow parser decides.
    encoded = to_json(value)
    if encoded != json_text and not _has_same_names(encoded, json_text):
        _compare_outside_strings(encoded, json_text)
    return value


def request_id_in(json_text: bytes, values: int | None = None) -> str | int | None:
    """Return the id of a request whose JSON text `decode` rejects, so that its refusal reaches the caller.

    Args:
        json_text: The text in UTF-8.
        values: As for `decode`.

    Returns:
        The id; None if the text is not a request, or its id is not certain.
    """
    if values is not None and has_more_values(json_text, values):
        return None
    try:
        message = json.loads(json_text.decode(), object_pairs_hook=_build_object)
    except (ValueError, RecursionError):
        return None
    if type(message) is not dict or "method" not in message:
        return None
    request_id = message.get("id")
    if type(request_id) is str:
        return request_id if well_formed(request_id) == request_id else None
    return request_id if type(request_id) is int else None


def has_more_values(json_text: bytes, values: int) -> bool:
    """Return whether a JSON text has more than *values* commas and opening brackets outside of strings."""
    if count_values(json_text) <= values:
        return False
    return count_values(_without_strings(json_text)) > values


def memory_of(json_text: bytes) -> int:
    """Return the bytes of memory that a JSON text takes up when it is decoded, at most; 0 for a short text."""
    if len(json_text) <= _SHORT:
        return 0
    containers = json_text.count(b"[") + json_text.count(b"{")
    return len(json_text) * _width_in(json_text) + _CONTAINER_BYTES * containers + _VALUE_BYTES * json_text.count(b",")


def _width_in(json_text: bytes) -> int:
    """Return the bytes of memory of a character of the texts in a JSON text, at most.

    The widest character of a text decides. A text beyond ASCII keeps its UTF-8 form as well when it is encoded.
    """
    if b"\\u" in json_text:
        return 5
    if json_text.isascii():
        return 1
    return 5 if _BEYOND_16_BITS.search(json_text) else 3


def count_values(json_text: bytes) -> int:
    """Return the number of commas and opening brackets in a JSON text, those in strings included."""
    return json_text.count(b",") + json_text.count(b"[") + json_text.count(b"{")


def _without_strings(json_text: bytes) -> bytes:
    """Return a JSON text without its strings."""
    if b"\\" in json_text:
        json_text = json_text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(json_text.split(b'"')[::2])


def _has_same_names(encoded: bytes, json_text: bytes) -> bool:
    """Return True if counts prove that a text and its encoded value have equally many names and no overflowed number.

    Counts prove nothing, and the result is False, where a string has a colon or a quote, where white space precedes a
    colon, and where anything is escaped.
    """
    if b"\\" in json_text:
        return False
    names = json_text.count(b'":')
    return names == encoded.count(b'":') == json_text.count(b":") and encoded.count(b"I") == json_text.count(b"I")


def encode(
    value: object, *, binary: Literal["utf8", "base64"] = "utf8", fallback: Callable[[Any], Any] | None = None
) -> bytes:
    """Return the JSON text of a value, on one line.

    Args:
        value: A value of JSON's types, or anything that pydantic can serialize by its type, such as a model or a date.
        binary: Encoding of bytes in the value.
        fallback: Returns what is written for a value of another type, or raises ValueError.

    Raises:
        ValueError: JSON can't represent the value.
    """
    try:
        json_text = to_json(value, bytes_mode=binary, fallback=fallback)
    except PydanticSerializationError as error:
        if not is_of_surrogates(error):
            raise ValueError(str(error)) from None
        try:
            json_text = to_json(_well_formed_value(value, binary, fallback))
        except RecursionError:
            raise ValueError("The value is nested too deep, or contains itself.") from None
    if has_constants(json_text):
        json.loads(json_text, parse_constant=_reject_constant)
    return json_text


def has_constants(json_text: bytes) -> bool:
    """Return whether a JSON text may have NaN or Infinity. A string may contain these words, too."""
    # Searching for the number of a byte is eight times as fast as searching for a word. Few texts have these letters.
    return (_N in json_text and b"NaN" in json_text) or (_I in json_text and b"Infinity" in json_text)


def encode_text(text: str) -> bytes:
    """Return a text as a JSON string, with U+FFFD for each lone surrogate."""
    try:
        return to_json(text)
    except PydanticSerializationError:
        return to_json(well_formed(text))


def well_formed(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate, and a character for each pair of surrogates."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_of_surrogates(error: ValueError) -> bool:
    """Return whether pydantic could not serialize a value because a text in it has surrogates."""
    return "surrogates not allowed" in str(error)


def _well_formed_value(
    value: Any, binary: Literal["utf8", "base64"], fallback: Callable[[Any], Any] | None = None
) -> Any:
    """Return a value as JSON's types, whose texts are well formed. Raise ValueError if JSON can't represent it."""
    if not isinstance(value, str | dict | list | tuple):
        value = to_jsonable_python(value, bytes_mode=binary, fallback=fallback)
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {
            _well_formed_value(name, binary, fallback): _well_formed_value(part, binary, fallback)
            for name, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [_well_formed_value(part, binary, fallback) for part in value]
    return value


def _compare_outside_strings(encoded: bytes, json_text: bytes) -> None:
    """Reject overflowed numbers, and look for repeated names if the encoded value has fewer names than the text."""
    encoded = _without_strings(encoded)
    if b"I" in encoded:
        raise InvalidJSONError("The JSON has a number that is too large.")
    if encoded.count(b":") != _without_strings(json_text).count(b":"):
        _reject_repeated_names(json_text)


class _RepeatingObject(dict[str, Any]):
    """An object whose text has two members with the same name."""


def _reject_repeated_names(json_text: bytes) -> None:
    """Reject repeated names in objects that the protocol reads, and overflowed numbers in hidden members."""
    value = json.loads(json_text, object_pairs_hook=_build_object, parse_float=_parse_float)
    for message in value if isinstance(value, list) else [value]:
        params = message.get("params") if isinstance(message, dict) else None
        objects = [message, params]
        if isinstance(params, dict):
            objects += [params.get("arguments"), params.get("_meta")]
        if any(isinstance(member, _RepeatingObject) for member in objects):
            raise RepeatedNameError("The message has an object with the same member name twice.")


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        return _RepeatingObject(value)
    return value


def _parse_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InvalidJSONError("The JSON has a number that is too large.")
    return value


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def _reason_for(report: str) -> str:
    """Return a sentence for an error message of the parser. It repeats nothing of the input."""
    for phrase, reason in _REASONS.items():
        if phrase in report:
            return reason
    place = report.rpartition(" at line ")[2]
    if place == report:
        return "The message is not valid JSON."
    return f"The message is not valid JSON (line {place})."
