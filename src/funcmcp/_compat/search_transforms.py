"""FastMCP's transforms that replace the list of tools by a search, and `MCPServer.tool_search` for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._app.mcp_server import MCPServer


@public("funcmcp.compat")
class BM25SearchTransform:
    """The search of `MCPServer.tool_search`, for ``mcp.add_transform(...)`` and ``FastMCP(transforms=[...])``.

    Args:
        max_results: The number of tools that a search returns.
        always_visible: Names of tools that stay in the list.
        search_tool_name: The name of the tool that searches.
        call_tool_name: The name of the tool that calls others.
        search_result_serializer: Must be None: the result has the definitions of the tools.

    Raises:
        TypeError: There is a serializer.
    """

    def __init__(
        self,
        *,
        max_results: int = 5,
        always_visible: Sequence[str] | None = None,
        search_tool_name: str = "search_tools",
        call_tool_name: str = "call_tool",
        search_result_serializer: Any = None,
    ) -> None:
        if search_result_serializer is not None:
            raise TypeError(
                "BM25SearchTransform of funcmcp.compat has no option 'search_result_serializer'. The result has the "
                "definitions of the tools; limit its size with funcmcp's mcp.tool_search(result_characters=)."
            )
        self._options: dict[str, Any] = {
            "max_results": max_results,
            "always_visible": always_visible or (),
            "search_tool_name": search_tool_name,
            "call_tool_name": call_tool_name,
        }

    def add_to(self, server: MCPServer) -> None:
        """Add the search to a server."""
        server.tool_search(**self._options)


@public("funcmcp.compat")
class RegexSearchTransform:
    """FastMCP's search by a regular expression, which funcmcp does not have.

    Raises:
        TypeError: Always. The text says what to use.
    """

    def __init__(self, **_options: Any) -> None:
        raise TypeError(
            "funcmcp searches for tools by words, not by a regular expression. Use BM25SearchTransform of "
            "funcmcp.compat, or mcp.tool_search()."
        )
