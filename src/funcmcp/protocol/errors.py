"""Errors of the protocol: JSON-RPC codes and the exceptions that carry them.

There are two planes of errors. `MCPError` becomes a JSON-RPC error object; every other exception that a
tool raises becomes a tool *result* with ``isError: true``. `ToolError` is the one whose text is meant for
the client.

Source: JSON-RPC 2.0 section 5.1; MCP 2026-07-28 "basic/index, Error Codes".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022


class MCPError(Exception):
    """A JSON-RPC error answer.

    Args:
        code: the JSON-RPC error code, an integer. Codes of your own belong outside -32768 to -32000.
        message: one sentence for the client. It is sent as it stands, so keep internals out of it.
        data: any JSON value with more detail; left out of the answer when None.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def payload(self) -> dict[str, object]:
        """Return the ``error`` member of the answer."""
        error: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


class InvalidParams(MCPError):
    """The request's parameters are wrong: JSON-RPC error -32602.

    Raise it in a tool to refuse the *request* (a protocol error). To tell the model what to do better,
    raise `ToolError` instead.
    """

    def __init__(self, message: str, data: object = None) -> None:
        super().__init__(INVALID_PARAMS, message, data)


class ResourceNotFound(MCPError):
    """There is no resource of this URI: -32002 before 2026-07-28, -32602 from it on, with the URI as data.

    Args:
        uri: the URI that was asked for.
    """

    def __init__(self, uri: str) -> None:
        super().__init__(RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})


class MissingClientCapability(MCPError):
    """The request needs a capability that the client did not declare: -32021 (2026-07-28).

    Args:
        capabilities: what is missing, in the shape of ClientCapabilities, such as ``{"sampling": {}}``.
    """

    def __init__(self, capabilities: Mapping[str, object]) -> None:
        super().__init__(
            MISSING_CLIENT_CAPABILITY,
            f"This request needs a client that declares: {', '.join(capabilities)}",
            {"requiredCapabilities": dict(capabilities)},
        )


class ToolError(Exception):
    """An error that a tool tells the model: a result with ``isError: true`` and this text.

    Args:
        message: plain words for the model, sent as they stand.
    """
