"""Names of `fastmcp.apps` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import AppConfig as AppConfig
    from funcmcp.compat import ResourceCSP as ResourceCSP
    from funcmcp.compat import ResourcePermissions as ResourcePermissions
    from funcmcp.compat import UI_EXTENSION_ID as UI_EXTENSION_ID
    from funcmcp.compat import UI_MIME_TYPE as UI_MIME_TYPE
    from funcmcp.compat import app_config_to_meta_dict as app_config_to_meta_dict
    from funcmcp.compat import resolve_ui_mime_type as resolve_ui_mime_type
    from funcmcp.compat.fastmcp.apps import app as app
    from funcmcp.compat.fastmcp.apps import config as config
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "AppConfig",
            "ResourceCSP",
            "ResourcePermissions",
            "UI_EXTENSION_ID",
            "UI_MIME_TYPE",
            "app_config_to_meta_dict",
            "resolve_ui_mime_type",
        ],
    })
