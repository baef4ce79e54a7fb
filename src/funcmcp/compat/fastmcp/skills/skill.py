"""Names of `fastmcp.skills.skill` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.skills import SkillFile as SkillFile
    from funcmcp._compat.skills import SkillManifest as SkillManifest
    from funcmcp.compat import Skill as Skill
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.skills": [
            "SkillFile",
            "SkillManifest",
        ],
        "funcmcp.compat": [
            "Skill",
        ],
    })
