"""JSON-RPC 2.0 messages and their classification.

Source: JSON-RPC 2.0 sections 4 to 6; MCP "basic/index, Messages" of every revision: an id is a string or an
integer and never null, a notification has no id.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from funcmcp._objects.mappings import without_none

RequestId: TypeAlias = str | int


class Request:
    """A message that requires a response."""

    __slots__ = ("id", "method", "params")

    def __init__(self, id: RequestId, method: str, params: dict[str, Any]) -> None:
        self.id: RequestId = id
        self.method: str = method
        self.params: dict[str, Any] = params

    def message(self) -> dict[str, Any]:
        """Return the request as a JSON object."""
        return {"jsonrpc": "2.0", "id": self.id, "method": self.method, "params": self.params}


class Notification:
    """A message without a response."""

    __slots__ = ("method", "params")

    def __init__(self, method: str, params: dict[str, Any]) -> None:
        self.method = method
        self.params = params


class Response:
    """The response to a request of this side. Either `result` or `error` is set."""

    __slots__ = ("error", "id", "result")

    def __init__(self, id: RequestId | None, result: dict[str, Any] | None, error: dict[str, Any] | None) -> None:
        self.id: RequestId | None = id
        self.result: dict[str, Any] | None = result
        self.error: dict[str, Any] | None = error


class Malformed:
    """A value that is not a JSON-RPC message. `id` is its id if that is valid."""

    __slots__ = ("id", "reason")

    def __init__(self, reason: str, id: RequestId | None = None) -> None:
        self.reason = reason
        self.id = id


Message: TypeAlias = Request | Notification | Response
Body: TypeAlias = Message | Malformed | list[Any]
"""A decoded body: a message, a malformed value, or an array that may be a batch."""


def classify(value: object) -> Message | Malformed:
    """Return the message that a decoded JSON value represents, or `Malformed`."""
    if type(value) is not dict:
        return Malformed("A message must be a JSON object.")
    request_id: RequestId | None = value.get("id")
    if type(request_id) is not str and type(request_id) is not int:
        request_id = None
    if value.get("jsonrpc") != "2.0":
        return Malformed('"jsonrpc" must be "2.0".', request_id)
    if "method" not in value:
        return _response(value, request_id)
    method, params = value["method"], value.get("params")
    if type(method) is not str:
        return Malformed('"method" must be a string.', request_id)
    if type(params) is not dict or None in params.values():
        params = _params_of(params)
    if params is None:
        return Malformed('"params" must be an object.', request_id)
    if request_id is not None:
        return Request(request_id, method, params)
    if "id" in value:
        return Malformed('"id" must be a string or an integer.')
    return Notification(method, params)


def _params_of(params: object) -> dict[str, Any] | None:
    """Return params without members that are null, and the params of a message without any; None for a wrong type."""
    if params is None:
        return {}
    return without_nulls(params) if type(params) is dict else None


def without_nulls(members: dict[str, Any]) -> dict[str, Any]:
    """Return an object of the protocol without the members that are null.

    Clients whose language has no "absent" send null for an optional member. No member of the params of a request has a
    meaning for null.
    """
    return without_none(members)


def _response(value: dict[str, Any], request_id: RequestId | None) -> Response | Malformed:
    result, error = value.get("result"), value.get("error")
    if type(result) is dict and error is None and request_id is not None:
        return Response(request_id, result, None)
    if type(error) is dict and result is None:
        return Response(request_id, None, error)
    return Malformed('A message must have a "method", a "result" or an "error".', request_id)
