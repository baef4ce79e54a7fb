"""Names of `mcp.server.mcpserver` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.sdk_types import Icon as Icon
    from funcmcp.compat import AcceptedElicitation as AcceptedElicitation
    from funcmcp.compat import AssistantMessage as AssistantMessage
    from funcmcp.compat import Audio as Audio
    from funcmcp.compat import CancelledElicitation as CancelledElicitation
    from funcmcp.compat import Context as Context
    from funcmcp.compat import DEFAULT_RESOURCE_SECURITY as DEFAULT_RESOURCE_SECURITY
    from funcmcp.compat import DeclinedElicitation as DeclinedElicitation
    from funcmcp.compat import Elicit as Elicit
    from funcmcp.compat import ElicitationResult as ElicitationResult
    from funcmcp.compat import Image as Image
    from funcmcp.compat import ListRoots as ListRoots
    from funcmcp.compat import MCPServer as MCPServer
    from funcmcp.compat import Message as Message
    from funcmcp.compat import RequestStateSecurity as RequestStateSecurity
    from funcmcp.compat import Resolve as Resolve
    from funcmcp.compat import ResourceSecurity as ResourceSecurity
    from funcmcp.compat import Sample as Sample
    from funcmcp.compat import UserMessage as UserMessage
    from funcmcp.compat.mcp import Extension as Extension
    from funcmcp.compat.mcp import MethodBinding as MethodBinding
    from funcmcp.compat.mcp import ResourceBinding as ResourceBinding
    from funcmcp.compat.mcp import ToolBinding as ToolBinding
    from funcmcp.compat.mcp import require_client_extension as require_client_extension
    from funcmcp.compat.mcp.server.mcpserver import context as context
    from funcmcp.compat.mcp.server.mcpserver import exceptions as exceptions
    from funcmcp.compat.mcp.server.mcpserver import prompts as prompts
    from funcmcp.compat.mcp.server.mcpserver import resolve as resolve
    from funcmcp.compat.mcp.server.mcpserver import resources as resources
    from funcmcp.compat.mcp.server.mcpserver import server as server
    from funcmcp.compat.mcp.server.mcpserver import tools as tools
    from funcmcp.compat.mcp.server.mcpserver import utilities as utilities
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.sdk_types": [
            "Icon",
        ],
        "funcmcp.compat": [
            "AcceptedElicitation",
            "AssistantMessage",
            "Audio",
            "CancelledElicitation",
            "Context",
            "DEFAULT_RESOURCE_SECURITY",
            "DeclinedElicitation",
            "Elicit",
            "ElicitationResult",
            "Image",
            "ListRoots",
            "MCPServer",
            "Message",
            "RequestStateSecurity",
            "Resolve",
            "ResourceSecurity",
            "Sample",
            "UserMessage",
        ],
        "funcmcp.compat.mcp": [
            "Extension",
            "MethodBinding",
            "ResourceBinding",
            "ToolBinding",
            "require_client_extension",
        ],
    })
