"""Typed Python functions as MCP servers. Public names are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from funcmcp.app import MCPServer
    from funcmcp.authoring.content import Audio, EmbeddedResource, Icon, Image, ResourceLink, Text, ToolResult
    from funcmcp.authoring.context import CancellationToken, ToolContext
    from funcmcp.authoring.formats import Format
    from funcmcp.authoring.questions import Elicit, ListRoots, Sample
    from funcmcp.authoring.signature import Arguments, Header, JSONRPCRequest, JSONRPCResponse
    from funcmcp.authoring.tools import tool
    from funcmcp.protocol.errors import InvalidParams, MCPError, ToolError
    from funcmcp.server.registry import RegistrationError
    from funcmcp.transports.http.options import HTTPOptions

__version__ = "0.1.0"

_HOMES = {
    "Arguments": "authoring.signature",
    "Audio": "authoring.content",
    "CancellationToken": "authoring.context",
    "Elicit": "authoring.questions",
    "EmbeddedResource": "authoring.content",
    "Format": "authoring.formats",
    "HTTPOptions": "transports.http.options",
    "Header": "authoring.signature",
    "Icon": "authoring.content",
    "Image": "authoring.content",
    "InvalidParams": "protocol.errors",
    "JSONRPCRequest": "authoring.signature",
    "JSONRPCResponse": "authoring.signature",
    "ListRoots": "authoring.questions",
    "MCPError": "protocol.errors",
    "MCPServer": "app",
    "RegistrationError": "server.registry",
    "ResourceLink": "authoring.content",
    "Sample": "authoring.questions",
    "Text": "authoring.content",
    "ToolContext": "authoring.context",
    "ToolError": "protocol.errors",
    "ToolResult": "authoring.content",
    "tool": "authoring.tools",
}

__all__ = [
    "Arguments",
    "Audio",
    "CancellationToken",
    "Elicit",
    "EmbeddedResource",
    "Format",
    "HTTPOptions",
    "Header",
    "Icon",
    "Image",
    "InvalidParams",
    "JSONRPCRequest",
    "JSONRPCResponse",
    "ListRoots",
    "MCPError",
    "MCPServer",
    "RegistrationError",
    "ResourceLink",
    "Sample",
    "Text",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'funcmcp' has no attribute {name!r}")
    value = getattr(import_module(f"funcmcp.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
