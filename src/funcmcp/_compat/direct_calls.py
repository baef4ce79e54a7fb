"""`FastMCP.call_tool`: a call of a server's own tool, which returns or raises what FastMCP does."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from funcmcp._compat.content import block_of, meta_of
from funcmcp._compat.editable import Editable
from funcmcp._compat.errors import AuthorizationError, NotFoundError, ToolError
from funcmcp._compat.serialization import serialized
from funcmcp._protocol import objects
from funcmcp._protocol.errors import INVALID_PARAMS, MCPError, UnknownFeature
from funcmcp._server.exception_groups import meaning_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from funcmcp._server.calls.context import RequestContext


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
    return {name: _plain(value) for name, value in (arguments or {}).items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if hasattr(value, "get_secret_value"):  # of pydantic, which writes secrets as asterisks
        return value.get_secret_value()
    try:
        return serialized(value)
    except (ValueError, ToolError):
        return value


_MAX_CAUSES = 10
_refusals: ContextVar[list[AuthorizationError] | None] = ContextVar("funcmcp_compat_refusals", default=None)
"""The refusals of the direct call that runs now, which its caller gets as exceptions."""


def note_refusal(request: RequestContext) -> None:
    """Keep the AuthorizationError with which a direct call has failed, for its caller."""
    refusals = _refusals.get()
    if refusals is None or not request.by_author or request.error is None:
        return
    error: BaseException | None = meaning_of(request.error)
    for _ in range(_MAX_CAUSES):  # the error for clients has it as its cause; causes may be a circle
        if isinstance(error, AuthorizationError):
            refusals.append(error)
        if error is None or isinstance(error, AuthorizationError):
            return
        error = error.__cause__


async def called(tool: str, call: Awaitable[dict[str, Any]], *, raise_on_error: bool) -> CalledTool:
    """Return the result of a call.

    Args:
        tool: The tool's name.
        call: The call.
        raise_on_error: Whether a failure of the tool is an exception.

    Raises:
        AuthorizationError: Middleware has refused the call.
        NotFoundError: The tool does not exist.
        ToolError: The tool failed, or the arguments are not valid.
    """
    outer, refusals = _refusals.get(), list[AuthorizationError]()
    _refusals.set(refusals)
    try:
        result = CalledTool(await call)
    except MCPError as error:
        if error.code == INVALID_PARAMS and isinstance(error.__cause__, UnknownFeature):
            raise NotFoundError(f"Unknown tool: {tool!r}") from error
        raise
    finally:
        _refusals.set(outer)
    if raise_on_error and result.is_error and refusals:
        raise refusals[-1]
    if raise_on_error and result.is_error:
        raise ToolError(result.text)
    return result
