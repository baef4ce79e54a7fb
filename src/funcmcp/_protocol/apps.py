"""MCP Apps: pages that a client shows beside the result of a tool.

Source: extension `io.modelcontextprotocol/ui` (SEP-1865), revision 2026-01-26.
"""

from __future__ import annotations

EXTENSION = "io.modelcontextprotocol/ui"
PAGE_TYPE = "text/html;profile=mcp-app"
"""The media type of a page. Clients compare it as text."""

SCHEME = "ui://"


def is_page(uri: str) -> bool:
    """Return whether a URI has the scheme of pages."""
    return uri.startswith(SCHEME)
