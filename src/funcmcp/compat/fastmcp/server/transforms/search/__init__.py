"""Names of `fastmcp.server.transforms.search` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import BM25SearchTransform as BM25SearchTransform
    from funcmcp.compat import RegexSearchTransform as RegexSearchTransform
    from funcmcp.compat.fastmcp.server.transforms.search import base as base
    from funcmcp.compat.fastmcp.server.transforms.search import bm25 as bm25
    from funcmcp.compat.fastmcp.server.transforms.search import regex as regex
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "BM25SearchTransform",
            "RegexSearchTransform",
        ],
    })
