"""Names of `mcp.server.experimental` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.mcp.server.experimental import request_context as request_context
    from funcmcp.compat.mcp.server.experimental import session_features as session_features
    from funcmcp.compat.mcp.server.experimental import task_context as task_context
    from funcmcp.compat.mcp.server.experimental import task_result_handler as task_result_handler
    from funcmcp.compat.mcp.server.experimental import task_scope as task_scope
    from funcmcp.compat.mcp.server.experimental import task_support as task_support
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
