"""Names of `fastmcp.server.providers.proxy` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import FastMCPProxy as FastMCPProxy
    from funcmcp.compat import ProxyClient as ProxyClient
    from funcmcp.compat import ProxyProvider as ProxyProvider
    from funcmcp.compat import StatefulProxyClient as StatefulProxyClient
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "FastMCPProxy",
            "ProxyClient",
            "ProxyProvider",
            "StatefulProxyClient",
        ],
    })
