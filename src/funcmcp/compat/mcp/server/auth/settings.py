"""Names of `mcp.server.auth.settings` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.sdk_settings import AuthSettings as AuthSettings
    from funcmcp._compat.sdk_settings import ClientRegistrationOptions as ClientRegistrationOptions
    from funcmcp._compat.sdk_settings import RevocationOptions as RevocationOptions
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.sdk_settings": [
            "AuthSettings",
            "ClientRegistrationOptions",
            "RevocationOptions",
        ],
    })
