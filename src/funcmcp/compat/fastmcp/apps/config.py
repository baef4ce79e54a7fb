"""Names of `fastmcp.apps.config` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import AppConfig as AppConfig
    from funcmcp.compat import ResourceCSP as ResourceCSP
    from funcmcp.compat import ResourcePermissions as ResourcePermissions
    from funcmcp.compat import app_config_to_meta_dict as app_config_to_meta_dict
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "AppConfig",
            "ResourceCSP",
            "ResourcePermissions",
            "app_config_to_meta_dict",
        ],
    })
