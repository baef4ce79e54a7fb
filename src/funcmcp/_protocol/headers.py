"""HTTP headers that repeat parts of a message, and the rules for comparing them with the message.

Source: 2026-07-28 "basic/transports, Request Metadata" and "server/tools, x-mcp-header".
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._protocol.codec import well_formed
from funcmcp._protocol.http_rules import FIELD_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VERSION = "mcp-protocol-version"
METHOD = "mcp-method"
NAME = "mcp-name"
PARAM_PREFIX = "mcp-param-"
SESSION_ID = "mcp-session-id"

_ENCODED_PREFIX, _ENCODED_SUFFIX = "=?base64?", "?="
_LITERAL = re.compile(r"[\t -~]*")
_MIRRORED_TYPES = ("string", "integer", "boolean")


class MirroredParameter(NamedTuple):
    """A tool argument that clients repeat in a header.

    Attributes:
        header: The name of the header in lower case, ``mcp-param-...``.
        path: The names that lead to the argument through nested objects.
    """

    header: str
    path: tuple[str, ...]


def mirrored_parameters(input_schema: Mapping[str, Any]) -> tuple[MirroredParameter, ...]:
    """Return the arguments that a schema marks with `x-mcp-header`.

    Raises:
        ValueError: A mark breaks a rule of the specification. The header name is a token and unique without regard to
            case, the argument is a string, an integer or a boolean, and only `properties` lead to it.
    """
    parameters: dict[str, MirroredParameter] = {}
    marks = 0
    for path, schema in _properties(input_schema, ()):
        name = schema.get("x-mcp-header")
        if name is None:
            continue
        argument = ".".join(path)
        if not isinstance(name, str) or not FIELD_NAME.fullmatch(name):
            raise ValueError(f"x-mcp-header of {argument!r} must be a header token such as 'Region'.")
        if schema.get("type") not in _MIRRORED_TYPES:
            raise ValueError(f"x-mcp-header of {argument!r} needs an argument of type string, integer or boolean.")
        header = PARAM_PREFIX + name.lower()
        if header in parameters:
            raise ValueError(f"x-mcp-header {name!r} is used twice. Header names must differ by more than case.")
        parameters[header] = MirroredParameter(header, path)
        marks += 1
    if marks != _count_marks(input_schema):
        raise ValueError("x-mcp-header is only valid on arguments that are members of nested 'properties'.")
    return tuple(parameters.values())


def _properties(
    schema: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, member in properties.items():
        if isinstance(member, dict):
            yield (*path, name), member
            yield from _properties(member, (*path, name))


def _count_marks(node: object) -> int:
    """Count the marks at any place in a schema, but not the arguments that are named `x-mcp-header`."""
    if isinstance(node, list):
        return sum(map(_count_marks, node))
    if not isinstance(node, dict):
        return 0
    marks = 1 if "x-mcp-header" in node else 0
    for keyword, member in node.items():
        if keyword in {"properties", "$defs", "definitions", "patternProperties"} and isinstance(member, dict):
            marks += sum(map(_count_marks, member.values()))
        elif keyword not in {"const", "enum", "default", "examples"}:
            marks += _count_marks(member)
    return marks


def agree(fields: Mapping[bytes, bytes], version: str, method: str, repeated: Mapping[bytes, str]) -> bool:
    """Return whether headers literally equal the values in a message. If they do not, `mismatch` decides.

    Args:
        fields: Header values by name in lower case, as received.
        version: The revision in the message.
        method: The method in the message.
        repeated: The other values in the message that headers repeat, by the header's name in lower case.
    """
    if fields.get(b"mcp-protocol-version") != version.encode() or fields.get(b"mcp-method") != method.encode():
        return False
    for header, text in repeated.items():
        value = fields.get(header)
        if value is None or value != text.encode() or not value.isascii() or value.startswith(b"=?"):
            return False
        if not text.isprintable() or text.strip(" ") != text:
            return False
    return True


def mismatch(headers: Mapping[str, str], message: Mapping[str, str]) -> str | None:
    """Compare headers with the values in a message; return an error message, or None if they are equal.

    Args:
        headers: Header values by name in lower case, with the white space around them.
        message: Values in the message by header name.
    """
    for header, expected in message.items():
        value = headers.get(header)
        if value is None:
            return f"The header {header} is missing."
        if decode_value(value) != expected:
            return f"The header {header} does not match the message."
    return None


def mirrored_mismatch(
    headers: Mapping[str, str], arguments: Mapping[str, Any], parameters: tuple[MirroredParameter, ...]
) -> str | None:
    """Compare `Mcp-Param-*` headers with the arguments of a call; return an error message, or None if they are equal.

    An argument that is absent or null has no header.
    """
    for parameter in parameters:
        value = _argument_at(arguments, parameter.path)
        if value is None:
            continue
        header = headers.get(parameter.header)
        if header is None:
            return f"The header {parameter.header} is missing."
        decoded = decode_value(header)
        if decoded is None or not _represents(decoded, value):
            return f"The header {parameter.header} does not match the argument."
    return None


def decode_value(value: str) -> str | None:
    """Return the text that a header value represents, or None if the value is malformed.

    A value between `=?base64?` and `?=` is base64 (strict alphabet, canonical padding) of UTF-8. Any other value is
    literal visible ASCII with inner spaces and tabs. White space around a value is ignored (RFC 9110 section 5.5).
    """
    value = value.strip(" \t")
    if value.startswith(_ENCODED_PREFIX) and value.endswith(_ENCODED_SUFFIX) and len(value) >= 11:  # noqa: PLR2004 - both affixes
        encoded = value[len(_ENCODED_PREFIX) : -len(_ENCODED_SUFFIX)]
        try:
            decoded = base64.b64decode(encoded, validate=True)
            if base64.b64encode(decoded).decode("ascii") != encoded:
                return None
            return decoded.decode("utf-8")
        except (binascii.Error, ValueError):
            return None
    return value if _LITERAL.fullmatch(value) else None


def encode_value(value: str) -> str:
    """Return the header value for a text: the text itself where a header can hold it, base64 otherwise."""
    if (
        value
        and value == value.strip(" ")
        and value.isascii()
        and value.isprintable()
        and not (value.startswith(_ENCODED_PREFIX) and value.endswith(_ENCODED_SUFFIX))
    ):
        return value
    return _ENCODED_PREFIX + base64.b64encode(well_formed(value).encode()).decode("ascii") + _ENCODED_SUFFIX


def encode_mirrored(arguments: Mapping[str, Any], parameters: tuple[MirroredParameter, ...]) -> dict[str, str]:
    """Return the `Mcp-Param-*` headers for the arguments of a call."""
    headers: dict[str, str] = {}
    for parameter in parameters:
        value = _argument_at(arguments, parameter.path)
        if isinstance(value, bool):
            headers[parameter.header] = "true" if value else "false"
        elif value is not None:
            headers[parameter.header] = encode_value(str(value))
    return headers


def _argument_at(arguments: object, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(name)
    return arguments


def _represents(header: str, value: object) -> bool:
    if isinstance(value, bool):
        return header == ("true" if value else "false")
    if isinstance(value, int | float):
        return _number(header) == value
    return header == value


_NUMBER = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?")


def _number(text: str) -> int | float | None:
    if not _NUMBER.fullmatch(text):
        return None
    return int(text) if text.lstrip("-").isdigit() else float(text)
