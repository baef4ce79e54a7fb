"""Tells whether a message of the server is right, by the official schemas where they are at hand, and fast.

They are third-party data: they are looked for in the folder that the environment variable ``MCP_SCHEMAS`` names, else
in ``../shared/schemas`` beside the repository.
"""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

PLACE: Final = Path(os.environ.get("MCP_SCHEMAS", Path(__file__).resolve().parents[2] / "shared" / "schemas"))
_PER_REQUEST, _NEWEST_HANDSHAKE = "2026-07-28", "2025-11-25"
_INSIDES = re.compile(r"Traceback|pydantic|funcmcp|\.py\b|object at 0x")


def check_message(message: Any, method: str | None) -> None:
    """Fail unless a message is one that a server may send.

    Args:
        message: decoded.
        method: of the request that it answers, or None where that is not known.
    """
    if isinstance(message, list):
        assert message, "an empty batch"
        for member in message:
            check_message(member, None)
        return
    assert isinstance(message, dict)
    assert message["jsonrpc"] == "2.0"
    if "method" in message:
        assert isinstance(message["method"], str)
        _check(_NEWEST_HANDSHAKE, "JSONRPCRequest" if "id" in message else "JSONRPCNotification", message)
    elif "error" in message:
        assert set(message) <= {"jsonrpc", "id", "error"}
        assert not _INSIDES.search(message["error"]["message"]), message["error"]
        _check(_NEWEST_HANDSHAKE, "JSONRPCErrorResponse", message)
    else:
        assert set(message) == {"jsonrpc", "id", "result"}
        _check_result(message, method)


def _check_result(message: dict[str, Any], method: str | None) -> None:
    result = message["result"]
    revision = _PER_REQUEST if "resultType" in result else _NEWEST_HANDSHAKE
    _check(revision, "JSONRPCResultResponse", message)
    name = "InputRequiredResult" if result.get("resultType") == "input_required" else _result(revision, method)
    if name is not None:
        _check(revision, name, result)


def _check(revision: str, name: str, value: object) -> None:
    validator = _validator(revision, name)
    if validator is not None and not validator.is_valid(value):
        raise AssertionError(f"no {name} of {revision}: {json.dumps(value)[:2000]}")


@functools.cache
def _schema(revision: str) -> dict[str, Any]:
    path = PLACE / revision / "schema.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return schema


@functools.cache
def _validator(revision: str, name: str) -> Any:
    schema = _schema(revision)
    definitions = "$defs" if "$defs" in schema else "definitions"
    if name not in schema.get(definitions, {}):
        return None
    return jsonschema_rs.validator_for({**schema, "$ref": f"#/{definitions}/{name}"})


@functools.cache
def _results(revision: str) -> dict[str, str]:
    """Map a method to the definition of its result."""
    schema = _schema(revision)
    definitions = schema.get("$defs") or schema.get("definitions", {})
    names = {}
    for name, definition in definitions.items():
        method = definition.get("properties", {}).get("method", {}).get("const")
        result = name.removesuffix("Request") + "Result"
        if method is not None and result in definitions:
            names[method] = result
    return names


def _result(revision: str, method: str | None) -> str | None:
    return None if method is None else _results(revision).get(method)
