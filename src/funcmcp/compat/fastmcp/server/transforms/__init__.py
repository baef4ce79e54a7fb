"""Names of `fastmcp.server.transforms` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import Namespace as Namespace
    from funcmcp.compat import PromptsAsTools as PromptsAsTools
    from funcmcp.compat import ResourcesAsTools as ResourcesAsTools
    from funcmcp.compat import ToolTransform as ToolTransform
    from funcmcp.compat import Transform as Transform
    from funcmcp.compat import VersionFilter as VersionFilter
    from funcmcp.compat import VersionSpec as VersionSpec
    from funcmcp.compat import Visibility as Visibility
    from funcmcp.compat import is_enabled as is_enabled
    from funcmcp.compat.fastmcp.server.transforms import catalog as catalog
    from funcmcp.compat.fastmcp.server.transforms import namespace as namespace
    from funcmcp.compat.fastmcp.server.transforms import prompts_as_tools as prompts_as_tools
    from funcmcp.compat.fastmcp.server.transforms import resources_as_tools as resources_as_tools
    from funcmcp.compat.fastmcp.server.transforms import search as search
    from funcmcp.compat.fastmcp.server.transforms import tool_transform as tool_transform
    from funcmcp.compat.fastmcp.server.transforms import version_filter as version_filter
    from funcmcp.compat.fastmcp.server.transforms import visibility as visibility
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "Namespace",
            "PromptsAsTools",
            "ResourcesAsTools",
            "ToolTransform",
            "Transform",
            "VersionFilter",
            "VersionSpec",
            "Visibility",
            "is_enabled",
        ],
    })
