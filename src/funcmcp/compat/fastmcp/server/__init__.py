"""Names of `fastmcp.server` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import Context as Context
    from funcmcp.compat import FastMCP as FastMCP
    from funcmcp.compat import create_proxy as create_proxy
    from funcmcp.compat.fastmcp.server import auth as auth
    from funcmcp.compat.fastmcp.server import caching as caching
    from funcmcp.compat.fastmcp.server import completions as completions
    from funcmcp.compat.fastmcp.server import context as context
    from funcmcp.compat.fastmcp.server import dependencies as dependencies
    from funcmcp.compat.fastmcp.server import elicitation as elicitation
    from funcmcp.compat.fastmcp.server import event_store as event_store
    from funcmcp.compat.fastmcp.server import extensions as extensions
    from funcmcp.compat.fastmcp.server import http as http
    from funcmcp.compat.fastmcp.server import lifespan as lifespan
    from funcmcp.compat.fastmcp.server import low_level as low_level
    from funcmcp.compat.fastmcp.server import middleware as middleware
    from funcmcp.compat.fastmcp.server import mixins as mixins
    from funcmcp.compat.fastmcp.server import openapi as openapi
    from funcmcp.compat.fastmcp.server import providers as providers
    from funcmcp.compat.fastmcp.server import proxy as proxy
    from funcmcp.compat.fastmcp.server import sampling as sampling
    from funcmcp.compat.fastmcp.server import server as server
    from funcmcp.compat.fastmcp.server import session_scoped_event_store as session_scoped_event_store
    from funcmcp.compat.fastmcp.server import sessions as sessions
    from funcmcp.compat.fastmcp.server import tasks as tasks
    from funcmcp.compat.fastmcp.server import telemetry as telemetry
    from funcmcp.compat.fastmcp.server import transforms as transforms
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "Context",
            "FastMCP",
            "create_proxy",
        ],
    })
