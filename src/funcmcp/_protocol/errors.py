"""Errors of the protocol: JSON-RPC codes and the exceptions that carry them.

There are two kinds of errors. `MCPError` becomes a JSON-RPC error object. Any other exception in a tool becomes a
*result* with ``isError: true``. The client gets the text of a `ToolError`, and only an error id of other exceptions.

For clients, a failure without a JSON-RPC error object is a `ClientError`.

Source: JSON-RPC 2.0 section 5.1; MCP 2026-07-28 "basic/index, Error Codes".
"""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022

_MAX_QUOTED_NAME = 128


@public("funcmcp")
class MCPError(Exception):
    """A JSON-RPC error response.

    Args:
        code: The JSON-RPC error code. Choose codes of an application outside -32768 to -32000.
        message: One sentence for the client. It is sent unchanged, so don't put internals into it.
        data: Any JSON value with details. None leaves ``data`` out of the response.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def __reduce__(self) -> tuple[Any, ...]:
        """Support `pickle` and `copy` for subclasses whose constructors have other arguments."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]  # not in typeshed

    def __str__(self) -> str:
        """Return the message with its control and hidden characters escaped: it may come from a server."""
        from funcmcp._text.visible import visible  # noqa: PLC0415 - compiles regular expressions

        return visible(self.message)

    def payload(self) -> dict[str, object]:
        """Return the ``error`` member of the response."""
        error: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


@public("funcmcp")
class InvalidParams(MCPError):
    """The parameters of the request are invalid: JSON-RPC error -32602.

    A tool raises it to reject the *request*, which is an error of the protocol. Raise `ToolError` instead for an error
    that the model can correct.
    """

    def __init__(self, message: str, data: object = None) -> None:
        super().__init__(INVALID_PARAMS, message, data)


class UnknownFeature(InvalidParams):
    """No tool or prompt has this name.

    Args:
        kind: ``"tool"`` or ``"prompt"``.
        name: The name in the request.
        detail: What more is known, such as ", in this version".
    """

    def __init__(self, kind: str, name: str, detail: str = "") -> None:
        super().__init__(f"Unknown {kind}: {name[:_MAX_QUOTED_NAME]}{detail}")


@public("funcmcp")
class ResourceNotFound(MCPError):
    """No resource has this URI: -32002 before 2026-07-28, -32602 since, with the URI as data.

    Args:
        uri: The URI in the request.
        message: The text, if more is known than that there is no resource.
    """

    def __init__(self, uri: str, message: str = "Resource not found") -> None:
        super().__init__(RESOURCE_NOT_FOUND, message, {"uri": uri})


class MissingClientCapability(MCPError):
    """The request needs a capability that the client did not declare: -32021 (2026-07-28).

    Args:
        capabilities: The missing capabilities in the form of ClientCapabilities, such as ``{"sampling": {}}``.
        need: The beginning of the message.
    """

    def __init__(self, capabilities: Mapping[str, object], *, need: str = "This request needs") -> None:
        super().__init__(
            MISSING_CLIENT_CAPABILITY,
            f"{need} a client that declares: {', '.join(capability_names(capabilities))}",
            {"requiredCapabilities": dict(capabilities)},
        )


def capability_names(capabilities: Mapping[str, object]) -> Iterator[str]:
    """Yield the names of capabilities, such as "sampling" and "extensions.io.modelcontextprotocol/tasks"."""
    for name, members in capabilities.items():
        if isinstance(members, Mapping) and members:
            yield from (f"{name}.{member}" for member in members)
        else:
            yield name


@public("funcmcp")
class ToolError(Exception):
    """An error for the model: a tool result with ``isError: true`` and this text.

    Args:
        message: Text for the model. It is sent unchanged.
    """


class CannotAskError(ToolError):
    """No question of a call reaches its client: it has not declared that it answers, or the transport can't ask."""


class AnsweredWithError(ToolError):
    """The client has answered a question with a JSON-RPC error.

    Args:
        method: The method of the question.
        error: The error object of the client, which is not checked.
    """

    def __init__(self, method: str, error: Mapping[str, Any]) -> None:
        super().__init__(f"The client answered {method} with an error.")
        self.error = error


class WrongArguments(ToolError):
    """Arguments of a call are invalid.

    Args:
        lines: The path of each wrong argument, such as ``items[0].quantity``, and what is wrong.
    """

    def __init__(self, lines: Iterable[tuple[str, str]]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(f"{path}: {phrase}" if path else phrase for path, phrase in self.lines))

    def __reduce__(self) -> tuple[Any, ...]:
        """Support `pickle` and `copy`."""
        return type(self), (self.lines,), self.__dict__


@public("funcmcp.client")
class ClientError(Exception):
    """A request failed. Its subclasses are the reasons.

    The message may quote the server: escape control characters before you print it on a terminal.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Support `pickle` and `copy` for subclasses whose constructors have other arguments."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]  # not in typeshed


@public("funcmcp.client")
class InvalidResponseError(ClientError):
    """The server sent something that does not follow the protocol."""
