"""What FastMCP's clients get if the function of a component raises an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._authoring.results.tool_results import rendering_of
from funcmcp._compat.errors import (
    FastMCPError,
    McpError,
    NotFoundError,
    ToolError,
    ValidationError,
    without_pydantic,
)
from funcmcp._compat.middleware_adapters import as_mcp_error
from funcmcp._compat.result_types import ReturnedResult
from funcmcp._compat.sdk_errors import URL_ELICITATION_REQUIRED
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, MCPError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._compat.components import Component
    from funcmcp._server.calls.context import RequestContext

_STARTS = {"tool": "Error calling tool", "resource": "Error reading resource", "prompt": "Error rendering prompt"}


def failure_start(component: Component, error: BaseException, request: RequestContext) -> str | None:
    """Return how the text of an exception begins, as in FastMCP: with the component.

    Args:
        component: The component whose function raised the exception.
        error: The exception. One of FastMCP's has its text alone, which is for the client.
        request: The request.
    """
    if isinstance(error, FastMCPError) and not isinstance(error, NotFoundError):
        return None
    name: object = component.name
    if component.kind == "resource":
        name = request.request.params.get("uri", component.key.partition(":")[2].rpartition("@")[0])
    return f"{_STARTS[component.kind]} {str(name)!r}"


def with_results_and_errors(kind: str | None, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler that writes results without an annotation, and whose errors mean what they mean in FastMCP.

    Args:
        kind: ``"tool"``, ``"resource"`` or ``"prompt"``; None for a feature of the official SDK's server, whose errors
            `funcmcp._compat.sdk_errors` makes.
        handler: The handler.
    """

    async def handle(*arguments: Any) -> Any:
        try:
            return await handler(*arguments)
        except ReturnedResult as returned:
            return rendering_of(Any, "the tool").render(returned.result)
        except Exception as error:
            meaning = _MEANINGS[kind](error)
            if meaning is error:
                raise
            raise meaning from error

    return handle


def _meaning_in_sdk(error: Exception) -> Exception:
    """Return what an error of the official SDK's server means."""
    native = as_mcp_error(error)
    if isinstance(native, MCPError) and native.code == URL_ELICITATION_REQUIRED:
        return native
    return without_pydantic(error)


def _meaning_in_tool(error: Exception) -> Exception:
    """Return what an exception of a tool means: errors of FastMCP and of JSON-RPC are results with ``isError``.

    The one that sends users to a URL is a JSON-RPC error.
    """
    native = as_mcp_error(error)
    if isinstance(native, MCPError) and native.code == URL_ELICITATION_REQUIRED:
        return native
    if isinstance(error, FastMCPError) and not isinstance(error, NotFoundError | ToolError):
        return ToolError(error.message if isinstance(error, MCPError) else str(error))
    if isinstance(error, McpError) or (isinstance(error, MCPError) and isinstance(error, NotFoundError)):
        return RuntimeError(error.message)
    return without_pydantic(error)


def _meaning_elsewhere(error: Exception) -> Exception:
    """Return what an exception of a resource or a prompt means: one of FastMCP is a JSON-RPC error with its text."""
    native = as_mcp_error(error)
    if isinstance(native, MCPError):
        return native
    if isinstance(error, FastMCPError) and not isinstance(error, NotFoundError):
        return MCPError(INVALID_PARAMS if isinstance(error, ValidationError) else INTERNAL_ERROR, str(error))
    return without_pydantic(error)


_MEANINGS: dict[str | None, Callable[[Exception], Exception]] = {
    None: _meaning_in_sdk,
    "tool": _meaning_in_tool,
    "resource": _meaning_elsewhere,
    "prompt": _meaning_elsewhere,
}
