"""Answers to requests as they are sent: JSON-RPC responses with a result or an error.

Source: JSON-RPC 2.0 section 5.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import encode

if TYPE_CHECKING:
    from funcmcp._protocol.errors import MCPError
    from funcmcp._protocol.jsonrpc import RequestId


@public("funcmcp.middleware")
class Reply:
    """The answer to a request, encoded.

    Attributes:
        body: The response as JSON text, without line breaks.
        error: The code of the JSON-RPC error in the response; None if it has a result.
    """

    __slots__ = ("body", "error")

    def __init__(self, body: bytes, error: int | None = None) -> None:
        self.body: bytes = body
        self.error: int | None = error

    def message(self) -> dict[str, Any]:
        """Return the response, decoded. An integer with more digits than `int` accepts is a string."""
        message: dict[str, Any] = json.loads(self.body, parse_int=_integer)
        return message

    def result(self) -> dict[str, Any] | None:
        """Return the result, decoded; None if the response has an error."""
        return None if self.error is not None else self.message().get("result")


def _integer(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:  # more digits than sys.get_int_max_str_digits()
        return digits


def result_reply(request_id: RequestId, result: dict[str, Any]) -> Reply:
    """Return the answer for a result."""
    return Reply(encode({"jsonrpc": "2.0", "id": request_id, "result": result}))


def encoded_result_reply(request_id: RequestId, result: bytes) -> Reply:
    """Return the answer for a result that is JSON text already."""
    encoded_id = b"%d" % request_id if type(request_id) is int else encode(request_id)
    return Reply(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encoded_id, result))


def error_reply(error: MCPError, request_id: RequestId | None) -> Reply:
    """Return the answer for an error. An id of None, of a message whose id can't be read, is left out.

    Raises:
        ValueError: The error's message or data can't be encoded as JSON.
    """
    message: dict[str, Any] = {"jsonrpc": "2.0", "error": error.payload()}
    if request_id is not None:
        message["id"] = request_id
    return Reply(encode(message), error.code)
