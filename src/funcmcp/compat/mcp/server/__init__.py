"""Names of `mcp.server` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.middleware_adapters import ServerRequestContext as ServerRequestContext
    from funcmcp._compat.sdk_settings import CacheHint as CacheHint
    from funcmcp.compat import FastMCP as FastMCP
    from funcmcp.compat import MCPServer as MCPServer
    from funcmcp.compat.mcp.server import apps as apps
    from funcmcp.compat.mcp.server import auth as auth
    from funcmcp.compat.mcp.server import caching as caching
    from funcmcp.compat.mcp.server import connection as connection
    from funcmcp.compat.mcp.server import context as context
    from funcmcp.compat.mcp.server import elicitation as elicitation
    from funcmcp.compat.mcp.server import experimental as experimental
    from funcmcp.compat.mcp.server import extension as extension
    from funcmcp.compat.mcp.server import fastmcp as fastmcp
    from funcmcp.compat.mcp.server import lowlevel as lowlevel
    from funcmcp.compat.mcp.server import mcpserver as mcpserver
    from funcmcp.compat.mcp.server import models as models
    from funcmcp.compat.mcp.server import request_state as request_state
    from funcmcp.compat.mcp.server import runner as runner
    from funcmcp.compat.mcp.server import session as session
    from funcmcp.compat.mcp.server import sse as sse
    from funcmcp.compat.mcp.server import stdio as stdio
    from funcmcp.compat.mcp.server import streamable_http as streamable_http
    from funcmcp.compat.mcp.server import streamable_http_manager as streamable_http_manager
    from funcmcp.compat.mcp.server import subscriptions as subscriptions
    from funcmcp.compat.mcp.server import transport_security as transport_security
    from funcmcp.compat.mcp.server import validation as validation
    from funcmcp.compat.mcp.server import websocket as websocket
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.middleware_adapters": [
            "ServerRequestContext",
        ],
        "funcmcp._compat.sdk_settings": [
            "CacheHint",
        ],
        "funcmcp.compat": [
            "FastMCP",
            "MCPServer",
        ],
    })
