"""MCP servers from typed Python functions.

`MCPServer` is the server. The other names are what its functions and options need. The other public modules are
`funcmcp.auth`, `funcmcp.azure`, `funcmcp.client`, `funcmcp.compat`, `funcmcp.content`, `funcmcp.http`,
`funcmcp.middleware`, `funcmcp.redis`, `funcmcp.state`, `funcmcp.tasks` and `funcmcp.testing`. All remaining modules
are private and may change in any release.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from funcmcp.lazy_names import lazy_names

if TYPE_CHECKING:
    from funcmcp import content
    from funcmcp.app import MCPServer
    from funcmcp.auth.policy import Auth
    from funcmcp.auth.principal import Principal
    from funcmcp.authoring.calling.feature_context import CancellationToken, PromptContext, ResourceContext, ToolContext
    from funcmcp.authoring.calling.questions import Elicit, ListRoots, Sample
    from funcmcp.authoring.features.prompts import prompt
    from funcmcp.authoring.features.resources import resource
    from funcmcp.authoring.features.tools import tool
    from funcmcp.authoring.signatures.signature import Arguments, Header
    from funcmcp.authoring.values.string_formats import Format
    from funcmcp.protocol.errors import InvalidParams, MCPError, ResourceNotFound, ToolError
    from funcmcp.server.catalog.completion import Completion
    from funcmcp.server.catalog.registry import RegistrationError
    from funcmcp.server.limits import Limits
    from funcmcp.server.middleware import Middleware
    from funcmcp.server.options import ListOptions, ServerInfo
    from funcmcp.transports.http.options import HTTPOptions

__version__ = "0.1.0"

__all__ = [
    "Arguments",
    "Auth",
    "CancellationToken",
    "Completion",
    "Elicit",
    "Format",
    "HTTPOptions",
    "Header",
    "InvalidParams",
    "Limits",
    "ListOptions",
    "ListRoots",
    "MCPError",
    "MCPServer",
    "Middleware",
    "Principal",
    "PromptContext",
    "RegistrationError",
    "ResourceContext",
    "ResourceNotFound",
    "Sample",
    "ServerInfo",
    "ToolContext",
    "ToolError",
    "content",
    "prompt",
    "resource",
    "tool",
]

_HOMES = {
    "app": ["MCPServer"],
    "auth.policy": ["Auth"],
    "auth.principal": ["Principal"],
    "authoring.calling.feature_context": ["CancellationToken", "PromptContext", "ResourceContext", "ToolContext"],
    "authoring.calling.questions": ["Elicit", "ListRoots", "Sample"],
    "authoring.features.prompts": ["prompt"],
    "authoring.features.resources": ["resource"],
    "authoring.features.tools": ["tool"],
    "authoring.signatures.signature": ["Arguments", "Header"],
    "authoring.values.string_formats": ["Format"],
    "content": ["content"],
    "protocol.errors": ["InvalidParams", "MCPError", "ResourceNotFound", "ToolError"],
    "server.catalog.completion": ["Completion"],
    "server.catalog.registry": ["RegistrationError"],
    "server.limits": ["Limits"],
    "server.middleware": ["Middleware"],
    "server.options": ["ListOptions", "ServerInfo"],
    "transports.http.options": ["HTTPOptions"],
}

_NAMES_IN_OTHER_FRAMEWORKS = {
    "FastMCP": "It is called MCPServer here. funcmcp.compat has FastMCP for servers that move here.",
    "Context": "It is called ToolContext here. funcmcp.compat has Context for servers that move here.",
    "Image": "It is in funcmcp.content.",
    "UI": "It is in funcmcp.content.",
    "UIResource": "It is in funcmcp.content.",
    "Client": "It is in funcmcp.client.",
}
"""Names that users of other frameworks import from here, and where funcmcp has them."""

_load, __dir__ = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if name in _NAMES_IN_OTHER_FRAMEWORKS:
        message = f"funcmcp has no {name}. {_NAMES_IN_OTHER_FRAMEWORKS[name]}"
        # `from funcmcp import X` would drop the text of an AttributeError. It calls hasattr() in this function first.
        if sys._getframe(1).f_code.co_name == "_handle_fromlist":  # noqa: SLF001 - there is no public way
            raise ImportError(message, name="funcmcp")
        raise AttributeError(message)
    return _load(name)
