"""Names of `fastmcp.skills.provider` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.agent_skills import SkillFileResource as SkillFileResource
    from funcmcp._compat.agent_skills import SkillsDirectoryProvider as SkillsDirectoryProvider
    from funcmcp.compat import SkillCatalogProvider as SkillCatalogProvider
    from funcmcp.compat import SkillManifestProvider as SkillManifestProvider
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.agent_skills": [
            "SkillFileResource",
            "SkillsDirectoryProvider",
        ],
        "funcmcp.compat": [
            "SkillCatalogProvider",
            "SkillManifestProvider",
        ],
    })
