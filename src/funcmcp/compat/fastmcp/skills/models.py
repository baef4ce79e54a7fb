"""Names of `fastmcp.skills.models` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.skills import SkillResource as SkillResource
    from funcmcp.compat import MCPSkill as MCPSkill
    from funcmcp.compat import SkillFrontmatter as SkillFrontmatter
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.skills": [
            "SkillResource",
        ],
        "funcmcp.compat": [
            "MCPSkill",
            "SkillFrontmatter",
        ],
    })
