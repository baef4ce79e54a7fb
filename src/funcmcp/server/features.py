"""What a server offers. A feature is a frozen description with an async handler.

`funcmcp.authoring` makes features from Python functions; another producer may make them from anything
else. The server cannot tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp.protocol.codec import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from funcmcp.protocol.headers import MirroredParameter
    from funcmcp.server.context import Context

    ToolHandler = Callable[[Context, dict[str, Any]], Coroutine[Any, Any, "dict[str, Any] | JSONResult | RawResponse"]]


@dataclass(frozen=True, slots=True)
class RawResponse:
    """A whole JSON-RPC response that a tool made itself; it is sent as it stands."""

    message: dict[str, Any]


class JSONResult:
    """A ``CallToolResult`` of one text block whose parts are JSON texts already, so that they are written only once.

    Attributes:
        text: the block's text, as a JSON string.
        structured: the structured content, as a JSON object; None without.
    """

    __slots__ = ("structured", "text")

    def __init__(self, text: bytes, structured: bytes | None = None) -> None:
        self.text = text
        self.structured = structured

    def result(self) -> dict[str, Any]:
        """Return the CallToolResult as a value."""
        result: dict[str, Any] = {"content": [{"type": "text", "text": decode(self.text)}]}
        if self.structured is not None:
            result["structuredContent"] = decode(self.structured)
        return result


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        name: unique in the server, 1 to 128 characters of ``[A-Za-z0-9_.-]``.
        describe: returns the tool's wire description (the newest revision's ``Tool``). Called when a list is
            built, never before, because it may have to generate schemas.
        handler: runs the tool. It gets the request's context and the unvalidated arguments, and returns a
            ``CallToolResult`` in the newest revision's shape without ``resultType``, as a value or as JSON; or raises.
        interactive: whether the handler may report progress, log or ask the client something, so that a
            transport must be ready to stream.
        timeout: seconds after which the call is cancelled; None for no limit.
        mirrored: arguments that 2026-07-28 clients repeat in ``Mcp-Param-*`` headers.
    """

    name: str
    describe: Callable[[], Mapping[str, Any]]
    handler: ToolHandler
    interactive: bool = False
    timeout: float | None = 60.0
    mirrored: tuple[MirroredParameter, ...] = ()
