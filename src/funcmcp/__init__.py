"""Typed Python functions as MCP servers. Public names are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from funcmcp import content
    from funcmcp.app import MCPServer
    from funcmcp.authoring.calling.feature_context import CancellationToken, PromptContext, ResourceContext, ToolContext
    from funcmcp.authoring.calling.questions import Elicit, ListRoots, Sample
    from funcmcp.authoring.features.prompts import prompt
    from funcmcp.authoring.features.resources import resource
    from funcmcp.authoring.features.tools import tool
    from funcmcp.authoring.features.ui import UI, UIResource
    from funcmcp.authoring.signatures.signature import Arguments, Header, JSONRPCRequest, JSONRPCResponse
    from funcmcp.authoring.values.string_formats import Format
    from funcmcp.protocol.errors import InvalidParams, MCPError, ResourceNotFound, ToolError
    from funcmcp.server.catalog.registry import RegistrationError
    from funcmcp.transports.http.options import HTTPOptions

__version__ = "0.1.0"

_NAMES_ELSEWHERE = {"FastMCP": "MCPServer", "Context": "ToolContext"}
"""What funcmcp calls things that programs look for by the names of other frameworks."""

_HOMES = {
    "Arguments": "authoring.signatures.signature",
    "CancellationToken": "authoring.calling.feature_context",
    "Elicit": "authoring.calling.questions",
    "Format": "authoring.values.string_formats",
    "HTTPOptions": "transports.http.options",
    "Header": "authoring.signatures.signature",
    "InvalidParams": "protocol.errors",
    "JSONRPCRequest": "authoring.signatures.signature",
    "JSONRPCResponse": "authoring.signatures.signature",
    "ListRoots": "authoring.calling.questions",
    "MCPError": "protocol.errors",
    "MCPServer": "app",
    "PromptContext": "authoring.calling.feature_context",
    "RegistrationError": "server.catalog.registry",
    "ResourceContext": "authoring.calling.feature_context",
    "ResourceNotFound": "protocol.errors",
    "Sample": "authoring.calling.questions",
    "ToolContext": "authoring.calling.feature_context",
    "ToolError": "protocol.errors",
    "UI": "authoring.features.ui",
    "UIResource": "authoring.features.ui",
    "content": "content",
    "prompt": "authoring.features.prompts",
    "resource": "authoring.features.resources",
    "tool": "authoring.features.tools",
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
