"""Names of `fastmcp.utilities` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat.fastmcp.utilities import asgi_transport as asgi_transport
    from funcmcp.compat.fastmcp.utilities import async_utils as async_utils
    from funcmcp.compat.fastmcp.utilities import auth as auth
    from funcmcp.compat.fastmcp.utilities import authorization as authorization
    from funcmcp.compat.fastmcp.utilities import cli as cli
    from funcmcp.compat.fastmcp.utilities import components as components
    from funcmcp.compat.fastmcp.utilities import docstring_parsing as docstring_parsing
    from funcmcp.compat.fastmcp.utilities import exceptions as exceptions
    from funcmcp.compat.fastmcp.utilities import http as http
    from funcmcp.compat.fastmcp.utilities import inspect as inspect
    from funcmcp.compat.fastmcp.utilities import json_schema as json_schema
    from funcmcp.compat.fastmcp.utilities import json_schema_type as json_schema_type
    from funcmcp.compat.fastmcp.utilities import lifespan as lifespan
    from funcmcp.compat.fastmcp.utilities import logging as logging
    from funcmcp.compat.fastmcp.utilities import mcp_config as mcp_config
    from funcmcp.compat.fastmcp.utilities import mcp_server_config as mcp_server_config
    from funcmcp.compat.fastmcp.utilities import mime as mime
    from funcmcp.compat.fastmcp.utilities import openapi as openapi
    from funcmcp.compat.fastmcp.utilities import pagination as pagination
    from funcmcp.compat.fastmcp.utilities import prefab as prefab
    from funcmcp.compat.fastmcp.utilities import skills as skills
    from funcmcp.compat.fastmcp.utilities import tasks as tasks
    from funcmcp.compat.fastmcp.utilities import tests as tests
    from funcmcp.compat.fastmcp.utilities import timeout as timeout
    from funcmcp.compat.fastmcp.utilities import token_cache as token_cache
    from funcmcp.compat.fastmcp.utilities import types as types
    from funcmcp.compat.fastmcp.utilities import ui as ui
    from funcmcp.compat.fastmcp.utilities import version_check as version_check
    from funcmcp.compat.fastmcp.utilities import versions as versions
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {})
