"""Names of `fastmcp.exceptions` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import AuthorizationError as AuthorizationError
    from funcmcp.compat import DisabledError as DisabledError
    from funcmcp.compat import FastMCPDeprecationWarning as FastMCPDeprecationWarning
    from funcmcp.compat import FastMCPError as FastMCPError
    from funcmcp.compat import InsufficientScopeError as InsufficientScopeError
    from funcmcp.compat import InvalidSignature as InvalidSignature
    from funcmcp.compat import McpError as McpError
    from funcmcp.compat import NotFoundError as NotFoundError
    from funcmcp.compat import PromptError as PromptError
    from funcmcp.compat import ResourceError as ResourceError
    from funcmcp.compat import ResourceSecurityError as ResourceSecurityError
    from funcmcp.compat import ToolError as ToolError
    from funcmcp.compat import ValidationError as ValidationError
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "AuthorizationError",
            "DisabledError",
            "FastMCPDeprecationWarning",
            "FastMCPError",
            "InsufficientScopeError",
            "InvalidSignature",
            "McpError",
            "NotFoundError",
            "PromptError",
            "ResourceError",
            "ResourceSecurityError",
            "ToolError",
            "ValidationError",
        ],
    })
