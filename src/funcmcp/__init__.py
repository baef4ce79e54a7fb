"""Typed Python functions as MCP servers. Public names are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from funcmcp import content
    from funcmcp.app import MCPServer
    from funcmcp.authoring.context import CancellationToken, PromptContext, ResourceContext, ToolContext
    from funcmcp.authoring.formats import Format
    from funcmcp.authoring.pages import UI, UIResource
    from funcmcp.authoring.prompts import prompt
    from funcmcp.authoring.questions import Elicit, ListRoots, Sample
    from funcmcp.authoring.resources import resource
    from funcmcp.authoring.signature import Arguments, Header, JSONRPCRequest, JSONRPCResponse
    from funcmcp.authoring.tools import tool
    from funcmcp.protocol.errors import InvalidParams, MCPError, ResourceNotFound, ToolError
    from funcmcp.server.registry import RegistrationError
    from funcmcp.transports.http.options import HTTPOptions

__version__ = "0.1.0"

_NAMES_ELSEWHERE = {"FastMCP": "MCPServer", "Context": "ToolContext"}
"""What funcmcp calls things that programs look for by the names of other frameworks."""

_HOMES = {
    "Arguments": "authoring.signature",
    "CancellationToken": "authoring.context",
    "Elicit": "authoring.questions",
    "Format": "authoring.formats",
    "HTTPOptions": "transports.http.options",
    "Header": "authoring.signature",
    "InvalidParams": "protocol.errors",
    "JSONRPCRequest": "authoring.signature",
    "JSONRPCResponse": "authoring.signature",
    "ListRoots": "authoring.questions",
    "MCPError": "protocol.errors",
    "MCPServer": "app",
    "PromptContext": "authoring.context",
    "RegistrationError": "server.registry",
    "ResourceContext": "authoring.context",
    "ResourceNotFound": "protocol.errors",
    "Sample": "authoring.questions",
    "ToolContext": "authoring.context",
    "ToolError": "protocol.errors",
    "UI": "authoring.pages",
    "UIResource": "authoring.pages",
    "content": "content",
    "prompt": "authoring.prompts",
    "resource": "authoring.resources",
    "tool": "authoring.tools",
}

__all__ = [
    "UI",
    "Arguments",
    "CancellationToken",
    "Elicit",
    "Format",
    "HTTPOptions",
    "Header",
    "InvalidParams",
    "JSONRPCRequest",
    "JSONRPCResponse",
    "ListRoots",
    "MCPError",
    "MCPServer",
    "PromptContext",
    "RegistrationError",
    "ResourceContext",
    "ResourceNotFound",
    "Sample",
    "ToolContext",
    "ToolError",
    "UIResource",
    "content",
    "prompt",
    "resource",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if name in _NAMES_ELSEWHERE:  # an ImportError, because `from funcmcp import X` drops the text of an AttributeError
        raise ImportError(f"funcmcp has no {name}. It is called {_NAMES_ELSEWHERE[name]} here.", name="funcmcp")
    if home is None:
        raise AttributeError(f"module 'funcmcp' has no attribute {name!r}")
    module = import_module(f"funcmcp.{home}")
    value = module if home == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
