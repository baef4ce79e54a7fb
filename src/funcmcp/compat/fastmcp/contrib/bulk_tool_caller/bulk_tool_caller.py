"""Names of `fastmcp.contrib.bulk_tool_caller.bulk_tool_caller` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.bulk_calls import BulkToolCaller as BulkToolCaller
    from funcmcp._compat.bulk_calls import CallToolRequest as CallToolRequest
    from funcmcp._compat.bulk_calls import CallToolRequestResult as CallToolRequestResult
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.bulk_calls": [
            "BulkToolCaller",
            "CallToolRequest",
            "CallToolRequestResult",
        ],
    })
