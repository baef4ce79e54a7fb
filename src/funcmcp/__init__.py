"""MCP servers from typed Python functions.

`MCPServer` is the server. The other names are what its functions and options need. The other public modules are
`funcmcp.auth`, `funcmcp.azure`, `funcmcp.client`, `funcmcp.compat`, `funcmcp.content`, `funcmcp.extensions`,
`funcmcp.http`, `funcmcp.middleware`, `funcmcp.postgres`, `funcmcp.providers`, `funcmcp.redis`, `funcmcp.state`,
`funcmcp.tasks`, `funcmcp.testing` and `funcmcp.transforms`. All remaining modules are private and may change in any
release.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp import content
    from funcmcp._app.mcp_server import MCPServer
    from funcmcp._auth.policy import Auth
    from funcmcp._auth.principal import Principal
    from funcmcp._authoring.calling.feature_context import (
        CancellationToken,
        Context,
    )
    from funcmcp._authoring.calling.questions import Elicit, ListRoots, Sample
    from funcmcp._authoring.features.prompts import prompt
    from funcmcp._authoring.features.resources import resource
    from funcmcp._authoring.features.tools import tool
    from funcmcp._authoring.schemas.string_formats import Format
    from funcmcp._authoring.signatures.signature import Arguments, Header
    from funcmcp._protocol.completion import Completion
    from funcmcp._protocol.errors import InvalidParams, MCPError, ResourceNotFound, ToolError
    from funcmcp._server.catalog.registry import RegistrationError
    from funcmcp._server.limits import Limits
    from funcmcp._server.middleware import Middleware
    from funcmcp._server.options import ProtocolOptions, ServerInfo
    from funcmcp._transports.http.options import HTTPOptions

__version__ = "0.1.0"

__all__ = [
    "Arguments",
    "Auth",
    "CancellationToken",
    "Completion",
    "Context",
    "Elicit",
    "Format",
    "HTTPOptions",
    "Header",
    "InvalidParams",
    "Limits",
    "ListRoots",
    "MCPError",
    "MCPServer",
    "Middleware",
    "Principal",
    "ProtocolOptions",
    "RegistrationError",
    "ResourceNotFound",
    "Sample",
    "ServerInfo",
    "ToolError",
    "content",
    "prompt",
    "resource",
    "tool",
]

_HOMES = {
    "_app.mcp_server": ["MCPServer"],
    "_auth.policy": ["Auth"],
    "_auth.principal": ["Principal"],
    "_authoring.calling.feature_context": ["CancellationToken", "Context"],
    "_authoring.calling.questions": ["Elicit", "ListRoots", "Sample"],
    "_authoring.features.prompts": ["prompt"],
    "_authoring.features.resources": ["resource"],
    "_authoring.features.tools": ["tool"],
    "_authoring.signatures.signature": ["Arguments", "Header"],
    "_authoring.schemas.string_formats": ["Format"],
    "content": ["content"],
    "_protocol.errors": ["InvalidParams", "MCPError", "ResourceNotFound", "ToolError"],
    "_protocol.completion": ["Completion"],
    "_server.catalog.registry": ["RegistrationError"],
    "_server.limits": ["Limits"],
    "_server.middleware": ["Middleware"],
    "_server.options": ["ProtocolOptions", "ServerInfo"],
    "_transports.http.options": ["HTTPOptions"],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    _load, __dir__ = lazy_names(__name__, _HOMES)

    def __getattr__(name: str) -> Any:
        try:
            return _load(name)
        except AttributeError:
            if name.startswith("_"):  # a private module, which an import asks for before it is loaded
                raise
            from funcmcp._text.other_frameworks import IMPORTS  # noqa: PLC0415 - only errors need it

            if name not in IMPORTS:
                raise
            message = f"funcmcp has no {name}. {IMPORTS[name]}"
            # `from funcmcp import X` would drop the text of an AttributeError. It calls hasattr() in this
            # function first.
            if sys._getframe(1).f_code.co_name == "_handle_fromlist":  # noqa: SLF001 - there is no public way
                raise ImportError(message, name="funcmcp") from None
            raise AttributeError(message.removesuffix(".")) from None  # Python adds ". Did you mean ...?"
