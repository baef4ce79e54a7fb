"""Names of `fastmcp.utilities.versions` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import VersionKey as VersionKey
    from funcmcp.compat import VersionSpec as VersionSpec
    from funcmcp.compat import compare_versions as compare_versions
    from funcmcp.compat import dedupe_with_versions as dedupe_with_versions
    from funcmcp.compat import is_version_greater as is_version_greater
    from funcmcp.compat import max_version as max_version
    from funcmcp.compat import min_version as min_version
    from funcmcp.compat import parse_version_key as parse_version_key
    from funcmcp.compat import version_sort_key as version_sort_key
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "VersionKey",
            "VersionSpec",
            "compare_versions",
            "dedupe_with_versions",
            "is_version_greater",
            "max_version",
            "min_version",
            "parse_version_key",
            "version_sort_key",
        ],
    })
