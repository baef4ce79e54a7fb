"""A tool's arguments and header fields as they are typed on the command line."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from funcmcp._protocol.http_rules import FIELD_NAME
from funcmcp._protocol.media_types import BINARY, FILE_HINT, media_type_of_name
from funcmcp._text.files import MAX_BYTES, read_bytes
from funcmcp._text.unicode import is_unicode
from funcmcp_cli.failure import Failure
from funcmcp_cli.json_values import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_JSON_TYPES: dict[type, frozenset[str]] = {
    bool: frozenset({"boolean"}),
    int: frozenset({"integer", "number"}),
    float: frozenset({"number"}),
    list: frozenset({"array"}),
    dict: frozenset({"object"}),
    type(None): frozenset({"null"}),
    str: frozenset(),
}
"""By Python type, the JSON types of a value that is not a text. A text in quotes is a string with these quotes."""


_VISIBLE = re.compile(r"[\x20-\x7e]+")


def read_header(text: str, *, example: str) -> tuple[str, str]:
    """Return the name and the value of a header field. No message repeats the value, which may be secret.

    Args:
        text: The field, as ``NAME:VALUE``.
        example: A field for the message.

    Raises:
        Failure: The text has another form, or characters that are not visible ASCII.
    """
    name, _, value = text.partition(":")
    value = value.strip(" \t")
    if not FIELD_NAME.fullmatch(name) or not _VISIBLE.fullmatch(value):
        raise Failure(f"A header field must be NAME:VALUE in visible ASCII, such as --header '{example}'.")
    return name, value


def read_json(text: str) -> dict[str, Any]:
    """Return the arguments in a JSON object: its text, or ``@FILE`` for a file and ``@-`` or ``-`` for stdin.

    Raises:
        Failure: The text is something else, or the file cannot be read.
    """
    if text == "-" or text.startswith("@"):
        text = _decoded("--input-json", _contents("--input-json", text.removeprefix("@")))
    try:
        value = json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise Failure(f"--input-json is not JSON: {error}. Write it like --input-json '{{\"a\": 1}}'.") from error
    if not isinstance(value, dict):
        raise Failure("--input-json must be an object, like --input-json '{\"a\": 1}'.")
    if not is_unicode(json.dumps(value, ensure_ascii=False)):
        raise Failure("--input-json has text that is not Unicode, such as a lone surrogate.")
    return value


def read_pairs(pairs: Sequence[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments in texts of the form ``key=value``.

    A value is read as JSON if the tool's input schema requires a number, an integer, a boolean, an array or an object.
    Otherwise it is a string. ``key=@FILE`` takes the value from a file, and ``key=@-`` from stdin: as base64 if the
    schema requires that, else as text. A text that begins with ``@`` is written with two of them.

    Raises:
        Failure: A text has another form or is not UTF-8, a key is passed twice, a value is not of the required type, or
            a file cannot be read.
    """
    properties = as_object(schema.get("properties"))
    arguments: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise Failure(_not_a_pair(pair, pairs))
        if not is_unicode(pair):
            raise Failure(f"The value of {key!r} is not UTF-8 text. Pass bytes as base64.")
        if key in arguments:
            raise Failure(f"{key} is passed twice. Write a list as JSON: {key}='[1, 2]'.")
        schema_of_key = as_object(properties.get(key))
        if text.startswith("@") and not text.startswith("@@"):
            arguments[key] = _value_in_file(key, text[1:], schema_of_key)
        else:
            arguments[key] = read_value(key, text.removeprefix("@") if text.startswith("@@") else text, schema_of_key)
    return arguments


def _not_a_pair(pair: str, pairs: Sequence[str]) -> str:
    """Return why a text is not an argument, and how to write it."""
    position = pairs.index(pair)
    following = [*pairs[position + 1 : position + 3], "", ""]
    if following[0] == "=":
        return f"Leave out the spaces around =: {pair}={following[1] or 'value'}"
    advice = ""
    if pair.startswith("{"):
        advice = " Pass a JSON object with --input-json."
    elif position and "=" in pairs[position - 1]:
        advice = f" Quote a value with spaces: '{pairs[position - 1]} {pair}'"
    return f"{pair!r} is not an argument. Write it like key=value.{advice}"


