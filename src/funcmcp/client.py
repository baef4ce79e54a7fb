"""A client of MCP servers: in memory, over Streamable HTTP and over stdio, in every revision of the protocol.

Example:
    ```python
    async with Client("http://127.0.0.1:8000/mcp") as client:
        result = await client.call_tool("add", {"a": 1, "b": 2})
        print(result.text)
    ```

Public names are loaded when they are first used. A URL needs ``pip install "funcmcp[client]"``; see guides/client.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._client.connection import Client
    from funcmcp._client.errors import (
        AuthenticationError,
        ConnectionFailedError,
        RequestTimeoutError,
        SessionEndedError,
        SignInError,
        TaskCancelledError,
    )
    from funcmcp._client.notifications import LogMessage, ProgressUpdate
    from funcmcp._client.targets import HTTPEndpoint, SignIn, StdioCommand
    from funcmcp._client.tool_tasks import ToolTask
    from funcmcp._client.transport import Transport
    from funcmcp._protocol.completion import Completion
    from funcmcp._protocol.errors import ClientError, InvalidResponseError
    from funcmcp._protocol.objects import (
        CallToolResult,
        ContentBlock,
        GetPromptResult,
        Prompt,
        PromptArgument,
        PromptMessage,
        ReadResourceResult,
        Resource,
        ResourceContents,
        ResourceTemplate,
        Task,
        Tool,
    )

__all__ = [
    "AuthenticationError",
    "CallToolResult",
    "Client",
    "ClientError",
    "Completion",
    "ConnectionFailedError",
    "ContentBlock",
    "GetPromptResult",
    "HTTPEndpoint",
    "InvalidResponseError",
    "LogMessage",
    "ProgressUpdate",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "ReadResourceResult",
    "RequestTimeoutError",
    "Resource",
    "ResourceContents",
    "ResourceTemplate",
    "SessionEndedError",
    "SignIn",
    "SignInError",
    "StdioCommand",
    "Task",
    "TaskCancelledError",
    "Tool",
    "ToolTask",
    "Transport",
]

_HOMES = {
    "_client.connection": ["Client"],
    "_client.errors": [
        "AuthenticationError",
        "ConnectionFailedError",
        "RequestTimeoutError",
        "SessionEndedError",
        "SignInError",
        "TaskCancelledError",
    ],
    "_client.notifications": ["LogMessage", "ProgressUpdate"],
    "_protocol.completion": ["Completion"],
    "_protocol.errors": ["ClientError", "InvalidResponseError"],
    "_protocol.objects": [
        "CallToolResult",
        "ContentBlock",
        "GetPromptResult",
        "Prompt",
        "PromptArgument",
        "PromptMessage",
        "ReadResourceResult",
        "Resource",
        "ResourceContents",
        "ResourceTemplate",
        "Task",
        "Tool",
    ],
    "_client.targets": ["HTTPEndpoint", "SignIn", "StdioCommand"],
    "_client.tool_tasks": ["ToolTask"],
    "_client.transport": ["Transport"],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
