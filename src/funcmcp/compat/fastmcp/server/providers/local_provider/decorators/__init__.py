"""Names of `fastmcp.server.providers.local_provider.decorators` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.fastmcp.server.providers.local_provider.decorators import prompts as prompts
    from funcmcp.compat.fastmcp.server.providers.local_provider.decorators import resources as resources
    from funcmcp.compat.fastmcp.server.providers.local_provider.decorators import tools as tools
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
