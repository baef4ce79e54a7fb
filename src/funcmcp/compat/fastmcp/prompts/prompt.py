"""Names of `fastmcp.prompts.prompt` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.sdk_types import PromptMessage as PromptMessage
    from funcmcp._compat.sdk_types import TextContent as TextContent
    from funcmcp.compat import FunctionPrompt as FunctionPrompt
    from funcmcp.compat import Message as Message
    from funcmcp.compat import Prompt as Prompt
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.sdk_types": [
            "PromptMessage",
            "TextContent",
        ],
        "funcmcp.compat": [
            "FunctionPrompt",
            "Message",
            "Prompt",
        ],
    })
