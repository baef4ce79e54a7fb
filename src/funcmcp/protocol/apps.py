"""MCP Apps: pages that a client shows beside a tool's result.

Source: extension `io.modelcontextprotocol/ui` (SEP-1865), revision 2026-01-26.
"""

from __future__ import annotations

EXTENSION = "io.modelcontextprotocol/ui"
PAGE_TYPE = "text/html;profile=mcp-app"
"""The media type of a page, exactly as clients compare it."""

SCHEME = "ui://"


def is_page(uri: str) -> bool:
    """Tell whether a URI is that of a page."""
    return uri.startswith(SCHEME)
