"""Names of `fastmcp.server.providers.skills.vendor_providers` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import CodexSkillsProvider as CodexSkillsProvider
    from funcmcp.compat import CopilotSkillsProvider as CopilotSkillsProvider
    from funcmcp.compat import CursorSkillsProvider as CursorSkillsProvider
    from funcmcp.compat import GeminiSkillsProvider as GeminiSkillsProvider
    from funcmcp.compat import GooseSkillsProvider as GooseSkillsProvider
    from funcmcp.compat import OpenCodeSkillsProvider as OpenCodeSkillsProvider
    from funcmcp.compat import VSCodeSkillsProvider as VSCodeSkillsProvider
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "CodexSkillsProvider",
            "CopilotSkillsProvider",
            "CursorSkillsProvider",
            "GeminiSkillsProvider",
            "GooseSkillsProvider",
            "OpenCodeSkillsProvider",
            "VSCodeSkillsProvider",
        ],
    })
