"""Values of headers: Accept, Content-Type, and the headers of 2026-07-28 that repeat parts of a message."""

from __future__ import annotations

from typing import Any

from funcmcp._protocol.codec import decode
from funcmcp._protocol.headers import (
    MirroredParameter,
    agree,
    decode_value,
    encode_mirrored,
    encode_value,
    mirrored_mismatch,
    mirrored_parameters,
    mismatch,
)
from funcmcp._transports.http.status import accepts, is_json

_VERSION = "2026-07-28"
_PARAMETERS = (
    MirroredParameter("mcp-param-text", ("text",)),
    MirroredParameter("mcp-param-deep", ("deep", "inner")),
)


def check(data: bytes) -> None:
    """Use the first line as the value of a header, and the others as a value in the message or as a schema."""
    value, _, body = data.partition(b"\n")
    _check_negotiation(value)
    text = body.decode("utf-8", "ignore")
    _check_value(value.decode("latin-1"), text)
    _check_agreement(value, text)
    try:
        message = decode(body)
    except ValueError:
        return
    if isinstance(message, dict):
        _check_schema(message, value.decode("latin-1"))


def _check_negotiation(value: bytes) -> None:
    taken = accepts(value)
    assert taken.json or taken.events or value.strip()
    if is_json(value):
        assert value.strip().lower().startswith(b"application/json")
        assert not is_json(value + b"x") or b";" in value


def _check_value(value: str, text: str) -> None:
    encoded = encode_value(text)
    assert encoded.isascii()
    assert encoded.isprintable()
    assert decode_value(encoded) == text
    decoded = decode_value(value)
    if decoded is not None:
        assert decode_value(encode_value(decoded)) == decoded
        assert decode_value(f" {value}\t") == decoded


def _check_agreement(value: bytes, expected: str) -> None:
    """The quick and the full comparison never contradict each other."""
    for received in (value, encode_value(expected).encode()):
        fields = {b"mcp-protocol-version": _VERSION.encode(), b"mcp-method": b"tools/call", b"mcp-name": received}
        headers = {name.decode("latin-1"): text.decode("latin-1") for name, text in fields.items()}
        message = {"mcp-protocol-version": _VERSION, "mcp-method": "tools/call", "mcp-name": expected}
        differs = mismatch(headers, message) is not None
        assert not (differs and agree(fields, _VERSION, "tools/call", {b"mcp-name": expected}))
        assert differs or decode_value(received.decode("latin-1")) == expected
    assert mismatch({"mcp-name": encode_value(expected)}, {"mcp-name": expected}) is None


def _check_schema(message: dict[str, Any], value: str) -> None:
    """The headers that encode_mirrored creates match the call, and no other header causes an exception."""
    try:
        parameters = mirrored_parameters(message)
    except ValueError:
        parameters = _PARAMETERS
    mirrored_mismatch({parameter.header: value for parameter in parameters}, message, parameters)
    if all(isinstance(_at(message, parameter.path), str | bool | int | None) for parameter in parameters):
        headers = encode_mirrored(message, parameters)
        fault = mirrored_mismatch(headers, message, parameters)
        assert fault is None or any(len(header) > 400 for header in headers.values()), fault


def _at(value: object, path: tuple[str, ...]) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
