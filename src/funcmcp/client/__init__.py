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

from funcmcp.lazy_names import lazy_names

if TYPE_CHECKING:
    from funcmcp.client.connection import Client
    from funcmcp.client.errors import (
        AuthenticationError,
        ConnectionFailedError,
        RequestTimeoutError,
        SessionEndedError,
        TaskCancelledError,
    )
    from funcmcp.client.notifications import LogMessage, ProgressUpdate
    from funcmcp.client.targets import HTTPEndpoint, StdioCommand
    from funcmcp.client.tool_tasks import ToolTask
    from funcmcp.client.transport import Transport
    from funcmcp.protocol.errors import ClientError, InvalidResponseError
    from funcmcp.protocol.objects import (
        CallToolResult,
        Completion,
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
    "StdioCommand",
    "Task",
    "TaskCancelledError",
    "Tool",
    "ToolTask",
    "Transport",
]

_HOMES = {
    "client.connection": ["Client"],
    "client.errors": [
        "AuthenticationError",
        "ConnectionFailedError",
        "RequestTimeoutError",
        "SessionEndedError",
        "TaskCancelledError",
    ],
    "client.notifications": ["LogMessage", "ProgressUpdate"],
    "protocol.errors": ["ClientError", "InvalidResponseError"],
    "protocol.objects": [
        "CallToolResult",
        "Completion",
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
    "client.targets": ["HTTPEndpoint", "StdioCommand"],
    "client.tool_tasks": ["ToolTask"],
    "client.transport": ["Transport"],
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
