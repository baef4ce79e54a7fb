"""Encodings of bytes in JSON: base64, or the encoding in the config of an author's type.

pydantic reads and writes bytes as UTF-8 unless the config of a model, a dataclass or a TypedDict has ``val_json_bytes``
or ``ser_json_bytes``. UTF-8 can't carry all bytes, so without these options bytes are base64 here. An encoding that the
author names is pydantic's own: ``"hex"``, ``"utf8"``, or ``"base64"`` with the alphabet of URLs.

How it works: an option holds for the fields of its type and for what is in them, except for types with a config of
their own. `with_encodings` finds the option for each node of bytes in a core schema, and records it in the node.

This module loads pydantic. It is imported when a feature is first listed or called.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from pydantic_core import (
    PydanticKnownError,
    PydanticSerializationUnexpectedValue,
    SchemaValidator,
    core_schema,
    to_jsonable_python,
)

from funcmcp._authoring.schemas.pydantic_schema_tree import with_children

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._authoring.schemas.pydantic_schemas import Node

Name: TypeAlias = Literal["base64", "hex", "utf8"]
Option: TypeAlias = Literal["ser_json_bytes", "val_json_bytes"]

_RECORD = "funcmcp_bytes"
"""The member of a node's metadata with the name of the author's encoding."""

_PHRASES = {"base64": "base64", "hex": "hexadecimal, two digits for each byte", "utf8": "UTF-8"}
"""Names of the encodings in errors."""

_CLASSES = frozenset({"dataclass", "model"})
_FROM_URL_ALPHABET = str.maketrans("-_", "+/")


class Encoding(NamedTuple):
    """How bytes are read and written.

    Attributes:
        read: Returns the bytes in a text; other values unchanged. Raises PydanticKnownError for another text.
        write: Returns the text of bytes. Raises PydanticSerializationUnexpectedValue for other values.
        keywords: What the JSON schema says about each text, beside its type.
        written_format: The format of written texts, which clients do not see. See `WRITTEN_FORMATS`.
        shortest: Returns the minimum length of a text with at least this number of bytes.
        longest: Returns the maximum length of a text with at most this number of bytes.
    """

    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    keywords: dict[str, str]
    written_format: str | None
    shortest: Callable[[int], int]
    longest: Callable[[int], int]

    def limits(self, node: Node) -> dict[str, int]:
        """Return the keywords for the lengths of a node of bytes, in characters instead of bytes."""
        limits: dict[str, int] = {}
        if "min_length" in node:
            limits["minLength"] = self.shortest(node["min_length"])
        if "max_length" in node:
            limits["maxLength"] = self.longest(node["max_length"])
        return limits


def base64_length(length: int) -> int:
    """Return the number of characters of bytes in base64, with its padding."""
    return 4 * ceil(length / 3)


def with_encodings(schema: Node, option: Option) -> Node:
    """Return a copy of a core schema in which `encoding_of` knows the author's encodings.

    Args:
        schema: The core schema, as pydantic creates it.
        option: The option that names the encoding.
    """
    return _with_encodings(schema, option, None)


def _with_encodings(node: Node, option: Option, encoding: Name | None) -> Node:
    if "config" in node or node.get("type") in _CLASSES:
        encoding = node.get("config", {}).get(option)
    copied = with_children(node, lambda child: _with_encodings(child, option, encoding))
    if node.get("type") == "bytes" and encoding is not None:
        copied["metadata"] = {**node.get("metadata", {}), _RECORD: encoding}
    return copied


def encoding_of(node: Node) -> Encoding:
    """Return the encoding of a node of bytes."""
    name = node.get("metadata", {}).get(_RECORD)
    return BASE64 if name is None else _NAMED[name]


def _from_base64(value: Any) -> Any:
    """Return the bytes of base64. The alphabet of URLs is also accepted, because pydantic writes it by default."""
    if not isinstance(value, str):
        return value
    try:
        return b64decode(value.translate(_FROM_URL_ALPHABET), validate=True)
    except ValueError:
        raise PydanticKnownError("bytes_invalid_encoding", {"encoding": "base64", "encoding_error": ""}) from None


def _to_base64(value: Any) -> Any:
    return b64encode(_checked(value)).decode("ascii")


def _checked(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise PydanticSerializationUnexpectedValue(f"Expected bytes, not {type(value).__name__}")
    return value


def _reader(name: Name) -> Callable[[Any], Any]:
    """Return a function that reads texts as pydantic does."""
    config = core_schema.CoreConfig(val_json_bytes=name)
    decode = SchemaValidator(core_schema.bytes_schema(), config).validate_python

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return decode(value)
        except ValueError:
            phrase = {"encoding": _PHRASES[name], "encoding_error": ""}
            raise PydanticKnownError("bytes_invalid_encoding", phrase) from None

    return read


def _writer(name: Name) -> Callable[[Any], Any]:
    """Return a function that writes bytes as pydantic does."""
    return lambda value: to_jsonable_python(_checked(value), bytes_mode=name)


BASE64 = Encoding(
    _from_base64, _to_base64, {"contentEncoding": "base64"}, "written-bytes", base64_length, base64_length
)
"""The encoding of bytes whose author names none."""

_NAMED: dict[Name, Encoding] = {
    "base64": Encoding(
        _reader("base64"),
        _writer("base64"),
        {"contentEncoding": "base64url"},
        "written-bytes-base64url",
        lambda count: ceil(4 * count / 3),  # pydantic does not require the padding
        base64_length,
    ),
    "hex": Encoding(
        _reader("hex"),
        _writer("hex"),
        {"contentEncoding": "base16"},
        "written-bytes-hex",
        lambda count: 2 * count,
        lambda count: 2 * count,
    ),
    "utf8": Encoding(
        _reader("utf8"),
        _writer("utf8"),
        {},
        None,
        lambda count: ceil(count / 4),  # a character has at most four bytes
        lambda count: count,
    ),
}
