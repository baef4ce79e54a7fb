"""Names of `fastmcp.server.tasks` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import TaskConfig as TaskConfig
    from funcmcp.compat.fastmcp.server.tasks import capabilities as capabilities
    from funcmcp.compat.fastmcp.server.tasks import config as config
    from funcmcp.compat.fastmcp.server.tasks import context as context
    from funcmcp.compat.fastmcp.server.tasks import converters as converters
    from funcmcp.compat.fastmcp.server.tasks import elicitation as elicitation
    from funcmcp.compat.fastmcp.server.tasks import handlers as handlers
    from funcmcp.compat.fastmcp.server.tasks import keys as keys
    from funcmcp.compat.fastmcp.server.tasks import notifications as notifications
    from funcmcp.compat.fastmcp.server.tasks import protocol as protocol
    from funcmcp.compat.fastmcp.server.tasks import routing as routing
    from funcmcp.compat.fastmcp.server.tasks import subscriptions as subscriptions
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "TaskConfig",
        ],
    })
