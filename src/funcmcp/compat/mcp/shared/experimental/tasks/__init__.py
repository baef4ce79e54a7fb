"""Names of `mcp.shared.experimental.tasks` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.mcp.shared.experimental.tasks import capabilities as capabilities
    from funcmcp.compat.mcp.shared.experimental.tasks import context as context
    from funcmcp.compat.mcp.shared.experimental.tasks import helpers as helpers
    from funcmcp.compat.mcp.shared.experimental.tasks import in_memory_task_store as in_memory_task_store
    from funcmcp.compat.mcp.shared.experimental.tasks import message_queue as message_queue
    from funcmcp.compat.mcp.shared.experimental.tasks import polling as polling
    from funcmcp.compat.mcp.shared.experimental.tasks import resolver as resolver
    from funcmcp.compat.mcp.shared.experimental.tasks import store as store
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
