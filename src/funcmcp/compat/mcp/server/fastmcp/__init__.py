"""Names of `mcp.server.fastmcp` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.sdk_types import Icon as Icon
    from funcmcp.compat import Audio as Audio
    from funcmcp.compat import Context as Context
    from funcmcp.compat import FastMCP as FastMCP
    from funcmcp.compat import Image as Image
    from funcmcp.compat.mcp.server.fastmcp import exceptions as exceptions
    from funcmcp.compat.mcp.server.fastmcp import prompts as prompts
    from funcmcp.compat.mcp.server.fastmcp import resources as resources
    from funcmcp.compat.mcp.server.fastmcp import server as server
    from funcmcp.compat.mcp.server.fastmcp import tools as tools
    from funcmcp.compat.mcp.server.fastmcp import utilities as utilities
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.sdk_types": [
            "Icon",
        ],
        "funcmcp.compat": [
            "Audio",
            "Context",
            "FastMCP",
            "Image",
        ],
    })
