"""Names of `fastmcp` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.global_settings import Settings as Settings
    from funcmcp._compat.global_settings import settings as settings
    from funcmcp.compat import Context as Context
    from funcmcp.compat import FastMCP as FastMCP
    from funcmcp.compat import FastMCPApp as FastMCPApp
    from funcmcp.compat import FastMCPDeprecationWarning as FastMCPDeprecationWarning
    from funcmcp.compat import Skill as Skill
    from funcmcp.compat.fastmcp.client import Client as Client
    from funcmcp.compat.fastmcp import apps as apps
    from funcmcp.compat.fastmcp import client as client
    from funcmcp.compat.fastmcp import contrib as contrib
    from funcmcp.compat.fastmcp import decorators as decorators
    from funcmcp.compat.fastmcp import dependencies as dependencies
    from funcmcp.compat.fastmcp import exceptions as exceptions
    from funcmcp.compat.fastmcp import experimental as experimental
    from funcmcp.compat.fastmcp import mcp_config as mcp_config
    from funcmcp.compat.fastmcp import prompts as prompts
    from funcmcp.compat.fastmcp import resources as resources
    from funcmcp.compat.fastmcp import server as server
    from funcmcp.compat.fastmcp import skills as skills
    from funcmcp.compat.fastmcp import telemetry as telemetry
    from funcmcp.compat.fastmcp import tools as tools
    from funcmcp.compat.fastmcp import types as types
    from funcmcp.compat.fastmcp import utilities as utilities
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.global_settings": [
            "Settings",
            "settings",
        ],
        "funcmcp.compat": [
            "Context",
            "FastMCP",
            "FastMCPApp",
            "FastMCPDeprecationWarning",
            "Skill",
        ],
        "funcmcp.compat.fastmcp.client": [
            "Client",
        ],
    }, shadowing=["settings"])
