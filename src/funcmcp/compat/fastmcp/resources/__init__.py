"""Names of `fastmcp.resources` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import BinaryResource as BinaryResource
    from funcmcp.compat import DirectoryResource as DirectoryResource
    from funcmcp.compat import FileResource as FileResource
    from funcmcp.compat import FunctionResource as FunctionResource
    from funcmcp.compat import HttpResource as HttpResource
    from funcmcp.compat import Resource as Resource
    from funcmcp.compat import ResourceContent as ResourceContent
    from funcmcp.compat import ResourceResult as ResourceResult
    from funcmcp.compat import ResourceSecurity as ResourceSecurity
    from funcmcp.compat import ResourceTemplate as ResourceTemplate
    from funcmcp.compat import TextResource as TextResource
    from funcmcp.compat import resource as resource
    from funcmcp.compat.fastmcp.resources import base as base
    from funcmcp.compat.fastmcp.resources import function_resource as function_resource
    from funcmcp.compat.fastmcp.resources import resource_manager as resource_manager
    from funcmcp.compat.fastmcp.resources import security as security
    from funcmcp.compat.fastmcp.resources import template as template
    from funcmcp.compat.fastmcp.resources import types as types
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "BinaryResource",
            "DirectoryResource",
            "FileResource",
            "FunctionResource",
            "HttpResource",
            "Resource",
            "ResourceContent",
            "ResourceResult",
            "ResourceSecurity",
            "ResourceTemplate",
            "TextResource",
            "resource",
        ],
    }, shadowing=["resource"])
