"""Names of `fastmcp.utilities.tests` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.global_settings import temporary_settings as temporary_settings
    from funcmcp._compat.original_clients import asgi_client as asgi_client
    from funcmcp._compat.original_clients import asgi_server as asgi_server
    from funcmcp._compat.served_in_tests import run_server_async as run_server_async
    from funcmcp._compat.served_in_tests import run_server_in_process as run_server_in_process
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.global_settings": [
            "temporary_settings",
        ],
        "funcmcp._compat.original_clients": [
            "asgi_client",
            "asgi_server",
        ],
        "funcmcp._compat.served_in_tests": [
            "run_server_async",
            "run_server_in_process",
        ],
    })
