"""Names of `fastmcp.skills` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.skills import SkillFile as SkillFile
    from funcmcp._compat.skills import SkillManifest as SkillManifest
    from funcmcp._compat.skills import SkillResource as SkillResource
    from funcmcp.compat import MCPSkill as MCPSkill
    from funcmcp.compat import Skill as Skill
    from funcmcp.compat import SkillFrontmatter as SkillFrontmatter
    from funcmcp.compat.fastmcp.skills import client as client
    from funcmcp.compat.fastmcp.skills import extension as extension
    from funcmcp.compat.fastmcp.skills import models as models
    from funcmcp.compat.fastmcp.skills import provider as provider
    from funcmcp.compat.fastmcp.skills import skill as skill
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.skills": [
            "SkillFile",
            "SkillManifest",
            "SkillResource",
        ],
        "funcmcp.compat": [
            "MCPSkill",
            "Skill",
            "SkillFrontmatter",
        ],
    })
