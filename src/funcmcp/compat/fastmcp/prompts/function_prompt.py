"""Names of `fastmcp.prompts.function_prompt` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.standalone import PromptMeta as PromptMeta
    from funcmcp.compat import FunctionPrompt as FunctionPrompt
    from funcmcp.compat import prompt as prompt
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.standalone": [
            "PromptMeta",
        ],
        "funcmcp.compat": [
            "FunctionPrompt",
            "prompt",
        ],
    })
