"""Names of `mcp.server.mcpserver.prompts.base` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.sdk_types import PromptArgument as PromptArgument
    from funcmcp.compat import AssistantMessage as AssistantMessage
    from funcmcp.compat import Message as Message
    from funcmcp.compat import UserMessage as UserMessage
    from funcmcp.compat.mcp import Prompt as Prompt
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.sdk_types": [
            "PromptArgument",
        ],
        "funcmcp.compat": [
            "AssistantMessage",
            "Message",
            "UserMessage",
        ],
        "funcmcp.compat.mcp": [
            "Prompt",
        ],
    })
