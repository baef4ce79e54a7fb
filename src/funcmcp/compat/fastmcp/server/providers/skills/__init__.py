"""Names of `fastmcp.server.providers.skills` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import ClaudeSkillsProvider as ClaudeSkillsProvider
    from funcmcp.compat import CodexSkillsProvider as CodexSkillsProvider
    from funcmcp.compat import CopilotSkillsProvider as CopilotSkillsProvider
    from funcmcp.compat import CursorSkillsProvider as CursorSkillsProvider
    from funcmcp.compat import GeminiSkillsProvider as GeminiSkillsProvider
    from funcmcp.compat import GooseSkillsProvider as GooseSkillsProvider
    from funcmcp.compat import OpenCodeSkillsProvider as OpenCodeSkillsProvider
    from funcmcp.compat import SkillProvider as SkillProvider
    from funcmcp.compat import SkillsDirectoryProvider as SkillsDirectoryProvider
    from funcmcp.compat import VSCodeSkillsProvider as VSCodeSkillsProvider
    from funcmcp.compat.fastmcp.server.providers.skills import claude_provider as claude_provider
    from funcmcp.compat.fastmcp.server.providers.skills import directory_provider as directory_provider
    from funcmcp.compat.fastmcp.server.providers.skills import skill_provider as skill_provider
    from funcmcp.compat.fastmcp.server.providers.skills import vendor_providers as vendor_providers
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "ClaudeSkillsProvider",
            "CodexSkillsProvider",
            "CopilotSkillsProvider",
            "CursorSkillsProvider",
            "GeminiSkillsProvider",
            "GooseSkillsProvider",
            "OpenCodeSkillsProvider",
            "SkillProvider",
            "SkillsDirectoryProvider",
            "VSCodeSkillsProvider",
        ],
    })
