"""Names of `mcp.shared` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.mcp.shared import auth as auth
    from funcmcp.compat.mcp.shared import auth_utils as auth_utils
    from funcmcp.compat.mcp.shared import context as context
    from funcmcp.compat.mcp.shared import direct_dispatcher as direct_dispatcher
    from funcmcp.compat.mcp.shared import dispatcher as dispatcher
    from funcmcp.compat.mcp.shared import exceptions as exceptions
    from funcmcp.compat.mcp.shared import experimental as experimental
    from funcmcp.compat.mcp.shared import extension as extension
    from funcmcp.compat.mcp.shared import inbound as inbound
    from funcmcp.compat.mcp.shared import jsonrpc_dispatcher as jsonrpc_dispatcher
    from funcmcp.compat.mcp.shared import memory as memory
    from funcmcp.compat.mcp.shared import message as message
    from funcmcp.compat.mcp.shared import metadata_utils as metadata_utils
    from funcmcp.compat.mcp.shared import path_security as path_security
    from funcmcp.compat.mcp.shared import peer as peer
    from funcmcp.compat.mcp.shared import progress as progress
    from funcmcp.compat.mcp.shared import response_router as response_router
    from funcmcp.compat.mcp.shared import session as session
    from funcmcp.compat.mcp.shared import subscriptions as subscriptions
    from funcmcp.compat.mcp.shared import tool_name_validation as tool_name_validation
    from funcmcp.compat.mcp.shared import transport_context as transport_context
    from funcmcp.compat.mcp.shared import uri_template as uri_template
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
