"""Names of `fastmcp.prompts` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.sdk_types import PromptMessage as PromptMessage
    from funcmcp.compat import FunctionPrompt as FunctionPrompt
    from funcmcp.compat import Message as Message
    from funcmcp.compat import Prompt as Prompt
    from funcmcp.compat import PromptResult as PromptResult
    from funcmcp.compat import prompt as prompt
    from funcmcp.compat.fastmcp.prompts import base as base
    from funcmcp.compat.fastmcp.prompts import function_prompt as function_prompt
    from funcmcp.compat.fastmcp.prompts import prompt_manager as prompt_manager
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.sdk_types": [
            "PromptMessage",
        ],
        "funcmcp.compat": [
            "FunctionPrompt",
            "Message",
            "Prompt",
            "PromptResult",
            "prompt",
        ],
    }, shadowing=["prompt"])