def _value_in_file(key: str, name: str, schema: Mapping[str, Any]) -> Any:
    """Return the value of an argument that is in a file: base64 or a data: URI if that is meant, else as if typed."""
    contents = _contents(f"{key}=@{name}", name)
    if _is_base64(schema):
        return b64encode(contents).decode()
    if _takes_file(schema):
        media_type = media_type_of_name(name) or BINARY
        return f"data:{media_type};name={quote(Path(name).name)};base64,{b64encode(contents).decode()}"
    return read_value(key, _decoded(f"{key}=@{name}", contents), schema)


def _contents(subject: str, name: str) -> bytes:
    """Return the bytes of a file, or of stdin for ``-``."""
    try:
        return sys.stdin.buffer.read() if name == "-" else read_bytes(Path(name), MAX_BYTES)
    except FileNotFoundError as error:
        raise Failure(f"{subject}: {name} does not exist. Write a text that begins with @ as @@.") from error
    except (OSError, ValueError) as error:
        raise Failure(f"{subject}: {name} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _decoded(subject: str, contents: bytes) -> str:
    try:
        return contents.decode()
    except UnicodeDecodeError as error:
        raise Failure(f"{subject}: it is not UTF-8 text, and the tool does not require base64.") from error


def _is_base64(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema, or one of its alternatives, is of a text in base64."""
    return schema.get("contentEncoding") == "base64" or any(map(_is_base64, _alternatives(schema)))


def _takes_file(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema, or one of its alternatives, is of an `UploadedFile`."""
    return FILE_HINT in str(schema.get("description")) or any(map(_takes_file, _alternatives(schema)))


def _alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    alternatives = (*as_list(schema.get("anyOf")), *as_list(schema.get("oneOf")))
    return [as_object(alternative) for alternative in alternatives]


def warnings_of(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Return a line for each argument that the tool's schema does not have. Most tools ignore such arguments."""
    if schema.get("additionalProperties") or "patternProperties" in schema:
        return []
    properties = as_object(schema.get("properties"))
    listed = ", ".join(properties) or "none"
    return [
        f"The tool's schema has no argument {name!r}. Its arguments: {listed}."
        for name in arguments
        if name not in properties
    ]


_TYPE_PHRASES = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "object": "an object",
}
"""How a message names the values of a JSON type."""


def read_value(name: str, text: str, schema: Mapping[str, Any]) -> Any:
    """Return the value of one text as its schema requires it. Raise Failure if the text is not such a value."""
    schema_types = _types_in(schema)
    if schema_types == {"string"}:
        return text
    try:
        value = json.loads(text, parse_constant=_reject_constant)
    except ValueError:
        if not schema_types or "string" in schema_types:
            return text
        expected = " or ".join(_TYPE_PHRASES.get(schema_type, schema_type) for schema_type in sorted(schema_types))
        advice = ""
        if schema_types & {"array", "object"}:
            example = '[1, "a"]' if "array" in schema_types else '{"key": "value"}'
            advice = f" Write JSON, with double quotes around texts and keys: {name}={_quoted(example)}"
        raise Failure(f"{name} must be {expected}, not {text!r}.{advice}") from None
    if "string" in schema_types and not _JSON_TYPES[type(value)] & schema_types:
        return text
    return value


def _quoted(text: str) -> str:
    """Return a text in the quotes of this system's shell."""
    if os.name == "nt":
        return '"' + text.replace('"', '\\"') + '"'
    return shlex.quote(text)


def _types_in(schema: Mapping[str, Any]) -> set[str]:
    """Return the JSON types that a schema names, in itself or in its alternatives."""
    named = schema.get("type")
    types = {str(name) for name in as_list(named)}
    if isinstance(named, str):
        types.add(named)
    for keyword in ("anyOf", "oneOf"):
        for alternative in as_list(schema.get(keyword)):
            types |= _types_in(as_object(alternative))
    return types


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
