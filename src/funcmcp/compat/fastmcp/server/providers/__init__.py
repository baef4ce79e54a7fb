"""Names of `fastmcp.server.providers` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import AggregateProvider as AggregateProvider
    from funcmcp.compat import ClaudeSkillsProvider as ClaudeSkillsProvider
    from funcmcp.compat import FastMCPProvider as FastMCPProvider
    from funcmcp.compat import FileSystemProvider as FileSystemProvider
    from funcmcp.compat import LocalProvider as LocalProvider
    from funcmcp.compat import Provider as Provider
    from funcmcp.compat import SkillProvider as SkillProvider
    from funcmcp.compat import SkillsDirectoryProvider as SkillsDirectoryProvider
    from funcmcp.compat.fastmcp.server.providers import addressing as addressing
    from funcmcp.compat.fastmcp.server.providers import aggregate as aggregate
    from funcmcp.compat.fastmcp.server.providers import base as base
    from funcmcp.compat.fastmcp.server.providers import fastmcp_provider as fastmcp_provider
    from funcmcp.compat.fastmcp.server.providers import filesystem as filesystem
    from funcmcp.compat.fastmcp.server.providers import filesystem_discovery as filesystem_discovery
    from funcmcp.compat.fastmcp.server.providers import local_provider as local_provider
    from funcmcp.compat.fastmcp.server.providers import openapi as openapi
    from funcmcp.compat.fastmcp.server.providers import prefab_payload as prefab_payload
    from funcmcp.compat.fastmcp.server.providers import prefab_synthesis as prefab_synthesis
    from funcmcp.compat.fastmcp.server.providers import proxy as proxy
    from funcmcp.compat.fastmcp.server.providers import skills as skills
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "AggregateProvider",
            "ClaudeSkillsProvider",
            "FastMCPProvider",
            "FileSystemProvider",
            "LocalProvider",
            "Provider",
            "SkillProvider",
            "SkillsDirectoryProvider",
        ],
    })
