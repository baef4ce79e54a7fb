"""JSON-RPC messages as they come from a server: parsed, and checked as far as the client relies on them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from funcmcp._client.errors import one_line
from funcmcp._protocol.codec import InvalidJSONError, RepeatedNameError, decode, encode
from funcmcp._protocol.errors import InvalidResponseError, MCPError

if TYPE_CHECKING:
    from collections.abc import Mapping

MESSAGES_AT_ONCE = 16
"""Messages after which a reader lets other tasks run. A server that sends without end would stop them otherwise: what
has arrived already is read without waiting."""

_MAX_VALUES = 2_000_000
"""JSON values in one message. More would take gigabytes of memory."""

_LONG_NUMBER = re.compile(rb"(?<!\d)\d{4301}")  # more digits than `int` reads by default


def parse_message(json_text: bytes) -> dict[str, Any] | None:
    """Return the JSON-RPC message in a JSON text. Return None if the text is not a JSON-RPC message."""
    try:
        message = decode(json_text, values=_MAX_VALUES)
    except (InvalidJSONError, RepeatedNameError):
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return None
    return message


def encode_message(message: Mapping[str, Any]) -> bytes:
    """Return the JSON text of a message. Raise ValueError for a value that servers in Python can't read either."""
    json_text = encode(message)
    if _LONG_NUMBER.search(json_text) is not None:  # it may be a part of a text
        json.loads(json_text)
    return json_text


def is_response(message: Mapping[str, Any]) -> bool:
    """Return whether a message is a response, and not a request or a notification."""
    return "method" not in message


def is_response_to(message: Mapping[str, Any], request_id: int) -> bool:
    """Return whether a response answers a request. The id of an error is null if the server could not read it."""
    response_id = message.get("id")
    if response_id is None:
        return "error" in message
    return type(response_id) is int and response_id == request_id


def result_of(response: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Return the result of a response.

    Raises:
        MCPError: The response holds an error.
        InvalidResponseError: The response holds neither a result nor an error as the protocol defines them.
    """
    error = response.get("error")
    if error is not None:
        if isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str):
            raise MCPError(error["code"], error["message"], error.get("data"))
        raise InvalidResponseError(f"The error in the response to {method} has no code and message: {one_line(error)}")
    result = response.get("result")
    if not isinstance(result, dict):
        raise InvalidResponseError(f"The response to {method} has no result object.")
    return result


def member_of(result: Mapping[str, Any], name: str, kind: type, method: str) -> Any:
    """Return a member of a result. Raise InvalidResponseError if it is missing or of another type than *kind*."""
    value = result.get(name)
    if not isinstance(value, kind):
        raise InvalidResponseError(f"The result of {method} has no valid {name!r}.")
    return value
