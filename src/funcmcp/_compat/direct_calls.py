"""`FastMCP.call_tool`: a call of a server's own tool, which returns or raises what FastMCP does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._compat.content import block_of, meta_of
from funcmcp._compat.editable import Editable
from funcmcp._compat.errors import NotFoundError, ToolError
from funcmcp._compat.serialization import serialized
from funcmcp._protocol import objects
from funcmcp._protocol.errors import INVALID_PARAMS, MCPError, UnknownFeature

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping


class CalledTool(Editable, objects.CallToolResult):
    """The result of a call of a tool."""

    @property
    def content(self) -> list[Any]:
        """The content blocks."""
        return [block_of(block) for block in self.get("content", ())]

    @property
    def structured_content(self) -> Any:
        """The structured content; None if the result has none."""
        return self.get("structuredContent")

    @property
    def meta(self) -> dict[str, Any] | None:  # type: ignore[override] # None as in FastMCP
        """The ``_meta`` without what the server adds to each result; None if nothing is left."""
        return meta_of(self)


def plain_arguments(arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return arguments in JSON form, such as the text of a UUID; unchanged if JSON can't carry one of them."""
    values = dict(arguments or {})
    try:
        plain: dict[str, Any] = serialized(values)
    except (ValueError, ToolError):
        return values
    return plain


async def called(tool: str, call: Awaitable[dict[str, Any]], *, raise_on_error: bool) -> CalledTool:
    """Return the result of a call.

    Args:
        tool: The tool's name.
        call: The call.
        raise_on_error: Whether a failure of the tool is an exception.

    Raises:
        NotFoundError: The tool does not exist.
        ToolError: The tool failed, or the arguments are not valid.
    """
    try:
        result = CalledTool(await call)
    except MCPError as error:
        if error.code == INVALID_PARAMS and isinstance(error.__cause__, UnknownFeature):
            raise NotFoundError(f"Unknown tool: {tool!r}") from error
        raise
    if raise_on_error and result.is_error:
        raise ToolError(result.text)
    return result
