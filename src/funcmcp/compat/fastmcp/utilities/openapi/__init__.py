"""Names of `fastmcp.utilities.openapi` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import HTTPRoute as HTTPRoute
    from funcmcp.compat.fastmcp.utilities.openapi import director as director
    from funcmcp.compat.fastmcp.utilities.openapi import formatters as formatters
    from funcmcp.compat.fastmcp.utilities.openapi import json_schema_converter as json_schema_converter
    from funcmcp.compat.fastmcp.utilities.openapi import models as models
    from funcmcp.compat.fastmcp.utilities.openapi import parser as parser
    from funcmcp.compat.fastmcp.utilities.openapi import schemas as schemas
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "HTTPRoute",
        ],
    })
